"""Integers as polynomials over atoms, and conditions on them: what host code and kernels compute from sizes.

    Term    a polynomial with integer coefficients; two terms that are the same polynomial are equal
    Atom    a variable with a range, or an operation that no polynomial expresses (floor division, modulo, choice)
    Truth   a condition: comparisons with zero, joined by and, or, not; or one that nobody knows

All are immutable, compared and sorted by structure alone, so that the same program always gives the same formulas.
Nothing here wraps around: integers are those of mathematics.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from gradekit.arithmetic import next_power_of_2

Range = tuple[int | None, int | None]  # the least and the greatest value; None where there is none

EVERYWHERE: Range = (None, None)
INT32 = (1 << 31) - 1  # the largest integer of 32 bits

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


Monomial = tuple[Atom, ...]  # a product of atoms, sorted by their keys; () is the number one


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
        """Its value, where it is constant."""
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
        return self._plus(other, 1)

    def __neg__(self) -> Term:
        return Term({mono: -factor for mono, factor in self.parts.items()})

    def __sub__(self, other: Term | int) -> Term:
        return self._plus(other, -1)

    def _plus(self, other: Term | int, sign: int) -> Term:
        parts = dict(self.parts)
        for mono, factor in term(other).parts.items():
            total = parts.get(mono, 0) + sign * factor
            if total:
                parts[mono] = total
            else:
                del parts[mono]
        return Term(parts)

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

    def __floordiv__(self, other: Term | int) -> Term:
        """Rounded towards minus infinity, for a positive divisor."""
        other = term(other)
        if other.number == 1:
            return self
        if self.number is not None and other.number:
            return term(self.number // other.number)
        whole, rest = split(self, other)
        return whole + _div_of(rest, other)

    def __mod__(self, other: Term | int) -> Term:
        """self - other * (self // other), for a positive divisor."""
        other = term(other)
        if other.number == 1:
            return ZERO
        if self.number is not None and other.number:
            return term(self.number % other.number)
        rest = split(self, other)[1]
        if rest.number == 0 or _below(rest, other):
            return rest
        high = None if other.range[1] is None else other.range[1] - 1
        return of_atom(Atom("mod", (rest, other), (0, high)))

    def __le__(self, other: Term | int) -> Truth:
        gap = self - other
        low, high = gap.range
        if high is not None and high <= 0:
            return TRUE
        return FALSE if low is not None and low > 0 else Truth("le", (gap,))

    def __lt__(self, other: Term | int) -> Truth:
        return self + 1 <= other

    def __ge__(self, other: Term | int) -> Truth:
        return term(other) <= self

    def __gt__(self, other: Term | int) -> Truth:
        return term(other) < self


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
    return _within(choose(a <= b, a, b), None, min(highs, default=None))


def greatest(a: Term, b: Term) -> Term:
    """The greater of two."""
    lows = [end for end in (a.range[0], b.range[0]) if end is not None]
    return _within(choose(b <= a, a, b), max(lows, default=None), None)


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


# --- quotients and remainders, as far as polynomials go: what is left is an atom ---


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
    low, high = a.range
    return low is not None and low >= 0 and high is not None and b.range[0] is not None and high < b.range[0]


def split(a: Term, b: Term) -> tuple[Term, Term]:
    """(q, r) with a = q * b + r: q has the parts of `a` that are multiples of `b` at sight."""
    if len(b.parts) != 1:
        return ZERO, a
    ((divisor, scale),) = b.parts.items()
    taken: dict[Monomial, int] = {}
    for mono, factor in a.parts.items():
        left = without(mono, divisor)
        if not divisor and (quotient := _quotient(mono, factor, scale)):
            taken[mono] = quotient
        elif divisor and left is not None and factor % scale == 0:
            taken[left] = factor // scale
    return (whole := Term(taken), a - whole * b) if taken else (ZERO, a)


def _quotient(mono: Monomial, factor: int, divisor: int) -> int:
    """Towards zero, so that what cannot be negative leaves a rest that cannot be; numbers are rounded down."""
    return abs(factor) // divisor * (1 if factor > 0 else -1) if mono else factor // divisor


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
    return (a + b - 1) // b


# --- conditions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """`op` is true, false, le (args[0] <= 0), eq (args[0] == 0), not, and, or, or free: by name, unknown."""

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
        return ~both(~self, ~other)

    def __invert__(self) -> Truth:
        match self.op:
            case "true":
                return FALSE
            case "false":
                return TRUE
            case "not":
                return self.args[0]
            case "le":
                return self.args[0] >= 1
        return Truth("not", (self,))


TRUE, FALSE = Truth("true"), Truth("false")


def both(*conditions: Truth) -> Truth:
    """All of them."""
    found: dict[str, Truth] = {}
    for condition in conditions:
        parts = condition.args if condition.op == "and" else (condition,)
        found |= {part.key: part for part in parts if part.op != "true"}
    if any(part.op == "false" or (~part).key in found for part in found.values()):
        return FALSE
    if len(found) < 2:
        return next(iter(found.values()), TRUE)
    return Truth("and", tuple(found.values()))


def equal(a: Term, b: Term | int) -> Truth:
    """a == b"""
    gap = a - b
    low, high = gap.range
    if not gap.parts:
        return TRUE
    if (low is not None and low > 0) or (high is not None and high < 0):
        return FALSE
    return Truth("eq", (gap,))


def free(name: str) -> Truth:
    """A condition of which nothing is known."""
    return Truth("free", (name,))


# --- coordinates: in a tensor of any strides, row * s0 + column * s1 is (row, column) ---------------------------------
#
# Claims about coordinates are linear where those about addresses are not, and they imply them: an element whose
# coordinates are inside of the shape is inside of the tensor.


def coordinates(offset: Term, strides: Sequence[Term]) -> tuple[Term, ...] | None:
    """Terms c with offset = sum of c[i] * strides[i]; None where strides are no products, or a rest is left."""
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


# --- going over terms and conditions: their atoms, with others in their place, and as text ----------------------------


_MAKERS: dict[str, Callable[..., Term]] = {
    "div": operator.floordiv, "mod": operator.mod, "choose": choose, "power": power,
}  # fmt: skip


class Substitution:
    """Terms and conditions with atoms replaced by what `change` gives for them (None: left as it is)."""

    def __init__(self, change: Callable[[Atom], Term | None]) -> None:
        self._change, self._known = change, dict[str, Term]()
        self._truths: dict[str, Truth] = {}

    def term(self, value: Term) -> Term:
        """`value` with its atoms replaced."""
        found = ZERO
        kept: dict[Monomial, int] = {}
        for mono, factor in value.parts.items():
            replaced = [(atom, self._atom(atom)) for atom in mono]
            if all(new is None for _, new in replaced):
                kept[mono] = factor
                continue
            product = term(factor)
            for atom, new in replaced:
                product = product * (of_atom(atom) if new is None else new)
            found = found + product
        return (found + Term(kept)) if found.parts else Term(kept)

    def truth(self, value: Truth) -> Truth:
        """`value` with its atoms replaced."""
        if value.key not in self._truths:
            self._truths[value.key] = self._truth(value)
        return self._truths[value.key]

    def _truth(self, value: Truth) -> Truth:
        match value.op:
            case "le":
                return self.term(value.args[0]) <= 0
            case "eq":
                return equal(self.term(value.args[0]), ZERO)
            case "not":
                return ~self.truth(value.args[0])
            case "and":
                return both(*map(self.truth, value.args))
            case "free":
                new = self._change(Atom("free", value.args))
                return value if new is None or new.atom is None else free(str(new.atom.args[0]))
        return value

    def _atom(self, atom: Atom) -> Term | None:
        if atom.key not in self._known:
            new = self._change(atom)
            self._known[atom.key] = self._rebuilt(atom) if new is None else new
        new = self._known[atom.key]
        return None if new.parts == {(atom,): 1} else new

    def _rebuilt(self, atom: Atom) -> Term:
        args = [self._part(arg) for arg in atom.args]
        if all(a is b for a, b in zip(args, atom.args, strict=True)):
            return of_atom(atom)
        maker = _MAKERS.get(atom.op)
        return maker(*args) if maker else of_atom(Atom(atom.op, tuple(args), atom.range))

    def _part(self, part: Any) -> Any:
        if not isinstance(part, (Term, Truth)):
            return part
        new = self.term(part) if isinstance(part, Term) else self.truth(part)
        return part if new == part else new


def atoms(*values: Term | Truth) -> dict[str, Atom]:
    """Every atom anywhere in the values, by key; those that an atom is made of stand before it."""
    found: dict[str, Atom] = {}
    seen: set[int] = set()
    for value in values:
        _collect(value, found, seen)
    return found


def _collect(value: Any, found: dict[str, Atom], seen: set[int]) -> None:
    """`seen` has what was looked through, for values are made of one another many times."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Term):
        for mono in value.parts:
            for atom in mono:
                _collect(atom, found, seen)
    elif isinstance(value, Truth) or isinstance(value, Atom) and value.key not in found:
        for arg in value.args:
            _collect(arg, found, seen)
        if isinstance(value, Atom):
            found[value.key] = value


def parts_of(condition: Truth) -> tuple[Truth, ...]:
    """Those of a conjunction; any other condition alone."""
    return condition.args if condition.op == "and" else () if condition.op == "true" else (condition,)
