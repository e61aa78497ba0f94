"""float8 results: judged by steps in float32 and one rounding."""

from __future__ import annotations

import pytest
import torch

from gradekit.judge.compare import assert_close
from gradekit.judge.failure import Failure
from gradekit.judge.reference import reference


def scaled(x: torch.Tensor) -> torch.Tensor:
    """What is too large for the dtype is its largest number."""
    return (x * 0.37).to(torch.float8_e4m3fn)


def neighbours(x: torch.Tensor) -> torch.Tensor:
    """The right result, each element moved to the next float8."""
    return (scaled(x).view(torch.uint8) + 1).view(torch.float8_e4m3fn)


def test_a_float8_result_is_right_where_it_is_float32_rounded_once() -> None:
    x = torch.linspace(-900, 900, 2000)
    assert_close(scaled(x), reference(scaled, x))
    assert_close((x * 0.37 * (1 + 1e-7)).to(torch.float8_e4m3fn), reference(scaled, x))
    with pytest.raises(Failure, match="2000 of 2000 elements are wrong"):
        assert_close(neighbours(x), reference(scaled, x))


def test_what_is_too_large_for_float8_must_be_its_largest_number() -> None:
    x = torch.tensor([4000.0, -torch.inf, 3.0])
    right = torch.tensor([448.0, -448.0, 1.125]).to(torch.float8_e4m3fn)
    assert_close(right, reference(scaled, x))
    with pytest.raises(Failure, match="expected 448"):
        assert_close(torch.tensor([416.0, -448.0, 1.125]).to(torch.float8_e4m3fn), reference(scaled, x))


def test_a_cast_on_the_way_still_rounds() -> None:
    def through(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float8_e5m2).to(x.dtype) * 3

    x = torch.tensor([1.1, 5.3])
    assert reference(through, x).exact.tolist() == [3.0, 15.0]
