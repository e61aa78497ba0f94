"""Conversions between formats of floats, by their bits."""

import pytest
import torch

from gradekit.engine.casts import float_to_float, unsigned_to_float

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
