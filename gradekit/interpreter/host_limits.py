"""Limits on what evaluated host code may make: it may ask for anything, and this is the process of the grader."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor

from gradekit.engine.budget import Meter
from gradekit.interpreter.tile_values import NotWalked

MOST_NUMBERS = 1 << 22
"""Elements of a tensor that host code makes, or of its storage."""

MOST_ITEMS = 1 << 12
"""Items of a list, with those of the lists in it; characters of a string; steps of a loop."""

MOST_DIGITS = 64
"""Bits of a whole number that host code computes."""

EVALUATION = 1000
"""The work of evaluating one expression or statement of host code: about a microsecond."""


def bounded(value: Any) -> Any:
    """A number that is not too long, a list that is not too long, or anything else.

    Raises:
        NotWalked: it is.
    """
    if isinstance(value, int) and value.bit_length() > MOST_DIGITS:
        raise NotWalked("a number that is too long")
    if isinstance(value, (str, list, tuple, dict)):
        _counted(value, MOST_ITEMS)
    if isinstance(value, Tensor) and value.numel() > MOST_NUMBERS:
        raise NotWalked("a tensor that is too large")
    return value


def _counted(value: Any, most: int) -> int:
    """The items of a list, with those of the lists in it."""
    if not isinstance(value, (str, list, tuple, dict)):
        return 1
    count = len(value) + 1
    for one in () if isinstance(value, str) else value.values() if isinstance(value, dict) else value:
        if count > most:
            break
        count += _counted(one, most - count) if isinstance(one, (str, list, tuple, dict)) else 0
    if count > most + 1:
        raise NotWalked("a list that is too long")
    return count


def items(value: Any) -> list[Any]:
    """What a loop, or a star, goes over.

    Raises:
        NotWalked: it is too long.
    """
    if isinstance(value, Tensor) and value.dim() and len(value) > MOST_ITEMS:
        raise NotWalked("a loop of too many steps")
    return list(bounded(list(value)))


def computed(function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any], meter: Meter) -> Any:
    """What a function of torch, or an operator, gives; its elements are counted before they are made.

    Raises:
        NotWalked: its result may be too large, or is to be written to what is there; or whatever torch raises.
    """
    if "out" in given:
        raise NotWalked("a result that is written to what is there")
    meter.spend(0, _stretched([*args, *given.values()]))
    return bounded(function(*args, **given))


def _stretched(values: Iterable[Any]) -> int:
    """The elements that tensors among `values` make together where each is stretched to the others' shape."""
    shapes = [one.shape for value in values for one in (value if isinstance(value, (tuple, list)) else [value])
              if isinstance(one, Tensor)]  # fmt: skip
    # not torch.broadcast_shapes, which imports sympy; where shapes do not fit, torch will say so
    axes = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    together = math.prod(max((size for size in sizes if size != 1), default=1) for sizes in axes)
    size = max([together, *(math.prod(shape) for shape in shapes)], default=1)
    if size > MOST_NUMBERS:
        raise NotWalked("a tensor that is too large")
    return size


def made(function: Callable[..., Tensor], args: Sequence[Any], given: Mapping[str, Any]) -> Tensor:
    """What a function that makes a tensor gives: no larger, nor its storage, than the product of all whole numbers that
    it is given (sizes, strides, the bounds of a range).

    Raises:
        NotWalked: that is too many, or the tensor is there already; or whatever torch raises.
    """
    flat = [n for one in (*args, *given.values()) for n in (one if isinstance(one, (tuple, list)) else [one])]
    if math.prod(max(size, 1) for size in flat if isinstance(size, int)) > MOST_NUMBERS:
        raise NotWalked("a tensor that is too large")
    if "out" in given:
        raise NotWalked("a result that is written to what is there")
    return function(*args, **given)


def without_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python, for everything but tensors: it would go over their elements one by one."""

    def called(*args: Any, **given: Any) -> Any:
        if any(isinstance(one, Tensor) for one in (*args, *given.values())):
            raise NotWalked("a tensor where numbers belong")
        return function(*args, **given)

    return called
