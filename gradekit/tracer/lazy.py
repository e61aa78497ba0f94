"""Whole numbers that are computed when somebody has to know them.

How many registers a kernel needs is known after a whole compilation. Host code asks for it at every call,
and most of the time it does not matter: min(132 * (65536 // (registers * 256)), rows) is known without it
where there are 100 rows. So the answer is a number with bounds, arithmetic gives such numbers again, and
what their bounds do not decide is computed.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

NAME = "LazyInt"
"""The class's name, by which an error tells that somebody takes an int and nothing like it."""

_INT = type(NAME, (int,), {})


class LazyInt:
    """The int, from `low` to `high`, that `compute` gives."""

    __slots__ = ("_compute", "high", "low")

    def __init__(self, compute: Callable[[], int], low: int, high: int) -> None:
        self._compute: Callable[[], int] | None = compute
        self.low, self.high = low, high

    def __index__(self) -> int:
        if self._compute is not None:
            self.low = self.high = self._compute()
            self._compute = None
        return self.low

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # what isinstance looks at, and who says which types it does not take
        return _INT

    def __getattr__(self, name: str) -> Any:
        return getattr(int(self), name)

    def __reduce__(self) -> Any:
        return int, (int(self),)

    def __int__(self) -> int:
        return operator.index(self)

    def __bool__(self) -> bool:
        return self.low > 0 or bool(int(self))

    def __repr__(self) -> str:
        return repr(int(self))

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __hash__(self) -> int:
        return hash(int(self))

    def __eq__(self, other: object) -> Any:
        return not _apart(self, other) and int(self) == settled(other)

    def __ne__(self, other: object) -> Any:
        return _apart(self, other) or int(self) != settled(other)


def settled(value: Any) -> Any:
    """The value; where it is a LazyInt, the int that it is, and so in tuples and lists."""
    kind = type(value)
    if kind is LazyInt:
        return int(value)
    return kind(map(settled, value)) if kind is tuple or kind is list else value


def install() -> None:
    """Makes `min` and `max` leave open which of two numbers it is, as long as nobody has to know."""
    for apply in (builtins.min, builtins.max):
        if isinstance(apply, type(len)):  # not yet
            setattr(builtins, apply.__name__, _choosing(apply))


def _choosing(apply: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(apply)
    def chosen(*values: Any, **named: Any) -> Any:
        if len(values) == 2 and not named and LazyInt in map(type, values):
            return _arithmetic(apply, *values)
        return apply(*values, **named)

    return chosen


def _are_ints(*values: Any) -> bool:
    return all(type(value) in (int, LazyInt) for value in values)


def _low(value: Any) -> int:
    return value.low if type(value) is LazyInt else value


def _high(value: Any) -> int:
    return value.high if type(value) is LazyInt else value


def _apart(a: Any, b: Any) -> bool:
    return _are_ints(a, b) and (_high(a) < _low(b) or _high(b) < _low(a))


def _arithmetic(apply: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """The result rises with `a`, and rises or falls with `b`, so that the bounds of both bound it."""
    if not _are_ints(a, b) or not _rises(apply, _low(a), _low(b)):
        return apply(settled(a), settled(b))
    falls = apply in (operator.sub, operator.floordiv)
    low, high = (_high(b), _low(b)) if falls else (_low(b), _high(b))
    low, high = apply(_low(a), low), apply(_high(a), high)
    return LazyInt(lambda: apply(int(a), int(b)), low, high) if low < high else low


def _rises(apply: Callable[[Any, Any], Any], a: int, b: int) -> bool:
    """Whether that is so of all operands from `a` and `b` on."""
    least = {operator.mul: (0, 0), operator.floordiv: (0, 1)}.get(apply, (a, b))
    return a >= least[0] and b >= least[1]


def _comparison(apply: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """An order of `a` and `b` that is the same at both ends of what a - b can be is the same for all between."""
    if _are_ints(a, b) and apply(_low(a), _high(b)) == apply(_high(a), _low(b)):
        return apply(_low(a), _high(b))
    return apply(settled(a), settled(b))


def _with_other(how: Callable[..., Any], apply: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return lambda self, other: how(apply, self, other), lambda self, other: how(apply, other, self)


def _of_the_int(name: str) -> Callable[..., Any]:
    return lambda self, *others: getattr(int(self), name)(*map(settled, others))


for _name in ("add", "sub", "mul", "floordiv"):
    _method, _reflected = _with_other(_arithmetic, getattr(operator, _name))
    setattr(LazyInt, f"__{_name}__", _method)
    setattr(LazyInt, f"__r{_name}__", _reflected)
for _name in ("lt", "le", "gt", "ge"):
    setattr(LazyInt, f"__{_name}__", _with_other(_comparison, getattr(operator, _name))[0])
for _name in (
    "truediv", "rtruediv", "mod", "rmod", "divmod", "rdivmod", "pow", "rpow", "and", "rand", "or", "ror", "xor", "rxor",
    "lshift", "rlshift", "rshift", "rrshift", "neg", "pos", "abs", "invert", "float", "round", "trunc", "floor", "ceil",
):  # fmt: skip
    setattr(LazyInt, f"__{_name}__", _of_the_int(f"__{_name}__"))
