"""Sums by atomics of many lanes at one element are made in one pass, and are those of the lanes one after another."""

import pytest
import torch

from gradekit.engine.atomics import update


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float16, torch.float32])
@pytest.mark.parametrize("lanes", [0, 1, 2, 500])
@pytest.mark.parametrize("elements", [1, 7])
def test_sums_at_once_are_those_of_lanes_in_turn(elements: int, lanes: int, dtype: torch.dtype) -> None:
    drawn = torch.Generator().manual_seed(lanes)
    most = 1000 if dtype.is_floating_point else torch.iinfo(dtype).max
    index = torch.randint(0, elements, (lanes,), generator=drawn)
    values = torch.randint(-most, most, (lanes,), generator=drawn, dtype=dtype)
    active = torch.rand(2 * lanes, generator=drawn).argsort().argsort() < lanes
    at_once, in_turn = torch.full((elements,), 5, dtype=dtype), torch.full((elements,), 5, dtype=dtype)
    found = update(at_once, index, active, torch.add, (values,), (2 * lanes,))
    expected = update(in_turn, index, active, lambda old, value: old + value, (values,), (2 * lanes,))
    assert torch.equal(found, expected) and torch.equal(at_once, in_turn)


@pytest.mark.parametrize(("dtype", "last"), [(torch.int32, 524_289), (torch.float32, 524_289), (torch.float16, 2048)])
def test_hundreds_of_thousands_of_lanes_may_meet_at_one_counter(dtype: torch.dtype, last: int) -> None:
    counter, ones = torch.zeros(1, dtype=dtype), torch.ones(524_289, dtype=dtype)
    old = update(counter, torch.zeros(524_289, dtype=torch.int64), ones.bool(), torch.add, (ones,), (524_289,))
    assert counter.item() == last  # where a counter of floats can grow no more, it stays
    assert torch.equal(old, torch.arange(524_289).clamp(max=last).to(dtype))
