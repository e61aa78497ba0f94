"""Several warm graders at work at once, for who grades many texts by one assignment: claims, mutants."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

from gradekit.assignment import Assignment
from gradekit.batch import gpus
from gradekit.batch.digests import release
from gradekit.batch.grader import Grader, GradingJob, JobResult
from gradekit.findings import Report
from gradekit.report import record
from gradekit.request import GradingOptions, GradingRequest

T = TypeVar("T")
R = TypeVar("R")

SECONDS = 1800.0
"""The longest that one text may take; a busy machine is slow, and the grader has limits of its own for what hangs."""


class GraderPool:
    """`count` graders without a GPU. As many threads may ask at once; one more waits until a grader is idle."""

    def __init__(self, count: int) -> None:
        self._graders = [Grader() for _ in range(count)]
        self._idle: SimpleQueue[Grader] = SimpleQueue()
        for grader in self._graders:
            self._idle.put(grader)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End all graders, also one that still works."""
        for grader in self._graders:
            grader.close()

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """`work` of each item, in their order, with as many at once as there are graders; `work` may ask them."""
        threads = ThreadPoolExecutor(len(self._graders))
        try:
            for future in [threads.submit(work, item) for item in items]:
                yield future.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def graded(self, job: GradingJob) -> JobResult:
        """What an idle grader answers.

        Raises:
            GraderFailed: its process died, or took longer than SECONDS.
        """
        grader = self._idle.get()
        try:
            return grader.grade(job, SECONDS)
        finally:
            self._idle.put(grader)

    def grade(self, request: GradingRequest) -> Report:
        """The report on a submission that is a file; as `gradekit.plugin.grade`, in another process.

        Raises:
            GraderFailed: see `graded`.
        """
        path = request.submission
        assert isinstance(path, Path), "a pool grades files"
        asked = grading_job(request.assignment, path.name, path.read_bytes(), request.options)
        return record.from_dict(self.graded(asked).record)


@contextlib.contextmanager
def graders(jobs: int | None) -> Iterator[tuple[Callable[[GradingRequest], Report], Callable[..., Iterable[Any]]]]:
    """How to grade a file, and the `map` that grades several: by `jobs` warm graders, by default one for each core.

    Where there is a GPU, which one grading at a time may use, and no `jobs` are asked for: in this process, in order.
    """
    if jobs is None and gpus.visible():
        from gradekit.plugin import grade

        yield grade, map
        return
    with GraderPool(jobs or os.cpu_count() or 1) as pool:
        yield pool.grade, pool.map


def grading_job(
    assignment: Assignment, name: str, content: bytes, options: GradingOptions, *, digests: bool = False
) -> GradingJob:
    """The job that grades the file `name` with this `content`."""
    text = base64.b64encode(content).decode("ascii")
    return GradingJob(assignment.id, release(assignment), options.to_json(), name, text, digests=digests)
