"""Inputs made on the card from their specs: the same bits in every process on that card, with nothing to send.

A spec is an `Input`. Its shape, strides, offset and kind of values are kept; the common kinds of values come
from the card's own generator, since copying hundreds of megabytes for each set would cost more than timing them. So
they are not the values of `Input.tensor()`, and the expected result must be computed from what is made here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from gradekit.inputs import value_kinds
from gradekit.inputs.spec import Input

Argument = Input | int | float | bool | None
"""An argument of a timed call: a spec, or a value that is passed as it is."""

_SETS_APART = 1_000_003
_ARGUMENTS_APART = 7919

Make = Callable[[tuple[int, ...], torch.Generator], torch.Tensor]


def make_set(
    arguments: Sequence[Argument], number: int, device: torch.device | str
) -> list[torch.Tensor | int | float | bool | None]:
    """Set `number` of a call's arguments; two sets differ, and so do two arguments of one spec, but one object is one
    tensor. Kinds of values that belong together, such as lengths and what is cut at them, are the same in every set."""
    made: dict[int, torch.Tensor] = {}
    for position, spec in enumerate(arguments):
        if isinstance(spec, Input) and id(spec) not in made:
            made[id(spec)] = make(spec, spec.seed + number * _SETS_APART + position * _ARGUMENTS_APART, device)
    return [made[id(a)] if isinstance(a, Input) else a for a in arguments]


def make(spec: Input, seed: int, device: torch.device | str) -> torch.Tensor:
    """The tensor of `spec` with values from `seed`, on `device`; elements that the view does not reach are poison."""
    if ":" in spec.profile or spec.base:  # tensors that belong together must go on doing so in every set
        return _copied(spec, device)
    if spec.profile not in PROFILES:
        return _copied(replace(spec, seed=seed), device)
    dtype = getattr(torch, spec.dtype)
    generator = torch.Generator(device).manual_seed(seed)
    own = tuple(n if s or n == 0 else 1 for n, s in zip(spec.shape, spec.stride, strict=True))
    made = _values(spec.profile, dtype)(own, generator).to(dtype)
    if spec.is_contiguous and spec.offset == 0 and own == spec.shape:
        return made.as_strided(spec.shape, spec.stride)
    storage = torch.full((spec.storage_size,), value_kinds.poison(dtype), dtype=dtype, device=device)
    storage.as_strided(own, spec.stride, spec.offset).copy_(made)
    return storage.as_strided(spec.shape, spec.stride, spec.offset)


def _copied(spec: Input, device: torch.device | str) -> torch.Tensor:
    storage = spec.tensor().as_strided((spec.storage_size,), (1,), 0).to(device, copy=True)
    return storage.as_strided(spec.shape, spec.stride, spec.offset)


def _values(profile: str, dtype: torch.dtype) -> Make:
    if dtype.is_floating_point:
        return PROFILES[profile]
    if dtype == torch.bool:
        return lambda shape, generator: _ints(0, 1, shape, generator)
    low, high = {"ones": (1, 1), "integers": (-8, 8)}.get(profile, (-100, 100))
    low = max(low, torch.iinfo(dtype).min)
    return lambda shape, generator: _ints(low, high, shape, generator)


def _ints(low: int, high: int, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randint(low, high + 1, shape, generator=generator, device=generator.device, dtype=torch.int32)


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


PROFILES: dict[str, Make] = {
    "ones": lambda shape, generator: torch.ones(shape, device=generator.device),
    "integers": lambda shape, generator: _ints(-8, 8, shape, generator),
    "grid": lambda shape, generator: _ints(-128, 128, shape, generator) / 128,  # exact in floats of 16 bits and more
    "normal": _normal,
    "positive": lambda shape, generator: torch.rand(shape, generator=generator, device=generator.device) * 2 + 0.125,
    "mixed": lambda shape, generator: _normal(shape, generator) * torch.exp2(_ints(-10, 10, shape, generator).float()),
}
"""Kinds of values that are made on the card, by the names that they have in
`inputs.value_kinds`; others are made on the CPU."""
