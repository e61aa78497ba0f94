"""Ways of calling an entry that a model may choose, and that must not change what it gives.

    no gradients      under torch.no_grad(), with inputs that could have gradients
    inference         in torch.inference_mode()
    views             inputs that need gradients are views of leaves
    results           inputs that need gradients are results of operations
    backward twice    the backward pass is made twice, of one graph that is retained
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch

NO_GRADIENTS, INFERENCE, VIEWS, RESULTS, TWICE = "no gradients", "inference", "views", "results", "backward twice"


@contextlib.contextmanager
def forward_mode(way: str, values: Sequence[Any]) -> Any:
    """Open while the entry is called on `values` without a backward pass."""
    if way == NO_GRADIENTS:
        for value in values:
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                value.requires_grad_()
        with torch.no_grad():
            yield
    elif way == INFERENCE:
        with torch.inference_mode():
            yield
    else:
        yield


def derived(way: str, values: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
    """The arguments of a call whose gradients at the positions `wanted` are asked for, made of these leaves."""
    made = list(values)
    for position in wanted:
        if way == VIEWS:
            made[position] = made[position].view_as(made[position])
        elif way == RESULTS:
            made[position] = made[position].clone()
    return made


def gradients(way: str, result: torch.Tensor, leaves: Sequence[torch.Tensor], upstream: torch.Tensor) -> Any:
    """The gradients of the leaves, those of the last backward pass where there are two."""
    if way == TWICE:
        torch.autograd.grad(result, leaves, upstream, allow_unused=True, retain_graph=True)
    return torch.autograd.grad(result, leaves, upstream, allow_unused=True)
