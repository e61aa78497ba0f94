"""What torch takes for the same call: the reference run eagerly, and under torch.compile.

Runs in the grader's process, on the same sets of inputs as the submission, with the same kind of clock. Compilation is
over before the clock starts, and how long it took is reported apart.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradekit.compat import torch_compile
from gradekit.gpu.card import Card
from gradekit.gpu.cpu_emulation import CpuClock
from gradekit.gpu.timing import Clock

Function = Callable[..., Any]


class BaselineError(RuntimeError):
    """torch could not run or compile the reference here: the message says what it said."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """One side of the contest that torch plays: `compile_seconds` is wall time before the first result was there."""

    name: str
    clock: Clock | CpuClock
    compile_seconds: float = 0.0

    @property
    def note(self) -> str:
        """What a reader must know of how it was timed, or ''."""
        return f"timed without a CUDA graph, launches included ({self.clock.why})" if self.clock.why else ""


def eager(function: Function, sets: Sequence[Sequence[Any]], card: Card) -> Baseline:
    """`function` as it is.

    Raises:
        BaselineError: it fails on these inputs.
    """
    return Baseline("eager", _clock("eager", function, sets, card))


def compiled(function: Function, sets: Sequence[Sequence[Any]], card: Card) -> Baseline:
    """`function` under torch.compile as most people write it, for this shape alone: nothing that it learnt of another
    shape is used.

    Raises:
        BaselineError: it fails, or cannot be compiled on this machine.
    """
    if card.device.type == "cpu":
        return Baseline("compiled", _clock("compiled", function, sets, card))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's advice is not for whoever reads the report
        torch_compile.load()
        torch.compiler.reset()
        faster = torch.compile(function, dynamic=False)
        start = time.perf_counter()
        clock_of = functools.partial(_clock, "compiled", faster, sets, card)
        _tried("compiled", lambda: faster(*sets[0]))
        torch.cuda.synchronize(card.device)
        compile_seconds = time.perf_counter() - start
        return Baseline("compiled", clock_of(), compile_seconds)


def _clock(name: str, function: Function, sets: Sequence[Sequence[Any]], card: Card) -> Clock | CpuClock:
    calls = [functools.partial(function, *arguments) for arguments in sets]
    return _tried(name, lambda: CpuClock(calls) if card.device.type == "cpu" else Clock(calls, card))


def _tried(name: str, action: Callable[[], Any]) -> Any:
    try:
        with torch.no_grad():
            return action()
    except Exception as error:  # whatever torch or the reference raises: its own words are all that helps
        words = str(error).strip().partition("\n")[0]
        raise BaselineError(f"{name}: {type(error).__name__}: {words}") from error
