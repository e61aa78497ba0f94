"""A result beside its reference, element by element: which are wrong, in which way, and by how much."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch

from gradekit.judge.reference import Reference


@dataclass(frozen=True, eq=False)
class Comparison:
    """A result of the right form beside its reference: which elements are wrong, and by how much."""

    actual: torch.Tensor
    reference: Reference

    @cached_property
    def value(self) -> torch.Tensor:
        """The result in float64 (for integers: as it is)."""
        return self.actual.detach().double() if self.actual.is_floating_point() else self.actual

    @cached_property
    def wrong(self) -> torch.Tensor:
        """True where an element is wrong, in the shape of the result."""
        if self.is_copied:
            return bits_of(self.actual) != bits_of(self.reference.native)
        if not self.actual.is_floating_point():
            return self.actual != self.reference.native
        return ~(self._close | self._same_special | self._overflowed_rightly)

    @cached_property
    def wrong_count(self) -> int:
        """How many elements are wrong."""
        return 0 if self._all_close else int(self.wrong.sum())

    @cached_property
    def nan(self) -> torch.Tensor:
        """True where the result is NaN and must not be; of a copy, only where nothing but such elements is wrong."""
        found = self.wrong & self.value.isnan() & ~self.reference.native.isnan()
        return found & (found == self.wrong).all() if self.is_copied else found

    @cached_property
    def inf(self) -> torch.Tensor:
        """True where the result is infinite and must not be."""
        return self.wrong & self.value.isinf()

    @cached_property
    def error(self) -> torch.Tensor:
        """|result - exact| in units of the allowance, float64; infinite where either is not finite."""
        size = (self.value.double() - self.reference.exact.double()).abs() / self.reference.allowance
        return torch.where(self.wrong, size.nan_to_num(math.inf, math.inf), size.nan_to_num(0.0, 0.0))

    @property
    def telling(self) -> tuple[int, int]:
        """How well the numbers show that they are wrong: whether by a third, by a hundredth or less of their size (NaN
        and infinity are between), and how many different numbers (up to 8) are expected."""
        value, exact = self.value.double()[self.wrong], self.reference.exact.double()[self.wrong]
        off = ((value - exact).abs() / value.abs().maximum(exact.abs())).nan_to_num(0.1, 0.1, 0.1)
        largest = float(off.max()) if off.numel() else 0.0
        return sum(largest >= step for step in (0.01, 0.3)), min(self.reference.exact.unique().numel(), 8)

    @property
    def _all_close(self) -> bool:
        """Whether nothing is wrong at first sight: what most results are, in a fifth of the time."""
        if not self.actual.is_floating_point():
            return torch.equal(self.actual, self.reference.native)
        if self.is_copied:
            return torch.equal(bits_of(self.actual), bits_of(self.reference.native))
        return _holds(self._off <= self.reference.surely) or _holds(self._close)

    @property
    def _close(self) -> torch.Tensor:
        return self._off <= self.reference.allowance  # False for NaN and inf - inf

    @property
    def _off(self) -> torch.Tensor:
        return (self.value - self.reference.exact).abs_()

    @property
    def is_copied(self) -> bool:
        """Whether each element is one of an input's, with all its bits."""
        return self.reference.is_copied and self.actual.is_floating_point()

    @property
    def _same_special(self) -> torch.Tensor:
        # Where torch itself overflows on the way, its infinity or NaN is right, and so is a finite exact result.
        native, exact = self.reference.native.double(), self.reference.exact
        same = (self.value == exact) | ((self.value == native) & native.isinf())
        return same | (self.value.isnan() & (native.isnan() | exact.isnan()))

    @property
    def _overflowed_rightly(self) -> torch.Tensor:
        limit = torch.finfo(self.actual.dtype).max - self.reference.allowance
        exact = self.reference.exact
        return self.value.isinf() & (exact.abs() >= limit) & (self.value.sign() == exact.sign())


def _holds(everywhere: torch.Tensor) -> bool:
    return not everywhere.numel() or bool(everywhere.view(torch.uint8).amin())  # all() takes 20 times as long


def bits_of(values: torch.Tensor) -> torch.Tensor:
    """The bits of floats, as whole numbers."""
    return values.contiguous().view(getattr(torch, f"int{8 * values.itemsize}"))
