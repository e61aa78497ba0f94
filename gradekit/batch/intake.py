"""What came in: a folder as an LMS or a person left it, as a list of hand-ins, and when it came, where the LMS tells
that elsewhere. Reads names and dates, never a submission. docs/grading.md has a table of both.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gradekit.assignment import Assignment, UsageError
from gradekit.submission import archive, defines

KERNELS = (".py", ".ipynb", *archive.SUFFIXES)
NEVER = ("test_", "conftest.", "assignment.", "questions.", "key.", "marks.")
"""How the files begin that the course hands out or keeps itself."""

METADATA = "submission_metadata.yml"


@dataclass(frozen=True)
class Wanted:
    """What a submission of `id` looks like: what its name ends in, and which of several names is the one."""

    names: tuple[str, ...]
    suffixes: tuple[str, ...] = KERNELS
    id: str = ""
    entry: str = ""

    @staticmethod
    def by(assignment: Assignment) -> Wanted:
        """What `assignment` asks for."""
        if assignment.is_quiz:
            return Wanted(("answers",), (".toml", ".ipynb"), assignment.id)
        names = dict.fromkeys(("submission", assignment.id, assignment.entry))
        return Wanted(tuple(names), id=assignment.id, entry=assignment.entry)

    def is_candidate(self, name: str) -> bool:
        """Whether a file of this name can be a submission."""
        return name.lower().endswith(self.suffixes) and not name.startswith((".", *NEVER))

    @property
    def spelled(self) -> str:
        """ ".py, .ipynb or .zip"."""
        *others, last = self.suffixes[:3]
        return f"{', '.join(others)} or {last}"


@dataclass(frozen=True)
class HandIn:
    """One submission of one student (the grade book's key), a file or a folder. `submitted` is the LMS's own word;
    `late` is whether it says so without a time. `problem` is why it cannot be graded; `digest` is of what was read."""

    student: str
    path: Path
    name: str = ""
    email: str = ""
    submitted: datetime | None = None
    problem: str = ""
    late: bool = False
    digest: str = ""


def hand_ins(root: Path, wanted: Wanted) -> list[HandIn]:
    """The hand-ins under `root`, by student. Raises UsageError where nothing there looks like a submission."""
    for reader in (_gradescope, _moodle, _nbgrader, _canvas, _folders):
        found = reader(root, wanted)
        if found:
            printable = map(_printable_hand_in, _apart(found, root))
            return sorted(printable, key=lambda hand_in: (hand_in.student, str(hand_in.path)))
    names = ", ".join(sorted(child.name for child in _children(root))[:5]) or "nothing"
    raise UsageError(f"{root} holds {names}: expected a folder or a {wanted.spelled} file for each student")


def _apart(found: Sequence[HandIn], root: Path) -> Iterator[HandIn]:
    """The hand-ins; several with one key are told apart by where they lie, and not graded: none replaces another."""
    of: dict[str, list[HandIn]] = {}
    for hand_in in found:
        of.setdefault(hand_in.student, []).append(hand_in)
    for student, mine in of.items():
        places = {str(hand_in.path.relative_to(root)): hand_in for hand_in in mine}
        names = ", ".join(sorted(places)[:5])
        for place, hand_in in places.items():
            problem = f"{len(mine)} hand-ins are called {student}'s ({names}): whose are they, and which one counts?"
            if len(mine) == 1:
                yield hand_in
            else:
                yield replace(hand_in, student=f"{student} ({place})", problem=problem)


def _printable_hand_in(hand_in: HandIn) -> HandIn:
    said: dict[str, Any] = {name: _printable(value) for name, value in vars(hand_in).items() if isinstance(value, str)}
    return replace(hand_in, **said)


def aside(root: Path, found: Iterable[HandIn], wanted: Wanted) -> list[str]:
    """Entries of `root` that look like hand-ins, and whose names are not of the form that the LMS gives."""
    taken = {part for hand_in in found for part in (hand_in.path, *hand_in.path.parents)}
    others = (child for child in _children(root) if child not in taken)
    left = [child for child in others if not (_MOODLE.fullmatch(child.name) or _CANVAS.fullmatch(child.name))]
    return sorted(_printable(child.name) for child in left if child.is_dir() or wanted.is_candidate(child.name))


def _printable(name: str) -> str:
    """A file's name, which may be any bytes, as text that can be printed and stored."""
    return name.encode("utf-8", "backslashreplace").decode()


def _children(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (child for child in folder.iterdir() if not child.name.startswith((".", "__MACOSX")))


# --- one reader for each layout; empty where it is another ------------------------------------------------------------

_MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?")
"""What Moodle puts before a file's name comes first: the rest is the student's choice, and may look just like it."""

_CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_(?P<submission>\d+)_(?P<file>.+)")


def _moodle(root: Path, wanted: Wanted) -> list[HandIn]:
    """Moodle makes a folder, or with another setting a file, for each student and each way to hand in."""
    places: dict[tuple[str, str], list[Path]] = {}
    for child in _children(root):
        if match := _MOODLE.fullmatch(child.name):
            places.setdefault((match["id"], match["name"]), []).extend([child] if match["kind"] == "file" else [])
    names = Counter(id for id, _ in places)
    return [
        _of_nobody(id, found)
        if names[id] > 1 and any(len(re.findall(r"_\d+_assignsubmission_", path.name)) > 1 for path in found)
        else chosen(HandIn(id, found[0] if found else root, name), found, wanted)
        for (id, name), found in places.items()
    ]


def _of_nobody(id: str, found: Sequence[Path]) -> HandIn:
    """A hand-in that calls itself participant `id`'s, beside that of somebody with another name."""
    problem = f"its name can be read as participant {id}'s, who has handed in under another name: whose is it?"
    return HandIn(found[0].name, found[0], problem=problem)


def _canvas(root: Path, wanted: Wanted) -> list[HandIn]:
    """Canvas puts all files side by side; those of one student are one hand-in, the newest of which counts."""
    files: dict[tuple[str, str], list[re.Match[str]]] = {}
    for child in _children(root):
        match = _CANVAS.fullmatch(child.name)
        if match and child.is_file():
            files.setdefault((match["id"], match["name"]), []).append(match)
    return [_of_canvas(root, found, wanted) for found in files.values()]


def _of_canvas(root: Path, found: Sequence[re.Match[str]], wanted: Wanted) -> HandIn:
    last = max(int(match["submission"]) for match in found)
    newest = [match for match in found if int(match["submission"]) == last]
    first = root / newest[0].string
    hand_in = HandIn(newest[0]["id"], first, newest[0]["name"], late=any(match["late"] for match in newest))
    return chosen(hand_in, [root / match.string for match in newest], wanted)


def _nbgrader(root: Path, wanted: Wanted) -> list[HandIn]:
    tree = root / "submitted" if (root / "submitted").is_dir() else root
    if not any(tree.glob("*/*/timestamp.txt")):
        return []
    folders = [folder for folder in sorted(tree.glob("*/*")) if folder.is_dir()]
    names = sorted({folder.name for folder in folders})
    if len(names) > 1 and wanted.id not in names:
        raise UsageError(f"{tree} holds several assignments, and none is {wanted.id}: {', '.join(names)}")
    return [
        chosen(HandIn(folder.parent.name, folder, submitted=_stamp(folder / "timestamp.txt")), [folder], wanted)
        for folder in folders
        if len(names) == 1 or folder.name == wanted.id
    ]


def _stamp(file: Path) -> datetime | None:
    """ "2026-11-02 14:58:23.948203 America/Los_Angeles", or None where it says something else or is not there."""
    try:
        date, _, zone = file.read_text(encoding="utf-8", errors="replace").strip().rpartition(" ")
        return datetime.fromisoformat(date).replace(tzinfo=ZoneInfo(zone) if zone != "UTC" else UTC)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        return None


def _gradescope(root: Path, wanted: Wanted) -> list[HandIn]:
    if not (root / METADATA).is_file():
        return []
    table = _yaml((root / METADATA).read_text(encoding="utf-8"))
    return [
        chosen(hand_in, [hand_in.path], wanted)
        for folder, facts in table.items()
        if Path(str(folder)).name == str(folder)
        for hand_in in _submitters(root / str(folder), facts)
    ]


def _yaml(text: str) -> Mapping[str, Any]:
    import yaml  # an optional dependency: only Gradescope's export needs it

    try:
        table = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{METADATA} is not YAML: {error}") from None
    if not isinstance(table, dict):
        raise UsageError(f"{METADATA} holds no submissions")
    return table


def _submitters(folder: Path, facts: Mapping[str, Any]) -> Iterator[HandIn]:
    """A group's submission is one hand-in for each member."""
    created = facts.get(":created_at")
    submitted = created if isinstance(created, datetime) else None
    if submitted is not None and submitted.tzinfo is None:  # YAML's reader turns an offset into UTC and drops it
        submitted = submitted.replace(tzinfo=UTC)
    for person in facts.get(":submitters") or ():
        student = str(person.get(":sid") or person.get(":email") or person.get(":name"))
        yield HandIn(student, folder, str(person.get(":name") or ""), str(person.get(":email") or ""), submitted)


def lms_prefix(path: Path) -> str:
    """What Canvas or Moodle wrote before the name of a hand-in's file: a part of a name, or a folder; else empty."""
    for part in (path.name, *(above.name for above in path.parents)):
        moodle = _MOODLE.fullmatch(part)
        if moodle and moodle["kind"] == "file":
            return part[: moodle.start("file")] if moodle["file"] else f"{part.removesuffix('/')}/"
        canvas = _CANVAS.fullmatch(part)
        if canvas and part == path.name:
            return part[: canvas.start("file")]
    return ""


def modules_beside(path: Path) -> Callable[[str], Path]:
    """Where a hand-in's own module of a name lies. An LMS that puts all files side by side writes the same words before
    each file of one hand-in, and may write a number behind."""
    match = _CANVAS.fullmatch(path.name) or _MOODLE.fullmatch(path.name)
    before = path.name[: match.start("file")] if match and match["file"] else ""

    def place(name: str) -> Path:
        stem = re.escape(before + Path(name).stem)
        same = re.compile(rf"{stem}(-\d+)?\.py") if before and "/" not in name else None
        found = [child for child in _children(path.parent) if same and same.fullmatch(child.name)]
        return found[0] if len(found) == 1 else path.parent / name

    return place


def _folders(root: Path, wanted: Wanted) -> list[HandIn]:
    found = []
    for child in _children(root):
        if child.is_dir():
            found.append(chosen(HandIn(child.name, child), [child], wanted))
        elif wanted.is_candidate(child.name):
            found.append(HandIn(child.name.partition(".")[0], child))
    return found if any(not hand_in.problem for hand_in in found) else []


# --- several files, of which one is the submission -------------------------------------------------------------------


def chosen(hand_in: HandIn, places: Sequence[Path], wanted: Wanted) -> HandIn:
    """`hand_in` with the one file in `places` that can be its submission, or with the problem."""
    files = sorted(file for place in places for file in _files(place, wanted))
    named = [[file for file in files if _named(stem, file)] for stem in wanted.names]
    alone = next((found for found in (*named, files) if len(found) == 1), None)
    fitting = alone or [file for file in files if wanted.entry and defines(file, wanted.entry)]
    if len(fitting) == 1:
        return replace(hand_in, path=fitting[0])
    if not files:
        linked = any(path.is_symlink() for place in places for path in (place, *place.glob("*")))
        links = "; links are not followed" if linked else ""
        return replace(hand_in, problem=f"there is no {wanted.spelled} file{links}")
    names = ", ".join(file.name for file in files[:5])
    right = " or ".join(name + wanted.suffixes[0] for name in wanted.names)
    return replace(hand_in, problem=f"there are several files, and none is named {right}: {names}")


def _files(place: Path, wanted: Wanted) -> Iterator[Path]:
    """Files that can be a submission, at most two folders deep; no link is followed, to a file or to a folder."""
    if place.is_symlink():
        return
    if place.is_file():
        yield from [place] if wanted.is_candidate(place.name) else []
        return
    for pattern in ("*", "*/*", "*/*/*"):
        level = [file for file in place.glob(pattern) if _is_candidate(file, place, wanted)]
        if level:
            yield from level
            return


def _is_candidate(file: Path, place: Path, wanted: Wanted) -> bool:
    below = file.relative_to(place)
    hidden = any(part.startswith((".", "__")) for part in below.parts)
    is_own = file.resolve() == place.resolve() / below  # else the way to it leads over a link, to a neighbour's files
    return not hidden and is_own and file.is_file() and wanted.is_candidate(file.name)


def _named(stem: str, file: Path) -> bool:
    """Whether a file is called `stem`, or was before the LMS added to its name: 12_34_softmax-2.py."""
    exact = rf"(?:.*_)?{re.escape(stem)}(?:[-_ ]?\(?\d+\)?)?"
    return re.fullmatch(exact, file.name.partition(".")[0], re.IGNORECASE) is not None


# --- when hand-ins came, from elsewhere -------------------------------------------------------------------------------

_MODIFIED = "Last modified (submission)"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = re.compile(r"(?:\w+, )?(\d{1,2}) ([A-Z][a-z]{2})[a-z]* (\d{4}), (\d{1,2}):(\d\d)(?:\s*([AP])M)?", re.IGNORECASE)
"""As Moodle writes it in English: "Tuesday, 1 December 2026, 1:05 PM"."""


def times(path: Path, zone: tzinfo | None = None) -> dict[str, datetime]:
    """By the LMS's number or the student's key, when the hand-in came; a worksheet's times are of the `zone` (by
    default, this machine's). Raises UsageError for another file or time, and OSError where it cannot be opened."""
    text = path.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("["):
        found = ((str(each["user_id"]), each.get("submitted_at")) for each in json.loads(text))
        return {student: _iso(str(when)) for student, when in found if when}
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    header = list(rows[0]) if rows else []
    if _MODIFIED in header:
        given = {row[header[0]].rpartition(" ")[2]: row[_MODIFIED] for row in rows}
        return {student: _english(when, zone) for student, when in given.items() if when.strip(" -")}
    if {"student", "submitted"} <= set(header):
        return {row["student"]: _iso(row["submitted"]) for row in rows if row["submitted"]}
    raise UsageError(f"{path} has {', '.join(header) or 'nothing'}: expected student and submitted, or {_MODIFIED}")


def _iso(text: str) -> datetime:
    with contextlib.suppress(ValueError):
        when = datetime.fromisoformat(text)
        if when.tzinfo:
            return when
    raise UsageError(f"{text!r} is no time with its offset, such as 2026-12-01T23:59:00+01:00")


def _english(text: str, zone: tzinfo | None) -> datetime:
    found = _TIME.fullmatch(text.strip())
    if found and found[2].lower() in _MONTHS:
        hour = int(found[4]) % 12 + 12 * (found[6].upper() == "P") if found[6] else int(found[4])
        day = (int(found[3]), _MONTHS.index(found[2].lower()) + 1, int(found[1]))
        when = datetime(*day, hour, int(found[5]), tzinfo=zone)
        return when if zone else when.astimezone()
    raise UsageError(f"{_MODIFIED} says {text!r}, which is no time in English: give a CSV with student and submitted")


def timed(hand_ins: Iterable[HandIn], times: Mapping[str, datetime]) -> list[HandIn]:
    """The hand-ins with their times, where a download has none."""
    return [replace(h, submitted=times.get(h.student)) if h.submitted is None else h for h in hand_ins]


# --- the class list: who should have handed in, and by what names an LMS may call them --------------------------------


T = TypeVar("T")

_COLUMNS = {
    "student": ("student id", "id", "sid", "user id", "userid", "sis user id", "username", "login", "sis login id"),
    "name": ("name", "full name", "student name", "display name", "student"),
    "first": ("first name", "firstname", "given name", "first"),
    "last": ("last name", "lastname", "surname", "family name", "last"),
    "email": ("email", "email address", "e mail", "mail"),
}  # fmt: skip


@dataclass(frozen=True)
class Student:
    """A line of the class list: `student` is the key of the grade book."""

    student: str
    name: str = ""
    email: str = ""
    others: tuple[str, ...] = ()


def class_list(path: Path) -> list[Student]:
    """The students of a CSV file with a header; any of the usual names for the columns will do. Raises UsageError
    where no column tells one student from another, and OSError where it cannot be read."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
        header = list(rows[0]) if rows else []
    columns = {kind: _column(header, names) for kind, names in _COLUMNS.items()}
    key = columns["student"] or columns["email"] or _column(header, ("student",))
    if key is None:
        raise UsageError(f"{path} has no column for a student's id or email; it has {', '.join(header) or 'no rows'}")
    return [_student(row, key, columns) for row in rows if (row[key] or "").strip() and not _is_canvas_special(row)]


def _is_canvas_special(row: Mapping[str, str]) -> bool:
    """Canvas's grade book, which is its class list too, has a row of points, and a student who is a test."""
    name = (row.get("Student") or "").strip()
    return "Points Possible" in name or name in ("Student, Test", "Test Student")


def _column(header: Iterable[str], names: tuple[str, ...]) -> str | None:
    by_name = {_plain(column): column for column in reversed(list(header)) if column}
    return next((by_name[name] for name in names if name in by_name), None)


def _plain(column: str) -> str:
    """ "Student_ID" -> "student id"."""
    return " ".join(column.lower().replace("_", " ").replace("-", " ").split())


def _student(row: Mapping[str, str], key: str, columns: Mapping[str, str | None]) -> Student:
    def get(kind: str) -> str:
        column = columns[kind]
        return (row[column] or "").strip() if column else ""

    last, _, first = get("name").partition(", ")  # "Lovelace, Ada"
    name = (f"{first} {last}" if first else get("name") or f"{get('first')} {get('last')}").strip()
    ids = [column for column in row if column and _plain(column) in _COLUMNS["student"]]
    others = tuple(dict.fromkeys(value.strip() for column in ids if (value := row[column] or "").strip()))
    return Student(row[key].strip(), name, get("email"), others)


def matched(hand_ins: Iterable[HandIn], roster: Iterable[Student]) -> list[HandIn]:
    """The hand-ins under the class list's keys and names; who is not on it stays as the LMS calls them."""
    known = by_word((s, {s.student, s.email, s.name, squeezed(s.name), *s.others}) for s in roster)
    return [_as(hand_in, known) for hand_in in hand_ins]


def by_word(named: Iterable[tuple[T, set[str]]]) -> dict[str, T | None]:
    """By each word in small letters, the one of those `named` that it means; None where it could mean two."""
    index: dict[str, T | None] = {}
    for one, words in named:
        for key in {word.lower() for word in words if word}:
            index[key] = one if index.get(key, one) == one else None
    return index


def _as(hand_in: HandIn, known: Mapping[str, Student | None]) -> HandIn:
    words = (hand_in.student, hand_in.email, hand_in.name, squeezed(hand_in.name))
    student = next((found for word in words if word and (found := known.get(word.lower()))), None)
    if student is None:
        return hand_in
    return replace(hand_in, student=student.student, name=student.name or hand_in.name, email=student.email)


def squeezed(name: str) -> str:
    """ "Lovelace, Ada" and "Ada Lovelace" -> Canvas writes "lovelaceada": last name first, letters alone."""
    first, _, last = name.rpartition(" ") if "," not in name else (name.partition(",")[2], "", name.partition(",")[0])
    return "".join(character for character in (last + first).lower() if character.isalnum())


def strangers(hand_ins: Iterable[HandIn], roster: Iterable[Student]) -> list[str]:
    """Who has handed in and is not on the class list, if there is one."""
    known = {student.student for student in roster}
    return sorted({hand_in.student for hand_in in hand_ins} - known) if known else []
