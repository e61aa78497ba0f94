"""A class's folder: the store with all that is known, the class list, the policy, and the files that come out.

class.db                           the store
roster.csv, course.toml            the class list and the policy, as they were last given
gradebook.csv, course.csv          a line for each student and assignment; one for each student, with the total
index.html                         the course on one page
students/<student>/index.html      what one student has in all assignments
<assignment>/                      of one assignment: gradebook.csv, summary.txt, index.html, and
<assignment>/feedback/<student>/   one report for each student
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from gradekit.assignment import COURSE_FILE, UsageError, course_file
from gradekit.batch import course_pages, gradebook, policy, scheduler
from gradekit.batch.feedback import safe_name, source_of
from gradekit.batch.gradebook import Line, Lines, labelled, printed, to_csv
from gradekit.batch.intake import HandIn, Student, class_list, squeezed
from gradekit.batch.policy import Course
from gradekit.batch.store import Store
from gradekit.credit import rounded, total
from gradekit.findings import Check, Report, Status
from gradekit.marks import LINE, TOTAL, Mark, MarkError, checked
from gradekit.report import record

WRITTEN = (
    "gradebook.csv", "course.csv", "leaderboard.html", "summary.txt", "index.html", "course.toml", "roster.csv",
    "report.json", "report.txt", "report.html",
)  # fmt: skip
"""The files that are written here, each whole or not at all."""


Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class ClassFolder:
    """A class's folder and its store."""

    path: Path
    store: Store
    given_roster: Path | None = None
    given_course: Path | None = None

    @staticmethod
    def open(folder: Path, url: str | None = None, *, new: bool = False, **given: Path | None) -> ClassFolder:
        """The class in `folder`; its store is OUT/class.db unless `url` names another. A `roster` and a `course` may be
        given; else they are as they were last.

        Raises:
            UsageError: there is none, and it is not to be a `new` one; or the database at `url` cannot be reached.
        """
        if not new and not url and not (folder / "class.db").is_file():
            raise UsageError(
                f"{folder} is no class's folder yet: `gradekit grade SUBMISSIONS -a ID -o {folder}` makes one"
            )
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(url or f"sqlite:///{folder.resolve() / 'class.db'}")
        return ClassFolder(folder, store, given.get("roster"), given.get("course"))

    def tidy(self) -> None:
        """Remove what a run that was killed while it wrote has left half-written; the files themselves are whole."""
        for name in WRITTEN:
            for place in ("", "*/", "students/*/", "*/feedback/*/"):
                for left in self.path.glob(f"{place}.{name}.*"):
                    left.unlink(missing_ok=True)

    def of(self, assignment: str) -> Path:
        """The folder of one assignment; made where it is not there."""
        folder = self.path / assignment
        folder.mkdir(exist_ok=True)
        return folder

    @functools.cached_property
    def _course_file(self) -> Path | None:
        return self.given_course or course_file(Path.cwd())

    @functools.cached_property
    def course(self) -> Course:
        """The course that the file given describes, else the one around the current folder, else as it was last."""
        return self._remembered(self._course_file, COURSE_FILE, policy.load) or Course()

    @functools.cached_property
    def students(self) -> list[Student]:
        """The class list that was given, else the one that the course's file names, else as it was last."""
        named = self._course_file.parent / self.course.roster if self._course_file else None
        given = self.given_roster or (named if named and named.is_file() else None)
        return self._remembered(given, "roster.csv", class_list) or []

    def lines(self, id: str, records: gradebook.Records) -> list[Line]:
        """The grade book's lines of one assignment, with what people decided."""
        of = self.store.hand_ins(id), records, self.store.marks(id), self.course.policy(id), self.students
        return gradebook.lines(id, *of)

    def course_lines(self) -> dict[str, list[Line]]:
        """The lines of all assignments of which there are hand-ins, as they were graded last, in the course's order."""
        ids, order = self.store.assignments(), list(self.course.policies)
        ids.sort(key=lambda id: order.index(id) if id in order else len(order))
        return {id: self.lines(id, scheduler.settled(self.store, id)) for id in ids}

    def write_course(self, lines: Lines) -> list[Path]:
        """Write what is over all assignments: the grade books, the course's page and the students' pages."""
        rows = gradebook.course_rows(lines, self.course)
        texts = {
            "gradebook.csv": to_csv(line for each in lines.values() for line in each),
            "course.csv": gradebook.course_csv(rows, list(lines)),
            "index.html": course_pages.course_page(self.course, lines, rows),
        }
        for row in rows:
            place = self.path / "students" / safe_name(row.student)
            place.mkdir(parents=True, exist_ok=True)
            record.write(course_pages.student_page(self.course, row), place / "index.html")
        for name, text in texts.items():
            record.write(text, self.path / name)
        return [self.path / name for name in texts]

    def _remembered(self, given: Path | None, name: str, load: Callable[[Path], Loaded]) -> Loaded | None:
        """What `load` reads from the file `given`, else from the folder's own copy of an
        earlier one; None where is neither.

        A file that can be read is copied to the folder, so that a later command finds it there.
        """
        own = self.path / name
        if given is None:
            return load(own) if own.is_file() else None
        loaded = load(given)
        if given.resolve() != own.resolve():
            record.write(given.read_text(encoding="utf-8-sig"), own)
        return loaded

    def student(self, assignment: str, word: str) -> str:
        """The key of whom `word` means: a key, a key as the grade book prints it, a name or an email address.

        Raises:
            UsageError: nobody of whom there is a hand-in is called so, or several are.
        """
        theirs = {hand_in.student: hand_in for hand_in, _ in self.store.hand_ins(assignment)}
        if word in theirs:
            return word
        found = [key for key, hand_in in theirs.items() if word.lower() in _words(hand_in)]
        if len(found) == 1:
            return found[0]
        there = {word: key for key, hand_in in theirs.items() for word in _words(hand_in)}
        near = difflib.get_close_matches(word.lower(), there, n=1)
        advice = f"; did you mean {labelled(there[near[0]], theirs[there[near[0]]].name)}?" if near else ""
        if found:
            advice = f" alone: {', '.join(labelled(key, theirs[key].name) for key in found)}"
        raise UsageError(f"there is no hand-in of {word} for {assignment}{advice}")

    def mark(self, assignment: str, student: str, check: str, mark: Mark) -> str:
        """Keep a person's decision, which counts for the answer that is there now; returns a line that says it.

        The name of a parametrized test stands for all its checks: each gets its share of the points. "total" stands for
        a whole submission that was rejected, or that gradekit failed to grade.

        Raises:
            MarkError: the student has no hand-in, their report has no such check, or it is not worth that much.
        """
        student = self.student(assignment, student)
        reports = self._reports(assignment, student)
        graded = (report for report in reports if report.status is Status.GRADED)
        report = next((r for r in graded if _of_group(r, check)), reports[0])
        group = _of_group(report, check)
        marks = _shared(mark, group) if group else {check: mark}
        checked(report, marks)
        answers = {found.id: found.details.get("answer", "") for found in group}
        if check.startswith(LINE):
            self._has_line(assignment, student, report, int(check.removeprefix(LINE)))
            answers[check] = str(report.submission.get("sha256", ""))
        for id, share in marks.items():
            self.store.add_mark(assignment, student, id, replace(share, answer=answers.get(id, "")))
        return f"{student}, {check}: " + ("a comment" if mark.points is None else f"{mark.points:g} points")

    def ask(self, assignment: str, student: str, check: str, text: str) -> None:
        """Keep a student's request that a check, or the "total", be looked at again.

        Raises:
            MarkError: the student has no graded submission, or no such check.
        """
        student = self.student(assignment, student)
        report = self._reports(assignment, student)[0]
        if check != TOTAL and not _of_group(report, check):
            checked(report, {check: Mark(None)})
        self.store.add_request(assignment, student, check, text)

    def _reports(self, assignment: str, student: str) -> list[Report]:
        """What the student's hand-ins came to, newest first: one at least."""
        digests = [digest for hand_in, digest in self.store.hand_ins(assignment) if hand_in.student == student]
        history = [result for digest in digests for result in self.store.history(assignment, digest)]
        if not history:
            raise MarkError(f"{student} has no graded submission for {assignment}")
        return [record.from_dict(result.record) for result in reversed(history)]

    def _has_line(self, assignment: str, student: str, report: Report, number: int) -> None:
        digest = str(report.submission.get("sha256", ""))
        paths = [hand_in.path for hand_in, _ in self.store.hand_ins(assignment) if hand_in.student == student]
        count = max((len(source_of(path, digest).splitlines()) for path in paths), default=0)
        if count and not 1 <= number <= count:
            raise MarkError(f"there is no line {number}: what {student} handed in has {count} lines")


def _words(hand_in: HandIn) -> set[str]:
    """What the student of a hand-in may be called, in small letters."""
    names = (hand_in.student, printed(hand_in.student), hand_in.name, squeezed(hand_in.name), hand_in.email)
    return {name.lower() for name in names if name}


def _of_group(report: Report, name: str) -> list[Check]:
    """The check called `name`; else the checks of the parametrized test of this name."""
    exact = [check for check in report.checks if check.id == name]
    return exact or [check for check in report.checks if check.id.partition("[")[0] == name]


def _shared(mark: Mark, group: Sequence[Check]) -> dict[str, Mark]:
    """A mark for each check of the group: of the points, the share that the check has in what the group is worth.

    Raises:
        MarkError: the group is not worth that much.
    """
    possible = total(check.possible for check in group)
    if mark.points is None or len(group) == 1:
        return {check.id: mark for check in group}
    if mark.points > possible:
        raise MarkError(f"{group[0].id.partition('[')[0]} is worth 0 to {possible:g} points, and not {mark.points:g}")
    part = mark.points / possible if possible else 0.0
    return {check.id: replace(mark, points=rounded(check.possible * part)) for check in group}
