"""An address in a tensor of any strides, as coordinates: row * s0 + column * s1 is (row, column).

Claims about coordinates are linear where those about addresses are not, and they imply them: an element whose
coordinates are inside of the shape is inside of the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradekit.prove.division import without
from gradekit.prove.terms import ZERO, Term


def coordinates(offset: Term, strides: Sequence[Term]) -> tuple[Term, ...] | None:
    """Terms c with offset = sum of c[i] * strides[i]; None where the strides are no products, or a rest is left
    for which there is no stride of 1."""
    found = [ZERO] * len(strides)
    rest = offset
    for axis in sorted(range(len(strides)), key=lambda axis: _length(strides[axis]), reverse=True):
        if len(strides[axis].parts) != 1:
            return None
        ((mono, factor),) = strides[axis].parts.items()
        taken = {
            left: number // factor
            for part, number in rest.parts.items()
            if (left := without(part, mono)) is not None and number % factor == 0
        }
        found[axis], rest = Term(taken), rest - Term(taken) * strides[axis]
    return tuple(found) if rest.number == 0 else None


def _length(stride: Term) -> tuple[int, int]:
    """Orders strides: more variables are longer, then larger numbers."""
    return max(map(len, stride.parts), default=0), max(stride.parts.values(), default=0)
