"""The failing call of a check, and others of it, as calls on which changes of a kernel are screened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from gradekit.inputs.spec import Input
from gradekit.judge.comparison import Comparison
from gradekit.screening.screen import Shown

if TYPE_CHECKING:
    from gradekit.judge.failure import Failure
    from gradekit.subject.subject import Call

MOST_RESULTS = 1 << 16
"""Elements of all results of a call that is screened."""


def failing(error: Failure, call: Call) -> Shown | None:
    """The call whose result was wrong; None where no result was compared with what it must be."""
    comparison, observation = error.comparison, call.observation
    if comparison is None or observation is None:
        return None
    place = _place(comparison.actual, observation.results)
    if place is None or sum(one.numel() for one in observation.results if isinstance(one, torch.Tensor)) > MOST_RESULTS:
        return None
    reference = comparison.reference

    def is_right(results: Sequence[Any]) -> bool:
        mine = results[place]
        return mine is not None and Comparison(mine.view(comparison.actual.shape), reference).wrong_count == 0

    return Shown(observation.program, _tensors(call), observation.results, is_right)


def passing(call: Call) -> Shown | None:
    """A call whose results were right, and are to stay as they are but for rounding."""
    observation = call.observation
    if observation is None:
        return None
    seen = list(observation.results)

    def is_right(results: Sequence[Any]) -> bool:
        return all(_alike(one, other) for one, other in zip(seen, results, strict=True))

    return Shown(observation.program, _tensors(call), seen, is_right)


def _alike(seen: Any, now: Any) -> bool:
    if not isinstance(seen, torch.Tensor):
        return True
    return now is not None and torch.allclose(seen.double(), now.double(), rtol=1e-2, atol=1e-2, equal_nan=True)


def _place(actual: torch.Tensor, results: Sequence[Any]) -> int | None:
    same = (
        number for number, one in enumerate(results)
        if isinstance(one, torch.Tensor) and one.shape == actual.shape and torch.equal(one.nan_to_num(), actual.nan_to_num())
    )  # fmt: skip
    return next(same, None)


def _tensors(call: Call) -> list[torch.Tensor]:
    return [arg.tensor() if isinstance(arg, Input) else arg for arg in call.args if isinstance(arg, (Input, torch.Tensor))]
