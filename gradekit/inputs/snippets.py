"""Tensors as lines of torch, for a person who wants to see a failing call in a file of their own.

Few numbers are written out, so that the tensor is exactly that of the spec. Many are drawn anew, of the same kind where
torch has a function for it, and else made by gradekit itself, as its own specs make them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from gradekit.inputs.spec import Input

FEW = 64
"""The most elements that are written out."""

_DRAWN: dict[str, Callable[[list[int], str], str]] = {
    "normal": lambda shape, rest: f"torch.randn({shape}, {rest})",
    "positive": lambda shape, rest: f"torch.rand({shape}, {rest}) * 2 + 0.125",
    "ones": lambda shape, rest: f"torch.ones({shape}, {rest})",
    "integers": lambda shape, rest: f"torch.randint(-8, 9, {shape}, {rest})",
}
"""Kinds of values that torch has a function for: an expression, by shape and the other arguments."""

MADE_BY_GRADEKIT = "from gradekit.inputs.spec import Input"
"""The line that goes before an expression with `Input(`."""


def expression(spec: Input, device: str = '"cuda"') -> str:
    """Python that makes the tensor of `spec`, with its strides, on `device` (itself Python)."""
    dtype = f"dtype=torch.{spec.dtype}"
    own = [n if s or n == 0 else 1 for n, s in zip(spec.shape, spec.stride, strict=True)]
    if math.prod(own) <= FEW:
        values = written(spec.tensor()[tuple(slice(n) for n in own)])
        made = f"torch.tensor({values}, {dtype}, device={device})"
        made = made if 0 not in own else f"torch.empty({own}, {dtype}, device={device})"
    elif spec.profile in _DRAWN:
        made = _DRAWN[spec.profile](own, f"{dtype}, device={device}")
    else:
        return (
            f"Input({spec.dtype!r}, {spec.shape}, {spec.stride}, {spec.offset}, {spec.profile!r}, "
            f"{spec.seed}).tensor().to({device})"
        )
    if not spec.is_contiguous or spec.offset:
        whole = f"torch.zeros({spec.storage_size}, {dtype}, device={device})"
        made = f"{whole}.as_strided({own}, {list(spec.stride)}, {spec.offset}).copy_({made})"
    return made if own == list(spec.shape) else f"{made}.expand({list(spec.shape)})"


def written(tensor: torch.Tensor) -> str:
    """The values as Python writes them, nested as the dimensions are, in no more digits than the dtype needs."""
    if tensor.dim():
        return f"[{', '.join(map(written, tensor))}]"
    return _number(tensor)


def few(tensor: torch.Tensor, most: int) -> list[str] | None:
    """The values in their order as short texts; None where there are more than `most`, or none."""
    return [_number(value) for value in tensor.flatten()] if 0 < tensor.numel() <= most else None


def _number(value: torch.Tensor) -> str:
    number: Any = value.item()
    if not isinstance(number, float):
        return str(number)
    if not math.isfinite(number):
        return f'float("{number}")'
    texts = (f"{number:.{digits}g}" for digits in range(1, 18))
    text = next(text for text in texts if torch.tensor(float(text), dtype=value.dtype).item() == number)
    return text if any(mark in text for mark in ".e") else f"{text}.0"
