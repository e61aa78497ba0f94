"""Points and feedback go back into the files that an LMS exported, and nothing else in them changes."""

import csv
import importlib.util
import io
import os
import sqlite3
import sys
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import UsageError
from gradekit.batch import exports, feedback, intake
from gradekit.batch.gradebook import Line, to_csv
from gradekit.batch.intake import HandIn, Wanted, hand_ins
from tests.report.samples import PASSED, record

ADA = Line("1201", "softmax", "graded", 87.5, 100, name="Lovelace, Ada")
BOB = Line("cb", "softmax", "rejected", 0, 100, name="Charles Babbage")
CYD = Line("1203", "softmax", "fault", 0, 100)
LINES = (ADA, BOB, CYD)

CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Vector add (770),Softmax (771),Current Score\r\n"
    ",,,,,,Manual Posting,\r\n"
    "    Points Possible,,,,,50,100,(read only)\r\n"
    '"Lovelace, Ada",1201,al,ada,Mon,40,,80\r\n'
    '"Babbage, Charles",1202,cb,charles,Mon,41,12,81\r\n'
    '"Hopper, Grace",1203,gh,grace,Tue,42,EX,82\r\n'
)


def test_canvas_gets_its_own_file_back_with_one_column_filled() -> None:
    filled = exports.canvas(CANVAS, LINES, "771", 100)
    assert filled.text == (
        "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Softmax (771)\r\n"
        ",,,,,Manual Posting\r\n"
        "    Points Possible,,,,,100\r\n"
        '"Lovelace, Ada",1201,al,ada,Mon,87.5\r\n'
        '"Babbage, Charles",1202,cb,charles,Mon,0\r\n'
        '"Hopper, Grace",1203,gh,grace,Tue,EX\r\n'
    )
    assert (filled.filled, filled.without) == (2, ("Hopper, Grace",))
    assert exports.canvas(CANVAS, LINES, "Softmax", 100) == filled  # by the column's title, too


def test_whoever_canvas_has_excused_stays_excused() -> None:
    line = Line("1203", "softmax", "graded", 50, 100)
    assert "EX" in exports.canvas(CANVAS, [line], "771", 100).text.splitlines()[-1]


def test_a_grade_book_with_semicolons_keeps_them() -> None:
    text = CANVAS.replace('"', "").replace("Lovelace, Ada", "Lovelace Ada").replace(",", ";").replace("; ", ", ")
    assert exports.canvas(text, LINES, "771", 100).text.splitlines()[3] == "Lovelace Ada;1201;al;ada;Mon;87.5"


@pytest.mark.parametrize(("text", "column", "possible", "message"), [
    (CANVAS, "Matmul", 100, r"no assignment 'Matmul'; it has Vector add \(770\), Softmax \(771\)"),
    (CANVAS.replace("Vector add", "Softmax"), "Softmax", 100, "several assignments 'Softmax'"),
    (CANVAS, "771", 90, r"Softmax \(771\) is worth 100 points in Canvas, and 90 here: say scale = 100 .* in course\.toml"),
    ("a,b,c,d\n1,2,3,4\n", "771", 100, "no grade book from Canvas"),
    ("", "771", 100, "empty"),
])
def test_what_would_change_an_assignment_in_canvas_is_refused(
    text: str, column: str, possible: float, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        exports.canvas(text, LINES, column, possible)


MOODLE = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Feedback comments\n"
    "Participant 1201,Ada Lovelace,ada@example.edu,Submitted,,100.00,Yes,\n"
    "Participant 1202,Charles Babbage,charles@example.edu,Submitted,12.00,100.00,Yes,well\n"
)


def test_moodle_gets_its_own_worksheet_back() -> None:
    filled = exports.moodle(MOODLE, LINES, 100)
    assert filled.text == MOODLE.replace("Submitted,,", "Submitted,87.5,").replace("12.00,", "0,")
    assert filled.filled == 2


def test_a_worksheet_in_another_language_needs_its_headers_named() -> None:
    german = MOODLE.replace("Identifier", "ID").replace("Grade,Max", "Bewertung,Max")
    with pytest.raises(UsageError, match="no column 'Grade'"):
        exports.moodle(german, LINES, 100)
    assert exports.moodle(german, LINES, 100, grade="Bewertung").filled == 2


def test_other_points_in_moodle_are_refused() -> None:
    with pytest.raises(UsageError, match="worth 100 points in Moodle, and 90 here"):
        exports.moodle(MOODLE, LINES, 90)


def test_the_grade_book_is_this_table() -> None:
    odd = Line("x", "softmax", "graded", 1 / 3, 100, 20, 10, "=HYPERLINK(1)", "a@b.c", None, 2, "1 day late: 10 % less")
    rows = list(csv.reader(io.StringIO(to_csv([ADA, CYD, odd]))))
    assert rows[0][:5] == ["student", "name", "email", "assignment", "points"]
    assert rows[1] == ["1201", "Lovelace, Ada", "", "softmax", "87.5", "100", "0", "0", "graded", "", "0", ""]
    assert rows[2][4:8] == ["", "", "", ""], "a fault of the grader is no result"
    assert rows[3] == [
        "x", "'=HYPERLINK(1)", "a@b.c", "softmax", "0.33", "100", "20", "10", "graded", "", "2", "1 day late: 10 % less",
    ]  # fmt: skip


def test_canvas_is_told_from_moodle() -> None:
    assert exports.is_canvas(CANVAS) and not exports.is_canvas("Identifier,Full name,Grade,Maximum Grade\n")
    with pytest.raises(UsageError, match=r"--column: Canvas's grade book has Vector add \(770\)"):
        exports.canvas(CANVAS, LINES, "", 100)


def test_students_whose_keys_print_alike_are_two_rows() -> None:
    text = to_csv([Line("ada", "a", "graded", 1, 2), Line("ada ", "a", "graded", 2, 2), Line("ada\t", "a", "missing")])
    keys = [row["student"] for row in csv.DictReader(io.StringIO(text))]
    assert keys[0] == "ada" and len({key.strip() for key in keys}) == 3


# --- nbgrader's database, by nbgrader's own API -----------------------------------------------------------------------


API: Any = importlib.import_module("nbgrader.api") if importlib.util.find_spec("nbgrader") else None
OF_NBGRADER = pytest.mark.filterwarnings("ignore:::")  # what nbgrader does with SQLAlchemy is its own affair


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What nbgrader has after `nbgrader generate_assignment softmax`, and one student's hand-in."""
    if API is None:
        pytest.skip("needs nbgrader")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)  # it runs alembic, by its name
    file = tmp_path / "gradebook.db"
    with API.Gradebook(f"sqlite:///{file}", course_id="kernels") as book:
        book.add_assignment("softmax")
        book.add_notebook("softmax", "softmax")
        book.add_student("1201")
        book.add_student("1203")
        book.add_submission("softmax", "1201")
    return file


def scores(file: Path) -> dict[str, tuple[float, float]]:
    with API.Gradebook(f"sqlite:///{file}", course_id="kernels") as book:
        return {each.student_id: (each.score, each.max_score) for each in book.assignment_submissions("softmax")}


@OF_NBGRADER
def test_nbgrader_gets_points_in_a_cell_of_its_own_and_the_course_stays(database: Path) -> None:
    filled = exports.nbgrader(database, LINES, "softmax", "", 100)
    assert scores(database) == {"1201": (87.5, 100), "cb": (0, 100)}
    assert (filled.filled, filled.without) == (2, ("1203",))
    late = replace(ADA, points=90, possible=130, submitted=datetime(2026, 11, 3, 12, 30, tzinfo=UTC))
    exports.nbgrader(database, [late], "softmax", "", 130)
    assert scores(database)["1201"] == (90, 130)
    with API.Gradebook(f"sqlite:///{database}", course_id="kernels") as book:
        assert book.find_submission("softmax", "1201").timestamp == datetime(2026, 11, 3, 12, 30)


@OF_NBGRADER
def test_a_mark_in_nbgraders_formgrader_wins(database: Path) -> None:
    exports.nbgrader(database, LINES, "softmax", "", 100)
    with API.Gradebook(f"sqlite:///{database}", course_id="kernels") as book:
        book.find_grade(exports.OWN_CELL, "softmax", "softmax", "1201").manual_score = 95
        book.db.commit()
    exports.nbgrader(database, LINES, "softmax", "", 100)
    assert scores(database)["1201"] == (95, 100)


@OF_NBGRADER
def test_a_cell_of_nbgraders_own_is_filled_where_it_is_worth_the_same(database: Path) -> None:
    with API.Gradebook(f"sqlite:///{database}", course_id="kernels") as book:
        book.add_grade_cell("kernel", "softmax", "softmax", max_score=100, cell_type="code")
    exports.nbgrader(database, LINES, "softmax", "", 100)
    assert scores(database)["1201"] == (87.5, 100)
    with pytest.raises(UsageError, match="kernel is worth 100 points in nbgrader, and 130 here: say scale = 100"):
        exports.nbgrader(database, LINES, "softmax", "", 130)
    with pytest.raises(UsageError, match="--column; there are kernel"):
        exports.nbgrader(database, LINES, "softmax", "nothing", 100)
    with pytest.raises(UsageError, match="no assignment 'matmul'; it has softmax"):
        exports.nbgrader(database, LINES, "matmul", "", 100)


def test_without_nbgrader_its_database_is_told_from_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, table = tmp_path / "gradebook.db", tmp_path / "canvas.csv"
    table.write_text(CANVAS)
    with sqlite3.connect(file) as connection:
        connection.execute("create table course (id text)")
    assert exports.is_nbgrader(file) and not exports.is_nbgrader(table)
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    with pytest.raises(UsageError, match=r"a database of nbgrader's: pip install nbgrader"):
        exports.nbgrader(file, LINES, "softmax", "", 100)


# --- feedback goes back under the names that the LMS knows, and the times that it tells elsewhere count ---------------


SOFTMAX = Wanted(("submission", "softmax"), id="softmax", entry="softmax")
DOWNLOADS = {
    "canvas": ("lovelaceada_LATE_1234_5678_softmax-1.py", "1234", "lovelaceada_LATE_1234_5678_report.html"),
    "moodle's folders": (
        "Ada Lovelace_4711_assignsubmission_file_/softmax.py", "4711", "Ada Lovelace_4711_assignsubmission_file_/report.html",
    ),
    "moodle's files": (
        "Ada Lovelace_4711_assignsubmission_file_softmax.py", "4711", "Ada Lovelace_4711_assignsubmission_file_report.html",
    ),
    "canvas, no submission": ("hopper_1006_16_notes.pdf", "1006", "hopper_1006_16_report.html"),
    "moodle, no submission": (
        "Ada Lovelace_4711_assignsubmission_file_notes.pdf", "4711", "Ada Lovelace_4711_assignsubmission_file_report.html",
    ),
    "a folder": ("ada/submission.py", "ada", "ada/report.html"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "student", "name"), DOWNLOADS.values(), ids=DOWNLOADS)
def test_reports_have_the_names_of_the_download(tmp_path: Path, file: str, student: str, name: str) -> None:
    (tmp_path / "in" / file).parent.mkdir(parents=True)
    (tmp_path / "in" / file).write_text("def softmax(x): ...\n")
    (hand_in,) = hand_ins(tmp_path / "in", SOFTMAX)
    assert hand_in.student == student
    feedback.write(tmp_path / "out", student, record(PASSED))
    data, count = feedback.zipped([hand_in, replace(hand_in, student="nobody")], tmp_path / "out")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == [name] and b"Agrees with" in archive.read(name)
        assert count == 1 and archive.getinfo(name).compress_size < archive.getinfo(name).file_size / 2


def test_canvas_moodle_and_a_table_say_when_hand_ins_came(tmp_path: Path) -> None:
    file, noon = tmp_path / "times", datetime(2026, 12, 1, 12, 5, tzinfo=UTC)
    file.write_text('[{"user_id": 1234, "submitted_at": "2026-12-01T12:05:00Z"}, {"user_id": 1, "submitted_at": null}]')
    assert intake.times(file) == {"1234": noon}
    file.write_text(
        'Identifier,Full name,Last modified (submission)\nParticipant 4711,Ada,"Tuesday, 1 December 2026, 1:05 PM"\n'
        "Participant 4712,Bob,-\n"
    )
    assert intake.times(file, timezone(timedelta(hours=1))) == {"4711": noon}
    file.write_text("student,submitted\nada,2026-12-01T13:05:00+01:00\nbob,\n")
    assert intake.times(file) == {"ada": noon}
    found = intake.timed([HandIn("ada", file), HandIn("bob", file), HandIn("cyd", file, submitted=noon)], {"ada": noon})
    assert [hand_in.submitted for hand_in in found] == [noon, None, noon]


@pytest.mark.parametrize("text", ["name\nada\n", "student,submitted\nada,2026-12-01\n", "[{\"user_id\": 1, \"submitted_at\": \"?\"}]"])
def test_a_file_that_says_no_time_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "times").write_text(text)
    with pytest.raises(UsageError):
        intake.times(tmp_path / "times")
