"""Terms of sizes as host code computed them (`gradekit.origins.Origins.terms`): as polynomials, and written as text.

Origins come from the submission's process and may say anything: what makes no sense has no value.
"""

from collections.abc import Callable, Sequence
from typing import Any

from gradekit.arithmetic import OF_TWO
from gradekit.origins import Condition
from gradekit.prove import Limit
from gradekit.prove.terms import Term, equal, power, term, var

Leaf = tuple[str | int, ...]
"""("size", tensor, axis), ("stride", tensor, axis), ("offset", tensor) or ("scalar", position)."""

LEAVES = ("size", "stride", "offset", "scalar")
OPERATIONS = ("+", "-", "*", "//", "%")
ADDRESSES = 1 << 62  # numbers from here on say where a storage lies
RELATIONS = ("<", "<=", "==")  # those of `gradekit.origins.Condition`

OPAQUE = "opaque"
LOST = (OPAQUE, "bits", "filled")  # numbers whose origin was lost, or that lie on the way to a power of two


def variable(leaf: Leaf) -> Term:
    """A number that host code is given, whatever it is."""
    return var(" ".join(map(str, leaf)))


def polynomials(terms: Sequence[Leaf], leaf: Callable[[Leaf], Term | None]) -> list[Term | None]:
    """Each term, of the numbers that host code is given; None where it makes no sense, or `leaf` gives none."""
    found: list[Term | None] = []
    for number, one in enumerate(terms):
        found.append(_polynomial(one, number, found, leaf))
    return found


def _polynomial(
    one: Leaf, number: int, known: Sequence[Term | None], leaf: Callable[[Leaf], Term | None]
) -> Term | None:
    match one:
        case ("number", int(value)):
            return term(value)
        case (str(kind), *_) if kind in LEAVES:
            return leaf(one)
        case (str(kind), *_) if kind in LOST:
            return var(f"{OPAQUE} {number}")
    values = [a for a in map(known.__getitem__, operands(one, number)) if a is not None]
    if len(values) == 1 and one[0] == "next_power_of_2":
        return power(*values)
    divides = one[0] in ("//", "%")
    if len(values) != 2 or divides and values[1].number is not None and values[1].number <= 0:
        return None
    if one[0] == "*" and len(values[0].parts) * len(values[1].parts) > Limit.PARTS:
        return var(f"{OPAQUE} {number}")
    return OF_TWO[str(one[0])](*values)


def holds(condition: Condition, values: Sequence[Any]) -> Any:
    """Whether a condition's relation holds for the values of its terms; None where that is not known."""
    if not (0 <= condition.left < len(values) > condition.right >= 0) or condition.relation not in RELATIONS:
        return None
    left, right = values[condition.left], values[condition.right]
    if left is None or right is None:
        return None
    is_equal = condition.relation == "==" and isinstance(left, Term)
    return equal(left, right) if is_equal else OF_TWO[condition.relation](left, right)


def operands(term: Leaf, number: int) -> list[int]:
    """The earlier terms from which a term is computed; empty where it makes no sense."""
    match term:
        case ("next_power_of_2", int(a)) if 0 <= a < number:
            return [a]
        case (str(symbol), int(a), int(b)) if symbol in OPERATIONS and 0 <= a < number > b >= 0:
            return [a, b]
    return []


def behind(terms: Sequence[Leaf], numbers: Sequence[int]) -> set[int]:
    """The terms that some depend on, themselves among them."""
    left = [number for number in numbers if 0 <= number < len(terms)]
    found = set(left)
    while left:
        one = left.pop()
        new = {a for a in operands(terms[one], one) if a not in found}
        found |= new
        left += new
    return found


def leaves_in(terms: Sequence[Leaf], *numbers: int) -> set[Leaf]:
    """The leaves that these terms depend on; ("opaque",) stands for numbers whose origin was lost."""
    every = behind(terms, numbers)
    found = {terms[number] for number in every if terms[number][0] in LEAVES}
    others = (n for n in every if terms[n][0] not in (*LEAVES, "number") and not operands(terms[n], n))
    return found | {(OPAQUE,) for _ in others}


def described(terms: Sequence[Leaf], number: int, name: Callable[[Leaf], str]) -> str:
    """A term as Python would write it, cut off where it is long; `name` gives the leaves' names."""
    text = _described(terms, number, name)
    return text if len(text) <= Limit.TEXT else text[: Limit.TEXT - 3] + "..."


def _described(terms: Sequence[Leaf], number: int, name: Callable[[Leaf], str], depth: int = 0) -> str:
    term = terms[number] if 0 <= number < len(terms) and depth < 9 else ("",)
    parts = [_described(terms, n, name, depth + 1) for n in operands(term, number)]
    if term[0] == "number":
        return str(term[1]) if int(term[1]) < ADDRESSES else "address"
    if term[0] in LEAVES:
        return name(term)
    if len(parts) == 1:
        return f"next_power_of_2({parts[0]})"
    if not parts:
        return "..."
    bracketed = (f"({part})" if " " in part else part for part in parts)
    return parts[1] if term[0] == "*" and parts[0] == "1" else f" {term[0]} ".join(bracketed)
