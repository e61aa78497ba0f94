"""Floats that host code makes of sizes (gradekit.tracer.sizes): a quotient of two, which rounded is a size again and
can be compared as one, and any other, of which it is noted that something is decided by it.

Used in calls that are traced for this alone; a kernel may be given such a float like any other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

_MOST_UNDER = 1 << 20
_RELATIONS: dict[str, Callable[[int, int], bool]] = {"<": operator.lt, "<=": operator.le, "==": operator.eq}
COMPARISONS = (
    ("lt", "<", False, False), ("le", "<=", False, False), ("gt", "<", True, False), ("ge", "<=", True, False),
    ("eq", "==", False, False), ("ne", "==", False, True),
)  # fmt: skip
"""Methods that compare: the relation, whether left and right change places, and whether it is the opposite."""


class SizeQuotient(float):
    """A quotient of sizes: rounded up or down, it is one again."""

    a: Any
    b: Any

    @classmethod
    def made(cls, value: float, a: Any, b: Any) -> SizeQuotient:
        """`value`, which is a / b."""
        made = float.__new__(cls, value)
        made.a, made.b = a, b
        return made

    def __ceil__(self) -> Any:
        exact = -(-self.a // self.b)
        return exact if int(exact) == float.__ceil__(self) else float.__ceil__(self)

    def __floor__(self) -> Any:
        exact = self.a // self.b
        return exact if int(exact) == float.__floor__(self) else float.__floor__(self)


class SizeFloat(float):
    """A float computed from sizes in a way that is not recorded: what host code decides by it is noted as lost."""

    table: Any

    @classmethod
    def made(cls, value: float, table: Any) -> SizeFloat:
        """`value`, which was computed from sizes of `table`."""
        made = float.__new__(cls, value)
        made.table = table
        return made


def _exactly(value: Any) -> tuple[int, int] | None:
    """A number as a quotient of two whole numbers; None where they are too large to be told."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value, 1
    if type(value) is not float or not math.isfinite(value):
        return None
    over, under = value.as_integer_ratio()
    return (over, under) if under <= _MOST_UNDER else None


def _quotient_comparison(name: str, relation: str, swapped: bool, opposite: bool) -> Callable[[SizeQuotient, Any], Any]:
    """Compares a / b with p / q as a * q with p * b, which it notes where that comes to the same."""
    apply = getattr(float, f"__{name}__")

    def method(self: SizeQuotient, other: Any) -> Any:
        held, exact = apply(self, other), _exactly(other)
        table = _table(self)
        if held is NotImplemented or table is None:
            return held
        if exact is None or int(self.b) <= 0:
            table.lost("a float")
            return held
        left, right = self.a * exact[1], self.b * exact[0]
        left, right = (right, left) if swapped else (left, right)
        if _RELATIONS[relation](int(left), int(right)) == (held is not opposite):
            table.compared(left, relation, right, held is not opposite)
        else:
            table.lost("a float")
        return held

    return method


def _table(number: Any) -> Any:
    if isinstance(number, SizeFloat):
        return number.table
    return next((n.table for n in (number.a, number.b) if hasattr(n, "table")), None)


def _inexact(name: str) -> Callable[..., Any]:
    """Arithmetic of floats, whose result is a float made of sizes."""
    apply = getattr(float, name)

    def method(self: Any, *args: Any) -> Any:
        value, table = apply(self, *args), _table(self)
        return SizeFloat.made(value, table) if type(value) is float and table is not None else value

    return method


def _decided(name: str) -> Callable[..., Any]:
    """A method of float by which host code may decide something."""
    apply = getattr(float, name)

    def method(self: Any, *args: Any) -> Any:
        table = _table(self)
        if table is not None:
            table.lost("a float")
        return apply(self, *args)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(SizeQuotient, _method, _inexact(_method))
        setattr(SizeFloat, _method, _inexact(_method))
for _name in ("int", "trunc", "round", "hash", "repr", "format", "bool", "divmod"):
    setattr(SizeQuotient, f"__{_name}__", _decided(f"__{_name}__"))
    setattr(SizeFloat, f"__{_name}__", _decided(f"__{_name}__"))
SizeQuotient.is_integer = SizeFloat.is_integer = _decided("is_integer")  # type: ignore[method-assign]
for _name in ("floor", "ceil", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(SizeFloat, f"__{_name}__", _decided(f"__{_name}__"))
for _name, _relation, _swapped, _opposite in COMPARISONS:
    setattr(SizeQuotient, f"__{_name}__", _quotient_comparison(_name, _relation, _swapped, _opposite))
