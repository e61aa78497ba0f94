"""What students get: starters that follow from solutions, public files alone, a folder of their own, and a notebook."""

import base64
import json
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner

from gradekit.assignment import Assignment, AssignmentError, UsageError, discover, get
from gradekit.authoring.lint import lint
from gradekit.cli import main
from gradekit.course import attempts
from gradekit.course.handout import BEGIN, END
from gradekit.course.regions import RegionError, starter
from gradekit.course.release import generated, release, stale
from gradekit.course.start import start
from gradekit.course.worksheet import worksheet
from gradekit.submission import notebook
from tests.beside import beside
from tests.report.samples import PASSED, record
from tests.small import laid_out

SOLUTION = '''"""D."""


def f(x):
    # solution:
    return x
    # student:
    # raise NotImplementedError
    # end
'''


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assignment:
    """An assignment `copy`, with a solution, and a starter that is out of date."""
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(tmp_path / "assignments"))
    students = {"README.md": "# Copy\n", "figure.svg": "<svg/>", "starter.py": "old\n"}
    return laid_out(tmp_path, "copy", "f", students | {"solutions/solution.py": SOLUTION, "solutions/wrong_a.py": ""})


def test_the_starter_is_written_into_the_assignment(copy: Assignment) -> None:
    assert release(copy) == [copy.starter]
    assert copy.starter.read_text() == generated(copy)
    assert stale(copy) == ""


def test_students_get_the_public_files_alone(copy: Assignment, tmp_path: Path) -> None:
    files = release(copy, tmp_path / "course")
    assert sorted(file.name for file in files) == ["README.md", "assignment.toml", "figure.svg", "starter.py"]
    assert (tmp_path / "course" / "copy" / "starter.py").read_text() == generated(copy)
    assert copy.starter.read_text() == "old\n"


def test_a_starter_that_differs_from_its_solution_is_shown_as_a_diff(copy: Assignment) -> None:
    assert "-old\n" in stale(copy)
    assert "+    raise NotImplementedError\n" in stale(copy)


def test_a_handouts_table_is_made_anew_from_the_domain(copy: Assignment, tmp_path: Path) -> None:
    """Students are promised the sizes that the tests draw"""
    domain = '[f]\narguments = ["x"]\nresult = { shape = ["N"], dtype = "float32" }\n[f.sizes]\nN = { most = 4096, drawn = 60 }\n'
    (copy.folder / "domain.toml").write_text(domain + '[f.tensors.x]\nshape = ["N"]\ndtype = "float32"\n')
    copy.handout.write_text(f"# Copy\n\n{BEGIN}\nN: 1 to 65536.\n{END}\n")
    assert "-N: 1 to 65536.\n" in stale(copy)
    said = f"{copy.folder}: the starter, or the handout's table, is out of date: gradekit release copy"
    assert said in [complaint.text for complaint in lint(copy.folder)]
    release(copy, tmp_path / "course")
    assert "\nN: 1 to 4096." in (tmp_path / "course" / "copy" / "README.md").read_text()
    release(copy)
    assert stale(copy) == "" and said not in [complaint.text for complaint in lint(copy.folder)]


@pytest.mark.parametrize(("file", "content", "told"), [
    ("README.md", f"{BEGIN}{END}\xff", "README.md is not UTF-8"), ("README.md", f"{BEGIN}{END}", "domain.toml cannot be opened"),
    ("../../solutions/copy/solution.py", "\xff", "solution.py is not UTF-8"),
])
def test_an_authors_mistake_is_wrong_usage_of_release(copy: Assignment, file: str, content: str, told: str) -> None:
    (copy.folder / file).write_bytes(content.encode("latin-1"))
    done = CliRunner().invoke(main, ["release", "copy"])
    assert done.exit_code == 2 and told in done.output
    assert CliRunner().invoke(main, ["lint", "copy"]).exit_code == 1


def test_lint_notes_a_solution_of_which_no_starter_can_be_made(copy: Assignment) -> None:
    assert copy.solution
    copy.solution.write_text('"""D."""\n\n\ndef f(x):\n    return x\n')
    (told,) = (complaint for complaint in lint(copy.folder) if "marks no region" in complaint.text)
    assert told.is_note and told.text.startswith(str(copy.solution))


def test_without_the_staffs_folder_there_is_nothing_to_release(copy: Assignment) -> None:
    (copy.folder.parent.parent / "solutions").rename(copy.folder / "elsewhere")
    with pytest.raises(AssignmentError, match="by the staff"):
        release(copy)


def test_wrong_marks_are_told_with_the_solutions_name(copy: Assignment) -> None:
    assert copy.solutions
    (copy.solutions / "solution.py").write_text("# end\n")
    with pytest.raises(AssignmentError, match=r"solution\.py: line 1"):
        generated(copy)


def test_the_command_checks_and_releases(copy: Assignment) -> None:
    before = CliRunner().invoke(main, ["release", "--check"])
    assert (before.exit_code, "-old" in before.output) == (1, True)
    assert CliRunner().invoke(main, ["release", "copy"]).exit_code == 0
    after = CliRunner().invoke(main, ["release", "copy", "--check"])
    assert (after.exit_code, after.output) == (0, "copy: starter and handout are up to date\n")


def test_a_release_has_a_notebook_where_it_is_asked_for_which_installs_what_the_course_names(copy: Assignment, tmp_path: Path) -> None:
    source, made = "https://example.org/gradekit.whl", tmp_path / "course" / "copy" / "submission.ipynb"
    words = ["release", "copy", str(tmp_path / "course")]
    assert CliRunner().invoke(main, words).exit_code == 0 and not made.exists()
    assert CliRunner().invoke(main, [*words, "--notebook", "--install", source]).exit_code == 0
    assert source in made.read_text()


# --- every committed starter is what its solution holds ---------------------------------------------------------------


ASSIGNMENTS = discover(Path(__file__).parents[2] / "assignments")


@pytest.mark.parametrize("assignment", ASSIGNMENTS.values(), ids=lambda assignment: assignment.id)
def test_the_starter_is_what_the_solution_holds(assignment: Assignment) -> None:
    assert stale(assignment) == ""


# --- A starter is what a solution's marked regions leave --------------------------------------------------------------


WITH_REGIONS = beside(__file__)["with_regions"]

STARTER = '''"""Vector add: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch


def add(x, y):
    """Return x + y."""
    # TODO: add.

    raise NotImplementedError
'''


def test_regions_give_way_to_what_the_student_finds_there() -> None:
    assert starter(WITH_REGIONS, "Vector add") == STARTER


def test_a_function_that_takes_the_place_of_a_constant_stands_apart_from_the_imports() -> None:
    text = '"""D."""\n\nimport torch\n\n# solution:\nN = 1\n# student:\n# def f():\n#     pass\n# end\n'
    assert starter(text, "T").endswith("import torch\n\n\ndef f():\n    pass\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"""D."""\nx = 1\n', "marks no region"),
        ('"""D."""\n# solution:\nx = 1\n', "line 2: '# solution:' opens no region"),
        ('"""D."""\n# end\n', "line 2: '# end' opens no region"),
        ('"""D."""\n# solution:\n# solution:\n# end\n# end\n', "line 2"),
        ('"""D."""\n# solution:\n# student:\nx = 1\n# end\n', "line 4: a student's line must be a comment"),
        ('"""D."""\n# solution:\nx = 1\n# student:\n# x = (\n# end\n', "not Python"),
        ("# solution:\nx = 1\n# end\ny = 2\n", "does not begin with a docstring"),
    ],
)
def test_marks_that_are_wrong_are_told_with_their_line(text: str, complaint: str) -> None:
    with pytest.raises(RegionError, match=complaint):
        starter(text, "T")


# --- A student's folder -----------------------------------------------------------------------------------------------


@pytest.fixture
def softmax(tmp_path: Path) -> Assignment:
    names = ("README.md", "starter.py", "test_softmax.py")
    return laid_out(tmp_path, "softmax", "softmax", {name: f"this is {name}" for name in names})


def test_the_starter_becomes_the_submission(softmax: Assignment, tmp_path: Path) -> None:
    files = start(softmax, tmp_path / "mine" / "softmax")
    assert [file.name for file in files] == ["README.md", "submission.py", "test_softmax.py", "assignment.toml"]
    assert (tmp_path / "mine" / "softmax" / "submission.py").read_text() == "this is starter.py"


def test_nothing_is_overwritten_and_nothing_is_half_done(softmax: Assignment, tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text("mine")
    with pytest.raises(UsageError) as caught:
        start(softmax, tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'submission.py'} would be overwritten")
    assert (tmp_path / "submission.py").read_text() == "mine"
    assert not (tmp_path / "README.md").exists()


def test_force_overwrites_and_keeps_a_copy_of_what_the_student_wrote(softmax: Assignment, tmp_path: Path) -> None:
    for mine in ("mine", "mine again"):
        (tmp_path / "submission.py").write_text(mine)
        files = start(softmax, tmp_path, force=True)
        assert (tmp_path / "submission.py").read_text() == "this is starter.py"
        assert files[-1].read_text() == mine
    assert {path.name for path in tmp_path.glob("*.before-*")} == {"submission.py.before-1", "submission.py.before-2"}


def test_force_keeps_no_copy_of_what_nobody_has_changed(softmax: Assignment, tmp_path: Path) -> None:
    start(softmax, tmp_path)
    assert start(softmax, tmp_path, force=True)
    assert not list(tmp_path.glob("*.before-*"))


# --- A student's own attempts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "3", json.dumps({"when": "", "earned": "many", "possible": 1, "pending": 0}),
     json.dumps({"when": "", "earned": 1, "possible": 1})],
)  # fmt: skip
def test_a_line_that_is_no_attempt_is_passed_over(line: str, tmp_path: Path) -> None:
    attempts.add(tmp_path, record(PASSED))
    with (tmp_path / attempts.FILE).open("a") as file:
        file.write(line + "\n")
    assert [attempt.said for attempt in attempts.read(tmp_path)] == ["40 of 40 points"]


# --- The notebook of an assignment ------------------------------------------------------------------------------------


HANDOUT = "# Copy\n\nWords.\n\n![a tile](figure.svg) and ![none](gone.svg)\n\n## Your task\n\nWrite it.\n"
TODO = '"""Copy: fill in the TODOs."""\n\nimport torch\n\n\ndef f(x):\n    raise NotImplementedError\n'


@pytest.fixture
def to_copy(tmp_path: Path) -> Assignment:
    files = {"README.md": HANDOUT, "starter.py": TODO, "figure.svg": "<svg/>", "test_copy.py": ""}
    return laid_out(tmp_path, "copy", "f", files)


def test_it_is_a_valid_notebook_of_the_handout_then_the_starter_then_the_check(to_copy: Assignment) -> None:
    book = nbformat.reads(worksheet(to_copy), as_version=4)
    nbformat.validate(book)
    kinds = [cell.cell_type for cell in book.cells]
    assert kinds == ["markdown", "code", "markdown", "markdown", "code", "code"]
    assert book.cells[2].source == "## Your task\n\nWrite it."
    assert book.cells[4].source == "import torch\n\n\ndef f(x):\n    raise NotImplementedError"
    assert book.cells[5].source == 'gradekit.check("copy")'


def test_pictures_travel_inside(to_copy: Assignment) -> None:
    first = json.loads(worksheet(to_copy))["cells"][0]["source"]
    picture = base64.b64encode(b"<svg/>").decode()
    assert f"![a tile](data:image/svg+xml;base64,{picture}) and ![none](gone.svg)" in "".join(first)


def setup(assignment: Assignment, source: str = "") -> str:
    return "".join(json.loads(worksheet(assignment, source))["cells"][1]["source"])


def test_the_first_code_cell_installs_what_the_course_names_or_the_wheel_beside_the_notebook(to_copy: Assignment) -> None:
    assert '%pip install -q "https://example.org/gradekit.whl"' in setup(to_copy, "https://example.org/gradekit.whl")
    assert "%pip install -q ./gradekit-*.whl" in setup(to_copy)
    assert "which your course hands out with this notebook" in setup(to_copy)


def markdown(assignment: Assignment) -> list[str]:
    return ["".join(c["source"]) for c in json.loads(worksheet(assignment))["cells"] if c["cell_type"] == "markdown"]


def test_its_words_speak_of_cells_where_the_handout_speaks_of_a_file(to_copy: Assignment) -> None:
    words = "    gradekit check submission.py\n\n`gradekit check -k a`\n`gradekit bench submission.py`\nin `submission.py`.\n"
    to_copy.handout.write_text("# Copy\n\n" + words)
    assert markdown(to_copy)[0].removeprefix("# Copy\n\n").splitlines() == [
        "    %gradekit copy", "", "`%gradekit copy -k a`", "`gradekit bench submission.ipynb`",
        "in the cell under “Your code”.",
    ]  # fmt: skip


def test_other_pages_travel_inside(to_copy: Assignment) -> None:
    to_copy.handout.write_text("# Copy\n\nSee [more](more.md).\n")
    (to_copy.folder / "more.md").write_text("# More to read\n\nMore.\n")
    assert markdown(to_copy)[:2] == ["# Copy\n\nSee “More to read” (below).", "# More to read\n\nMore."]


def test_what_is_graded_of_it_is_the_starter(to_copy: Assignment) -> None:
    text = notebook.read(worksheet(to_copy), entry="f").text
    assert "def f(x):" in text
    assert "gradekit.check" not in text


def test_start_lays_out_the_notebook_in_place_of_handout_and_starter(to_copy: Assignment, tmp_path: Path) -> None:
    files = start(to_copy, tmp_path / "mine", notebook=True)
    assert sorted(file.name for file in files) == ["assignment.toml", "submission.ipynb", "test_copy.py"]
    assert (tmp_path / "mine" / "submission.ipynb").read_text(encoding="utf-8") == worksheet(to_copy)


def test_a_quiz_that_was_begun_is_started_too(tmp_path: Path) -> None:
    start(get("lesson"), tmp_path)
    assert attempts.is_started(tmp_path, "lesson")
    assert not attempts.is_started(tmp_path, "softmax") and not attempts.is_started(tmp_path / "none", "")


def test_a_notebook_names_a_check_that_is_there_and_its_cell() -> None:
    text = worksheet(get("histogram"))
    assert "-k test_counts`" in text and "-k dtype" not in text
    assert "fill in the TODOs in this cell," in text and "TODOs in this file" not in text
