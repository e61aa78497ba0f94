"""Trivial results that must fail every assignment: what no test may mistake for the work.

Each of them takes the expected results (as a submission would return them) and the tensors that it was given, and
returns results of the same shapes and dtypes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from gradekit.engine.trials import agree

Results = Sequence[torch.Tensor]
TrivialResult = Callable[[Results, Results], list[torch.Tensor]]


def constant(expected: Results, inputs: Results) -> list[torch.Tensor]:
    """The mean of the expected elements, everywhere; 1 more of a single element, which is its own mean."""
    return [torch.full_like(e, _mean(e) + (e.numel() == 1)) for e in expected]


def first_input(expected: Results, inputs: Results) -> list[torch.Tensor]:
    """The first input's elements, in their order, as often as it takes."""
    flat = inputs[0].flatten() if inputs and inputs[0].numel() else torch.zeros(1)
    repeated = (flat.repeat(-(-e.numel() // len(flat)))[: e.numel()] for e in expected)
    return [flat.reshape(e.shape).to(e.dtype) for flat, e in zip(repeated, expected, strict=True)]


TRIVIAL_RESULTS: dict[str, TrivialResult] = {
    "zeros": lambda expected, inputs: [torch.zeros_like(e) for e in expected], "constant": constant,
    "first_input": first_input, "lower_precision": lambda expected, inputs: [round_lower(e) for e in expected],
}  # fmt: skip


@dataclass
class WatchedResults:
    """Makes trivial results, and knows whether all of them were right: such results cannot fail a check."""

    make: TrivialResult
    _seen: set[bool] = field(default_factory=set)

    def __call__(self, expected: Results, inputs: Results) -> list[torch.Tensor]:
        made = self.make(expected, inputs)
        pairs = zip(expected, made, strict=True)
        self._seen.add(all(a.shape == b.shape and bool(agree(a, b).all()) for a, b in pairs))
        return made

    def all_right(self) -> bool:
        """Whether there were some since this was last asked, and all were right."""
        found, self._seen = self._seen == {True}, set()
        return found


def round_lower(value: torch.Tensor) -> torch.Tensor:
    """float64 through float32, float32 through bfloat16, narrower floats through 4 bits; integers through float32."""
    if not value.is_floating_point():
        return value.clone() if value.dtype == torch.bool else _through_float32(value)
    if value.element_size() > 2:
        return value.to(torch.float32 if value.dtype == torch.float64 else torch.bfloat16).to(value.dtype)
    exact = value.double()
    mantissa, _ = torch.frexp(exact)  # in [0.5, 1), or 0
    rounded = exact / mantissa * ((mantissa * 32).round() / 32)
    return torch.where(exact.isfinite() & (exact != 0), rounded, exact).to(value.dtype)


def _through_float32(value: torch.Tensor) -> torch.Tensor:
    limits = torch.iinfo(value.dtype)
    largest = limits.max - limits.max // 2**24  # the largest float32 that the dtype can hold
    return value.float().double().clamp(limits.min, largest).to(value.dtype)


def _mean(value: torch.Tensor) -> float | int:
    finite = value.double()[value.double().isfinite()]
    mean = float(finite.mean()) if finite.numel() else 0.0
    return mean if value.is_floating_point() else round(mean)
