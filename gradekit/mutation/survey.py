"""What came of an assignment's mutants: which were caught, by which checks, and which ones an author has to look at.

A mutant is *caught* where a check fails; *the same* where every call becomes the program that the solution's does;
*judged* equivalent by a person, with a reason, in the assignment's equivalent.toml; all others have *survived*.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, UsageError
from gradekit.batch.grader import GraderFailed, release
from gradekit.batch.pool import GraderPool, grading_job
from gradekit.course.edits import edit_between
from gradekit.findings import Outcome, Status
from gradekit.mutation.mutants import FILE, Judged, Mutant, judged, mutants, spread
from gradekit.report.text import seconds
from gradekit.request import GradingOptions
from gradekit.submission.parsed_source import meaning


class MutantOutcome(StrEnum):
    """What came of a mutant."""

    CAUGHT = "caught"
    SAME = "same"
    JUDGED = "judged"
    SURVIVED = "SURVIVED"
    FAULT = "FAULT"


@dataclass(frozen=True)
class MutantResult:
    """What came of one mutant. `by` is the first check that failed, `is_public` says that the public tests alone found
    it; `note` is the reason that a person gave, or the grader's fault."""

    mutant: Mutant
    outcome: MutantOutcome
    seconds: float
    by: tuple[str, ...] = ()
    is_public: bool = False
    note: str = ""


@dataclass(frozen=True)
class MutationScore:
    """How many mutants there are, and of those that count (all but the same, the judged and the faults) how many were
    caught: by `all_tests`, and by the `public_tests` alone."""

    mutants: int
    counted: int
    all_tests: int
    public_tests: int
    same: int
    judged: int
    faults: int

    def __str__(self) -> str:
        caught = f"{self.all_tests} of {self.counted} caught ({_share(self.all_tests, self.counted)})"
        public = f"{self.public_tests} by the public tests ({_share(self.public_tests, self.counted)})"
        rest = f"{self.same} compute the same, {self.judged} judged equivalent, {self.faults} faults"
        return f"{self.mutants} mutants: {caught}, {public}; {rest}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


class Survey:
    """The mutants of an assignment's solution, at most `most` of them, and what is known of them before any is graded.
    Raises UsageError where the assignment has no solution in Python, or its equivalent.toml is wrong or unfitting."""

    def __init__(self, assignment: Assignment, most: int | None = None) -> None:
        if assignment.is_quiz or assignment.solution is None or not assignment.solution.is_file():
            raise UsageError(f"{assignment.id} has no solution.py that could be mutated")
        self.assignment = assignment
        self.text = assignment.solution.read_text(encoding="utf-8")
        every = mutants(self.text)
        self.mutants = every if most is None else spread(every, most)
        self.judged: dict[str, Judged] = {meaning(one.text): one for one in judged(assignment.solution)}
        """What a person judged equivalent, by what its text means."""
        texts = {meaning(mutant.text) for mutant in every}
        self.stale = sorted({one.name for text, one in self.judged.items() if text not in texts})
        """Entries of equivalent.toml with an edit that makes no mutant."""

    def results(self, trials: Trials) -> Iterator[MutantResult]:
        """What comes of each mutant, as it comes; those that were judged equivalent are not graded. Raises UsageError
        where the solution itself does not earn every point."""
        (own,) = trials.of([self.text])
        if own.failed or own.fault:
            raise UsageError(f"the solution itself fails: {own.fault or ', '.join(own.failed)}")
        undecided = []
        for mutant in self.mutants:
            if one := self.judged.get(meaning(mutant.text)):
                yield MutantResult(mutant, MutantOutcome.JUDGED, 0.0, note=f"{one.name}: {one.why}")
            else:
                undecided.append(mutant)
        for mutant, trial in zip(undecided, trials.of(mutant.text for mutant in undecided), strict=True):
            yield self._result(mutant, trial, own)

    def _result(self, mutant: Mutant, trial: Trial, own: Trial) -> MutantResult:
        if trial.fault:
            return MutantResult(mutant, MutantOutcome.FAULT, trial.seconds, note=trial.fault)
        if trial.failed:
            return MutantResult(mutant, MutantOutcome.CAUGHT, trial.seconds, trial.failed, not trial.needs_hidden)
        outcome = MutantOutcome.SAME if trial.computes_as(own) else MutantOutcome.SURVIVED
        return MutantResult(mutant, outcome, trial.seconds)

    def survivor(self, result: MutantResult) -> str:
        """A survivor as a person has to see it: the edit, in the form of equivalent.toml, and what would show it."""
        edit = edit_between(self.text, result.mutant.text)
        needs = f"to catch it, draw {result.mutant.operator.needs}; or judge it equivalent in {FILE}"
        return "\n".join(f"        {line}".rstrip() for line in (*edit.splitlines(), needs))


def score(results: list[MutantResult]) -> MutationScore:
    """The score of these results."""
    of = {outcome: [result for result in results if result.outcome is outcome] for outcome in MutantOutcome}
    caught = of[MutantOutcome.CAUGHT]
    counted = len(caught) + len(of[MutantOutcome.SURVIVED])
    public = sum(result.is_public for result in caught)
    left = (len(of[outcome]) for outcome in (MutantOutcome.SAME, MutantOutcome.JUDGED, MutantOutcome.FAULT))
    return MutationScore(len(results), counted, len(caught), public, *left)


def row(result: MutantResult) -> str:
    """One line for a result."""
    by = "by " + ", ".join(result.by[:3]) + (" ..." if len(result.by) > 3 else "") if result.by else result.note
    return f"  {result.outcome:<8}  {seconds(result.seconds):>7}  {result.mutant}" + (f"\n        {by}" if by else "")


def shown(
    assignment: Assignment, say: Callable[[str], object], *, most: int | None = None, jobs: int | None = None
) -> int:
    """Survey an assignment and say what came of each mutant, with results kept in mutants/; 0 where none survived, else
    1. Raises UsageError where there is nothing to mutate, the solution itself fails, or equivalent.toml is wrong."""
    survey = Survey(assignment, most)
    trials = Trials(assignment, Path("mutants", f"{assignment.id}.jsonl"), jobs or os.cpu_count() or 1)
    say(f"{assignment.id}: {len(survey.mutants)} mutants of {assignment.solution}")
    results = []
    for result in survey.results(trials):
        results.append(result)
        say(row(result))
        if result.outcome is MutantOutcome.SURVIVED:
            say(survey.survivor(result))
    for name in survey.stale:
        say(f"  stale     {FILE}: an edit of [{name}] makes no mutant")
    say(f"  {score(results)}\n")
    left = (MutantOutcome.SURVIVED, MutantOutcome.FAULT)
    return int(bool(survey.stale) or any(result.outcome in left for result in results))


# --- grades mutants on all cores, and remembers what came of each in a file -------------------------------------------


@dataclass(frozen=True)
class Trial:
    """What came of grading one text.

    Attributes:
        failed: the first check that lost points, or all where the text was rejected: what comes after it is not run.
        needs_hidden: whether the public tests alone let the text pass.
        digests: what the programs of its calls compute, by call (see Subject.digests); kept where no check failed.
        fault: what the grader failed with, "" where it did not.
        seconds: how long it took.
    """

    failed: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""
    seconds: float = 0.0
    needs_hidden: bool = False

    def computes_as(self, other: Trial) -> bool:
        """Whether every call that both were asked for became the same program, and there is one."""
        both = self.digests.keys() & other.digests.keys()
        return bool(both) and all(self.digests[call] == other.digests[call] for call in both)


class Trials:
    """Trials of one assignment, remembered in `file` (none where it is None) by all that they depend on, so that a
    survey that was ended goes on where it was; `jobs` graders work at once."""

    def __init__(self, assignment: Assignment, file: Path | None, jobs: int) -> None:
        self._assignment = assignment
        self._release = release(assignment)
        self._file = file
        self._jobs = jobs
        self._lock = threading.Lock()
        self._known = _read(file) if file else {}

    def of(self, texts: Iterable[str]) -> Iterator[Trial]:
        """The trial of each text, in their order, as soon as it and those before it are done."""
        with GraderPool(self._jobs) as graders:  # one that still works is ended: its trial is not remembered
            yield from graders.map(lambda text: self._trial(text, graders), texts)

    def _trial(self, text: str, graders: GraderPool) -> Trial:
        key = hashlib.sha256(f"{self._release}\0public first\0{text}".encode()).hexdigest()[:24]
        if key not in self._known:
            self._remember(key, self._graded(graders, text))
        return self._known[key]

    def _graded(self, graders: GraderPool, text: str) -> Trial:
        """By the public tests first, where most texts fail at once."""
        public = self._tried(graders, text, hidden=False)
        if public.failed or public.fault:
            return public
        every = self._tried(graders, text, hidden=True)
        return replace(every, seconds=round(public.seconds + every.seconds, 2), needs_hidden=bool(every.failed))

    def _tried(self, graders: GraderPool, text: str, *, hidden: bool) -> Trial:
        options = GradingOptions(hidden=hidden, device="cpu", shrink=False, diagnose=False, stop=True)
        asked = grading_job(self._assignment, "submission.py", text.encode("utf-8"), options, digests=True)
        began = time.monotonic()
        try:
            graded = graders.graded(asked)
        except GraderFailed as error:
            return Trial(fault=str(error), seconds=time.monotonic() - began)
        return _of_record(graded.record, graded.digests, time.monotonic() - began)

    def _remember(self, key: str, trial: Trial) -> None:
        self._known[key] = trial
        if self._file is not None and not trial.fault:  # what the grader failed at is tried again the next time
            with self._lock:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with self._file.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps({"key": key, **asdict(trial)}) + "\n")


def _read(file: Path) -> dict[str, Trial]:
    """The trials in a file by their keys; a line that was not written to its end counts as none."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            data = json.loads(line)
            key, data["failed"] = data.pop("key"), tuple(data["failed"])
            found[key] = Trial(**data)
        except (json.JSONDecodeError, KeyError, TypeError):
            continue
    return found


def _of_record(record: Mapping[str, Any], digests: Mapping[str, str], seconds: float) -> Trial:
    if record["status"] == Status.FAULT:
        return Trial(fault=record["message"], seconds=seconds)
    faults = [check for check in record["checks"] if check["outcome"] == Outcome.FAULT]
    if faults:
        return Trial(fault=f"{faults[0]['id']}: {faults[0]['message']}", seconds=seconds)
    is_rejected = record["status"] == Status.REJECTED
    failed = [check["id"] for check in record["checks"] if is_rejected or check["outcome"] == Outcome.FAILED]
    names = tuple(dict.fromkeys(id.partition("[")[0] for id in failed)) or (("rejected",) if is_rejected else ())
    return Trial(names, {} if names else digests, "", round(seconds, 2))
