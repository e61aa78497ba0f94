"""What a rounded number stands for.

A kernel has 0.79788456 where the reference has sqrt(2 / pi), and 0.1 is not one tenth in any binary format.
Over the reals, a number is read as the simplest one that rounds to it: one of the reference's own (or the
product of two), a constant such as pi or log2(e) and its simple multiples, a short decimal, a fraction of
small numbers; or else as what it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy

from gradekit.formulas.algebra import Algebra, Polynomial

CONSTANTS = {"pi": math.pi, "ln2": math.log(2), "ln10": math.log(10), "e": math.e}

DIGITS = {"float32": 7, "float16": 4, "bfloat16": 3, "float64": 12}
LARGEST_DENOMINATOR = {"float32": 512, "float16": 16, "bfloat16": 8, "float64": 1 << 16}
ULP = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}

_HALF = Fraction(1, 2)
_KNOWN: tuple[tuple[tuple[str, Any], ...], ...] = (
    (("ln2", 1),), (("ln2", -1),), (("ln10", 1),), (("ln10", -1),), (("ln2", 1), ("ln10", -1)), (("pi", 1),),
    (("pi", -1),), (("sqrt2", 1),), (("pi", _HALF),), (("pi", -_HALF),), (("sqrt2", 1), ("pi", -_HALF)),
    (("sqrt2", 1), ("pi", _HALF)),
)  # fmt: skip
"""Products of powers of constants; each times any power of two is known too."""


class Constants:
    """Reads numbers; those of the reference come first, and a kernel's that round one of them mean the same."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._known: list[tuple[float, Polynomial]] = [(_size(known), self._product(known)) for known in _KNOWN]
        self._given: list[tuple[float, Polynomial]] = []

    def _product(self, factors: tuple[tuple[str, Any], ...]) -> Polynomial:
        result = self._algebra.number(1)
        for name, power in factors:
            what = ("sqrt", (((), 2),)) if name == "sqrt2" else ("constant", name)
            result = self._algebra.product(result, {((self._algebra.atom(*what), power),): 1})
        return result

    def tell(self, value: float, dtype: str) -> None:
        """The reference has this number."""
        if value not in (0, 1) and math.isfinite(value):
            self._given.append((abs(value), self._own(abs(value), dtype)))

    def read(self, value: float, dtype: str) -> Polynomial:
        """What a finite number of that dtype stands for."""
        if dtype == "exact":
            return self._algebra.number(int(value))
        size = abs(value)
        found = next((p for close, p in self._candidates(size, dtype) if close), None) or self._own(size, dtype)
        return self._algebra.scaled(found, -1) if value < 0 else found

    def _candidates(self, size: float, dtype: str) -> Iterator[tuple[bool, Polynomial]]:
        for number, p in self._given:
            yield from self._near(size, number, p, ULP[dtype] / 2)
        for number, p in self._known:
            yield from self._near(size, number, p, ULP[dtype])
        for i, (a, p) in enumerate(self._given):
            for b, q in self._given[i:]:
                yield from self._near(size, a * b, lambda p=p, q=q: self._algebra.product(p, q), ULP[dtype])

    def _near(self, size: float, number: float, p: Any, allowed: float) -> Iterator[tuple[bool, Polynomial]]:
        """p times the power of two that brings it to `size`, if it does."""
        power = round(math.log2(size / number))
        if abs(power) <= 8 and abs(size - number * 2.0**power) <= allowed * size * 1.01:
            found = p() if callable(p) else p
            yield True, self._algebra.scaled(found, Fraction(2) ** power)

    def _own(self, size: float, dtype: str) -> Polynomial:
        for number, p in self._known if dtype == "float64" else ():
            if (found := next(self._near(size, number, p, ULP[dtype]), None)) is not None:
                return found[1]
        return self._algebra.number(simplest(size, dtype))


def simplest(size: float, dtype: str) -> Fraction:
    """The short decimal or small fraction that rounds to a positive number; else the number itself."""
    decimal = Fraction(f"{size:.{DIGITS[dtype] - 1}e}")
    if _rounded(float(decimal), dtype) == size:
        return decimal
    fraction = Fraction(size).limit_denominator(LARGEST_DENOMINATOR[dtype])
    return fraction if fraction and abs(float(fraction) - size) <= ULP[dtype] * size else Fraction(size)


def _rounded(value: float, dtype: str) -> float:
    if dtype == "bfloat16":
        bits = int(numpy.float32(value).view(numpy.uint32))
        return float(numpy.uint32((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(numpy.float32))
    return float(numpy.dtype(dtype).type(value))


def _size(known: tuple[tuple[str, Any], ...]) -> float:
    return math.prod((math.sqrt(2) if name == "sqrt2" else CONSTANTS[name]) ** float(power) for name, power in known)
