"""Grades the mutants of a solution on all cores, and remembers what came of each in a file.

Grading is asked for in `_graded` alone: warm graders take the texts. What a trial depends on is in its
key (the text, the assignment's tests, gradekit's version), so that a survey that was ended goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment
from gradekit.batch.grader import GraderFailed, release
from gradekit.batch.pool import GraderPool, grading_job
from gradekit.findings import Outcome, Status
from gradekit.request import GradingOptions


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
    """Trials of one assignment, remembered in `file` (none where it is None); `jobs` graders work at once."""

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
