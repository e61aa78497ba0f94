"""What torch takes for the same call: the reference run eagerly, and under torch.compile.

Timed on the same sets of inputs as the submission, with the same kind of clock; compilation is over before it starts.
How much faster the compiled reference is than the eager one is kept for a card (see `Comparison`).
"""

import functools
import hashlib
import inspect
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gradekit.compat import torch_compile
from gradekit.gpu.card import Card, keep, known
from gradekit.gpu.cpu_emulation import CpuClock
from gradekit.gpu.timing import Clock
from gradekit.inputs.spec import Input
from gradekit.judge.speed import Ratio

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
    """`function` as it is. Raises BaselineError where it fails on these inputs."""
    return Baseline("eager", _clock("eager", function, sets, card))


def compiled(function: Function, sets: Sequence[Sequence[Any]], card: Card) -> Baseline:
    """`function` under torch.compile, for this shape alone. Raises BaselineError where that fails here."""
    if card.device.type == "cpu":
        return Baseline("compiled", _clock("compiled", function, sets, card))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's advice is not for whoever reads the report
        torch_compile.load()
        torch.compiler.reset()
        faster = torch.compile(function, dynamic=False)
        start = time.perf_counter()
        _tried("compiled", lambda: faster(*sets[0]))
        torch.cuda.synchronize(card.device)
        compile_seconds = time.perf_counter() - start
        return Baseline("compiled", _clock("compiled", faster, sets, card), compile_seconds)


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


# --- how the two compare, kept for a card -----------------------------------------------------------------------------


class Comparison:
    """How many times as fast as the eager function the compiled one is on a card, for arguments like `args`, by its
    text and that of the files beside it; one that holds other things than numbers and texts is measured each time."""

    def __init__(self, function: Function, args: Sequence[Any], card: Card) -> None:
        self._card, self._name = card, "" if card.device.type == "cpu" else _name(function, args)

    @property
    def found(self) -> Ratio | None:
        """What was kept, or None."""
        return known(self._card, self._name, Ratio) if self._name else None

    def keep(self, ratio: Ratio) -> None:
        """For the next time."""
        if self._name:
            keep(self._card, self._name, ratio)


def _name(function: Function, args: Sequence[Any]) -> str:
    """A name for `function` at arguments like these, whatever the seeds of their values; "" where there is none."""
    text = _text(function)
    forms = [(a.dtype, a.shape, a.stride, a.offset, a.profile, a.base) if isinstance(a, Input) else a for a in args]
    return f"compiled {hashlib.sha256(repr((text, forms)).encode()).hexdigest()}" if text else ""


def _text(function: Function) -> str:
    if inspect.isbuiltin(function):
        return f"{function.__module__} {function.__qualname__}"
    if not inspect.isfunction(function):
        return ""
    held = [cell.cell_contents for cell in function.__closure__ or ()] + list(function.__defaults__ or ())
    if not all(isinstance(value, (str, int, float, type(None))) for value in held):
        return ""
    files = sorted(Path(inspect.getfile(function)).parent.glob("*.py"))
    return repr((function.__qualname__, held, [file.read_text(encoding="utf-8") for file in files]))
