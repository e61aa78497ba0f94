"""Folders as LMSes leave them become one hand-in for each student, whatever else lies there."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gradekit.assignment import UsageError, get
from gradekit.batch import intake
from gradekit.batch.grader import content
from gradekit.batch.intake import HandIn, Wanted, aside, hand_ins
from gradekit.batch.store import Store

WANTED = Wanted(("submission", "softmax"))


def lay(root: Path, *files: str) -> Path:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    return root


def found(root: Path) -> dict[str, str]:
    return {h.student: h.problem or str(h.path.relative_to(root)) for h in hand_ins(root, WANTED)}


OF_MOODLE = "Ada_4711_assignsubmission_file_submission.py"
LIKE_A_HAND_IN = "Eve_4712_assignsubmission_file_z_4711_assignsubmission_file_submission.py"
LIKE_A_NUMBER = "Eve_4711_assignsubmission_file__10_assignsubmission_file_submission.py"
NOTHING = "there is no .py, .ipynb or .zip file"
LAID = {
    "a folder for each student": (
        ["ada/submission.py", "bob/softmax.ipynb", "cyd/mine.py", ".git/config", "README.md"],
        {"ada": "ada/submission.py", "bob": "bob/softmax.ipynb", "cyd": "cyd/mine.py"},
    ),
    "a file for each student": (["ada.py", "bob.zip", "grades.csv"], {"ada": "ada.py", "bob": "bob.zip"}),
    "among several files the name decides": (
        ["ada/submission.py", "ada/test_softmax.py", "bob/softmax (2).py", "bob/helpers.py"],
        {"ada": "ada/submission.py", "bob": "bob/softmax (2).py"},
    ),
    "tests that were handed out are no submission": (["ada/mine.py", "ada/test_softmax.py", "ada/conftest.py"], {"ada": "ada/mine.py"}),
    "one folder down": (["ada/homework/submission.py"], {"ada": "ada/homework/submission.py"}),
    "a Canvas download": (
        ["lovelaceada_1201_5501_softmax.py", "babbagecharles_LATE_1202_5502_submission-2.py", "babbagecharles_LATE_1202_5502_notes.py",
         "hoppergrace_1203_5503_old.py", "hoppergrace_1203_5509_new.py"],
        {"1201": "lovelaceada_1201_5501_softmax.py", "1202": "babbagecharles_LATE_1202_5502_submission-2.py",
         "1203": "hoppergrace_1203_5509_new.py"},
    ),
    "who only typed something into Moodle": (
        ["Ada_4711_assignsubmission_file_/submission.py", "Bob_4712_assignsubmission_onlinetext_/online.html"],
        {"4711": "Ada_4711_assignsubmission_file_/submission.py", "4712": NOTHING},
    ),
    "a file that is named like another's hand-in": ([OF_MOODLE, LIKE_A_HAND_IN], {"4711": OF_MOODLE, "4712": LIKE_A_HAND_IN}),
    "a name that is like another's number": (
        [OF_MOODLE, LIKE_A_NUMBER],
        {"4711": OF_MOODLE,
         LIKE_A_NUMBER: "its name can be read as participant 4711's, who has handed in under another name: whose is it?"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "students"), LAID.values(), ids=LAID)
def test_each_student_has_one_hand_in(tmp_path: Path, files: list[str], students: dict[str, str]) -> None:
    assert found(lay(tmp_path, *files)) == students


def test_files_of_which_none_stands_out_are_a_problem_of_that_student_alone(tmp_path: Path) -> None:
    lay(tmp_path, "ada/one.py", "ada/two.py", "bob/submission.py", "cyd/essay.pdf")
    problems = found(tmp_path)
    assert "several files" in problems["ada"] and "one.py, two.py" in problems["ada"]
    assert problems["bob"] == "bob/submission.py"
    assert problems["cyd"] == NOTHING


def test_answers_are_toml_and_what_the_course_handed_out_is_none(tmp_path: Path) -> None:
    lay(tmp_path, "ada/answers.toml", "ada/questions.toml", "bob/mine.toml", "cyd/submission.py", "dan/quiz.ipynb")
    wanted = Wanted.by(get("lesson"))
    assert {h.student: h.problem or h.path.name for h in hand_ins(tmp_path, wanted)} == {
        "ada": "answers.toml", "bob": "mine.toml", "cyd": "there is no .toml or .ipynb file", "dan": "quiz.ipynb",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["mine.zip", "mine.tar.gz", "mine.tgz", "MINE.ZIP"])
def test_an_archive_is_a_submission(tmp_path: Path, name: str) -> None:
    assert found(lay(tmp_path, f"ada/{name}"))["ada"] == f"ada/{name}"


def test_a_link_is_no_submission(tmp_path: Path) -> None:
    lay(tmp_path, "ada/submission.py", "bob/notes.txt")
    (tmp_path / "bob" / "submission.py").symlink_to(tmp_path / "ada" / "submission.py")
    assert "there is no" in found(tmp_path)["bob"]


@pytest.mark.parametrize("files", [
    ["_4711_assignsubmission_file_/submission.py", "_4711_assignsubmission_onlinetext_/onlinetext.html", "file/softmax.ipynb"],
    ["_4711_assignsubmission_file_submission.py", "file_hw.zip"],
], ids=["folders", "all in the files' names"])
def test_a_moodle_download(tmp_path: Path, files: list[str]) -> None:
    lay(tmp_path, *(f"Ada Lovelace{name}" for name in files[:-1]), f"Bob_4712_assignsubmission_{files[-1]}")
    assert [(h.student, h.name, h.problem) for h in hand_ins(tmp_path, WANTED)] == [
        ("4711", "Ada Lovelace", ""), ("4712", "Bob", ""),
    ]  # fmt: skip


def test_two_hand_ins_with_one_number_are_kept_apart_and_refused_by_name(tmp_path: Path) -> None:
    names = ("Ada Lovelace_4711_assignsubmission_file_/a.py", "Eve_4711_assignsubmission_file_/a.py")
    lay(tmp_path, *names, "Bob_4712_assignsubmission_file_c.py")
    ada, eve, bob = hand_ins(tmp_path, WANTED)
    assert [one.student for one in (ada, eve, bob)] == [f"4711 ({names[0]})", f"4711 ({names[1]})", "4712"]
    said = f"2 hand-ins are called 4711's ({', '.join(names)}): whose are they, and which one counts?"
    assert [one.problem for one in (ada, eve, bob)] == [said, said, ""]


def test_a_folder_and_a_file_of_one_name_are_two_hand_ins(tmp_path: Path) -> None:
    lay(tmp_path, "ada/submission.py", "ada.py", "bob.py")
    assert [(one.student, bool(one.problem)) for one in hand_ins(tmp_path, WANTED)] == [
        ("ada (ada.py)", True), ("ada (ada/submission.py)", True), ("bob", False),
    ]  # fmt: skip


def test_what_is_nobodys_is_named(tmp_path: Path) -> None:
    lay(tmp_path, "ada_12_34_submission.py", "ada_12_34_helpers.py", "renamed.py", "notes.txt")
    assert aside(tmp_path, hand_ins(tmp_path, WANTED), WANTED) == ["renamed.py"]


def test_a_name_in_another_encoding_is_a_student_like_others(tmp_path: Path) -> None:
    lay(tmp_path, "ada/submission.py", os.fsdecode(b"m\xfcller/submission.py"))
    ada, mueller = hand_ins(tmp_path, WANTED)
    assert (ada.student, mueller.student) == ("ada", r"m\udcfcller")
    store = Store(f"sqlite:///{tmp_path}/class.db")
    store.add_hand_ins("softmax", [mueller])
    assert store.hand_ins("softmax") == [mueller]


METADATA = """
submission_101:
  :submitters:
  - :name: Ada Lovelace
    :sid: '1815'
    :email: ada@example.edu
  - :name: Charles Babbage
    :sid: ''
    :email: charles@example.edu
  :created_at: 2026-11-02 14:58:23.948203000 -08:00
  :score: 12.0
"""


def test_a_gradescope_export_has_one_hand_in_for_each_member_of_a_group(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    lay(tmp_path, "submission_101/submission.py")
    (tmp_path / "submission_metadata.yml").write_text(METADATA)
    ada, charles = hand_ins(tmp_path, WANTED)
    assert (ada.student, charles.student) == ("1815", "charles@example.edu")
    assert ada.path == charles.path == tmp_path / "submission_101" / "submission.py"
    assert ada.submitted == datetime(2026, 11, 2, 22, 58, 23, 948203, tzinfo=UTC)


def test_an_nbgrader_tree(tmp_path: Path) -> None:
    lay(tmp_path, "submitted/ada/softmax/softmax.ipynb", "submitted/bob/softmax/softmax.ipynb")
    (tmp_path / "submitted/ada/softmax/timestamp.txt").write_text("2026-11-02 14:58:23.948203 America/Los_Angeles\n")
    (tmp_path / "submitted/bob/softmax/timestamp.txt").write_text("yesterday\n")
    ada, bob = hand_ins(tmp_path, WANTED)
    assert (ada.student, bob.student, bob.submitted) == ("ada", "bob", None)
    assert ada.submitted is not None
    assert ada.submitted.astimezone(UTC) == datetime(2026, 11, 2, 22, 58, 23, 948203, tzinfo=UTC)


def test_an_nbgrader_tree_of_several_assignments(tmp_path: Path) -> None:
    lay(tmp_path, "submitted/ada/softmax/softmax.ipynb", "submitted/bob/matmul/matmul.ipynb")
    for folder in ("ada/softmax", "bob/matmul"):
        (tmp_path / "submitted" / folder / "timestamp.txt").write_text("2026-11-02 14:58:23 UTC\n")
    assert [h.student for h in hand_ins(tmp_path, Wanted.by(get("softmax")))] == ["ada"]
    with pytest.raises(UsageError, match="several assignments, and none is vector_add: matmul, softmax"):
        hand_ins(tmp_path, Wanted.by(get("vector_add")))


@pytest.mark.parametrize("files", [(), ("notes.txt",), ("essays/ada.pdf",)])
def test_a_folder_without_submissions_is_refused(tmp_path: Path, files: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"expected a folder or a \.py"):
        hand_ins(lay(tmp_path, *files), WANTED)


# --- the class list -----------------------------------------------------------------------------------------------------

CLASS = (
    'Student,SIS User ID,Email,Name\nx,ada1,ada@example.edu,"Lovelace, Ada"\ny,cb,charles@example.edu,Charles Babbage\n'
)


def test_hand_ins_go_by_the_class_lists_names(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text("\ufeff" + CLASS)
    students = intake.class_list(tmp_path / "class.csv")
    assert [student.student for student in students] == ["ada1", "cb"]
    here = Path("x.py")
    given = [HandIn("17", here, "lovelaceada"), HandIn("charles@example.edu", here), HandIn("zoe", here)]
    assert [h.student for h in intake.matched(given, students)] == ["ada1", "cb", "zoe"]
    assert intake.strangers(intake.matched(given, students), students) == ["zoe"]
    assert intake.strangers(given, []) == []


@pytest.mark.parametrize(
    "header", ["Student ID,First name,Last name", "student_id,first_name,last_name", "SID,First,Last"]
)
def test_columns_are_known_by_any_spelling(tmp_path: Path, header: str) -> None:
    (tmp_path / "class.csv").write_text(f"{header}\n1234,Ada,Lovelace\n")
    assert intake.class_list(tmp_path / "class.csv") == [intake.Student("1234", "Ada Lovelace", "", ("1234",))]


def test_a_name_that_two_students_have_matches_neither(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text("id,name\n1,Ada Lovelace\n2,Ada Lovelace\n")
    (hand_in,) = intake.matched([HandIn("x", Path("x.py"), "Ada Lovelace")], intake.class_list(tmp_path / "class.csv"))
    assert hand_in.student == "x"


def test_a_class_list_without_ids_is_refused(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text("group,team\n1,2\n")
    with pytest.raises(UsageError, match="it has group, team"):
        intake.class_list(tmp_path / "class.csv")


@pytest.mark.parametrize("before", ["bob_77_88_", "bob_LATE_77_88_", "Bob B_12_assignsubmission_file_"])
@pytest.mark.parametrize("number", ["", "-2"])
def test_modules_of_a_hand_in_that_lies_flat_among_others_are_its_own(tmp_path: Path, before: str, number: str) -> None:
    lay(tmp_path, f"{before}softmax{number}.py", f"{before}utils{number}.py", "utils.py", "eve_1_2_utils.py")
    (tmp_path / f"{before}softmax{number}.py").write_text("from utils import x as y\nimport torch\n")
    (tmp_path / f"{before}utils{number}.py").write_text("x = 'mine'\n")
    hand_in = next(h for h in hand_ins(tmp_path, WANTED) if "softmax" in h.path.name)
    text = content(hand_in.path).decode()
    assert "x = 'mine'" in text and "x = 1" not in text and "y = x" in text


def test_no_link_leads_to_a_neighbours_files(tmp_path: Path) -> None:
    lay(tmp_path, "ada/code/submission.py", "eve/notes.txt", "fay/notes.txt")
    (tmp_path / "eve" / "code").symlink_to(tmp_path / "ada" / "code")
    (tmp_path / "gus").symlink_to(tmp_path / "ada")
    problems = found(tmp_path)
    assert problems["ada"] == "ada/code/submission.py"
    for student in ("eve", "gus"):
        assert problems[student] == f"{NOTHING}; links are not followed"
    assert problems["fay"] == NOTHING


def test_canvas_says_who_was_late(tmp_path: Path) -> None:
    lay(tmp_path, "lovelaceada_1201_5501_softmax.py", "babbagecharles_LATE_1202_5502_submission.py")
    assert {h.student: h.late for h in hand_ins(tmp_path, WANTED)} == {"1201": False, "1202": True}


def test_of_several_files_the_one_that_defines_the_entry_is_meant(tmp_path: Path) -> None:
    lay(tmp_path, "ada/helpers.py", "bob/helpers.py")
    (tmp_path / "ada/main.py").write_text("def softmax(x):\n    return x\n")
    wanted = Wanted(("submission", "softmax"), entry="softmax")
    assert {h.student: h.path.name for h in hand_ins(tmp_path, wanted)} == {"ada": "main.py", "bob": "helpers.py"}


def test_canvas_class_list_gives_ids_and_names(tmp_path: Path) -> None:
    (tmp_path / "canvas.csv").write_text(
        "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Softmax (771)\n    Points Possible,,,,,100\n"
        '"Lovelace, Ada",1201,al,ada,Mon,\n"Student, Test",99,t,t,,\n'
    )
    assert intake.class_list(tmp_path / "canvas.csv") == [intake.Student("1201", "Ada Lovelace", "", ("1201", "al", "ada"))]


def test_a_list_of_nothing_but_students_has_them_for_keys(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text("student\nada\n")
    assert intake.class_list(tmp_path / "class.csv")[0].student == "ada"
