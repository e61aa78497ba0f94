"""Assignments are found from folders alone, and a wrong description or a wrong name is told plainly."""

from pathlib import Path

import pytest

from gradekit import assignment
from gradekit.assignment import AssignmentError, discover, get, load, of_path
from gradekit.submission import SubmissionError

TOML = 'title = "T"\nentry = "{entry}"\nsummary = "S"\n'


def add(root: Path, id: str, entry: str, more: str = "") -> Path:
    folder = root / "assignments" / id
    folder.mkdir(parents=True)
    (folder / "assignment.toml").write_text(TOML.format(entry=entry) + more)
    return folder


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    add(tmp_path, "vector_add", "add")
    add(tmp_path, "softmax", "softmax")
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(tmp_path / "assignments"))
    return tmp_path


def submit(folder: Path, code: str, name: str = "work.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(code)
    return folder / name


# --- one assignment ---------------------------------------------------------------------------------------------------


def test_a_folder_is_an_assignment(tmp_path: Path) -> None:
    folder = add(tmp_path, "loss", "giou", 'allow = ["aten::sum"]\nseed = 7\n')
    found = load(folder)
    assert (found.id, found.title, found.entry, found.summary) == ("loss", "T", "giou", "S")
    assert (found.allow, found.seed) == (("aten::sum",), 7)
    assert found.handout == folder / "README.md"
    assert found.starter == folder / "starter.py"
    assert found.tests == folder / "test_loss.py"


def test_the_staffs_folder_is_there_only_where_it_is_installed(tmp_path: Path) -> None:
    found = load(add(tmp_path, "softmax", "softmax"))
    assert found.solutions is None
    (tmp_path / "solutions" / "softmax").mkdir(parents=True)
    assert found.solutions == tmp_path / "solutions" / "softmax"


@pytest.mark.parametrize(("toml", "said"), [
    ('title = "T"\nentry = "f"\n', "has no summary"),
    ('titel = "T"\nentry = "f"\nsummary = "S"\n', "assignment.toml:1: titel is no key (did you mean title?)"),
    ('title = 3\nentry = "f"\nsummary = "S"\n', ":1: title is 3, but must be a string"),
    ('title = "T"\nentry = "not a name"\nsummary = "S"\n', "must be what a Python function can be called"),
    (TOML.format(entry="f") + 'allow = "sum"\n', ":4: allow is 'sum', but must be a list"),
    (TOML.format(entry="f") + "allow = [1]\n", "allow[0] is 1, but must be a string"),
    (TOML.format(entry="f") + "seed = true\n", "seed is True, but must be a whole number"),
    (TOML.format(entry="f") + 'allowed = ["aten::sum"]\n', ":4: allowed is no key (did you mean allow?)"),
    (TOML.format(entry="f") + 'kind = "quizz"\n', "kind is 'quizz', which it cannot be (did you mean quiz?)"),
    ("title = \n", "is not valid TOML"),
])
def test_a_wrong_description_names_the_key(tmp_path: Path, toml: str, said: str) -> None:
    (tmp_path / "assignment.toml").write_text(toml)
    with pytest.raises(AssignmentError, match="assignment.toml") as caught:
        load(tmp_path)
    assert said in str(caught.value)


# --- all of them ------------------------------------------------------------------------------------------------------


def test_the_environment_says_where_they_are(course: Path) -> None:
    assert list(discover()) == ["softmax", "vector_add"]


def test_the_nearest_folder_above_is_found(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADEKIT_ASSIGNMENTS")
    below = course / "students" / "ada"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    known = discover()
    assert {id for id, each in known.items() if each.folder.parent == course / "assignments"} == {"softmax", "vector_add"}
    assert known["matmul"].origin == "built-in" and known["softmax"].origin == str(course / "assignments")


def test_a_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match="no folder of assignments"):
        discover(tmp_path / "nothing")


def test_an_unknown_id_names_the_near_miss(course: Path) -> None:
    with pytest.raises(AssignmentError, match="there is no assignment 'sofmax'; did you mean softmax?"):
        get("sofmax")
    with pytest.raises(AssignmentError, match="there are softmax, vector_add"):
        get("zzz")


def test_no_assignments_at_all_says_how_to_name_their_folder() -> None:
    with pytest.raises(AssignmentError, match="set GRADEKIT_ASSIGNMENTS"):
        get("softmax", {})


# --- the one that a submission is for ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "given", "id"),
    [("softmax", "vector_add", "vector_add"), ("softmax", None, "softmax"), ("softmax/ada", None, "softmax"), ("ada", None, "vector_add")],
)
def test_the_given_id_tells_before_the_folder_and_the_folder_before_the_entry(
    course: Path, folder: str, given: str | None, id: str
) -> None:
    file = submit(course / folder, "def helper(): pass\ndef add(x, y): pass\n")
    assert of_path(file, given).id == id


@pytest.mark.parametrize(("text", "id"), [
    ("class A: pass\nsoftmax = A.apply\n", "softmax"),
    ("def add(x, y)\n    return (\n", "vector_add"),
])  # fmt: skip
def test_an_entry_that_is_assigned_or_stands_above_a_syntax_error_tells_too(course: Path, text: str, id: str) -> None:
    assert of_path(submit(course / "ada", text)).id == id


def test_a_started_folder_tells_by_its_tests(course: Path) -> None:
    submit(course / "ada", "", "test_softmax.py")
    assert of_path(submit(course / "ada", "def smax(x): pass\n", "submission.py").parent).id == "softmax"


def test_an_assignment_that_is_not_started_yet_is_told_with_the_command(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(course)
    with pytest.raises(AssignmentError, match="there is no folder softmax here yet: `gradekit start softmax` makes it"):
        of_path(Path("softmax"))


def test_an_unreadable_file_of_no_known_assignment_is_the_submissions_error(course: Path) -> None:
    with pytest.raises(SubmissionError, match="is empty"):
        of_path(submit(course / "ada", ""))


@pytest.mark.parametrize(("text", "said"), [
    ("def add(x, y): pass\ndef softmax(x): pass\n", r"more than one assignment \(softmax, vector_add\): say which with -a"),
    ("def sofmax(x): pass\n", "it defines sofmax; the assignment softmax asks for softmax"),
    ("def zzz(x): pass\n", "it defines none of softmax, add; say which with -a, or .*own with gradekit new ID --reference FILE.py:FUNCTION"),
])  # fmt: skip
def test_entries_of_several_of_none_or_nearly_of_one_are_told_with_the_way_out(course: Path, text: str, said: str) -> None:
    with pytest.raises(AssignmentError, match=said):
        of_path(submit(course / "ada", text))


def test_every_assignment_of_this_course_is_described_rightly() -> None:
    root = Path(assignment.__file__).parent.parent / "assignments"
    for found in discover(root).values():
        assert found.handout.is_file() and found.starter.is_file() and (found.is_quiz or found.tests.is_file())


def test_a_quiz_is_worth_what_its_questions_are_and_a_kernel_what_its_tests_are() -> None:
    assert {id: each.points for id, each in discover().items() if each.points != 100} == {}
