"""Formulas as a graph: each node is an operation on earlier nodes, and equal nodes are one.

A node is a tuple of its kind and what it is made of:

    ("number", value, dtype)      a float or int; dtype says how it was rounded, "exact" where it was not
    ("variable", name)            an element of an input; nothing is known of "unwritten" ones
    ("add", a, b, ...)            ("mul", a, b), ("div", a, b), ("max", a, b, ...)
    ("apply", name, a, ...)       a function by its name: exp, log, erf
    ("select", c, a, b)           a where c holds, else b
    (relation, a, b)              "gt" or "eq": a truth, 1 or 0;  ("not", c), ("and", c, d), ("or", c, d)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

Node = tuple[Any, ...]

MOST_NODES = 400_000
"""Nodes of one graph, after which a call is too large to be worth its formulas."""


class NoFormula(Exception):
    """Something of which no formula is made; the reason, for the record."""


class Graph:
    """Nodes by number; those that a node is made of have lower numbers. `modulus` is
    that of integer arithmetic, or 0."""

    def __init__(self, modulus: int = 0) -> None:
        self.nodes: list[Node] = []
        self.modulus = modulus
        self._numbers: dict[Node, int] = {}
        self.zero, self.one = self.number(0), self.number(1)

    def _node(self, *node: Any) -> int:
        found = self._numbers.get(node)
        if found is None:
            if len(self.nodes) >= MOST_NODES:
                raise NoFormula("the formulas of this call are too large")
            found = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return found

    # --- leaves ------------------------------------------------------------------------------------------------------

    def number(self, value: float, dtype: str = "float64") -> int:
        """A number; whole ones are exact in every dtype."""
        if isinstance(value, float) and math.isfinite(value) and value == int(value):
            value = int(value)
        if isinstance(value, int):
            return self._node("number", int(value), "exact")
        return self._node("number", "nan" if math.isnan(value) else value, dtype)

    def variable(self, name: Any) -> int:
        """An element of an input, by any name that can be hashed."""
        return self._node("variable", name)

    def is_number(self, a: int) -> bool:
        """Whether a node is a number."""
        return self.nodes[a][0] == "number"

    def value(self, a: int) -> float:
        """The number that a node is."""
        return float("nan") if self.nodes[a][1] == "nan" else self.nodes[a][1]

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def add(self, *terms: int) -> int:
        """The sum."""
        left = [term for term in terms if term != self.zero]
        if len(left) < 2:
            return left[0] if left else self.zero
        return self._node("add", *left)

    def mul(self, a: int, b: int) -> int:
        """The product; 0 times anything finite is 0."""
        if a == self.one or b == self.one:
            return b if a == self.one else a
        if self.zero in (a, b) and not self._is_infinite(a) and not self._is_infinite(b):
            return self.zero
        return self._node("mul", a, b)

    def _is_infinite(self, a: int) -> bool:
        return self.is_number(a) and not math.isfinite(self.value(a))

    def neg(self, a: int) -> int:
        """-a."""
        node = self.nodes[a]
        if node[0] == "number":
            return self.number(-self.value(a), node[2])
        minus = self.number(-1)
        return node[2] if node[0] == "mul" and node[1] == minus else self._node("mul", minus, a)

    def sub(self, a: int, b: int) -> int:
        """a - b."""
        return self.add(a, self.neg(b))

    def div(self, a: int, b: int) -> int:
        """a / b."""
        return a if b == self.one else self._node("div", a, b)

    def max(self, *terms: int) -> int:
        """The largest, -inf left out."""
        flat = {part for term in terms for part in (self.nodes[term][1:] if self.nodes[term][0] == "max" else (term,))}
        lowest = self.number(-math.inf)
        left = sorted(flat - {lowest})
        if len(left) < 2:
            return left[0] if left else lowest
        return self._node("max", *left)

    def min(self, *terms: int) -> int:
        """The smallest."""
        return self.neg(self.max(*(self.neg(term) for term in terms)))

    def apply(self, name: str, *operands: int) -> int:
        """A function by its name."""
        return self._node("apply", name, *operands)

    # --- truths ------------------------------------------------------------------------------------------------------

    def compare(self, relation: str, a: int, b: int) -> int:
        """a relation b for "gt", "ge", "lt", "le", "eq" and "ne", as 1 or 0."""
        if relation in ("lt", "le"):
            a, b, relation = b, a, "g" + relation[1:]
        if relation in ("ge", "ne"):
            swapped = (b, a, "gt") if relation == "ge" else (a, b, "eq")
            return self.negated(self.compare(swapped[2], swapped[0], swapped[1]))
        if self.is_number(a) and self.is_number(b):
            x, y = self.value(a), self.value(b)
            return self.one if (x > y if relation == "gt" else x == y) else self.zero
        if a == b:
            return self.one if relation == "eq" else self.zero
        return self._node(relation, a, b)

    def negated(self, c: int) -> int:
        """Not c."""
        if c in (self.zero, self.one):
            return self.one if c == self.zero else self.zero
        return self.nodes[c][1] if self.nodes[c][0] == "not" else self._node("not", c)

    def both(self, c: int, d: int) -> int:
        """c and d."""
        if self.zero in (c, d):
            return self.zero
        return d if c == self.one else c if d in (self.one, c) else self._node("and", c, d)

    def either(self, c: int, d: int) -> int:
        """c or d."""
        return self.negated(self.both(self.negated(c), self.negated(d)))

    def select(self, c: int, a: int, b: int) -> int:
        """a where c holds, else b."""
        if a == b or c in (self.zero, self.one):
            return b if c == self.zero else a
        return self._node("select", c, a, b)

    # --- traversal ---------------------------------------------------------------------------------------------------

    def operands(self, a: int) -> tuple[int, ...]:
        """The nodes that a node is made of."""
        node = self.nodes[a]
        if node[0] in ("number", "variable"):
            return ()
        return node[2:] if node[0] == "apply" else node[1:]

    def cone(self, roots: Iterable[int]) -> list[int]:
        """All nodes that the roots are made of, themselves too, each after those that it is made of."""
        found: set[int] = set()
        waiting = list(roots)
        while waiting:
            a = waiting.pop()
            if a not in found:
                found.add(a)
                waiting += self.operands(a)
        return sorted(found)
