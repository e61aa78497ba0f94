"""What results may differ in and still be right: which of equal elements were chosen, or the order of a row's elements.

Runs in the grader's process, before a comparison: results are put into the form that they would have, had they made
the reference's choice. What cannot be put into it stays as it is, and is then told to be wrong as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradekit.inputs.spec import Input
from gradekit.judge.reference import Reference

UpTo = Callable[[Sequence[Any], Sequence[Reference]], list[Any]]
"""Given results and what was expected, the results as if the free choice had been the reference's."""


def ties(x: Input | torch.Tensor, dim: int = -1, result: int = 1) -> UpTo:
    """Result number `result` has places in `x` along `dim`, and may name any of several elements that are equal, but
    none of them twice."""
    values = x.tensor() if isinstance(x, Input) else x

    def chosen(results: Sequence[Any], wanted: Sequence[Reference]) -> list[Any]:
        places, expected = results[result], wanted[result].native
        if not _alike(places, expected) or not places.numel():
            return list(results)
        inside = places.clamp(0, values.shape[dim] - 1)
        same = (inside == places) & (values.gather(dim, inside.long()) == values.gather(dim, expected.long()))
        ordered = places.sort(dim).values
        twice = (ordered.diff(dim=dim) == 0).any(dim, keepdim=True)
        return [
            torch.where(same & ~twice, expected, places) if number == result else one
            for number, one in enumerate(results)
        ]

    return chosen


def any_order(dim: int = -1) -> UpTo:
    """The elements of each result may stand in any order along `dim`, and move together: as pairs, say."""

    def ordered(results: Sequence[Any], wanted: Sequence[Reference]) -> list[Any]:
        if not all(_alike(one, reference.native) for one, reference in zip(results, wanted, strict=True)):
            return list(results)
        back = _order([reference.rounded for reference in wanted], dim).argsort(dim)
        mine = _order(results, dim).gather(dim, back)
        return [one.gather(dim, mine) for one in results]

    return ordered


def _alike(result: Any, expected: torch.Tensor) -> bool:
    return isinstance(result, torch.Tensor) and result.shape == expected.shape and result.dtype == expected.dtype


def _order(results: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    """What sorts all results by the first, and where it has equal elements by the next."""
    order = torch.arange(results[0].shape[dim]).expand(results[0].movedim(dim, -1).shape).movedim(-1, dim)
    for result in reversed(results):
        order = order.gather(dim, result.gather(dim, order).argsort(dim=dim, stable=True))
    return order
