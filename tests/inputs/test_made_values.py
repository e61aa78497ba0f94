"""Values of each kind are made from one stream of a generator, and in little memory."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import pytest
import torch

from gradekit.inputs.value_kinds import make

DIGESTS = {"normal": "ccee94bbcb94a48e", "positive": "c3366b73c8c4ecaa", "trend": "ae01a3b0759f23c5"}


@pytest.mark.parametrize("kind", DIGESTS)
def test_values_are_those_that_they_have_always_been(kind: str) -> None:
    """A record names a kind and a seed: the values must not change"""
    values = make(kind, (3, 5, 7), torch.float32, torch.Generator().manual_seed(20260901))
    assert hashlib.sha256(values.numpy().tobytes()).hexdigest()[:16] == DIGESTS[kind]


@pytest.mark.parametrize("kind", ["normal", "positive", "alternating", "grid", "spike"])
def test_no_more_numbers_are_drawn_at_a_time_than_there_are_values(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight million of them are 64 MiB, and a grader has 1 GiB"""
    drawn, randint = [], torch.randint

    def noted(low: int, high: int, shape: tuple[int, ...], **others: Any) -> torch.Tensor:
        drawn.append(math.prod(shape))
        return randint(low, high, shape, **others)

    monkeypatch.setattr(torch, "randint", noted)
    make(kind, (64, 64), torch.float32, torch.Generator().manual_seed(1))
    assert drawn and max(drawn) == 64 * 64
