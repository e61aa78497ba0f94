"""Terms of sizes (`gradekit.origins.Origins.terms`) evaluated over any algebra, and written as text.

An algebra says what numbers are: whole numbers here, in other rooms columns of them for many calls, and a solver's
terms. Origins come from the submission's process and may say anything: what makes no sense has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gradekit import arithmetic
from gradekit.arithmetic import OF_TWO
from gradekit.origins import Condition

Leaf = tuple[str | int, ...]
"""("size", tensor, axis), ("stride", tensor, axis), ("offset", tensor) or ("scalar", position)."""

LEAVES = ("size", "stride", "offset", "scalar")
OPERATIONS = ("+", "-", "*", "//", "%")
RELATIONS = ("<", "<=", "==")
"""Those of `gradekit.origins.Condition`."""

LOST = ("opaque", "bits", "filled")
"""Numbers whose origin was lost, or that lie on the way to a power of two."""

LARGEST = 1 << 62
LONGEST = 80
"""Characters of a term as text."""


class Algebra:
    """Whole numbers. What an operation or a relation gives is None where it has no value."""

    def number(self, value: int) -> Any:
        """A constant."""
        return value if abs(value) < LARGEST else None

    def lost(self, number: int) -> Any:
        """The term `number`, of which nobody knows where it comes from."""
        return None

    def applied(self, symbol: str, a: Any, b: Any) -> Any:
        """Of two numbers, by a sign of OPERATIONS: division rounds down, and what is divided by zero has no value."""
        return None if symbol in ("//", "%") and b == 0 else OF_TWO[symbol](a, b)

    def power(self, a: Any) -> Any:
        """The least power of two that is not below a number; 0 below 1."""
        return arithmetic.next_power_of_2(a)

    def compared(self, relation: str, a: Any, b: Any) -> Any:
        """Whether a relation of RELATIONS holds."""
        return OF_TWO[relation](a, b)


NUMBERS = Algebra()


def evaluated(terms: Sequence[Leaf], leaves: Mapping[Leaf, Any], algebra: Algebra = NUMBERS) -> Sequence[Any]:
    """The value of each term, worked out when it is asked for; None where it depends on a leaf that is not given, or on
    a number whose origin was lost."""
    return _Values(terms, leaves, algebra)


class _Values(Sequence[Any]):
    """A condition or a launch depends on a few of many terms."""

    def __init__(self, terms: Sequence[Leaf], leaves: Mapping[Leaf, Any], algebra: Algebra) -> None:
        self._terms, self._leaves, self._algebra = terms, leaves, algebra
        self._known: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self._terms):
            raise IndexError(number)
        if number not in self._known:
            for one in sorted(behind(self._terms, [number], self._known)):
                self._known[one] = self._value(one)
        return self._known[number]

    def _value(self, number: int) -> Any:
        term = self._terms[number]
        match term:
            case ("number", int(value)):
                return self._algebra.number(value)
            case (str(kind), *_) if kind in LEAVES:
                return self._leaves.get(term)
            case (str(kind), *_) if kind in LOST:
                return self._algebra.lost(number)
        values = [self._known[a] for a in operands(term, number)]
        if not values or any(value is None for value in values):
            return None
        return self._algebra.power(*values) if len(values) == 1 else self._algebra.applied(str(term[0]), *values)


def holds(condition: Condition, values: Sequence[Any], algebra: Algebra = NUMBERS) -> Any:
    """Whether the relation of a condition holds, whichever way it went; None where that is not known."""
    if not (0 <= condition.left < len(values) > condition.right >= 0) or condition.relation not in RELATIONS:
        return None
    left, right = values[condition.left], values[condition.right]
    return None if left is None or right is None else algebra.compared(condition.relation, left, right)


def operands(term: Leaf, number: int) -> list[int]:
    """The earlier terms from which a term is computed; empty where it makes no sense."""
    match term:
        case ("next_power_of_2", int(a)) if 0 <= a < number:
            return [a]
        case (str(symbol), int(a), int(b)) if symbol in OPERATIONS and 0 <= a < number > b >= 0:
            return [a, b]
    return []


def behind(terms: Sequence[Leaf], numbers: Sequence[int], known: Collection[int] = ()) -> set[int]:
    """The terms that some depend on, themselves among them, as far as they are not known yet."""
    left = [number for number in numbers if 0 <= number < len(terms)]
    found = set(left)
    while left:
        one = left.pop()
        new = {a for a in operands(terms[one], one) if a not in found and a not in known}
        found |= new
        left += new
    return found


def leaves_in(terms: Sequence[Leaf], *numbers: int) -> set[Leaf]:
    """The leaves that these terms depend on; ("opaque",) stands for numbers whose origin was lost."""
    every = behind(terms, numbers)
    found = {terms[number] for number in every if terms[number][0] in LEAVES}
    others = (n for n in every if terms[n][0] not in (*LEAVES, "number") and not operands(terms[n], n))
    return found | {("opaque",) for _ in others}


def described(terms: Sequence[Leaf], number: int, name: Callable[[Leaf], str]) -> str:
    """A term as Python would write it, cut off where it is long; `name` gives the leaves' names."""
    text = _described(terms, number, name)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _described(terms: Sequence[Leaf], number: int, name: Callable[[Leaf], str], depth: int = 0) -> str:
    term = terms[number] if 0 <= number < len(terms) and depth < 9 else ("",)
    parts = [_described(terms, n, name, depth + 1) for n in operands(term, number)]
    if term[0] == "number":
        return str(term[1])
    if term[0] in LEAVES:
        return name(term)
    if len(parts) == 1:
        return f"next_power_of_2({parts[0]})"
    if not parts:
        return "..."
    return parts[1] if term[0] == "*" and parts[0] == "1" else f" {term[0]} ".join(map(_bracketed, parts))


def _bracketed(text: str) -> str:
    return f"({text})" if " " in text else text
