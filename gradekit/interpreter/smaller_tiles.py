"""The same call with smaller tiles, in which it is still wrong in the same way: changes cost less to try there."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gradekit.interpreter.shown_call import ShownCall, is_like
from gradekit.interpreter.walked_call import WRONG, WalkedCall

SMALLEST = 4
"""Lanes of a tile."""


def with_smaller_tiles(call: ShownCall, replay: WalkedCall) -> WalkedCall | None:
    """The same call with smaller constants, which gives the same, touches the same elements and costs less; None where
    there is none. Constants that differ stay different."""
    if replay.strays:
        return None
    sizes = _sizes(replay)
    best, found = replay, dict[str, int]()
    for size in sorted({size for size in sizes.values() if size > SMALLEST}, reverse=True):
        names = [name for name, one in sizes.items() if one == size]
        taken = {found.get(name, one) for name, one in sizes.items()}
        for smaller in (one for one in _powers_below(size) if one not in taken):
            trial = found | dict.fromkeys(names, smaller)
            again = best.with_constants(trial)
            if _is_the_same(again, call, replay.touched) and again.work < best.work:
                best, found = again, trial
            elif names[0] in found:
                break  # larger ones only cost more
    return best if best is not replay else None


def _sizes(replay: WalkedCall) -> Mapping[str, int]:
    """The constants of kernels that may be lanes of a tile, by their names."""
    kernels = replay.program.kernels.values()
    every = [(name, value) for kernel in kernels for name, value in kernel.constants.items()]
    several = {name for name, value in every if any(value != other for of, other in every if of == name)}
    return {name: v for name, v in every if name not in several and type(v) is int and v > 1 and v & (v - 1) == 0}


def _powers_below(size: int) -> list[int]:
    return [one for one in (SMALLEST << n for n in range(size.bit_length())) if one < size]


def _is_the_same(again: WalkedCall, call: ShownCall, touched: Mapping[int, Tensor]) -> bool:
    try:
        results = again.run()
    except WRONG:
        return False
    if again.strays or again.touched.keys() != touched.keys():
        return False
    is_all = all(torch.equal(one, touched[storage]) for storage, one in again.touched.items())
    return is_all and is_like(results, call.results) and not call.is_right(results)
