"""Sums of integers by atomics are made at once, and are those that the lanes would make one after another."""

import pytest
import torch

from gradekit.engine.atomics import update


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("lanes", [0, 1, 2, 500])
@pytest.mark.parametrize("elements", [1, 7])
def test_sums_at_once_are_those_of_lanes_in_turn(elements: int, lanes: int, dtype: torch.dtype) -> None:
    drawn = torch.Generator().manual_seed(lanes)
    most = torch.iinfo(dtype).max
    index = torch.randint(0, elements, (lanes,), generator=drawn)
    values = torch.randint(-most, most, (lanes,), generator=drawn, dtype=dtype)
    active = torch.rand(2 * lanes, generator=drawn).argsort().argsort() < lanes
    at_once, in_turn = torch.full((elements,), 5, dtype=dtype), torch.full((elements,), 5, dtype=dtype)
    found = update(at_once, index, active, torch.add, (values,), (2 * lanes,))
    expected = update(in_turn, index, active, lambda old, value: old + value, (values,), (2 * lanes,))
    assert torch.equal(found, expected) and torch.equal(at_once, in_turn)


def test_hundreds_of_thousands_of_lanes_may_meet_at_one_counter() -> None:
    counter, ones = torch.zeros(1, dtype=torch.int32), torch.ones(524_289, dtype=torch.int32)
    old = update(counter, torch.zeros(524_289, dtype=torch.int64), ones.bool(), torch.add, (ones,), (524_289,))
    assert counter.item() == 524_289
    assert torch.equal(old, torch.arange(524_289, dtype=torch.int32))
