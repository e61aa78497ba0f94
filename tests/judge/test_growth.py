"""Memory that grows faster than the assignment declares is found, however small it is at the sizes of examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gradekit import domain
from gradekit.findings import Cause
from gradekit.inputs.spec import Input, normal
from gradekit.judge.failure import Failure
from gradekit.judge.growth import assert_growth
from gradekit.program import Allocate, Program, Source

ATTENTION = domain.load(Path(__file__).parents[2] / "assignments/flash_attention/domain.toml")["attention"]


class Allocating:
    """An entry whose calls allocate what a function of the shape says."""

    def __init__(self, used: Callable[..., float]) -> None:
        self.used = used

    def traced(self, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()) -> Program:
        step = Allocate(9, int(self.used(*args[0].shape)), Source(12, "attention"))
        return Program((), {}, (step,), (), "tensor", {})


CALL = (normal((1, 2, 300, 32)), normal((1, 2, 300, 32)), normal((1, 2, 300, 32)), False, 0.2)


@pytest.mark.parametrize(
    "used",
    [
        lambda B, H, S, D: B * H * S * D * 4,
        lambda B, H, S, D: B * H * ((S + 127) // 128) * 128 * D * 20 + 4096,
        lambda B, H, S, D: B * H * S * 4 + B * H * S * D * 2,
    ],
)
def test_what_grows_as_declared_is_right(used: Callable[..., float]) -> None:
    assert_growth(ATTENTION, Allocating(used), *CALL)


@pytest.mark.parametrize(
    "used",
    [
        lambda B, H, S, D: B * H * S * D * 4 + B * H * S * S / 8,
        lambda B, H, S, D: B * H * S * D * 4 + (B * H * S * S * 4 if S <= 512 else 0),
        lambda B, H, S, D: B * H * S * D * 4 * H,
    ],
)
def test_what_grows_faster_fails_with_its_exponent_and_its_line(used: Callable[..., float]) -> None:
    with pytest.raises(Failure, match=r"grows too fast: .* as [SH] \*\* [12]\.\d\d") as failed:
        assert_growth(ATTENTION, Allocating(used), *CALL)
    assert (failed.value.cause, failed.value.line) == (Cause.TOO_MUCH_MEMORY, 12)
