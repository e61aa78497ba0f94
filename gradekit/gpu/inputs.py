"""Inputs made on the card from their specs: the same bits in every process on that card, with nothing to send.

A spec is an `Input`. Its shape, strides, offset and kind of values are kept; gradekit's own kinds come from the card's
generator, since copying hundreds of megabytes for each set would cost more than timing them. So they are not the values
of `Input.tensor()`, and the expected result must be computed from what is made here.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradekit.inputs import value_kinds
from gradekit.inputs.spec import Input, made

Argument = Input | int | float | bool | None  # an argument of a timed call: a spec, or a value that is passed as it is

_SETS_APART = 1_000_003
_ARGUMENTS_APART = 7919


def make_set(
    arguments: Sequence[Argument], number: int, device: torch.device | str
) -> list[torch.Tensor | int | float | bool | None]:
    """Set `number` of a call's arguments; two sets differ, and so do two arguments of one spec, but one object is one
    tensor. Kinds of values that belong together, such as lengths and what is cut at them, are the same in every set."""
    tensors: dict[int, torch.Tensor] = {}
    for position, spec in enumerate(arguments):
        if isinstance(spec, Input) and id(spec) not in tensors:
            tensors[id(spec)] = make(spec, spec.seed + number * _SETS_APART + position * _ARGUMENTS_APART, device)
    return [tensors[id(a)] if isinstance(a, Input) else a for a in arguments]


def make(spec: Input, seed: int, device: torch.device | str) -> torch.Tensor:
    """The tensor of `spec` with values from `seed`, on `device`; elements that the view does not reach are poison."""
    if ":" in spec.profile or spec.base:  # tensors that belong together must go on doing so in every set
        return _copied(spec, device)
    if spec.profile not in value_kinds.PROFILES:  # an assignment's own may know no card
        return _copied(replace(spec, seed=seed), device)
    return made(spec, seed, device)


def _copied(spec: Input, device: torch.device | str) -> torch.Tensor:
    storage = spec.tensor().as_strided((spec.storage_size,), (1,), 0).to(device, copy=True)
    return storage.as_strided(spec.shape, spec.stride, spec.offset)
