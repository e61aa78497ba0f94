"""Starters follow from solutions, and students get the public files alone."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradekit.assignment import Assignment, AssignmentError, discover
from gradekit.cli import main
from gradekit.course.regions import RegionError, starter
from gradekit.course.release import generated, release, stale
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
    assert (after.exit_code, after.output) == (0, "copy: the starter is what its solution holds\n")


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


WITH_REGIONS = '''"""Adds."""

import torch

# solution:
BLOCK = 1024


def helper():
    return BLOCK
# end


def add(x, y):
    """Return x + y."""
    # solution:
    return x + y
    # student:
    # # TODO: add.
    #
    # raise NotImplementedError
    # end
'''

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
