"""A class's folder: the store with all that is known, the class list and the policy as they were last given (class.db,
roster.csv, course.toml), and the files that come out, of which docs/grading.md has a list.
"""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from gradekit.assignment import COURSE_FILE, UsageError, course_file, get
from gradekit.batch import course_pages, feedback, gradebook, grader, intake, policy, pool, scheduler, summary
from gradekit.batch.feedback import safe_name
from gradekit.batch.gradebook import Line, Lines, labelled, printed, to_csv
from gradekit.batch.intake import HandIn, Student, class_list, squeezed
from gradekit.batch.policy import Course
from gradekit.batch.store import Store
from gradekit.batch.summary import ProgressLog, Say
from gradekit.confine import RECOMMENDED
from gradekit.credit import rounded, total
from gradekit.findings import Check, Report, Status
from gradekit.marks import LINE, TOTAL, Mark, checked
from gradekit.report import record
from gradekit.report.text import counted, one_line
from gradekit.report.translation import say
from gradekit.request import GradingOptions, new_secret_seed

Loaded = TypeVar("Loaded")

_KEPT = "What is graded is kept: go on with --resume"


@dataclass(frozen=True)
class ClassFolder:
    """A class's folder and its store."""

    path: Path
    store: Store
    given_roster: Path | None = None
    given_course: Path | None = None

    @staticmethod
    def open(folder: Path, url: str | None = None, *, new: bool = False, **given: Path | None) -> ClassFolder:
        """The class in `folder`, with OUT/class.db or the store at `url`. A `roster` and a `course` may be given; else
        they are as they were last. Raises UsageError for none, unless a `new` one is wanted, or one out of reach."""
        if not new and not url and not (folder / "class.db").is_file():
            raise UsageError(
                f"{folder} is no class's folder yet: `gradekit grade SUBMISSIONS -a ID -o {folder}` makes one"
            )
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(url or f"sqlite:///{folder.resolve() / 'class.db'}")
        return ClassFolder(folder, store, given.get("roster"), given.get("course"))

    def tidy(self) -> None:
        """Remove what a run that was killed while it wrote has left half-written; the files themselves are whole."""
        for left in self.path.rglob(f"{record.UNFINISHED}*"):
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
        """What `load` reads from a `given` file, which is copied here, else from the copy; None without either."""
        own = self.path / name
        if given is None:
            return load(own) if own.is_file() else None
        loaded = load(given)
        if given.resolve() != own.resolve():
            record.write(given.read_text(encoding="utf-8-sig"), own)
        return loaded

    def student(self, assignment: str, word: str) -> str:
        """The key of whom `word` means: a key, a key as the grade book prints it, a name or an email address. Raises
        UsageError where nobody of whom there is a hand-in is called so, or several are."""
        theirs = {hand_in.student: hand_in for hand_in in self.store.hand_ins(assignment)}
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
        """Keep a person's decision, which counts for the answer that is there now; a line that says it. A parametrized
        test's name stands for all its checks, which share the points; "total" for a submission that was rejected or not
        graded. Raises UsageError where there is no hand-in or no such check, or it is not worth that much."""
        student = self.student(assignment, student)
        reports = self._reports(assignment, student)
        graded = (report for report in reports if report.status is Status.GRADED)
        report = next((r for r in graded if _of_group(r, check)), reports[0])
        group = _of_group(report, check)
        marks = _shared(mark, group) if group else {check: mark}
        checked(report, marks)
        answers = {found.id: found.details.get("answer", "") for found in group}
        if check.startswith(LINE):
            count = len(feedback.source(self.store.hand_ins(assignment), student, vars(report)).splitlines())
            if count and not 1 <= (number := int(check.removeprefix(LINE))) <= count:
                raise UsageError(f"there is no line {number}: what {student} handed in has {count} lines")
            answers[check] = str(report.submission.get("sha256", ""))
        for id, share in marks.items():
            self.store.add_mark(assignment, student, id, replace(share, answer=answers.get(id, "")))
        return f"{student}, {check}: " + ("a comment" if mark.points is None else f"{mark.points:g} points")

    def ask(self, assignment: str, student: str, check: str, text: str) -> None:
        """Keep a student's request that a check, or the "total", be looked at again. Raises UsageError where the
        student has no graded submission, or no such check."""
        student = self.student(assignment, student)
        report = self._reports(assignment, student)[0]
        if check != TOTAL and not _of_group(report, check):
            checked(report, {check: Mark(None)})
        self.store.add_request(assignment, student, check, text)

    def _reports(self, assignment: str, student: str) -> list[Report]:
        digests = [hand_in.digest for hand_in in self.store.hand_ins(assignment) if hand_in.student == student]
        history = [result for digest in digests for result in self.store.history(assignment, digest)]
        if not history:
            raise UsageError(f"{student} has no graded submission for {assignment}")
        return [record.from_dict(result.record) for result in reversed(history)]


def _words(hand_in: HandIn) -> set[str]:
    names = (hand_in.student, printed(hand_in.student), hand_in.name, squeezed(hand_in.name), hand_in.email)
    return {name.lower() for name in names if name}


def _of_group(report: Report, name: str) -> list[Check]:
    exact = [check for check in report.checks if check.id == name]
    return exact or [check for check in report.checks if check.id.partition("[")[0] == name]


def _shared(mark: Mark, group: Sequence[Check]) -> dict[str, Mark]:
    """A mark for each check of the group, with its share of the points. Raises UsageError where these are too many."""
    possible = total(check.possible for check in group)
    if mark.points is None or len(group) == 1:
        return {check.id: mark for check in group}
    if mark.points > possible:
        raise UsageError(f"{group[0].id.partition('[')[0]} is worth 0 to {possible:g} points, and not {mark.points:g}")
    part = mark.points / possible if possible else 0.0
    return {check.id: replace(mark, points=rounded(check.possible * part)) for check in group}


# --- grading session --------------------------------------------------------------------------------------------------


USUAL = GradingOptions(hidden=True, isolation=RECOMMENDED)  # how a class is graded unless staff say otherwise


class GradingSession:
    """One command's work on one assignment: what to grade, and under which policy."""

    def __init__(self, folder: ClassFolder, id: str, *, options: Mapping[str, Any] | None = None) -> None:
        """Work on the assignment `id` in `folder`; `options` are those of GradingOptions that the command names."""
        assignment = get(id)
        self.folder, self._id = folder, assignment.id
        before = folder.store.options(self._id)
        # As it is said now, else as it was said before, so that every command speaks of the same results. A class that
        # is new gets a secret seed of its own, which is kept in its store and nowhere else.
        usual = before or replace(USUAL, secret_seed=new_secret_seed())
        self.grading = scheduler.Grading(folder.store, assignment, replace(usual, **options or {}))
        self._before = before and replace(self.grading, options=before)
        if self.grading.options != before:
            folder.store.add_options(self._id, self.grading.options)
        self._policy = folder.course.policy(id)
        self._todo: dict[str, HandIn] = {}

    # --- what to grade ------------------------------------------------------------------------------------------------

    def take_in(self, folder: Path, times: Path | None = None) -> list[str]:
        """Take in the hand-ins of `folder`; what there is to say of them. The file `times` says when they came. Raises
        UsageError where nothing there looks like a submission, or the file does not say it."""
        folder, wanted = folder.resolve(), intake.Wanted.by(self.grading.assignment)
        came = intake.hand_ins(folder, wanted)  # found again from wherever the next command is given
        if times:
            zone = self._policy.due.tzinfo if self._policy.due else None
            came = intake.timed(came, intake.times(times, zone))
        found = intake.matched(came, self.folder.students)
        self._todo = self.grading.take_in(found)
        counts = f"{counted(len(found), 'hand-in')}, {counted(len(self._todo), 'submission')} to grade"
        return [counts, *self._other_grading(), *self._remarks(found, intake.aside(folder, found, wanted))]

    def _other_grading(self) -> Iterable[str]:
        """What to know where this command grades otherwise than the one before: the two are never mixed."""
        now, before = self.grading, self._before
        if before and (before.name, before.seed) != (now.name, now.seed):
            words = {"hidden": f"with{'' if now.options.hidden else 'out'} hidden tests"}
            words |= {name: f"{name} {getattr(now.options, name)}" for name in ("profile", "seed")}
            said = [said for name, said in words.items() if getattr(before.options, name) != getattr(now.options, name)]
            yield (
                f"another grading than before ({', '.join(said) or 'another secret seed'}): everything is graded anew,"
                f" and the {counted(len(before.records()), 'result')} of the other one stay beside it, unmixed"
            )
        yield from now.changed()

    def _remarks(self, found: Sequence[HandIn], aside: Sequence[str]) -> Iterable[str]:
        """What an instructor should look at before hundreds are graded."""
        if self.folder.course.policies and self._id not in self.folder.course.policies:
            there = ", ".join(self.folder.course.policies) or "nothing"
            yield f"course.toml has no [assignments.{self._id}], but {there}: nothing is late, and every attempt counts"
        given = self.folder.store.hand_ins(self._id) if self._policy.due else []
        untimed = [one for one in given if not one.submitted]
        if untimed and len(untimed) == len(given):
            yield "no hand-in says when it was handed in, so lateness cannot be counted: leave that to the LMS"
        elif untimed:
            names = listed([gradebook.labelled(one.student, one.name) for one in untimed])
            yield f"without a time, so that lateness is not counted: {names}"
        strangers = intake.strangers(found, self.folder.students)
        if strangers:
            yield f"not on the class list: {listed(strangers)}"
        late = [gradebook.labelled(hand_in.student, hand_in.name) for hand_in in found if hand_in.late]
        if late:
            yield f"late, says the LMS, which does not say by how much: {listed(late)}"
        if aside:
            yield f"left aside: {listed(aside)}"

    def choose(self, *, student: str | None, check: str | None, cause: str | None, every: bool | None) -> list[str]:
        """Choose what to grade again; what to say of it. Raises UsageError where there is none, with what there is, and
        for a part of a class whose tests have changed, unless it is said whether `every` one is meant."""
        records, given = self.grading.records(), self.folder.store.hand_ins(self._id)
        if not given:
            raise UsageError(f"there is no hand-in for {self._id}")
        key = None if student is None else self.folder.student(self._id, student)
        theirs = {hand_in.digest: hand_in for hand_in in given if key in (None, hand_in.student)}
        self._todo = {digest: h for digest, h in theirs.items() if _failed(records.get(digest), check, cause)}
        if not self._todo and cause != "fault":
            raise UsageError(_none_failed([records[digest] for digest in theirs if digest in records], check))
        changed, everyone = self.grading.changed() if self._todo else [], {hand_in.digest: hand_in for hand_in in given}
        self._todo, chosen = everyone if every else self._todo, counted(len(self._todo), "submission")
        if every is None and changed and len(self._todo) < len(everyone):
            how = f"--all grades all {len(everyone)} again by what there is now; --only grades {chosen}"
            raise UsageError(f"{changed[0]}. {how}")
        return [*changed, f"{counted(len(self._todo), 'submission')} to grade again"]

    # --- grading ------------------------------------------------------------------------------------------------------

    def run(self, say: Say, count: int | None = None, cluster: str | None = None) -> None:
        """Grade what is to be graded, with a line for each: by `count` graders of this machine (by default one a core),
        or by the Dask scheduler at `cluster`. Raises UsageError where that is lost; what was graded is kept."""
        whose = {hand_in.digest: hand_in for hand_in in self.folder.store.hand_ins(self._id)} | self._todo
        names = {digest: gradebook.labelled(hand_in.student, hand_in.name) for digest, hand_in in whose.items()}
        local = [] if cluster else grader.visible_cards()
        waiting = self.grading.awaiting_gpu() if cluster or local else []
        fresh = [digest for digest in waiting if digest not in self._todo]
        if not self._todo and not fresh:
            return
        jobs = len(self._todo)
        graders = max(min(count or os.cpu_count() or 1, jobs), 1)
        made = closing(pool.ClusterPool(cluster)) if cluster else pool.GraderPool(graders, local, jobs=jobs)
        try:
            with made as workers:
                lines = ProgressLog(names, jobs, len(fresh), workers, say)
                scheduler.grade(self.grading, self._todo, workers, lines.graded, lines.measured)
        except pool.ClusterLost as error:
            raise UsageError(f"{error}. {_KEPT}") from None
        except KeyboardInterrupt:
            say(_KEPT)
            raise

    # --- what comes out -----------------------------------------------------------------------------------------------

    def finish(self) -> str:
        """Write the files of this assignment, and those of the course over all that were graded; the summary."""
        lines, records = self.lines(), self.grading.records()
        self.folder.tidy()
        own, shown = self.folder.of(self._id), self._shown(lines, records)
        record.write(gradebook.to_csv(lines), own / "gradebook.csv")
        self._feedback(lines, shown, self._speeds(lines, records))
        text = summary.render(lines, records)
        record.write(say(text), own / "summary.txt")
        record.write(course_pages.class_page(self._id, lines, shown), own / "index.html")
        written = self.folder.write_course(self.folder.course_lines() | {self._id: lines})
        return "\n".join([text, *map(str, (own / "index.html", own / "feedback", *written)), ""])

    def lines(self) -> list[Line]:
        """The grade book's lines."""
        return self.folder.lines(self._id, self.grading.records())

    def similar(self) -> str:
        """Which of the newest hand-ins resemble each other, by what was kept when they were graded, as text."""
        from gradekit.batch.similar import of_source, render, resemblance  # imports torch

        assignment = self.grading.assignment
        prints = self.folder.store.fingerprints(self._id)
        newest = {hand_in.student: hand_in for hand_in in self.folder.store.hand_ins(self._id)}
        groups: dict[tuple[Path, str], list[str]] = {}  # partners handed in one and the same file
        for one in newest.values():
            groups.setdefault((one.path, one.digest), []).append(gradebook.labelled(one.student, one.name))
        starter = of_source(assignment.starter.read_text(encoding="utf-8")) if assignment.starter.is_file() else None
        known = {" and ".join(names): prints[digest] for (_, digest), names in groups.items() if digest in prints}
        return render(resemblance(known, starter))

    def _shown(self, lines: Iterable[Line], records: gradebook.Records) -> dict[str, dict[str, Any]]:
        """By student, the record of the attempt that counts, else of the last one, with what people decided."""
        marks, possible = self.folder.store.marks(self._id), gradebook.possible_points(records)
        last = {hand_in.student: hand_in.digest for hand_in in self.folder.store.hand_ins(self._id)}
        digests = {line.student: line.digest or last.get(line.student, "") for line in lines}
        theirs = {student: records[digest] for student, digest in digests.items() if digest in records}
        return {student: gradebook.marked(found, student, marks, possible) for student, found in theirs.items()}

    def _feedback(
        self, lines: Iterable[Line], shown: gradebook.Records, speeds: Mapping[str, list[course_pages.Speed]]
    ) -> None:  # fmt: skip
        given, asked = self.folder.store.hand_ins(self._id), self.folder.store.requests(self._id)
        seen = self._policy.visibility(datetime.now(UTC), published=False)
        for line in (line for line in lines if line.student in shown):
            own = feedback.with_grade(feedback.visible(shown[line.student], seen), line, self._policy.pending)
            own["notes"] += course_pages.standing(line.student, speeds)
            own["notes"] += [said for one in asked if one.student == line.student for said in one.said]
            source, facts = feedback.source(given, line.student, own), feedback.hand_in_facts(line)
            feedback.write(self.folder.of(self._id) / "feedback", line.student, own, source, facts)

    def _speeds(self, lines: Iterable[Line], records: gradebook.Records) -> dict[str, list[course_pages.Speed]]:
        """The speeds of the class, where the course shows them; the board of those who want to be on it is written."""
        nicknames = self._policy.leaderboard
        mine = {line.student: records[line.digest] for line in lines if line.digest in records}
        found = course_pages.speeds(mine) if nicknames is not None else {}
        page = course_pages.board(self._id, found, nicknames or {})
        place = self.folder.of(self._id) / "leaderboard.html"
        if page:
            record.write(page, place)
        else:  # who was on it may have left it
            place.unlink(missing_ok=True)
        return found


def listed(names: Sequence[str]) -> str:
    """ "ada; bob; ... and 3 more"."""
    shown = "; ".join(map(one_line, names[:5]))
    return shown + (f"; ... and {len(names) - 5} more" if len(names) > 5 else "")


def _none_failed(records: Iterable[Mapping[str, Any]], check: str | None) -> str:
    failed = [c for found in records for c in found["checks"] if c["outcome"] == "failed"]
    there = sorted({str(c["id"] if check else c["cause"]) for c in failed})
    return f"no submission failed so; those that did have {listed(there)}" if there else "no submission failed"


def _failed(found: Mapping[str, Any] | None, check: str | None, cause: str | None) -> bool:
    if check is None and cause is None:
        return True
    if found is None:
        return cause == "fault"
    if cause == "fault":
        return found["status"] == "fault" or any(c["outcome"] == "fault" for c in found["checks"])
    failed = [c for c in found["checks"] if c["outcome"] == "failed"]
    return any(check in (None, c["id"]) and cause in (None, c["cause"]) for c in failed)
