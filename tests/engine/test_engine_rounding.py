"""Arithmetic that rounds down, up or toward zero, against exact rational arithmetic."""

import itertools
import math
import struct
import sys
from fractions import Fraction

import pytest
import torch

from gradekit.engine.libdevice import find

MODES = ["rd", "ru", "rz"]
SMALL, LARGE = 2.0**-140, float.fromhex("0x1.fffffep+127")
FLOATS = [0.0, 1.0, -1.0, 3.0, -7.0, 0.1, 1 / 3, 1.0000001, -2.5e-8, 1e30, -1e30, 16777216.0, LARGE, -LARGE, SMALL]
FLOATS = torch.tensor(FLOATS, dtype=torch.float32).tolist()
TENTH = FLOATS[5]


def neighbours(exact):
    """The largest float32 that is not above `exact`, and the smallest that is not below."""
    size = abs(exact)
    bits_low, bits_high = 0, 0x7F800000  # magnitudes, in order of their bits; the last is infinity
    while bits_high - bits_low > 1:
        middle = (bits_low + bits_high) // 2
        bits_low, bits_high = (middle, bits_high) if value(middle) <= size else (bits_low, middle)
    low, high = value(bits_low), (value(bits_low) if value(bits_low) == size else value(bits_high))
    return (low, high) if exact >= 0 else (-high, -low)


def value(bits):
    return struct.unpack("f", struct.pack("I", bits))[0] if bits < 0x7F800000 else math.inf


def rounded(exact, mode):
    low, high = neighbours(exact)
    return low if mode == "rd" or (mode == "rz" and exact > 0) else high


def check(name, mode, exact, *operands):
    result = find(f"__nv_{name}_{mode}")(*(torch.tensor([x], dtype=torch.float32) for x in operands)).item()
    assert result == rounded(exact, mode), (name, mode, operands, result)


@pytest.mark.parametrize("mode", MODES)
def test_arithmetic_of_two_numbers_is_rounded_once_in_its_direction(mode):
    for a, b in itertools.product(FLOATS, FLOATS):
        check("fadd", mode, Fraction(a) + Fraction(b), a, b)
        check("fsub", mode, Fraction(a) - Fraction(b), a, b)
        check("fmul", mode, Fraction(a) * Fraction(b), a, b)
        check("fmaf", mode, Fraction(a) * Fraction(b) + Fraction(TENTH), a, b, TENTH)
        if b:
            check("fdiv", mode, Fraction(a) / Fraction(b), a, b)


@pytest.mark.parametrize("mode", MODES)
def test_reciprocals_and_roots_are_rounded_in_their_direction(mode):
    for x in (0.1, 3.0, 7.0, 16777215.0, 1e30):
        x = torch.tensor(x, dtype=torch.float32).item()
        check("frcp", mode, 1 / Fraction(x), x)
        scaled = Fraction(x) * 2**200
        check("fsqrt", mode, Fraction(math.isqrt(scaled.numerator // scaled.denominator) * 2 + 1, 2**101), x)


@pytest.mark.parametrize("mode", MODES)
def test_conversions_are_rounded_in_their_direction(mode):
    for number in (0, 1, -1, 16777217, -16777217, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1, 2**62 + 1):
        if abs(number) < 2**31:
            got = find(f"__nv_int2float_{mode}")(torch.tensor([number], dtype=torch.int32)).item()
            assert got == rounded(Fraction(number), mode)
            got = find(f"__nv_uint2float_{mode}")(torch.tensor([number], dtype=torch.int32)).item()
            assert got == rounded(Fraction(number % 2**32), mode)
        got = find(f"__nv_ll2float_{mode}")(torch.tensor([number])).item()
        assert got == rounded(Fraction(number), mode)
        got = find(f"__nv_ull2float_{mode}")(torch.tensor([number])).item()
        assert got == rounded(Fraction(number % 2**64), mode)
    for number in (0.1, -0.1, 1e300, -1e-300, 16777217.0):
        got = find(f"__nv_double2float_{mode}")(torch.tensor([number], dtype=torch.float64)).item()
        assert got == rounded(Fraction(number), mode)


DOUBLES = [0.0, 1.0, -1.0, 0.1, 1 / 3, 1e-300, -1e16, 5e-324, sys.float_info.max, -sys.float_info.max]


def rounded_double(exact, mode):
    nearest = float(exact)
    if (mode == "rd" or (mode == "rz" and exact > 0)) and nearest > exact:
        return math.nextafter(nearest, -math.inf)
    if (mode == "ru" or (mode == "rz" and exact < 0)) and nearest < exact:
        return math.nextafter(nearest, math.inf)
    return nearest


@pytest.mark.parametrize("mode", MODES)
def test_sums_of_doubles_are_rounded_once_in_their_direction(mode):
    for a, b in itertools.product(DOUBLES, DOUBLES):
        if abs(a + b) == math.inf:
            continue
        one, other = torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64)
        exact = Fraction(a) + Fraction(b)
        assert find(f"__nv_dadd_{mode}")(one, other).item() == rounded_double(exact, mode), (a, b)
        assert find(f"__nv_dsub_{mode}")(one, -other).item() == rounded_double(exact, mode), (a, b)


@pytest.mark.parametrize("mode", MODES)
def test_integers_become_doubles_in_their_direction(mode):
    for number in (0, 1, -1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63) + 1, 2**62 + 1):
        got = find(f"__nv_ll2double_{mode}")(torch.tensor([number])).item()
        assert got == rounded_double(Fraction(number), mode)
        got = find(f"__nv_ull2double_{mode}")(torch.tensor([number])).item()
        assert got == rounded_double(Fraction(number % 2**64), mode)


def test_a_sum_of_doubles_that_overflows_goes_to_infinity_only_in_its_direction():
    largest = torch.tensor([sys.float_info.max], dtype=torch.float64)
    assert find("__nv_dadd_rz")(largest, largest).item() == sys.float_info.max
    assert find("__nv_dadd_rd")(largest, largest).item() == sys.float_info.max
    assert find("__nv_dadd_ru")(largest, largest).item() == math.inf
    assert find("__nv_dadd_rd")(-largest, -largest).item() == -math.inf


@pytest.mark.parametrize("mode", MODES)
def test_infinities_and_nan_stay(mode):
    inf, zero = torch.tensor([math.inf]), torch.tensor([0.0])
    assert find(f"__nv_fadd_{mode}")(inf, zero).item() == math.inf
    assert find(f"__nv_fdiv_{mode}")(zero + 1, zero).item() == math.inf
    assert find(f"__nv_fmul_{mode}")(inf, zero).isnan().all()
    assert find(f"__nv_fsqrt_{mode}")(zero - 1).isnan().all()
