"""Integers as polynomials over atoms, and conditions on them: what host code and kernels compute from sizes.

    Term    a polynomial with integer coefficients; two terms that are the same polynomial are equal
    Atom    a variable with a range, or an operation that no polynomial expresses (floor division, modulo, choice)
    Truth   a condition: comparisons with zero, joined by and, or, not; or one that nobody knows

All are immutable, compared and sorted by structure alone, so that the same program always gives the same formulas.
Nothing here wraps around: integers are those of mathematics.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from gradekit.arithmetic import next_power_of_2

Range = tuple[int | None, int | None]
"""The least and the greatest value; None where there is none."""

EVERYWHERE: Range = (None, None)
_SHORT = 160


class Atom(str):
    """A variable (`op` is "var", `args` its name) or an operation on `args`; its value lies in `range`.

    "div" and "mod" round towards minus infinity, and their second argument is positive wherever it matters. "choose"
    has (Truth, Term, Term); "read" has (name, *Terms): what a tensor holds at a place; "power" is the least power of
    two that is not below its argument. As a text it is its key, by which atoms are compared, hashed and sorted: a
    proof does so millions of times.
    """

    __slots__ = ("args", "key", "op", "range")
    op: str
    args: tuple[Any, ...]
    range: Range
    key: str

    def __new__(cls, op: str, args: tuple[Any, ...], range: Range = EVERYWHERE) -> Self:
        """The atom, whose key is a digest where its text is long."""
        text = f"{op}({','.join(_key(arg) for arg in args)})"
        key = text if len(text) <= _SHORT else _digest(text)
        made = super().__new__(cls, key)
        made.op, made.args, made.range, made.key = op, args, range, key
        return made


def _key(part: Any) -> str:
    return part.key if isinstance(part, (Atom, Term, Truth)) else repr(part)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


Monomial = tuple[Atom, ...]
"""A product of atoms, sorted by their keys; () is the number one."""


class Term:
    """A polynomial: `parts` maps monomials to coefficients, none of which is zero."""

    __slots__ = ("_key", "_range", "parts")

    def __init__(self, parts: Mapping[Monomial, int]) -> None:
        self.parts = parts
        self._key: str | None = None
        self._range: Range | None = None

    @property
    def key(self) -> str:
        """A text that equal terms have in common; a digest where it would be long."""
        if self._key is None:
            pieces = sorted("*".join((str(factor), *mono)) for mono, factor in self.parts.items())
            text = "+".join(pieces) or "0"
            self._key = text if len(text) <= _SHORT else _digest(text)
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return self.key

    @property
    def number(self) -> int | None:
        """Its value, where it is the same for everybody."""
        if not self.parts:
            return 0
        return self.parts.get(()) if len(self.parts) == 1 else None

    @property
    def atom(self) -> Atom | None:
        """The atom that it is; None where it is anything else."""
        mono = next(iter(self.parts), ())
        return mono[0] if len(mono) == 1 and [*self.parts.values()] == [1] else None

    @property
    def range(self) -> Range:
        """The least and the greatest value that its variables' ranges allow."""
        if self._range is None:
            self._range = _range_of(self.parts)
        return self._range

    def __add__(self, other: Term | int) -> Term:
        parts = dict(self.parts)
        for mono, factor in term(other).parts.items():
            total = parts.get(mono, 0) + factor
            if total:
                parts[mono] = total
            else:
                del parts[mono]
        return Term(parts)

    def __neg__(self) -> Term:
        return Term({mono: -factor for mono, factor in self.parts.items()})

    def __sub__(self, other: Term | int) -> Term:
        return self + -term(other)

    def __mul__(self, other: Term | int) -> Term:
        other = term(other)
        if other.number is not None:
            return Term({mono: f * other.number for mono, f in self.parts.items()}) if other.number else ZERO
        parts: dict[Monomial, int] = {}
        for mono, factor in self.parts.items():
            for mono2, factor2 in other.parts.items():
                product = tuple(sorted(mono + mono2)) if mono and mono2 else mono or mono2
                parts[product] = parts.get(product, 0) + factor * factor2
        return Term({mono: factor for mono, factor in parts.items() if factor})

    def __rsub__(self, other: int) -> Term:
        return term(other) - self

    __radd__ = __add__
    __rmul__ = __mul__


def term(value: Term | int) -> Term:
    """A number as a term; a term as it is."""
    if isinstance(value, Term):
        return value
    return Term({(): int(value)}) if value else ZERO


ZERO = Term({})
ONE = term(1)


def var(name: str, low: int | None = None, high: int | None = None) -> Term:
    """The variable `name`, from `low` to `high`; the same name always has the same range."""
    if low is not None and low == high:
        return term(low)
    return Term({(Atom("var", (name,), (low, high)),): 1})


def of_atom(atom: Atom) -> Term:
    """The atom alone, as a term."""
    return Term({(atom,): 1})


# --- ranges ----------------------------------------------------------------------------------------------------------


def _range_of(parts: Mapping[Monomial, int]) -> Range:
    low: int | None = 0
    high: int | None = 0
    for mono, factor in parts.items():
        least, most = _scaled(_product_range(mono), factor)
        low = None if low is None or least is None else low + least
        high = None if high is None or most is None else high + most
    return low, high


def _scaled(range: Range, factor: int) -> Range:
    low, high = (None if end is None else end * factor for end in range)
    return (low, high) if factor >= 0 else (high, low)


def _product_range(mono: Monomial) -> Range:
    found: Range = (1, 1)
    for position, atom in enumerate(mono):
        squared = position > 0 and mono[position - 1] == atom and len(mono) == 2
        found = _times(found, atom.range)
        if squared and (found[0] is None or found[0] < 0):
            found = (0, found[1])
    return found


def _times(a: Range, b: Range) -> Range:
    if a == (1, 1):
        return b
    if None not in a and None not in b:
        ends = [x * y for x in a for y in b]  # type: ignore[operator]
        return min(ends), max(ends)
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], None
    return EVERYWHERE


def within(value: Term, low: int, high: int) -> bool:
    """Whether the ranges of its atoms alone show that `value` is from `low` to `high`."""
    least, most = value.range
    return least is not None and most is not None and least >= low and most <= high


# --- operations that no polynomial expresses -------------------------------------------------------------------------


def choose(condition: Truth, yes: Term, no: Term) -> Term:
    """`yes` where the condition holds, else `no`."""
    if condition.op in ("true", "false") or yes == no:
        return yes if condition.op == "true" or yes == no else no
    low = None if None in (yes.range[0], no.range[0]) else min(yes.range[0], no.range[0])  # type: ignore[type-var]
    high = None if None in (yes.range[1], no.range[1]) else max(yes.range[1], no.range[1])  # type: ignore[type-var]
    return of_atom(Atom("choose", (condition, yes, no), (low, high)))


def least(a: Term, b: Term) -> Term:
    """The smaller of two."""
    highs = [end for end in (a.range[1], b.range[1]) if end is not None]
    return _within(choose(at_most(a, b), a, b), None, min(highs, default=None))


def greatest(a: Term, b: Term) -> Term:
    """The greater of two."""
    lows = [end for end in (a.range[0], b.range[0]) if end is not None]
    return _within(choose(at_most(b, a), a, b), max(lows, default=None), None)


def _within(chosen: Term, low: int | None, high: int | None) -> Term:
    """The same choice, of which more is known: it is no less than `low`, and no more than `high`."""
    atom = chosen.atom
    if atom is None or atom.op != "choose":
        return chosen
    least_, most = atom.range
    found = low if low is not None else least_, high if high is not None else most
    return of_atom(Atom("choose", atom.args, found))


def power(a: Term) -> Term:
    """The least power of two that is at least `a`; 1 for numbers below 1, as bits have it, but 0 for 0."""
    if a.number is not None:
        return term(next_power_of_2(a.number))
    high = None if a.range[1] is None else 1 << max(a.range[1] - 1, 0).bit_length()
    return of_atom(Atom("power", (a,), (0, high)))


# --- conditions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """`op` is true, false, le (args[0] <= 0), eq (args[0] == 0), not, and, or, or free:
    one that nobody knows, by name."""

    op: str
    args: tuple[Any, ...] = ()
    key: str = field(default="")

    def __post_init__(self) -> None:
        text = f"{self.op}({','.join(_key(arg) for arg in self.args)})"
        object.__setattr__(self, "key", text if len(text) <= _SHORT else _digest(text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Truth) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __and__(self, other: Truth) -> Truth:
        return both(self, other)

    def __or__(self, other: Truth) -> Truth:
        return negated(both(negated(self), negated(other)))

    def __invert__(self) -> Truth:
        return negated(self)


TRUE, FALSE = Truth("true"), Truth("false")


def both(*conditions: Truth) -> Truth:
    """All of them."""
    found: dict[str, Truth] = {}
    for condition in conditions:
        parts = condition.args if condition.op == "and" else (condition,)
        found |= {part.key: part for part in parts if part.op != "true"}
    if any(part.op == "false" or negated(part).key in found for part in found.values()):
        return FALSE
    if len(found) < 2:
        return next(iter(found.values()), TRUE)
    return Truth("and", tuple(found.values()))


def negated(condition: Truth) -> Truth:
    """What holds where it does not."""
    match condition.op:
        case "true":
            return FALSE
        case "false":
            return TRUE
        case "not":
            return condition.args[0]
        case "le":
            return at_most(ONE, condition.args[0])  # not a <= 0 is 1 <= a
    return Truth("not", (condition,))


def at_most(a: Term, b: Term) -> Truth:
    """a <= b"""
    gap = a - b
    low, high = gap.range
    if high is not None and high <= 0:
        return TRUE
    return FALSE if low is not None and low > 0 else Truth("le", (gap,))


def less(a: Term, b: Term) -> Truth:
    """a < b"""
    return at_most(a + 1, b)


def equal(a: Term, b: Term) -> Truth:
    """a == b"""
    gap = a - b
    low, high = gap.range
    if not gap.parts:
        return TRUE
    if (low is not None and low > 0) or (high is not None and high < 0):
        return FALSE
    return Truth("eq", (gap,))


def free(name: str) -> Truth:
    """A condition that nobody knows."""
    return Truth("free", (name,))
