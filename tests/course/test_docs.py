"""The pages for people agree with the code: every name that gradekit offers is explained, every command exists."""

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import gradekit
from gradekit.assignment import discover
from gradekit.authoring import python_text
from gradekit.authoring.handout import as_shown
from gradekit.cli import main
from gradekit.inputs.layouts import LAYOUTS
from gradekit.inputs.value_kinds import PROFILES, WHOLE

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
INSTRUCTORS = (ROOT / "docs" / "instructors.md").read_text()


def test_every_name_that_gradekit_offers_is_explained() -> None:
    assert [name for name in gradekit.__all__ if not re.search(rf"`{name}\b", INSTRUCTORS)] == []


@pytest.mark.parametrize("id", [id for id, known in discover(ROOT / "assignments").items() if not known.is_quiz])
def test_every_check_names_words_that_its_handout_has_once(id: str) -> None:
    text = (ROOT / "assignments" / id / f"test_{id}.py").read_text()
    words = re.findall(r'(?m)^@points.*handout="(.+?)"', text)
    page = as_shown(ROOT / "assignments" / id / "README.md")
    assert len(words) == len(python_text.tests(ast.parse(text))) and [one for one in words if page.count(one) != 1] == []


def test_every_layout_and_kind_of_values_is_explained() -> None:
    assert [name for name in (*LAYOUTS, *PROFILES, *WHOLE) if not re.search(rf"\b{name}\b", INSTRUCTORS)] == []


def test_the_readme_shows_every_command_and_no_other() -> None:
    assert set(re.findall(r"^    (?:\$ )?gradekit (\w+)", README, flags=re.MULTILINE)) == set(main.commands)


def test_the_report_in_the_readme_is_what_the_wrong_submission_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "submission.py").write_text((ROOT / "solutions/vector_add/wrong_missing_mask.py").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # the page shows a machine without a GPU
    shown = CliRunner().invoke(main, ["check", "submission.py"], env={"COLUMNS": "80"}).stdout
    sample = re.search(r"(?ms)^    \$ gradekit check submission.py\n(.*?)^    Checked in", README)
    assert sample
    wanted = [line.removeprefix("    ").rstrip() for line in sample[1].splitlines()]
    assert [line.rstrip() for line in shown.partition("Checked in")[0].splitlines()] == wanted


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("assignments/*/*.md"), *ROOT.glob("examples/*/README.md")]


@pytest.mark.parametrize("name", sorted(set(main.commands) - {"server"}))
def test_every_option_of_a_command_that_a_page_shows_exists(name: str) -> None:
    known = {option for one in main.commands[name].params for option in (*one.opts, *one.secondary_opts)}
    shown = [line for page in PAGES for line in re.findall(rf"gradekit {name}\b[^`\n#]*", page.read_text())]
    assert shown and {option for line in shown for option in re.findall(r"(?<=\s)--?[a-z][\w-]*", line)} <= known | {"--lang", "--help"}


def test_every_command_that_a_page_shows_exists() -> None:
    shown = {(page.name, name) for page in PAGES for name in re.findall(r"(?m)(?:^    (?:\$ )?|`)gradekit ([a-z]+)", page.read_text())}
    assert {(page, name) for page, name in shown if name not in main.commands} == set()


def test_every_file_that_the_papers_link_to_exists() -> None:
    for file in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "instructors.md"):
        for target in re.findall(r"\]\((?!http)([^)#]+)", file.read_text()):
            assert (file.parent / target).exists(), f"{file.name}: {target}"


@pytest.mark.parametrize("file", sorted((ROOT / "docs").glob("*.md")), ids=lambda file: file.stem)
def test_every_page_begins_with_what_it_is_for(file: Path) -> None:
    heading, _, rest = file.read_text().partition("\n")
    first = rest.strip().splitlines()[0]
    is_prose = not re.match(r"[#|<!-]|```|    ", first) or "include} ../README.md" in first
    assert heading.startswith("# ") and is_prose and (len(first.split()) > 4 or "include}" in first), first
