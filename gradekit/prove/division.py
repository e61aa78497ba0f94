"""Quotients and remainders of terms, as far as polynomials go: what is left is an atom."""

from __future__ import annotations

from collections.abc import Sequence

from gradekit.prove.terms import ZERO, Atom, Monomial, Range, Term, of_atom, term


def div(a: Term, b: Term) -> Term:
    """a // b rounded towards minus infinity, for a positive b."""
    if b.number == 1:
        return a
    if a.number is not None and b.number:
        return term(a.number // b.number)
    whole, rest = split(a, b)
    return whole + _div_of(rest, b)


def mod(a: Term, b: Term) -> Term:
    """a - b * (a // b), for a positive b."""
    if b.number == 1:
        return ZERO
    if a.number is not None and b.number:
        return term(a.number % b.number)
    rest = split(a, b)[1]
    if rest.number == 0 or _below(rest, b):
        return rest
    high = None if b.range[1] is None else b.range[1] - 1
    return of_atom(Atom("mod", (rest, b), (0, high)))


def _div_of(a: Term, b: Term) -> Term:
    if a.number == 0 or _below(a, b):
        return ZERO
    low, high = a.range
    least = b.range[0] if b.range[0] is not None and b.range[0] > 0 else 1
    if low is not None and low >= 0:
        divisor = b.range[1]
        found: Range = (low // divisor if divisor else 0, None if high is None else high // least)
    else:
        found = (None if low is None else low // least, None if high is None else max(high // least, -1))
    return of_atom(Atom("div", (a, b), found))


def _below(a: Term, b: Term) -> bool:
    """Whether 0 <= a < b by ranges alone."""
    low, high = a.range
    return low is not None and low >= 0 and high is not None and b.range[0] is not None and high < b.range[0]


def split(a: Term, b: Term) -> tuple[Term, Term]:
    """(q, r) with a = q * b + r: q has the parts of `a` that are multiples of `b` at sight."""
    if b.number is not None:
        if not b.number:
            return ZERO, a
        quotients = {mono: _quotient(mono, factor, b.number) for mono, factor in a.parts.items()}
        whole = Term({mono: quotient for mono, quotient in quotients.items() if quotient})
        return whole, a - whole * b
    if len(b.parts) != 1:
        return _polynomial_split(a, b)
    ((divisor, scale),) = b.parts.items()
    taken: dict[Monomial, int] = {}
    for mono, factor in a.parts.items():
        left = without(mono, divisor)
        if left is not None and factor % scale == 0:
            taken[left] = factor // scale
    return Term(taken), a - Term(taken) * b


def _quotient(mono: Monomial, factor: int, divisor: int) -> int:
    """Towards zero, so that a variable that cannot be negative leaves a rest that
    cannot be; numbers are rounded down."""
    return abs(factor) // divisor * (1 if factor > 0 else -1) if mono else factor // divisor


def _polynomial_split(a: Term, b: Term) -> tuple[Term, Term]:
    """The same for a sum `b`: multiples of it are taken away while that makes what is left shorter."""
    lead, scale = max(b.parts.items(), key=lambda item: (len(item[0]), item[0]))
    whole, rest = ZERO, a
    for mono, factor in a.parts.items():
        left = without(mono, lead)
        if left is not None and factor % scale == 0:
            quotient = Term({left: factor // scale})
            shorter = rest - quotient * b
            if len(shorter.parts) < len(rest.parts):
                whole, rest = whole + quotient, shorter
    return whole, rest


def without(mono: Monomial, factors: Monomial) -> Monomial | None:
    """The product `mono` without `factors`; None where they are not all in it."""
    left = list(mono)
    for atom in factors:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def ceil_div(a: Term, b: Term) -> Term:
    """The least number of `b`s that reach `a`, for a positive b."""
    return div(a + b - 1, b)


# --- coordinates: in a tensor of any strides, row * s0 + column * s1 is (row, column) ---------------------------------
#
# Claims about coordinates are linear where those about addresses are not, and they imply them: an element whose
# coordinates are inside of the shape is inside of the tensor.


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
