"""tl.rand and its like: Philox 4x32 with ten rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011),
on tiles of int64 that hold unsigned words of 32 bits."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from gradekit.interpreter.tile_values import tile_of

_ROUNDS = 10
_WORD = 0xFFFFFFFF
_FACTORS = 0xD2511F53, 0xCD9E8D57
_KEYS = 0x9E3779B9, 0xBB67AE85
_TO_UNIT = 4.6566127342e-10


def _product(word: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """The upper and the lower half of a product of words."""
    low = (word & 0xFFFF) * factor
    high = (word >> 16) * factor + (low >> 16)
    return high >> 16, ((high & 0xFFFF) << 16) | (low & 0xFFFF)


def randint4x(seed: Any, offset: Any, n_rounds: int = _ROUNDS) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four tiles of random words for each offset."""
    counter = tile_of(offset).long()
    a, b = counter & _WORD, (counter >> 32) & _WORD
    c = d = torch.zeros_like(a)
    key = tile_of(seed).long() if isinstance(seed, Tensor) else torch.tensor([int(seed)])
    key = key.reshape(key.shape[:1] + (1,) * (counter.dim() - 1)) if key.dim() < counter.dim() else key
    k, j = key & _WORD, (key >> 32) & _WORD
    for _ in range(min(n_rounds, _ROUNDS)):
        high_c, low_c = _product(c, _FACTORS[1])
        high_a, low_a = _product(a, _FACTORS[0])
        a, b, c, d = high_c ^ b ^ k, low_c, high_a ^ d ^ j, low_a
        k, j = (k + _KEYS[0]) & _WORD, (j + _KEYS[1]) & _WORD
    return a, b, c, d


def _uniform(word: Tensor) -> Tensor:
    """Between 0 and 1, as Triton makes it of a signed word."""
    signed = torch.where(word > 0x7FFFFFFF, word - (1 << 32), word)
    return torch.where(signed < 0, -signed - 1, signed).float() * _TO_UNIT


def rand4x(seed: Any, offsets: Any, n_rounds: int = _ROUNDS) -> tuple[Tensor, ...]:
    """Four tiles of numbers between 0 and 1."""
    return tuple(_uniform(word) for word in randint4x(seed, offsets, n_rounds))


def rand(seed: Any, offset: Any, n_rounds: int = _ROUNDS) -> Tensor:
    """Numbers between 0 and 1."""
    return _uniform(randint4x(seed, offset, n_rounds)[0])


def randint(seed: Any, offset: Any, n_rounds: int = _ROUNDS) -> Tensor:
    """Words."""
    return randint4x(seed, offset, n_rounds)[0]


def randn(seed: Any, offset: Any, n_rounds: int = _ROUNDS) -> Tensor:
    """Normal numbers, by Box and Muller."""
    first, second, _, _ = randint4x(seed, offset, n_rounds)
    radius = torch.sqrt(-2.0 * torch.log(_uniform(first).clamp(min=1.0e-7)))
    return radius * torch.cos(2 * math.pi * _uniform(second))
