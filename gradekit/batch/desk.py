"""The instructor's desk: a class's folder with its store, and the sessions that grade into it.

OUT holds class.db (all that is known), the class list and the policy (roster.csv, course.toml), and what comes out:
gradebook.csv, summary.txt and feedback/<student>/.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from gradekit.assignment import Assignment, get
from gradekit.batch import book, cards, exports, feedback, gradebook, intake, policy, pool, roster, run, summary
from gradekit.batch import similar as similarity
from gradekit.batch.gradebook import Line
from gradekit.batch.intake import HandIn
from gradekit.batch.policy import Policy
from gradekit.batch.progress import Progress, Say
from gradekit.batch.roster import load as load_roster
from gradekit.batch.store import Manner, Store
from gradekit.checking import UsageError
from gradekit.marks import Mark, MarkError, checked
from gradekit.report import record
from gradekit.report.text import counted, one_line

WRITTEN = ("gradebook.csv", "summary.txt", "course.toml", "roster.csv", "report.json", "report.txt", "report.html")
"""The files that are written here, each whole or not at all."""


Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Desk:
    """A class's folder and its store."""

    folder: Path
    store: Store

    @staticmethod
    def open(folder: Path, url: str | None = None, *, new: bool = False) -> Desk:
        """The desk in `folder`; its store is OUT/class.db unless `url` names another.

        Raises:
            UsageError: there is none, and it is not to be a `new` one; or the database at `url` cannot be reached.
        """
        if not new and not url and not (folder / "class.db").is_file():
            raise UsageError(
                f"{folder} is no class's folder yet: `gradekit grade SUBMISSIONS -a ID -o {folder}` makes one"
            )
        folder.mkdir(parents=True, exist_ok=True)
        return Desk(folder, Store(url or f"sqlite:///{folder.resolve() / 'class.db'}"))

    def tidy(self) -> None:
        """Remove what a run that was killed while it wrote has left half-written; the files themselves are whole."""
        for name in WRITTEN:
            for left in [*self.folder.glob(f".{name}.*"), *self.folder.glob(f"feedback/*/.{name}.*")]:
                left.unlink(missing_ok=True)

    def begun(self, assignment: str) -> bool:
        """Whether there are hand-ins of this assignment already."""
        return bool(self.store.hand_ins(assignment))

    def kept(self, given: Path | None, name: str, load: Callable[[Path], Loaded]) -> Loaded | None:
        """What `load` reads from the file `given`, else from the desk's copy of an earlier one; None where is neither.

        A file that can be read is copied to the desk, so that a later command finds it there.
        """
        own = self.folder / name
        if given is None:
            return load(own) if own.is_file() else None
        loaded = load(given)
        if given.resolve() != own.resolve():
            record.write(given.read_text(encoding="utf-8-sig"), own)
        return loaded

    def mark(self, assignment: str, student: str, check: str, mark: Mark) -> str:
        """Keep a person's decision, which counts for the answer that is there now; answers with what was decided.

        Raises:
            MarkError: the student has no graded hand-in, their report has no such check, or it is not worth that much.
        """
        digests = [digest for hand_in, digest in self.store.hand_ins(assignment) if hand_in.student == student]
        history = [result for digest in digests for result in self.store.history(assignment, digest)]
        if not history:
            raise MarkError(f"{student} has no graded submission for {assignment}")
        report = record.from_dict(history[-1].record)
        checked(report, {check: mark})
        (found,) = (one for one in report.checks if one.id == check)
        self.store.add_mark(assignment, student, check, replace(mark, answer=found.details.get("answer", "")))
        return f"{student}, {check}: " + ("a comment" if mark.points is None else f"{mark.points:g} points")


class Session:
    """One command's work on one assignment: what to grade, on which workers, under which policy."""

    def __init__(
        self,
        desk: Desk,
        id: str,
        *,
        roster: Path | None = None,
        course: Path | None = None,
        workers: int | None = None,
        cluster: str | None = None,
        seed: int | None = None,
        profile: str | None = None,
        no_hidden: bool = False,
        isolation: int = run.ENOUGH,
    ) -> None:
        assignment: Assignment = get(id)
        self.desk = desk
        manner = _manner(desk.store, assignment, seed, profile, no_hidden)
        self.order = run.Order(assignment, manner.seed, manner.profile, manner.hidden, isolation=isolation)
        self._policies = desk.kept(course, "course.toml", policy.load)
        self._policy = (self._policies or {}).get(id, Policy())
        self._students = desk.kept(roster, "roster.csv", load_roster) or []
        self._workers, self._cluster = workers or os.cpu_count() or 1, cluster
        self._todo: dict[str, HandIn] = {}

    # --- what to grade ------------------------------------------------------------------------------------------------

    def take_in(self, folder: Path) -> list[str]:
        """Take in the hand-ins of `folder`; what there is to say of them.

        Raises:
            IntakeError: nothing there looks like a submission.
        """
        wanted = intake.Wanted.by(self.order.assignment)
        found = roster.matched(intake.hand_ins(folder, wanted), self._students)
        submissions = run.take_in(self.desk.store, self.order, found)
        self._todo = {d: submissions[d] for d in run.waiting(self.desk.store, self.order, submissions)}
        counts = f"{counted(len(found), 'hand-in')}, {counted(len(self._todo), 'submission')} to grade"
        return [counts, *self._remarks(found, intake.aside(folder, found, wanted))]

    def _remarks(self, found: Sequence[HandIn], aside: Sequence[str]) -> Iterable[str]:
        """What an instructor should look at before hundreds are graded."""
        id = self.order.assignment.id
        if self._policies is not None and id not in self._policies:
            there = ", ".join(self._policies) or "nothing"
            yield f"course.toml has no [assignments.{id}], but {there}: nothing is late, and every attempt counts"
        if self._policy.due and not any(hand_in.submitted for hand_in in found):
            yield "no hand-in says when it was handed in, so nobody is late: leave that to the LMS"
        strangers = roster.strangers(found, self._students)
        if strangers:
            yield f"not on the class list: {listed(strangers)}"
        if aside:
            yield f"left aside: {listed(aside)}"

    def choose(self, *, student: str | None, check: str | None, cause: str | None) -> int:
        """Choose what to grade again; how many submissions.

        Raises:
            UsageError: there are none: who and what there is.
        """
        records, given = self._records(), self.desk.store.hand_ins(self.order.assignment.id)
        theirs = [(hand_in, digest) for hand_in, digest in given if student in (None, hand_in.student)]
        if not theirs:
            raise UsageError(f"there is no hand-in{f' of {student}' if student else ''} for {self.order.assignment.id}")
        self._todo = {digest: hand_in for hand_in, digest in theirs if _failed(records.get(digest), check, cause)}
        if not self._todo:
            raise UsageError(_none_failed([records[digest] for _, digest in theirs if digest in records], check))
        return len(self._todo)

    # --- grading ------------------------------------------------------------------------------------------------------

    def run(self, say: Say) -> None:
        """Grade what is to be graded, with a line for each submission and how long the rest will take.

        Raises:
            UsageError: the cluster cannot be reached; what was graded is kept.
        """
        id, store = self.order.assignment.id, self.desk.store
        names = {digest: hand_in.student for hand_in, digest in store.hand_ins(id)}
        local = [] if self._cluster else cards.found()
        waiting = run.wanting_cards(store, self.order) if self._cluster or local else []
        fresh = [digest for digest in waiting if digest not in self._todo]
        if not self._todo and not fresh:
            return
        try:
            with self._pool(local) as workers:
                lines = Progress(names, len(self._todo), len(fresh), workers.has_cards(), say)
                run.grade(store, self.order, self._todo, workers, lines.graded, lines.measured)
        except pool.ClusterLost as error:
            raise UsageError(f"{error}. What is graded is kept: go on with --resume") from None

    def _pool(self, local: Sequence[str]) -> AbstractContextManager[pool.Pool]:
        if self._cluster:
            return pool.cluster(self._cluster)
        return pool.local(max(min(self._workers, len(self._todo)), 1), local)

    # --- what comes out -----------------------------------------------------------------------------------------------

    def finish(self) -> str:
        """Write the grade book, the feedback and the summary; the summary's text."""
        lines, records, folder = self.lines(), self._records(), self.desk.folder
        self.desk.tidy()
        record.write(gradebook.to_csv(lines), folder / "gradebook.csv")
        self._feedback(records)
        text = summary.render(lines, records)
        record.write(text, folder / "summary.txt")
        return f"{text}\n{folder / 'gradebook.csv'}\n{folder / 'feedback'}\n"

    def lines(self) -> list[Line]:
        """The grade book's lines."""
        id, store = self.order.assignment.id, self.desk.store
        return book.lines(id, store.hand_ins(id), self._records(), store.marks(id), self._policy, self._students)

    def fill(self, text: str, *, column: str | None, grade_column: str) -> exports.Filled:
        """The file that an LMS exported, filled.

        Raises:
            ExportError: that would create or change an assignment.
        """
        lines = self.lines()
        possible = max((line.possible for line in lines), default=0.0)
        if column is not None or exports.is_canvas(text):
            return exports.canvas(text, lines, column or "", possible)
        return exports.moodle(text, lines, possible, grade=grade_column)

    def similar(self, least: float) -> similarity.Resemblance:
        """Which of the newest hand-ins resemble each other, by what was kept when they were graded."""
        from gradekit.batch.fingerprint import of_source  # imports torch

        assignment = self.order.assignment
        prints = self.desk.store.fingerprints(assignment.id)
        given = {h.student: digest for h, digest in self.desk.store.hand_ins(assignment.id)}
        starter = of_source(assignment.starter.read_text(encoding="utf-8")) if assignment.starter.is_file() else None
        known = {student: prints[digest] for student, digest in given.items() if digest in prints}
        return similarity.resemblance(known, starter, least)

    def _feedback(self, records: book.Records) -> None:
        id, store = self.order.assignment.id, self.desk.store
        seen, marks = self._policy.visibility(datetime.now(UTC), published=False), store.marks(id)
        for hand_in, digest in store.hand_ins(id):
            if digest in records:
                own = book.marked(records[digest], hand_in.student, marks)
                feedback.write(self.desk.folder / "feedback", hand_in.student, feedback.visible(own, seen))

    def _records(self) -> book.Records:
        return run.records(self.desk.store, self.order)


def listed(names: Sequence[str], most: int = 5) -> str:
    """ "ada; bob; ... and 3 more"."""
    shown = "; ".join(map(one_line, names[:most]))
    return shown + (f"; ... and {len(names) - most} more" if len(names) > most else "")


def _manner(store: Store, assignment: Assignment, seed: int | None, profile: str | None, no_hidden: bool) -> Manner:
    """How to grade: as it is said now, else as it was said before, so that every command speaks of the same results."""
    before = store.manner(assignment.id)
    usual = before or Manner(assignment.seed)
    now = Manner(
        usual.seed if seed is None else seed, profile or usual.profile, usual.hidden and not no_hidden
    )  # fmt: skip
    if now != before:
        store.add_manner(assignment.id, now)
    return now


def _none_failed(records: Iterable[Mapping[str, Any]], check: str | None) -> str:
    """What failed instead of what was named."""
    failed = [c for found in records for c in found["checks"] if c["outcome"] == "failed"]
    there = sorted({str(c["id"] if check else c["cause"]) for c in failed})
    return f"no submission failed so; there failed {listed(there) if there else 'nothing'}"


def _failed(found: Mapping[str, Any] | None, check: str | None, cause: str | None) -> bool:
    """Whether a record is one of those to grade again."""
    if check is None and cause is None:
        return True
    if found is None:
        return cause == "fault"
    if cause == "fault":
        return found["status"] == "fault" or any(c["outcome"] == "fault" for c in found["checks"])
    failed = [c for c in found["checks"] if c["outcome"] == "failed"]
    return any(check in (None, c["id"]) and cause in (None, c["cause"]) for c in failed)
