"""Small parts of the engine: what values are made of, how floats are cast, and sums of lanes at one element."""

import pytest
import torch

from gradekit.engine.atomics import update
from gradekit.engine.casts import float_to_float, unsigned_to_float
from gradekit.engine.def_use import DefUse
from gradekit.engine.kernel_facts import parsed
from tests.beside import beside

TWO_LOOPS = beside(__file__)["two_loops"]
FLOW = DefUse(parsed(TWO_LOOPS).functions.values())


def test_a_name_that_two_loops_use_stands_for_what_it_is_in_both() -> None:
    assert {"n", "m", "a"} <= FLOW.behind(["x"])
    assert [op.name for op in FLOW.makers(["x"])] == ["arith.addi", "arith.muli"]


def test_a_result_of_a_loop_is_made_of_what_it_carries_and_of_its_bounds() -> None:
    assert {"x", "a", "c1", "m", "c0"} <= FLOW.behind(["second"])


def test_nothing_is_looked_for_behind_where_one_stops() -> None:
    assert FLOW.behind(["q"], stop=["second"]) == {"q", "p", "second"}


def test_a_pointer_is_made_of_the_pointer_that_it_was_moved_from() -> None:
    assert list(FLOW.pointed("q")) == ["p"]


# --- Casts ------------------------------------------------------------------------------------------------------------


FLOATS16 = (torch.float16, torch.bfloat16)


@pytest.mark.parametrize("dtype", FLOATS16)
def test_rounding_to_16_bits_makes_one_nan_of_all(dtype: torch.dtype) -> None:
    nans = torch.tensor([0x7FC12345, 0x7F800001, -1, 0x7FFFFFFF], dtype=torch.int32).view(torch.float32)
    assert float_to_float(nans, dtype).view(torch.int16).tolist() == [0x7FFF] * 4


@pytest.mark.parametrize("dtype", FLOATS16)
def test_numbers_beside_a_nan_and_infinities_keep_their_bits(dtype: torch.dtype) -> None:
    numbers = torch.tensor([1.5, -0.0, torch.nan, torch.inf, -torch.inf, 2.0**-14])
    others = ~numbers.isnan()
    rounded = float_to_float(numbers, dtype)[others]
    assert torch.equal(rounded.view(torch.int16), numbers[others].to(dtype).view(torch.int16))


def test_an_unsigned_integer_of_64_bits_becomes_a_float_by_one_rounding() -> None:
    number = 2**63 + 2**39 + 1  # just above the middle of two float32; by way of float64, it would be that middle
    assert unsigned_to_float(torch.tensor([number - 2**64]), torch.float32).tolist() == [2.0**63 + 2.0**40]


# --- Sums by atomics --------------------------------------------------------------------------------------------------


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
