"""Atomic read-modify-write on many lanes at once, as if they ran one after another in program order.

Any order is a legal execution; this one is repeatable. Lanes that meet at one element are taken in rounds: the first
lane of every element together, then the second, and so on. Sums of integers, in which no order rounds, are made at once
however many lanes meet.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gradekit.engine.values import arange

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


def update(
    flat: Tensor, index: Tensor, active: Tensor, change: Update, operands: tuple[Tensor, ...], shape: Sequence[int]
) -> Tensor:
    """Applies `change` at positions `index` (1-D, one for each active lane, in program order) of `flat`.

    `operands` are 1-D beside `index`. Returns the old values over `shape`; inactive lanes give zero.
    """
    if change is torch.add and not flat.is_floating_point():
        old = _summed(flat, index, operands[0])
    else:
        old = torch.zeros_like(operands[0])
        for lanes in rounds(index):
            where = index[lanes]
            old[lanes] = flat[where]
            flat[where] = change(old[lanes], *(operand[lanes] for operand in operands))
    result = flat.new_zeros(list(shape))
    result[active] = old
    return result


def _summed(flat: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """Adds integers, and returns what stood there before each."""
    order, first = _by_element(index)
    added = values[order].to(torch.int64)
    before = added.cumsum(0) - added
    old = torch.empty_like(values)
    old[order] = flat[index[order]] + (before - before[first]).to(values.dtype)
    flat.index_add_(0, index, values)
    return old


def _by_element(index: Tensor) -> tuple[Tensor, Tensor]:
    """The lanes by element, those of one in order; and for each the place of its element's first lane among these."""
    order = torch.argsort(index, stable=True)
    ordered = index[order]
    starts = torch.ones_like(ordered, dtype=torch.bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    return order, torch.where(starts, torch.arange(len(ordered)), 0).cummax(0).values


def rounds(index: Tensor) -> list[Tensor]:
    """Lanes grouped so that no group names an element twice, and each element meets its lanes in order."""
    if index.numel() <= 1:
        return [arange(1)] * index.numel()
    order, first = _by_element(index)
    turn = torch.arange(len(order)) - first
    by_turn = torch.argsort(turn, stable=True)
    sizes = torch.bincount(turn).tolist()
    return list(order[by_turn].split(sizes))
