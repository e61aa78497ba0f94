"""Terms of a call's origins (gradekit.origins) evaluated for many calls at once, and written as text.

Origins come from the submission's process and may say anything: what makes no sense has no value, and a wrong value
costs an input that shows nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Leaf = tuple[str | int, ...]
"""("size", tensor, axis), ("stride", tensor, axis), ("offset", tensor) or ("scalar", position)."""

Numbers = Tensor | int
"""One number for each of many calls (int64), or one for all."""

LEAVES = ("size", "stride", "offset", "scalar")
OPERATIONS = ("+", "-", "*", "//", "%")
LONGEST = 80
"""Characters of a term as text."""

_POWERS = torch.tensor([1 << k for k in range(62)])


def evaluated(terms: Sequence[Leaf], leaves: Mapping[Leaf, Numbers]) -> Sequence[Numbers | None]:
    """The value of each term; None where it depends on a leaf that is not given, or on
    a number whose origin was lost."""
    return _Values(terms, leaves)


class _Values(Sequence[Any]):
    """The values of terms, each worked out when it is asked for: a condition or a launch depends on a few of many."""

    def __init__(self, terms: Sequence[Leaf], leaves: Mapping[Leaf, Numbers]) -> None:
        self._terms, self._leaves = terms, leaves
        self._known: dict[int, Numbers | None] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self._terms):
            raise IndexError(number)
        if number not in self._known:
            for behind in sorted(self._behind(number)):
                self._known[behind] = _value(self._terms[behind], behind, self._known, self._leaves)
        return self._known[number]

    def _behind(self, number: int) -> set[int]:
        """The terms that one depends on, itself among them, as far as they are not known yet."""
        found, left = {number}, [number]
        while left:
            one = left.pop()
            new = {a for a in operands(self._terms[one], one) if a not in found and a not in self._known}
            found |= new
            left += new
        return found


def operands(term: Leaf, number: int) -> list[int]:
    """The earlier terms from which a term is computed; empty where it makes no sense."""
    match term:
        case ("next_power_of_2", int(a)) if 0 <= a < number:
            return [a]
        case (str(symbol), int(a), int(b)) if symbol in OPERATIONS and 0 <= a < number > b >= 0:
            return [a, b]
    return []


def _value(term: Leaf, number: int, known: Mapping[int, Numbers | None], leaves: Mapping[Leaf, Numbers]) -> Any:
    match term:
        case ("number", int(value)):
            return value if abs(value) < 1 << 62 else None
        case (str(kind), *_) if kind in LEAVES:
            return leaves.get(term)
    values = [known[a] for a in operands(term, number)]
    if not values or values[0] is None:
        return None
    return next_power_of_2(values[0]) if len(values) == 1 else _applied(str(term[0]), *values)


def next_power_of_2(n: Any) -> Any:
    """The least power of two that is not below a number, or each of many; 0 below 1."""
    if isinstance(n, int):
        return 1 << max(n - 1, 0).bit_length() if n > 0 else 0
    return torch.where(n > 0, _POWERS[torch.searchsorted(_POWERS, n).clamp(max=61)], 0)


def _applied(symbol: str, a: Numbers | None, b: Numbers | None) -> Numbers | None:
    if a is None or b is None:
        return None
    if symbol in "+-*":
        return a + b if symbol == "+" else a - b if symbol == "-" else a * b
    if isinstance(a, int) and isinstance(b, int):
        return None if b == 0 else a // b if symbol == "//" else a % b
    divisor = torch.as_tensor(b)
    divisor = torch.where(divisor == 0, 1, divisor)
    dividend = torch.as_tensor(a)
    return torch.div(dividend, divisor, rounding_mode="floor") if symbol == "//" else torch.remainder(dividend, divisor)


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b,
}  # fmt: skip
"""The relations of gradekit.origins.Condition."""


def leaves_in(terms: Sequence[Leaf], *numbers: int) -> set[Leaf]:
    """The leaves that these terms depend on; ("opaque",) stands for numbers whose origin was lost."""
    found: set[Leaf] = set()
    left, done = list(numbers), set[int]()
    while left:
        number = left.pop()
        if number in done or not 0 <= number < len(terms):
            continue
        done.add(number)
        match terms[number]:
            case (str(kind), *_) if kind in LEAVES:
                found.add(terms[number])
            case ("number", *_):
                pass
            case ("next_power_of_2", int(a)) if a < number:
                left.append(a)
            case (str(symbol), int(a), int(b)) if symbol in OPERATIONS and max(a, b) < number:
                left += [a, b]
            case _:
                found.add(("opaque",))
    return found


def described(terms: Sequence[Leaf], number: int, name: Callable[[Leaf], str]) -> str:
    """A term as Python would write it, cut off where it is long; `name` gives the leaves' names."""
    text = _described(terms, number, name)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _described(terms: Sequence[Leaf], number: int, name: Callable[[Leaf], str], depth: int = 0) -> str:
    if not 0 <= number < len(terms) or depth > 8:
        return "..."
    match terms[number]:
        case ("number", value):
            return str(value)
        case (str(kind), *_) if kind in LEAVES:
            return name(terms[number])
        case ("next_power_of_2", int(a)):
            return f"next_power_of_2({_described(terms, a, name, depth + 1)})"
        case (str(symbol), int(a), int(b)) if symbol in OPERATIONS:
            parts = [_described(terms, n, name, depth + 1) for n in (a, b)]
            if symbol == "*" and parts[0] == "1":
                return parts[1]
            return " ".join([_bracketed(parts[0]), symbol, _bracketed(parts[1])])
    return "..."


def _bracketed(text: str) -> str:
    return f"({text})" if " " in text else text
