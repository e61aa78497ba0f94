"""What a diagnosis may rest on: one failure with its observation."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from gradekit.engine.kernel_facts import every_operation, parsed
from gradekit.engine.ttir import Op, TTIRError
from gradekit.findings import Cause, Finding
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.comparison import Comparison
from gradekit.judge.failure import Failure
from gradekit.program import Program

UPSTREAM = "the gradient of the result"
"""What messages call the last input of a backward pass."""


@dataclass(frozen=True)
class Diagnosis:
    """The cause, one or two sentences, the line, a hint where it is not the cause's own, the position of the `input` it
    is about, and lines that this has only `passed`. Any other goes before a `vague` one, which names just a line."""

    cause: Cause
    sentence: str
    line: int | None = None
    hint: str = ""
    input: int | None = None
    vague: bool = False
    passed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Evidence:
    """A failure, and all that is known of it: `inputs` are the arguments, `text` the submission's source, or "", and
    `calls` those of a check that are wrong, this one first, by the names of their arguments."""

    failure: Failure
    inputs: tuple[Any, ...] = ()
    findings: tuple[Finding, ...] = ()
    program: Program | None = None
    results: tuple[Any, ...] = ()
    text: str = ""
    calls: Sequence[tuple[Mapping[str, Any], Comparison]] = ()

    @property
    def wrong(self) -> Sequence[tuple[Mapping[str, Any], Comparison]]:
        """The calls that are wrong; this one, where no others are known."""
        own = {self.name(place): spec for place, spec in enumerate(self.specs)}
        return self.calls or ([(own, self.comparison)] if self.comparison is not None else [])

    @property
    def comparison(self) -> Comparison | None:
        """The element-wise evidence, where values were compared."""
        return self.failure.comparison

    @cached_property
    def specs(self) -> tuple[Input, ...]:
        """The drawn inputs, in order."""
        return tuple(i for i in self.inputs if isinstance(i, Input))

    @cached_property
    def operations(self) -> list[Op]:
        """The operations of all kernels."""
        return [*operations_of(self.program)] if self.program is not None else []

    def lines_of(self, op: Op) -> set[int]:
        """The lines of the submission that an operation stands in: its own, and those of calls around it."""
        path = self.program.path if self.program is not None else ""
        return {line for file, line, _ in op.location if file == path or not path}

    def find(self, *causes: Cause) -> Finding | None:
        """The first finding with one of these causes."""
        return next((f for f in self.findings if f.cause in causes), None)

    def name(self, position: int) -> str:
        """What to call the drawn input at `position` of `specs`."""
        return self.specs[position].name or ("the input" if len(self.specs) == 1 else f"input {position + 1}")

    def strides_of_others(self, shape: Sequence[int], own: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
        """Strides other than a tensor's `own`, with whose they are: inputs', and those of a contiguous tensor."""
        found = [(self.name(place), one.stride) for place, one in enumerate(self.specs)]
        found.append(("a contiguous tensor", row_major(shape)))
        return [(name, stride) for name, stride in found if len(stride) == len(own) and stride != own]


def operations_of(program: Program) -> Iterator[Op]:
    """The operations of every kernel; none of one that the engine cannot read."""
    for kernel in program.kernels.values():
        with contextlib.suppress(TTIRError):
            yield from every_operation(parsed(kernel.unaligned))


def nouns(dimensions: int) -> list[str]:
    """What the places along each of so many dimensions are called."""
    few = {1: ["elements"], 2: ["rows", "columns"]}
    return few.get(dimensions) or [f"places along dimension {one}" for one in range(dimensions)]


def results_of(observation: Any) -> tuple[Any, ...]:
    """The results of a call; none where it was made in part, and nobody may look at them."""
    try:
        return tuple(getattr(observation, "results", None) or ())
    except Failure:
        return ()


def same(actual: torch.Tensor, other: torch.Tensor, allowance: torch.Tensor | float = 0.0) -> torch.Tensor:
    """True where two float64 tensors agree: within `allowance`, both NaN, or the same infinity."""
    return ((actual - other).abs() <= allowance) | (actual == other) | (actual.isnan() & other.isnan())


def errors_are_small(comparison: Comparison) -> bool:
    """Whether all is finite, and no error above a twentieth of the largest right value."""
    exact = comparison.reference.exact.double()
    return bool((comparison.value.double() - exact).abs().max() <= 0.05 * exact.abs().max() < torch.inf)


def factors_of(comparison: Comparison, along: int | None = None) -> torch.Tensor | None:
    """How many times as large as it must be a result is, or each of its rows `along` a dimension; None where that is
    not one number for all that is in it, or 1 for all, or 0, or where there are too few different numbers to tell."""
    if not comparison.actual.is_floating_point() or not comparison.actual.dim() or comparison.wrong_count < 2:
        return None
    every = comparison.value, comparison.reference.exact, comparison.reference.allowance
    whole = (one.double().expand(comparison.actual.shape) for one in every)
    value, exact, allowance = (
        one.reshape(1, -1) if along is None else one.movedim(along, -1).reshape(-1, one.shape[along]) for one in whole
    )
    factors = (value * exact).sum(1, keepdim=True) / exact.square().sum(1, keepdim=True)
    tells_much = ((exact - exact[:, :1]).abs() > 10 * allowance).any(1) & (exact.abs() > 10 * allowance).any(1)
    fits = (value - factors * exact).abs() <= 2 * factors.abs().clamp(min=1) * allowance
    is_off = (value - exact).abs() > 10 * allowance  # by more than rounding may be
    return factors.flatten() if bool(fits.all() & tells_much.all() & is_off.any() & factors.all()) else None
