"""What formulas are for given values: float64, or integers that wrap, for many choices of values at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy
import torch

from gradekit.formulas.graph import Graph, NoFormula

Values = Mapping[Any, Any]
"""Of each variable by name: its values, one for each choice (numpy, 1-D)."""


def _torch(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    return lambda *args: function(*(torch.as_tensor(arg, dtype=torch.float64) for arg in args)).numpy()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": numpy.exp, "log": numpy.log, "sqrt": numpy.sqrt, "tanh": numpy.tanh, "sigmoid": _torch(torch.sigmoid),
    "erf": _torch(torch.erf), "sin": numpy.sin, "cos": numpy.cos, "tan": numpy.tan, "atan": numpy.arctan,
    "asin": numpy.arcsin, "acos": numpy.arccos, "sinh": numpy.sinh, "cosh": numpy.cosh, "floor": numpy.floor,
    "ceil": numpy.ceil, "trunc": numpy.trunc, "round": numpy.round, "atan2": numpy.arctan2, "power": numpy.power,
    "fmod": numpy.fmod,
}  # fmt: skip
"""Every function that a graph may apply."""


def values_of(graph: Graph, roots: Iterable[int], values: Values) -> dict[int, Any]:
    """The value of each node that the roots are made of, by node."""
    found: dict[int, Any] = {}
    with numpy.errstate(all="ignore"):
        for node in graph.cone(roots):
            found[node] = _value(graph, node, found, values)
    return found


def _value(graph: Graph, node: int, found: Mapping[int, Any], values: Values) -> Any:
    kind, *rest = graph.nodes[node]
    if kind == "number":
        return _wrapped(graph, rest[0]) if graph.modulus else numpy.float64(math.nan if rest[0] == "nan" else rest[0])
    if kind == "variable":
        if rest[0] not in values:
            raise NoFormula("a value that nobody has written")
        return values[rest[0]]
    operands = [found[operand] for operand in graph.operands(node)]
    if kind == "apply":
        return FUNCTIONS[rest[0]](*operands)
    result = _OPERATIONS[kind](*operands)
    return _wrapped(graph, result) if graph.modulus else result


def _wrapped(graph: Graph, value: Any) -> Any:
    half = graph.modulus // 2
    return (value + half) % graph.modulus - half


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda *terms: functools.reduce(numpy.add, terms),
    "mul": numpy.multiply,
    "div": numpy.divide,
    "max": lambda *terms: functools.reduce(numpy.maximum, terms),
    "gt": lambda a, b: numpy.greater(a, b) * 1.0,
    "eq": lambda a, b: numpy.equal(a, b) * 1.0,
    "not": lambda c: 1.0 - c,
    "and": lambda c, d: c * d,
    "or": numpy.maximum,
    "select": lambda c, a, b: numpy.where(numpy.asarray(c) != 0, a, b),
}
