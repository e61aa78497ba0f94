"""Atomic read-modify-write on many lanes at once, as if they ran one after another in program order.

Any order is a legal execution; this one is repeatable. Where many lanes meet at few elements, each element takes its
lanes in one pass; elsewhere lanes are taken in rounds: the first lane of every element together, then the second.
"""

from collections.abc import Callable, Sequence

import numpy
import torch
from torch import Tensor

Update = Callable[..., Tensor]
"""new = change(old, *operands), elementwise."""


def exchange(old: Tensor, value: Tensor) -> Tensor:
    """The new value, whatever the old one is."""
    return value


def keep(old: Tensor, value: Tensor) -> Tensor:
    """An atomic load: writes nothing."""
    return old


def overwrite(old: Tensor, value: Tensor) -> Tensor:
    """An atomic store: nobody sees the old value."""
    return value


def compare_and_swap(old: Tensor, expected: Tensor, value: Tensor) -> Tensor:
    """Bit for bit equal to `expected` becomes `value`."""
    return torch.where(old == expected, value, old)


def unsigned_extreme(pick: Callable[[Tensor, Tensor], Tensor]) -> Update:
    """Smallest or largest as unsigned: flipping the top bit turns unsigned order into signed order."""

    def change(old: Tensor, value: Tensor) -> Tensor:
        top = torch.iinfo(old.dtype).min
        return pick(old ^ top, value ^ top) ^ top

    return change


UPDATES: dict[str, Update] = {
    "add": torch.add, "fadd": torch.add,
    "max": torch.maximum, "min": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin,
    "umax": unsigned_extreme(torch.maximum), "umin": unsigned_extreme(torch.minimum),
    "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor, "exch": exchange, "xchg": exchange,
}  # fmt: skip


PASSES: dict[Update, numpy.ufunc] = {
    torch.add: numpy.add, torch.maximum: numpy.maximum, torch.minimum: numpy.minimum,
    torch.fmax: numpy.fmax, torch.fmin: numpy.fmin,
}  # fmt: skip
"""Updates that one pass over the lanes of an element makes, in order and rounded after each."""


def update(
    flat: Tensor, index: Tensor, active: Tensor, change: Update, operands: tuple[Tensor, ...], shape: Sequence[int]
) -> Tensor:
    """Applies `change` at positions `index` (1-D, one for each active lane, in program order) of `flat`.

    `operands` are 1-D beside `index`. Returns the old values over `shape`; inactive lanes give zero.
    """
    old = torch.zeros_like(operands[0])
    rounds: Sequence[slice | Tensor] = [slice(None)]
    if len(index) > 1:
        order = torch.argsort(index, stable=True)
        elements, lanes = torch.unique_consecutive(index[order], return_counts=True)
        if change in PASSES and flat.dtype is not torch.bfloat16 and len(elements) < int(lanes.max()):
            old[order], flat[elements] = _passed(flat[elements], lanes, operands[0][order], PASSES[change])
            rounds = []
        else:
            rounds = _rounds(order, lanes)
    for met in rounds:
        where = index[met]
        old[met] = flat[where]
        flat[where] = change(old[met], *(operand[met] for operand in operands))
    result = flat.new_zeros(list(shape))
    result[active] = old
    return result


def _passed(values: Tensor, lanes: Tensor, operands: Tensor, change: numpy.ufunc) -> tuple[Tensor, Tensor]:
    """What each lane finds in its element, and what the elements hold in the end. They begin with `values`, and so many
    `lanes` meet at each, whose `operands` stand one element after the other."""
    ends = (lanes + 1).cumsum(0)
    begins, is_lane = ends - lanes - 1, torch.ones(len(operands) + len(lanes), dtype=torch.bool)
    is_lane[begins] = False
    held = torch.empty(len(is_lane), dtype=values.dtype)
    held[begins], held[is_lane] = values, operands
    whole = held.numpy()
    with numpy.errstate(all="ignore"):
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            change.accumulate(whole[begin:end], dtype=whole.dtype, out=whole[begin:end])
    return held[:-1][is_lane[1:]], held[ends - 1]


def _rounds(order: Tensor, lanes: Tensor) -> Sequence[Tensor]:
    """The lanes in `order` of elements that so many `lanes` meet at: the first of each element together, and so on."""
    begun = torch.repeat_interleave(lanes.cumsum(0) - lanes, lanes)
    turn = torch.arange(len(order)) - begun
    return order[torch.argsort(turn, stable=True)].split(torch.bincount(turn).tolist())
