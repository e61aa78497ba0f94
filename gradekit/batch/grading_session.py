"""One command's work on a class: what to grade, with which options, on which workers, and what comes out of it."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, UsageError, get
from gradekit.batch import course_pages, feedback, gradebook, grader, intake, pool, scheduler, summary
from gradekit.batch.class_folder import ClassFolder
from gradekit.batch.gradebook import Line
from gradekit.batch.intake import HandIn
from gradekit.batch.store import Store
from gradekit.batch.summary import ProgressLog, Say
from gradekit.confine import RECOMMENDED
from gradekit.report import record
from gradekit.report.text import counted, one_line
from gradekit.request import GradingOptions, new_secret_seed

USUAL = GradingOptions(hidden=True, isolation=RECOMMENDED)
"""How a class is graded unless staff say otherwise."""


@dataclass(frozen=True)
class Workers:
    """Where submissions are graded: by `count` graders of this machine, or by the workers of the Dask scheduler at the
    address `cluster`."""

    count: int = os.cpu_count() or 1
    cluster: str | None = None

    def pool(self, submissions: int, gpus: Sequence[str]) -> AbstractContextManager[pool.Pool]:
        """A pool for so many submissions, and for the GPUs of this machine."""
        if self.cluster:
            return contextlib.closing(pool.ClusterPool(self.cluster))
        return pool.LocalPool(max(min(self.count, submissions), 1), gpus)


class GradingSession:
    """One command's work on one assignment: what to grade, on which workers, under which policy."""

    def __init__(
        self, folder: ClassFolder, id: str, *, options: Mapping[str, Any] | None = None, workers: Workers = Workers()
    ) -> None:
        """Work on the assignment `id` in `folder`; `options` are those of GradingOptions that the command names."""
        assignment: Assignment = get(id)
        self.folder, self.workers = folder, workers
        self._before = folder.store.options(id)
        self.request = scheduler.BatchRequest(assignment, _options(folder.store, assignment, options or {}))
        self._policy = folder.course.policy(id)
        self._todo: dict[str, HandIn] = {}

    # --- what to grade ------------------------------------------------------------------------------------------------

    def take_in(self, folder: Path, times: Path | None = None) -> list[str]:
        """Take in the hand-ins of `folder`; what there is to say of them. The file `times` says when they came.

        Raises:
            IntakeError: nothing there looks like a submission.
            TimesError: the file does not say it.
        """
        wanted = intake.Wanted.by(self.request.assignment)
        came = intake.hand_ins(folder, wanted)
        if times:
            zone = self._policy.due.tzinfo if self._policy.due else None
            came = intake.timed(came, intake.times(times, zone))
        found = intake.matched(came, self.folder.students)
        submissions = scheduler.take_in(self.folder.store, self.request, found)
        self._todo = {d: submissions[d] for d in scheduler.waiting(self.folder.store, self.request, submissions)}
        counts = f"{counted(len(found), 'hand-in')}, {counted(len(self._todo), 'submission')} to grade"
        return [counts, *self._other_grading(), *self._remarks(found, intake.aside(folder, found, wanted))]

    def _other_grading(self) -> Iterable[str]:
        """What to know where this command grades otherwise than the one before: the two are never mixed."""
        now, before = self.request, self._before and replace(self.request, options=self._before)
        if before and (before.grading, before.seed) != (now.grading, now.seed):
            older = len(scheduler.records(self.folder.store, before))
            changed = {"hidden": ("without hidden tests", "with hidden tests"), "profile": (), "seed": ()}
            said = [words[getattr(now.options, name)] if words else f"{name} {getattr(now.options, name)}"
                    for name, words in changed.items()
                    if getattr(before.options, name) != getattr(now.options, name)]  # fmt: skip
            yield (
                f"another grading than before ({', '.join(said) or 'another secret seed'}): everything is graded anew,"
                f" and the {counted(older, 'result')} of the other one stay beside it, unmixed"
            )

    def _remarks(self, found: Sequence[HandIn], aside: Sequence[str]) -> Iterable[str]:
        """What an instructor should look at before hundreds are graded."""
        id = self.request.assignment.id
        if self.folder.course.policies and id not in self.folder.course.policies:
            there = ", ".join(self.folder.course.policies) or "nothing"
            yield f"course.toml has no [assignments.{id}], but {there}: nothing is late, and every attempt counts"
        if self._policy.due and not any(hand_in.submitted for hand_in in found):
            yield "no hand-in says when it was handed in, so lateness cannot be counted: leave that to the LMS"
        strangers = intake.strangers(found, self.folder.students)
        if strangers:
            yield f"not on the class list: {listed(strangers)}"
        late = [gradebook.labelled(hand_in.student, hand_in.name) for hand_in in found if hand_in.late]
        if late:
            yield f"late, says the LMS, which does not say by how much: {listed(late)}"
        if aside:
            yield f"left aside: {listed(aside)}"

    def choose(self, *, student: str | None, check: str | None, cause: str | None) -> int:
        """Choose what to grade again; how many submissions.

        Raises:
            UsageError: there are none: who and what there is.
        """
        records, given = self.records(), self.folder.store.hand_ins(self.request.assignment.id)
        if not given:
            raise UsageError(f"there is no hand-in for {self.request.assignment.id}")
        key = None if student is None else self.folder.student(self.request.assignment.id, student)
        theirs = [(hand_in, digest) for hand_in, digest in given if key in (None, hand_in.student)]
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
        id, store = self.request.assignment.id, self.folder.store
        whose = {digest: hand_in for hand_in, digest in store.hand_ins(id)} | self._todo
        names = {digest: gradebook.labelled(hand_in.student, hand_in.name) for digest, hand_in in whose.items()}
        local = [] if self.workers.cluster else grader.visible_cards()
        waiting = scheduler.awaiting_gpu(store, self.request) if self.workers.cluster or local else []
        fresh = [digest for digest in waiting if digest not in self._todo]
        if not self._todo and not fresh:
            return
        try:
            with self.workers.pool(len(self._todo), local) as workers:
                lines = ProgressLog(names, len(self._todo), len(fresh), workers.has_gpus(), say)
                scheduler.grade(store, self.request, self._todo, workers, self._showing(lines), lines.measured)
        except pool.ClusterLost as error:
            raise UsageError(f"{error}. What is graded is kept: go on with --resume") from None

    def _showing(self, log: ProgressLog) -> Callable[[str, Mapping[str, Any]], None]:
        """Tells `log` of each result, and now and then writes the dashboard anew."""
        results = itertools.count(1)

        def graded(digest: str, found: Mapping[str, Any]) -> None:
            log.graded(digest, found)
            if next(results) % 20 == 0:
                self._dashboard(self.lines(), self.records(), f"Grading goes on: {log.state}.")

        return graded

    def _dashboard(self, lines: Sequence[Line], records: gradebook.Records, progress: str = "") -> None:
        page = course_pages.class_page(self.request.assignment.id, lines, records, progress)
        record.write(page, self.folder.of(self.request.assignment.id) / "index.html")

    # --- what comes out -----------------------------------------------------------------------------------------------

    def finish(self) -> str:
        """Write the grade book, the feedback and the summary of this assignment, and those of the course over all that
        were graded into the folder; the summary's text."""
        lines, records, id = self.lines(), self.records(), self.request.assignment.id
        self.folder.tidy()
        own = self.folder.of(id)
        record.write(gradebook.to_csv(lines), own / "gradebook.csv")
        self._feedback(lines, records)
        text = summary.render(lines, records)
        record.write(text, own / "summary.txt")
        self._dashboard(lines, records)
        written = self.folder.write_course(self.folder.course_lines() | {id: lines})
        return "\n".join([text, *map(str, (own / "index.html", own / "feedback", *written)), ""])

    def lines(self) -> list[Line]:
        """The grade book's lines."""
        return self.folder.lines(self.request.assignment.id, self.records())

    def similar(self, least: float) -> str:
        """Which of the newest hand-ins resemble each other, by what was kept when they were graded, as text."""
        from gradekit.batch.similar import of_source, render, resemblance  # imports torch

        assignment = self.request.assignment
        prints = self.folder.store.fingerprints(assignment.id)
        newest = {h.student: (h, digest) for h, digest in self.folder.store.hand_ins(assignment.id)}
        groups: dict[tuple[Path, str], list[str]] = {}  # partners handed in one and the same file
        for hand_in, digest in newest.values():
            groups.setdefault((hand_in.path, digest), []).append(gradebook.labelled(hand_in.student, hand_in.name))
        starter = of_source(assignment.starter.read_text(encoding="utf-8")) if assignment.starter.is_file() else None
        known = {" and ".join(names): prints[digest] for (_, digest), names in groups.items() if digest in prints}
        return render(resemblance(known, starter, least))

    def _feedback(self, lines: Iterable[Line], records: gradebook.Records) -> None:
        """A report for each student: of the attempt that counts, else of the last
        one; with what the grade book says."""
        id, store = self.request.assignment.id, self.folder.store
        seen, marks = self._policy.visibility(datetime.now(UTC), published=False), store.marks(id)
        last = {hand_in.student: digest for hand_in, digest in store.hand_ins(id)}
        lines = list(lines)
        found = self._speeds(lines, records)
        paths = {(hand_in.student, digest): hand_in.path for hand_in, digest in store.hand_ins(id)}
        for line in lines:
            digest = line.digest or last.get(line.student, "")
            if digest in records:
                own = gradebook.marked(records[digest], line.student, marks, gradebook.possible_points(records))
                own = feedback.with_grade(feedback.visible(own, seen), line, self._policy.pending)
                own["notes"] += course_pages.standing(line.student, found)
                path = paths.get((line.student, digest))
                source = feedback.source_of(path, own["submission"]["sha256"]) if path else ""
                facts = feedback.hand_in_facts(line)
                feedback.write(self.folder.of(id) / "feedback", line.student, own, source, facts)

    def _speeds(self, lines: Iterable[Line], records: gradebook.Records) -> dict[str, list[course_pages.Speed]]:
        """The speeds of the class, where the course shows them; the board of those who want to be on it is written."""
        nicknames, id = self._policy.leaderboard, self.request.assignment.id
        if nicknames is None:
            return {}
        found = course_pages.speeds({line.student: records[line.digest] for line in lines if line.digest in records})
        if page := course_pages.board(id, found, nicknames):
            record.write(page, self.folder.of(id) / "leaderboard.html")
        return found

    def records(self) -> gradebook.Records:
        """The newest record of each submission of this grading, by digest."""
        return scheduler.records(self.folder.store, self.request)


def listed(names: Sequence[str]) -> str:
    """ "ada; bob; ... and 3 more"."""
    shown = "; ".join(map(one_line, names[:5]))
    return shown + (f"; ... and {len(names) - 5} more" if len(names) > 5 else "")


def _options(store: Store, assignment: Assignment, named: Mapping[str, Any]) -> GradingOptions:
    """As it is said now, else as it was said before, so that every command speaks of the same results.

    A class that is new gets a secret seed of its own, which is kept in its store and nowhere else.
    """
    before = store.options(assignment.id)
    options = replace(before or replace(USUAL, secret_seed=new_secret_seed()), **named)
    if options != before:
        store.add_options(assignment.id, options)
    return options


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
