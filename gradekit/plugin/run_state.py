"""One grading run: the assignment, the submission, and what is known of the checks so far."""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import functools
import gc
import itertools
import os
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.findings import Cause, Check, SourceLine
from gradekit.plugin.profiles import PROFILES, Limit, Profile, hypothesis_profile
from gradekit.request import GradingRequest
from gradekit.submission import NoSuchSubmission, Submission, SubmissionError, imported_from, read
from gradekit.wire import CAP, ForkedCache

if TYPE_CHECKING:
    from gradekit.gpu.worker_process import WorkerProcess
    from gradekit.inputs.draws import Draws
    from gradekit.judge.trivial import WatchedResults
    from gradekit.repair.tutor import Tutor
    from gradekit.sandbox import Loaded, Tracer
    from gradekit.subject.device import Device
    from gradekit.subject.subject import Subject


class Rejection(Exception):
    """Why no check can say anything: the submission could not be read, executed, or called by the entry's name."""

    def __init__(self, cause: Cause, message: str, source: SourceLine | None = None, detail: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.source = source
        self.detail = detail


OnProgress = Callable[[str, int, int], None]
"""Called with the title of the check that begins, how many are done, and how many there are."""

OnSubject = Callable[["Subject"], None]  # called when all checks have run, with the submission as they saw it

OnEvidence = Callable[[Check, Any, BaseException | None], None]
"""Called when a check has ended, with its CheckEvidence: what its outcome rests on, and the error, if any."""

OnFailing = Callable[[str, str], None]
"""Called, perhaps from another thread, with the title of a check that fails and a message; its record comes later."""


def nobody(*told: object) -> None:
    """Ignores what it is told."""


@dataclass
class GradingRun:
    """One run of the tests of `request.assignment` on its submission, while it is `opened`.

    `order` has the position of each check in the assignment, by its id: the report has them so, whatever ran first.
    `drawn` has what each check draws its calls from, also one that is left out, but none that counts bytes: those may
    be as many only in calls as large as its own. `faults` are sentences about the grader's own failures, which cost no
    points. `further` makes inputs from what the submission itself compares. `only_tries` says that another process runs
    again what does not pass in this one. `on_progress` to `on_failing` are who watches. `tutor` knows the mistakes.
    """

    request: GradingRequest
    submission: Submission | None = None
    subject: Subject | None = None
    rejection: Rejection | None = None
    possible: dict[str, float] = field(default_factory=dict)
    items: list[pytest.Item] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)
    drawn: list[tuple[str, Draws]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    on_progress: OnProgress = nobody
    on_subject: OnSubject = nobody
    on_evidence: OnEvidence = nobody
    on_failing: OnFailing | None = None
    further: Any = None
    only_tries: bool = False
    tutor: Tutor | None = None
    device: Device | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _lowered: ForkedCache = field(default_factory=lambda: ForkedCache(CAP))

    @property
    def profile(self) -> Profile:
        """How hard the run looks."""
        return PROFILES[self.request.options.profile]

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Read the submission; at the end, end all processes and put settings back. Raises NoSuchSubmission where there
        is nothing to grade, and NoSuchDevice where there is no such GPU."""
        from gradekit.gpu.worker_process import start_early

        with contextlib.ExitStack() as opened:
            opened.callback(self._end_processes)
            self._begin()
            tries = self.rejection is None and self.request.options.trivial is None
            # the GPU's process imports its torch while this one does
            early = start_early(self.request.options.device) if tries else None
            opened.enter_context(one_thread())
            opened.enter_context(seldom_collected())
            opened.enter_context(seldom_returned())
            self.device = device_named(self.request.options.device, early)
            if tries:
                self.device.start()
            opened.enter_context(hypothesis_profile(self.profile))
            yield

    def _begin(self) -> None:
        given = self.request.submission
        try:
            entry = self.request.assignment.entry
            self.submission = given if isinstance(given, Submission) else read(given, entry=entry)
        except NoSuchSubmission:
            raise
        except SubmissionError as error:
            self.rejection = Rejection(error.cause, error.message, error.source)
        else:
            self.notes += self.submission.notes

    def load(self) -> None:
        """Wait until the submission has been executed in its process, and see that it defines the entry."""
        if self.submission is None or self.rejection is not None:
            return
        from gradekit.sandbox import TraceError
        from gradekit.subject.subject import Subject

        programs = self.request.programs
        self.subject = Subject(
            self.submission, self.request.assignment, self._tracer if programs is None else _no_tracer,
            substitute=self.trivial, device=self.device, programs=programs,
        )  # fmt: skip
        if programs is not None:
            return
        try:
            loaded = self.subject.load()
        except TraceError as error:
            source = self.submission.line(error.line) if error.line else None
            self.rejection = Rejection(error.cause, error.message, source, error.detail)
            return
        self.notes += loaded.notes
        self.rejection = _missing_entry(self.request.assignment.entry, self.submission, loaded)

    @contextlib.contextmanager
    def looking_for_a_cause(self, details: dict[str, Any]) -> Iterator[None]:
        """Leaves the block, which looks for a cause, at its first error: `details` of a check and the notes have it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the grader's own, and costs words alone
            details["diagnosis_error"] = traceback.format_exc()[-8000:]
            at = traceback.extract_tb(error.__traceback__)[-1]
            note = _NO_CAUSE.format(type(error).__name__, Path(at.filename).name, at.lineno)
            self.notes += [note] if note not in self.notes else []

    def _end_processes(self) -> None:
        for owner in (self.subject, self.tutor, self.device):
            if owner is not None:
                owner.close()

    def another_subject(self) -> Subject:
        """The submission in processes of its own, which have not begun; not for a card."""
        from gradekit.subject.subject import Subject

        assert self.submission is not None
        return Subject(self.submission, self.request.assignment, self._tracer)

    @property
    def has_card(self) -> bool:
        """Whether programs may run on a card."""
        return self.device is not None and self.device.card is not None

    def _tracer(self) -> Tracer:
        from gradekit.sandbox import Tracer

        assert self.submission is not None
        calling, number = self.request.assignment.calling, next(self._numbers)
        limits, lowered = self.request.limits, self._lowered
        return Tracer(self.submission, limits=limits, calling=calling, number=number, lowered=lowered)

    @functools.cached_property
    def trivial(self) -> WatchedResults | None:
        """What is judged in place of the submission's results, where the request asks for it."""
        if self.request.options.trivial is None:
            return None
        from gradekit.judge.trivial import TRIVIAL_RESULTS, WatchedResults

        return WatchedResults(TRIVIAL_RESULTS[self.request.options.trivial])


_NO_CAUSE = (
    "The grader failed while it looked for the cause of a failure ({} in {}, line {}): results and points do not "
    "depend on it."
)

RUN = pytest.StashKey[GradingRun]()  # where a run of pytest that grades a submission has its GradingRun


def _no_tracer() -> Tracer:
    from gradekit.subject.device import NeedsCard

    raise NeedsCard("this call was not recorded where the submission was graded")


class NoSuchDevice(LookupError):
    """The card that was asked for is not there: the command is wrong, or the machine."""


def device_named(wanted: str, early: WorkerProcess | None = None) -> Device:
    """The device called `wanted`. Raises NoSuchDevice, which says what there is; torch must have been imported."""
    from gradekit.subject.device import Device

    device = Device(wanted, early=early)
    try:
        _ = device.card
    except ValueError as error:
        device.close()
        raise NoSuchDevice(str(error)) from None
    return device


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """While open, Python seldom looks for garbage in cycles: that took a twentieth of a check, and found little."""
    before = gc.get_threshold()
    gc.set_threshold(10_000, 10, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # <malloc.h>


@contextlib.contextmanager
def seldom_returned() -> Iterator[None]:
    """While open, memory of freed tensors stays for the next: pages handed out anew, full of zeros, took a twentieth to
    a tenth of a check. Nothing changes without glibc, or where the environment says what is to be done."""
    libc = ctypes.CDLL(None)
    if "MALLOC_MMAP_THRESHOLD_" in os.environ or not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        yield
        return
    libc.mallopt(_MMAP_THRESHOLD, Limit.MAPPED_BYTES)
    libc.mallopt(_TRIM_THRESHOLD, Limit.UNRETURNED_BYTES)
    try:
        yield
    finally:
        libc.malloc_trim(0)


def return_freed() -> None:
    """Memory that was freed between pieces in use goes back to the system too, where the environment asks for a heap
    that gives back (MALLOC_TRIM_THRESHOLD_)."""
    libc = ctypes.CDLL(None)
    if "MALLOC_TRIM_THRESHOLD_" in os.environ and hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """While open, torch computes on one thread: for small examples, on two busy cores, in a quarter of the time."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _missing_entry(entry: str, submission: Submission, loaded: Loaded) -> Rejection | None:
    if entry in loaded.functions:
        return None
    name = Path(submission.path).name
    near = difflib.get_close_matches(entry, loaded.functions, n=1, cutoff=0.5)
    module = imported_from(submission.text, entry)
    if module:
        instead = f"It imports it from {module}, which is no file of this submission: hand that file in as well."
    elif "run_cell_magic(" in submission.text:
        instead = (
            "A cell that begins with %%, such as %%time, has become text in get_ipython().run_cell_magic(...), which "
            "is not run: take that line out of the notebook, or hand in the notebook itself."
        )
    elif near:
        instead = f"It defines {near[0]}: is that the one? Then rename it."
    elif loaded.functions:
        names = ", ".join(sorted(loaded.functions)[:8])
        instead = f"It defines {names}. Name the function exactly as the handout does."
    elif loaded.notes:
        instead = "What defines it may be among the lines that were left out: see below."
    else:
        instead = "It defines no function at all."
    return Rejection(Cause.MISSING_ENTRY, f"{name} defines no function {entry}. {instead}")
