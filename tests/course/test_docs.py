"""The pages for people agree with the code: names, commands, pictures, links, and the exercise of giou_loss."""

import ast
import importlib
import importlib.util
import itertools
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import gradekit
from gradekit.assignment import Assignment, discover, load
from gradekit.authoring import python_text
from gradekit.cli import main
from gradekit.course.handout import as_shown
from gradekit.findings import Kind, Outcome
from gradekit.inputs.layouts import LAYOUTS
from gradekit.inputs.value_kinds import PROFILES, WHOLE
from tests.graded import grade

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


# --- Figures ----------------------------------------------------------------------------------------------------------


ASSIGNMENTS = discover(ROOT / "assignments")

every_assignment = pytest.mark.parametrize("assignment", ASSIGNMENTS.values(), ids=lambda assignment: assignment.id)


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    """tools/figures.py, with its folder on the path, as when it is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        patch.setattr(sys, "dont_write_bytecode", True)
        spec = importlib.util.spec_from_file_location("figures", ROOT / "tools" / "figures.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


@every_assignment
def test_the_committed_picture_is_what_the_script_draws_within_its_sheet_and_shown_with_words(
    assignment: Assignment, figures: ModuleType
) -> None:
    drawn = figures.FIGURES[assignment.id]().svg()
    assert (assignment.folder / "figure.svg").read_text(encoding="utf-8") == drawn
    (shown,) = re.findall(r"!\[([^\]]+)\]\(figure\.svg\)", assignment.handout.read_text(encoding="utf-8"))
    assert len(shown.split()) >= 5
    root = ElementTree.fromstring(drawn)
    for element, (side, at) in itertools.product(root, (("width", "x"), ("height", "y"))):
        most = float(root.attrib[side]) - float(element.get(side, 0))
        assert 0 <= float(element.get(at, 0)) <= most, ElementTree.tostring(element)


def test_the_pictures_of_other_pages_are_what_the_script_draws(figures: ModuleType) -> None:
    """... and a page shows each, with words for those who cannot see it"""
    for place, figure in figures.MORE.items():
        path = ROOT / "assignments" / place
        assert path.read_text(encoding="utf-8") == figure().svg()
        (shown,) = re.findall(rf"!\[([^\]]+)\]\({path.name}\)", path.with_suffix(".md").read_text(encoding="utf-8"))
        assert len(shown.split()) >= 5


# --- Links ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def check_links(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/check_links.py, with its folder on the path, as when it is run."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("check_links")


def site(folder: Path, **pages: str) -> Path:
    for name, text in pages.items():
        folder.joinpath(f"{name}.html").write_text(text, encoding="utf-8")
    return folder


def test_files_and_anchors_that_are_there_are_fine(tmp_path: Path, check_links: ModuleType) -> None:
    a = '<h1 id="top">A</h1><a href="b.html#part">b</a><a href="#top">top</a><a href="https://example.invalid/x">out</a>'
    made = site(tmp_path, a=a, b='<h2 id="part">B</h2><a href="a.html?x=1">a</a>')
    assert list(check_links.broken(made)) == []
    assert check_links.external(made) == ["https://example.invalid/x"]


def test_what_leads_nowhere_is_named_with_its_page(tmp_path: Path, check_links: ModuleType) -> None:
    links = '<a href="gone.html">x</a><img src="b%20c.png"><a href="a.html#gone">y</a>'
    words = '<a href="#:~:text=two%20words">here</a><a href="#:~:text=no%20words">x</a><p>two <b>words</b></p>'
    made = site(tmp_path, a=links + words)
    assert list(check_links.broken(made)) == [
        "a.html: gone.html: no such file", "a.html: b%20c.png: no such file", "a.html: a.html#gone: no such anchor",
        "a.html: #:~:text=no%20words: no such words",
    ]  # fmt: skip
    assert check_links.main([str(made)]) == 1


# --- The exercise of giou_loss ----------------------------------------------------------------------------------------


ASSIGNMENT = load(ROOT / "assignments" / "giou_loss")
SOLUTIONS = ROOT / "solutions" / "giou_loss"


def printed() -> str:
    """The kernel as the page has it."""
    return (ASSIGNMENT.folder / "FIND_THE_BUG.md").read_text().partition("```python\n")[2].partition("```")[0]


def test_the_wrong_submission_is_the_kernel_that_the_page_prints() -> None:
    assert (SOLUTIONS / "wrong_published.py").read_text().endswith('"""\n\n' + printed())


def test_the_first_mistake_is_that_there_is_no_grid(tmp_path: Path) -> None:
    (tmp_path / "published.py").write_text(printed())
    report = grade(ASSIGNMENT, tmp_path / "published.py", keyword="test_contiguous_float32")
    assert "A kernel is launched with a grid" in report.checks[0].details["hint"]
    assert report.checks[0].source and report.checks[0].source.text.strip() == "giou_kernel(batch_size,)"


@pytest.mark.slow  # other right submissions of giou_loss are tried each time
def test_the_answer_earns_all_that_is_measured() -> None:
    report = grade(ASSIGNMENT, SOLUTIONS / "find_the_bug.py", profile="quick")
    lost = [check.id for check in report.checks if check.outcome is not Outcome.PASSED and check.kind is not Kind.SPEED]
    assert lost == []
