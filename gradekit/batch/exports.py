"""Grade files that an LMS exported, filled in and handed back: Canvas's grade book, Moodle's grading worksheet, and the
database of nbgrader.

Never written from nothing: Canvas makes a new assignment of a column that it does not know, and Moodle's headers are in
the site's language. Only the cells of one assignment change, and only for students who have a result.
"""

import csv
import io
import json
import re
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gradekit.assignment import UsageError
from gradekit.batch.gradebook import Line
from gradekit.batch.intake import by_word
from gradekit.report.text import one_line, points


@dataclass(frozen=True)
class Filled:
    """The `text` to hand back ("" for a database), how many students have a result in it, and who has none."""

    text: str
    filled: int
    without: tuple[str, ...]


Row = list[str]


def fill(
    export: Path, target: Path, lines: Sequence[Line], assignment: str, *, column: str | None, grade_column: str
) -> Filled:
    """Write to `target` the file `export` of an LMS with the points of `lines`; nbgrader's database takes its place
    once it is whole. Raises UsageError where it cannot be filled: see `canvas`, `moodle` and `nbgrader`."""
    possible = worth(lines)
    if is_nbgrader(export):
        with tempfile.TemporaryDirectory(dir=target.resolve().parent) as folder:
            copy = Path(shutil.copyfile(export, Path(folder, target.name)))
            filled = nbgrader(copy, lines, assignment, column or "", possible)
            copy.replace(target)
        return filled
    try:
        text = export.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{export} is not UTF-8, as the LMS exports it: was it saved by a spreadsheet?") from None
    if column is not None or is_canvas(text):
        filled = canvas(text, lines, column or "", possible)
    else:
        filled = moodle(text, lines, possible, grade=grade_column)
    target.write_text(filled.text, encoding="utf-8", newline="")
    return filled


def worth(lines: Iterable[Line]) -> float:
    """What the assignment is worth here, by its lines."""
    return max((line.possible for line in lines), default=0.0)


def canvas(text: str, lines: Iterable[Line], column: str, possible: float) -> Filled:
    """Canvas's grade book with the column of this title or id filled, and the other assignments left out. Raises
    UsageError where it is no Canvas file, has no such column or several, or the assignment's points differ there."""
    rows, write = _table(text)
    header = rows[0]
    if not _is_canvas(header):
        raise UsageError(f"this is no grade book from Canvas: its header begins {', '.join(header[:4])}")
    target = _canvas_column(header, column)
    worth = next((row for row in rows[1:3] if row and "Points Possible" in row[0]), None)
    check_worth(header[target], "Canvas", None if worth is None else _number(worth[target]), possible)
    names = ("ID", "SIS User ID", "SIS Login ID", "Student")
    result = _fill(rows, target, names, lines)
    kept = [*range(header.index("Section") + 1), target]  # who a student is, and the points
    return Filled(write([[_at(row, i) for i in kept] for row in rows]), *result)


def is_canvas(text: str) -> bool:
    """Whether it is a grade book from Canvas."""
    return _is_canvas(_table(text)[0][0])


def moodle(text: str, lines: Iterable[Line], possible: float, *, grade: str = "Grade") -> Filled:
    """Moodle's grading worksheet, filled. On a site in another language, name its header for the grade. Raises
    UsageError where it is no worksheet, or the assignment is worth other points there."""
    rows, write = _table(text)
    header = rows[0]
    if grade not in header:
        raise UsageError(
            f"the worksheet has no column {grade!r}; it has {', '.join(header)}. Name it with --grade-column"
        )
    target = header.index(grade)
    most = next((i for i, name in enumerate(header) if name.lower() == "maximum grade"), None)
    for row in rows[1:]:
        check_worth("the assignment", "Moodle", None if most is None else _number(_at(row, most)), possible)
    names = (header[0], "Email address", "ID number", "Full name")
    result = _fill(rows, target, names, lines)
    return Filled(write(rows), *result)


def check_worth(what: str, lms: str, there: float | None, here: float) -> None:
    """See that an assignment is worth as much in the `lms` as here, where both are known. Raises UsageError."""
    if there not in (None, here):
        mend = f"say scale = {there:g} for the assignment in course.toml, or change the points there"
        raise UsageError(f"{what} is worth {there:g} points in {lms}, and {points(here)} here: {mend}")


# --- nbgrader ---------------------------------------------------------------------------------------------------------

OWN_CELL = "gradekit"  # the grade cell that an assignment of nbgrader's gets where it has none


def is_nbgrader(file: Path) -> bool:
    """Whether the file is a database, as nbgrader's gradebook.db is."""
    with file.open("rb") as stream:
        return stream.read(16) == b"SQLite format 3\0"


def nbgrader(file: Path, lines: Iterable[Line], assignment: str, cell: str, possible: float) -> Filled:
    """nbgrader's gradebook.db with points for one grade cell of `assignment`, by its own API: `cell`, else the only
    one, else one of ours. A person's mark in the formgrader wins there. Raises UsageError where nbgrader is not
    installed, does not know the assignment, or the cell cannot be told or is worth other points."""
    try:
        from nbgrader import api
    except ImportError:
        raise UsageError(
            "this is a database of nbgrader's: pip install nbgrader beside gradekit, which then fills it"
        ) from None
    by_student = {line.student: line for line in lines if line.counts}
    with warnings.catch_warnings(), api.Gradebook(f"sqlite:///{file}", course_id="") as book:
        warnings.simplefilter("ignore")  # SQLAlchemy's, of how nbgrader uses it
        target = _nbgrader_cell(book, api, assignment, cell, possible)
        for student, line in by_student.items():
            book.update_or_create_student(student)
            when = {"timestamp": line.submitted.isoformat()} if line.submitted else {}
            book.update_or_create_submission(assignment, student, **when)
            grade = _nbgrader_grade(book, api, target, assignment, student)
            grade.auto_score, grade.needs_manual_grade = line.points, False
        book.db.commit()
        return Filled("", len(by_student), tuple(sorted({student.id for student in book.students} - by_student.keys())))


def _nbgrader_cell(book: Any, api: Any, assignment: str, cell: str, possible: float) -> Any:
    names = [each.name for each in book.assignments]
    if assignment not in names:
        raise UsageError(f"nbgrader has no assignment {assignment!r}; it has {', '.join(names) or 'none'}")
    notebooks = book.find_assignment(assignment).notebooks
    if not notebooks:
        raise UsageError(
            f"nbgrader has no notebook of {assignment}: run nbgrader generate_assignment {assignment} first"
        )
    there = [each for notebook in notebooks for each in notebook.grade_cells]
    found = [each for each in there if each.name == (cell or each.name)]
    if not there:
        made = {"max_score": possible, "cell_type": "code"}
        return book.add_grade_cell(cell or OWN_CELL, notebooks[0].name, assignment, **made)
    if len(found) != 1:
        raise UsageError(
            f"name the grade cell of {assignment} with --column; there are {', '.join(c.name for c in there)}"
        )
    if found[0].name == OWN_CELL:
        found[0].max_score = possible
    check_worth(found[0].name, "nbgrader", found[0].max_score, possible)
    return found[0]


def _nbgrader_grade(book: Any, api: Any, cell: Any, assignment: str, student: str) -> Any:
    try:
        return book.find_grade(cell.name, cell.notebook.name, assignment, student)
    except api.MissingEntry:
        grade = api.Grade(cell=cell, notebook=book.find_submission_notebook(cell.notebook.name, assignment, student))
        book.db.add(grade)
        return grade


# --- what both share --------------------------------------------------------------------------------------------------


def _table(text: str) -> tuple[list[Row], Callable[[Sequence[Row]], str]]:
    """The rows, and a function that writes rows back in the same dialect."""
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix(bom)
    delimiter = ";" if body.partition("\n")[0].count(";") > body.partition("\n")[0].count(",") else ","
    rows = [row for row in csv.reader(io.StringIO(body, newline=""), delimiter=delimiter) if row]
    if not rows:
        raise UsageError("the file is empty")
    end = "\r\n" if "\r\n" in body else "\n"

    def write(rows: Sequence[Row]) -> str:
        stream = io.StringIO(newline="")
        csv.writer(stream, delimiter=delimiter, lineterminator=end).writerows(rows)
        return bom + stream.getvalue()

    return rows, write


def _fill(rows: list[Row], target: int, names: Sequence[str], lines: Iterable[Line]) -> tuple[int, tuple[str, ...]]:
    """Write each student's points into column `target`; how many there were, and which rows have none. The columns of
    these `names` tell whose a row is; Canvas has rows of the points, and of which columns are muted, which stay."""
    known = by_word((line, {line.student, line.email, line.name}) for line in lines)
    filled, without = 0, []
    for row in rows[1:]:
        if "Points Possible" in row[0] or not row[0].strip():
            continue
        line = next((found for key in _keys(row, rows[0], names) if (found := known.get(key.lower()))), None)
        if line is None or not line.counts:
            without.append(row[0])
            continue
        row += [""] * (target + 1 - len(row))
        if row[target].strip().upper() != "EX":  # excused: a person's decision
            row[target] = points(line.points)
            filled += 1
    return filled, tuple(without)


def _keys(row: Row, header: Row, names: Iterable[str]) -> list[str]:
    """What `row` calls its student, the surest first; Moodle's "Participant 4711" by its number too."""
    words = [_at(row, header.index(name)).strip() for name in names if name in header]
    return [key for word in words if word for key in (word, word.rpartition(" ")[2] if word[-1].isdigit() else word)]


def _at(row: Row, index: int) -> str:
    return row[index] if index < len(row) else ""


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


# --- Canvas -----------------------------------------------------------------------------------------------------------


def _is_canvas(header: Row) -> bool:
    begins = "Student" in header[0] or header[0] == "LastName"
    return len(header) >= 4 and begins and "ID" in header[:3] and "Section" in header


def _canvas_column(header: Row, column: str) -> int:
    named = {i: match for i, name in enumerate(header) if (match := re.fullmatch(r"(.*) \((\d+)\)", name))}
    fitting = [i for i, match in named.items() if column in (match[0], match[1], match[2])]
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(match[0] for match in named.values()) or "none"
    if not column:
        raise UsageError(f"name the assignment's title or id with --column: Canvas's grade book has {there}")
    which = "several assignments" if fitting else "no assignment"
    raise UsageError(f"the grade book has {which} {column!r}; it has {there}. Name one by its id with --column")


# --- points into Canvas by its API: what would be sent is said first, and nothing is sent without a yes ---------------


TOKEN = "CANVAS_TOKEN"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow none: the token is for the address that was named."""


@dataclass(frozen=True)
class Canvas:
    """An assignment at `url`, with the `token` of a person who may grade it. Raises UsageError without https."""

    url: str
    course: int
    assignment: int
    token: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost"):
            raise UsageError(f"{self.url}: a token goes over https alone")

    @property
    def _place(self) -> str:
        return f"{self.url.rstrip('/')}/api/v1/courses/{self.course}/assignments/{self.assignment}"

    def planned(self, lines: Sequence[Line], possible: float) -> dict[str, tuple[str, str]]:
        """By Canvas's number of the student: points that it does not have yet, and those that it has ("" for none).
        Raises UsageError where the assignment has other points or no known student there, or Canvas does not answer."""
        check_worth("the assignment", "Canvas", json.loads(self._open(self._place)[0])["points_possible"], possible)
        submissions = {str(each["user_id"]): each for each in self._pages(f"{self._place}/submissions?per_page=100")}
        if lines and not any(line.student in submissions for line in lines):
            raise UsageError(
                "Canvas knows none of these students: their keys in the class list must be Canvas's own numbers"
            )
        plan = {}
        for line in lines:
            known = submissions.get(line.student, {"excused": True})
            has = "" if known.get("score") is None else points(known["score"])
            if line.counts and not known.get("excused") and has != points(line.points):
                plan[line.student] = points(line.points), has
        return plan

    def send(self, plan: Mapping[str, tuple[str, str]]) -> None:
        """Send the points, in one request. Raises UsageError where Canvas refuses them."""
        form = {f"grade_data[{student}][posted_grade]": worth for student, (worth, _) in plan.items()}
        self._open(f"{self._place}/submissions/update_grades", urllib.parse.urlencode(form).encode())

    def _pages(self, url: str) -> Iterable[Any]:
        while url:
            body, links = self._open(url)
            yield from json.loads(body)
            match = re.search(r'<([^>]+)>; rel="next"', links)
            url = match[1] if match and match[1].startswith(self._place) else ""

    def _open(self, url: str, form: bytes | None = None) -> tuple[bytes, str]:
        asked = urllib.request.Request(url, form, {"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.build_opener(_NoRedirect).open(asked, timeout=60) as answer:
                return answer.read(), answer.headers.get("Link", "")
        except urllib.error.HTTPError as error:
            with error:
                raise UsageError(f"Canvas answers {error.code} {one_line(str(error.reason))} to {url}") from None
        except (urllib.error.URLError, TimeoutError) as error:
            reason = one_line(str(getattr(error, "reason", error)))
            raise UsageError(f"Canvas cannot be reached at {self.url}: {reason}") from None
