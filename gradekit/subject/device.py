"""The card that a grading run may use: found once, its worker started at the first need, its faults attributed.

Runs in the grader's process. A program that misuses the card loses the worker's process and nothing else; what it did
becomes the student's failure where a kernel of theirs did it, and nobody's where that is unclear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from gradekit.findings import Cause
from gradekit.gpu.card import Card, driver, find
from gradekit.gpu.faults import CardFault
from gradekit.judge.failure import Failure
from gradekit.program import Program

if TYPE_CHECKING:
    from gradekit.gpu.worker import CardRun, Worker
    from gradekit.gpu.worker_process import WorkerProcess

NO_GPU = "speed is timed on a GPU, and this machine has none"
CARD_NOT_WANTED = "speed is timed on a GPU, and this run was told not to use one (--device cpu)"


STANDIN = "standin"  # for tests of all around a card: the CPU engine stands in for one, and all that it times is marked


class NeedsCard(Exception):
    """Something that only a card can measure, and `reason` why none did: the check is pending, never a zero."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Device:
    """What `wanted` names: "auto" (a card if there is one), "cpu" (none), "cuda" or "cuda:1" (that card).

    `start` makes the worker for a card, by default of the process that was started `early`, if one was; `fresh` has all
    sides of a timed call measured, though a card's figures of one are known. `used` says whether anything ran on the
    card so far, `troubles` what it failed to do for reasons of its own.
    """

    def __init__(
        self, wanted: str = "auto", start: Callable[[Card], Worker] | None = None, *, fresh: bool = False,
        early: WorkerProcess | None = None,
    ) -> None:  # fmt: skip
        self.wanted, self.fresh = wanted, fresh
        self.used = False
        self.troubles: list[str] = []
        self._early = early
        self._start = start or self._worker
        self._running: Worker | None = None

    @cached_property
    def card(self) -> Card | None:
        """The card, or None. Raises ValueError where there is no such device; the message says what there is."""
        if self.wanted == STANDIN:
            from gradekit.gpu.cpu_emulation import CARD

            return CARD
        return find(self.wanted)

    @property
    def names(self) -> dict[str, str]:
        """What the report says of the card that took part; empty where none did."""
        if not self.used or self.card is None:
            return {}
        return {"gpu": self.card.name, "gpu_uuid": self.card.uuid, "driver": driver()}

    def need(self) -> Card:
        """The card. Raises NeedsCard where there is none, or none may be used."""
        if self.card is None:
            raise NeedsCard(CARD_NOT_WANTED if self.wanted == "cpu" else NO_GPU)
        return self.card

    @property
    def worker(self) -> Worker:
        """The worker on the card; it starts when it is asked for something."""
        running = self._process()
        self.used = True
        return running

    def _process(self) -> Worker:
        if self._running is None:
            self._running = self._start(self.need())
        return self._running

    def start(self) -> None:
        """Set the worker going, if there is a card, without waiting for it: it imports torch meanwhile."""
        if self.card is not None:
            self._process().start()

    def run(
        self, program: Program, tensors: Sequence[torch.Tensor], *, option: int, allow: Collection[str], entry: str,
        names: Sequence[str] = (),
    ) -> CardRun:  # fmt: skip
        """What the card computes for CPU `tensors`, which the student calls `names`. Raises Failure where a kernel
        misused the card or does not run on it, and NeedsCard where the card failed for a reason of its own."""
        try:
            return self.worker.run(program, tensors, option=option, allow=tuple(allow), names=names)
        except CardFault as fault:
            raise self.judged(fault, entry) from None

    def judged(self, fault: CardFault, entry: str) -> Failure | NeedsCard:
        """What a fault on the card comes to: the student's failure where a kernel is to blame, else pending."""
        verdict = judged(fault, entry, self.need().name)
        if isinstance(verdict, NeedsCard):
            self.troubles.append(f"{verdict.reason.rstrip('.')}.")
        return verdict

    def close(self) -> None:
        """End the worker."""
        if self._running is not None:
            self._running.close()
        elif self._early is not None:
            self._early.end()
        self._running = self._early = None

    def _worker(self, card: Card) -> Worker:
        from gradekit.gpu.worker import Worker

        early, self._early = self._early, None
        return Worker(card, early)


_FAULTS = {
    "illegal-access": (Cause.ILLEGAL_ACCESS, "reads or writes memory that is not its own: the card stopped it"),
    "hang": (Cause.BUDGET_EXCEEDED, "does not end"),
    "compile": (Cause.COMPILATION_ERROR, "does not compile"),
    "resources": (Cause.OUT_OF_RESOURCES, "needs more than the card has"),
    "out-of-memory": (Cause.OUT_OF_MEMORY, "asks for more memory than the card has"),
    "crash": (Cause.CRASH, "ended the process that ran it"),
}


def judged(fault: CardFault, entry: str, card: str) -> Failure | NeedsCard:
    """As `Device.judged`, for a card by its name."""
    cause, said = _FAULTS.get(fault.kind, (None, ""))
    if not fault.kernel or cause is None:
        return NeedsCard(f"{card} did not measure it ({fault.kind}): {fault.message}")
    facts: dict[str, Any] = {"card": card, "kernel": fault.kernel, "detail": fault.message}
    return Failure(cause, f"On {card}, {fault.kernel} in {entry} {said}.", line=fault.line, facts=facts)
