"""Integers that remember how host code computed them from the sizes of its inputs.

Used in calls that are traced for this alone, whose programs count for nothing: an int of a subclass is not quite an int
(`type(n) is int`), and what a submission makes of that must not matter to anybody.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import torch

from gradekit.origins import Condition
from gradekit.tracer.recorder import executing

MOST_TERMS = 4000
MOST_CONDITIONS = 400
_BITS = 31  # bits that must have been filled downwards for the number after it to be a power of two


class Table:
    """Terms, each once, and the comparisons that host code made, in order; see gradekit.origins. The `current` one is
    that of the call that is traced now, made last."""

    current: ClassVar[Table]

    def __init__(self, path: str) -> None:
        Table.current = self
        self.path = path
        self.terms: dict[tuple[str | int, ...], int] = {}
        self.conditions: dict[Condition, None] = {}

    def size(self, value: int, *term: str | int) -> Any:
        """`value`, which remembers that it is `term`; a plain int where there are too many terms."""
        number = self.terms.get(term)
        if number is None:
            if len(self.terms) >= MOST_TERMS:
                return self.opaque(value) if term[0] != "opaque" else value
            number = self.terms[term] = len(self.terms)
        return TracedSize.made(value, self, number)

    def opaque(self, value: int) -> Any:
        """`value`, of which nobody knows where it comes from."""
        return self.size(value, "opaque", int(value))

    def made(self, value: Any) -> Any:
        """A number that was computed from sizes in a way that is not recorded, as one of which that is known."""
        if type(value) is int:
            return self.opaque(value)
        return SizeFloat.made(value) if type(value) is float else value

    def noting(self, function: Callable[..., Any], always: bool = False) -> Callable[..., Any]:
        """The function, whose results are opaque; those of a size alone, unless `always`."""

        def called(*args: Any, **named: Any) -> Any:
            is_size = always or any(isinstance(one, (TracedSize, SizeFloat)) for one in args)
            return (self.made if is_size else lambda value: value)(function(*args, **named))

        return called

    def number(self, value: Any) -> int:
        """The term of a number; -1 for what is no integer."""
        if isinstance(value, TracedSize):
            return value.term
        if type(value) is not int:
            return -1
        term = ("number", value)
        if term not in self.terms:
            self.terms[term] = len(self.terms)
        return self.terms[term]

    def term(self, number: Any) -> tuple[str | int, ...]:
        """The term that has this number."""
        return next(term for term, known in self.terms.items() if known == number)

    def compared(self, left: Any, relation: str, right: Any, held: bool) -> None:
        """Host code noted how two numbers compare; what Triton asserts of them is no line's of the submission."""
        if len(self.conditions) < MOST_CONDITIONS:
            asserted = sys._getframe(2).f_globals.get("__name__", "").startswith("triton.")
            source = None if asserted else executing(self.path)
            self.conditions[Condition(self.number(left), relation, self.number(right), held, source)] = None


class TracedSize(int):
    """An int with its `term`'s number in the current `table`: one that an earlier call has left, in a cache say, is
    opaque there."""

    _known: tuple[Table, int]

    @classmethod
    def made(cls, value: int, table: Table, term: int) -> TracedSize:
        """`value` as a size that remembers."""
        made = int.__new__(cls, value)
        made._known = table, term
        return made

    @property
    def table(self) -> Table:
        """The current one."""
        return Table.current

    @property
    def term(self) -> int:
        """The number of its term there."""
        table, term = self._known
        return term if table is Table.current else Table.current.number(Table.current.opaque(int(self)))

    def __reduce__(self) -> Any:
        return int, (int(self),)

    def __bool__(self) -> bool:
        held = int(self) != 0
        self.table.compared(self, "==", 0, not held)
        return held

    def __neg__(self) -> Any:
        return 0 - self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __invert__(self) -> Any:
        return -1 - self

    def _itself(self) -> Any:
        return self

    __pos__ = __ceil__ = __floor__ = __trunc__ = conjugate = _itself
    real = numerator = property(_itself)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if type(other) is int and 0 < other <= 4 and modulus is None:
            return self if other == 1 else self * self ** (other - 1)
        if type(other) is float:
            return SizeFloat.made(int.__float__(self) ** other)
        return self.table.made(int.__pow__(self, other, modulus))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        value = int.__truediv__(self, other)
        return _quotient(value, self, other) if _is_int(other) else value

    def __rtruediv__(self, other: Any) -> Any:
        value = int.__rtruediv__(self, other)
        return _quotient(value, other, self) if _is_int(other) else value

    def __rshift__(self, other: Any) -> Any:
        return _shifted(self, "//", other, int.__rshift__(self, other))

    def __lshift__(self, other: Any) -> Any:
        return _shifted(self, "*", other, int.__lshift__(self, other))

    def __rlshift__(self, other: Any) -> Any:
        value = int.__rlshift__(self, other)
        term = self.table.term(self.term)
        if type(other) is int and other == 1 and term[0] == "bits":
            return self.table.size(value, "next_power_of_2", self.table.number(_at(self, term[1], 0) + 1))
        return self.table.opaque(value)

    def __or__(self, other: Any) -> Any:
        """n | n >> 1 and so on fills the bits below the highest: one more is a power of two."""
        value = int.__or__(self, other)
        if value is NotImplemented or not isinstance(other, TracedSize):
            return self.table.made(value)
        base, filled = _filled(self)
        shifted = self.table.term(other.term)
        by = self.table.term(shifted[2]) if shifted[:2] == ("//", self.term) else ()
        if by == ("number", 1 << (filled + 1)):
            return self.table.size(value, "filled", base, 2 * filled + 1)
        return self.table.opaque(value)

    def __and__(self, other: Any) -> Any:
        value = int.__and__(self, other)
        if type(other) is int and other > 0 and other & (other + 1) == 0 and self >= 0:
            return self % (other + 1)
        if type(other) is int and other < 0 and -other & (-other - 1) == 0 and self >= 0:
            return self // -other * -other
        return self.table.made(value)

    def __xor__(self, other: Any) -> Any:
        return self.table.made(int.__xor__(self, other))

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__

    def bit_length(self) -> Any:
        """How many bits it has."""
        value = int.bit_length(self)
        return self.table.size(value, "bits", self.term) if self >= 0 else self.table.opaque(value)


def _is_int(value: Any) -> bool:
    return type(value) is int or isinstance(value, TracedSize)


def _at(size: TracedSize, term: Any, value: int) -> Any:
    return TracedSize.made(value, size.table, term)


def _filled(size: TracedSize) -> tuple[int, int]:
    """(term, n): the bits of `term` with the n below each set bit filled."""
    term = size.table.term(size.term)
    return (int(term[1]), int(term[2])) if term[0] == "filled" else (size.term, 0)


def _shifted(size: TracedSize, operation: str, by: Any, value: Any) -> Any:
    known = value is not NotImplemented and type(by) is int
    return size.table.size(value, operation, size.term, size.table.number(1 << by)) if known else size.table.made(value)


def _arithmetic(name: str, symbol: str, reflected: bool) -> Callable[[TracedSize, Any], Any]:
    apply, of_floats = (getattr(one, f"__r{name}__" if reflected else f"__{name}__") for one in (int, float))

    def method(self: TracedSize, other: Any) -> Any:
        if isinstance(other, float):
            return self.table.made(of_floats(int.__float__(self), float(other)))
        value = apply(self, other)
        if value is NotImplemented or not _is_int(other):
            return value
        if symbol == "+" and type(other) is int and other == 1 and (made := _power_after(self, value)) is not None:
            return made
        left, right = (other, self) if reflected else (self, other)
        return self.table.size(value, symbol, self.table.number(left), self.table.number(right))

    return method


def _power_after(size: TracedSize, value: int) -> Any:
    """What is one more than a number whose low bits are all set."""
    base, filled = _filled(size)
    if filled < _BITS:
        return None
    return size.table.size(value, "next_power_of_2", size.table.number(_at(size, base, 0) + 1))


def _comparison(name: str, relation: str, swapped: bool, opposite: bool) -> Callable[[TracedSize, Any], Any]:
    apply = getattr(int, f"__{name}__")

    def method(self: TracedSize, other: Any) -> Any:
        held = apply(self, other)
        if held is NotImplemented or not _is_int(other):
            return held
        left, right = (other, self) if swapped else (self, other)
        self.table.compared(left, relation, right, held is not opposite)
        return held

    return method


class TracedShape(tuple[Any, ...]):
    """A shape of sizes that remember, in place of a torch.Size, which no class can be derived from."""

    __slots__ = ()
    __class__ = property(lambda self: torch.Size)

    numel = functools.partialmethod(math.prod)

    def __getitem__(self, at: Any) -> Any:
        found = tuple.__getitem__(self, at)
        return TracedShape(found) if isinstance(at, slice) else found

    def __add__(self, other: Any) -> Any:
        return TracedShape((*self, *other))

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        value = function(*(tuple(map(plain, one)) if one is self else one for one in args), **named)
        tables = (size.table for size in self if isinstance(size, TracedSize))
        return next(tables).made(value.item()) if getattr(value, "ndim", 1) == 0 else value


def plain(value: Any) -> Any:
    """`value` with ints and floats for Sizes, in tuples, lists and dicts too."""
    if isinstance(value, (TracedSize, SizeFloat)):
        return int.__add__(value, 0) if isinstance(value, TracedSize) else float.__pos__(value)
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return {key: plain(item) for key, item in value.items()} if type(value) is dict else value


# --- size floats ------------------------------------------------------------------------------------------------------


COMPARISONS = (
    ("lt", "<", False, False), ("le", "<=", False, False), ("gt", "<", True, False), ("ge", "<=", True, False),
    ("eq", "==", False, False), ("ne", "==", False, True),
)  # fmt: skip
"""Methods that compare: the relation, whether left and right change places, and whether it is the opposite."""


class SizeFloat(float):
    """A float computed from sizes in a way that is not recorded: what host code decides by it depends on something
    opaque, as a whole number does that it is rounded to."""

    @classmethod
    def made(cls, value: float) -> SizeFloat:
        """`value`, which was computed from sizes."""
        return float.__new__(cls, value)

    @property
    def table(self) -> Table:
        """The current one."""
        return Table.current


class SizeQuotient(SizeFloat):
    """A quotient a / b of sizes: rounded up or down, it is one again."""

    a: Any
    b: Any

    def __ceil__(self) -> Any:
        exact = -(-self.a // self.b)
        return exact if int(exact) == float.__ceil__(self) else float.__ceil__(self)

    def __floor__(self) -> Any:
        exact = self.a // self.b
        return exact if int(exact) == float.__floor__(self) else float.__floor__(self)


def _quotient(value: float, a: Any, b: Any) -> Any:
    made = SizeQuotient.made(value)
    made.a, made.b = a, b  # type: ignore[attr-defined]
    return made


def _quotient_comparison(name: str, relation: str, swapped: bool, opposite: bool) -> Callable[[SizeQuotient, Any], Any]:
    """Compares a / b with a whole number n, and notes it as a compared with b * n."""
    apply = getattr(float, f"__{name}__")

    def method(self: SizeQuotient, other: Any) -> Any:
        held = apply(self, other)
        if held is NotImplemented or not _is_int(other) or int(self.b) <= 0:
            return _opaquely(f"__{name}__")(self, other)
        left, right = (self.b * other, self.a) if swapped else (self.a, self.b * other)
        self.table.compared(left, relation, right, held is not opposite)
        return held

    return method


def _opaquely(name: str, base: type = float) -> Callable[..., Any]:
    """A method whose result is a number made of sizes; one that gives a condition compares something opaque."""
    apply = getattr(base, name)

    def method(self: Any, *args: Any) -> Any:
        value = apply(self, *args)
        if type(value) is bool:
            self.table.compared(self.table.opaque(0), "==", 0, value)
        return self.table.made(value)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(SizeFloat, _method, _opaquely(_method))
for _name in ("trunc", "round", "bool", "floor", "ceil", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(SizeFloat, f"__{_name}__", _opaquely(f"__{_name}__"))
SizeFloat.is_integer = _opaquely("is_integer")  # type: ignore[method-assign]
for _name, _relation, _swapped, _opposite in COMPARISONS:
    setattr(SizeQuotient, f"__{_name}__", _quotient_comparison(_name, _relation, _swapped, _opposite))
for _name in ("__round__", "__rpow__", "__rrshift__", "bit_count"):
    setattr(TracedSize, _name, _opaquely(_name, int))
for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("mod", "%")):
    setattr(TracedSize, f"__{_name}__", _arithmetic(_name, _symbol, reflected=False))
    setattr(TracedSize, f"__r{_name}__", _arithmetic(_name, _symbol, reflected=True))
for _name, _relation, _swapped, _opposite in COMPARISONS:
    setattr(TracedSize, f"__{_name}__", _comparison(_name, _relation, _swapped, _opposite))
