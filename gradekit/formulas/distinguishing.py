"""Values at which two formulas differ, to be tried on the engine: drawn, or solved for
where a condition is hardly ever met.

Everything is deterministic: draws have a fixed seed, and the solver's limit counts its own steps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from gradekit.formulas.equality import Equality, RegionSolver, Unequal
from gradekit.formulas.graph import Graph, NoFormula

SCALES = (1.0, 0.05, 4.0, 30.0, 300.0, 3000.0)
EACH = 64
"""Draws of each scale."""
DRAWS = len(SCALES) * EACH
BEST = 3
"""Drawn values that are tried on the engine."""
MARGINS = (1.0, 2.0**-6, 0.0)
"""By how much an inequality must hold, if it can: what is nearer may be lost in rounding."""
NOTICEABLE = 1e-6
"""The relative difference under which values are not worth trying."""


@dataclass(frozen=True)
class ValuePromise:
    """What is promised of an input's element: a dtype, and the sizes (absolute values) and signs that it may have.

    With `draws`, nothing is promised but that it is drawn so (float64, 1-D, DRAWS long): its values are never made up.
    """

    dtype: torch.dtype
    least: float = 0.0
    most: float = 4096.0
    signed: bool = True
    draws: Any = None

    def rounded(self, values: Any) -> Any:
        """float64 values (numpy) as the dtype holds them, within the promise."""
        if not self.dtype.is_floating_point:
            return numpy.round(values).astype(numpy.int64)
        size = numpy.clip(numpy.abs(values), self.least, self.most)
        signs = numpy.where(values < 0, -1.0, 1.0) if self.signed else 1.0
        return torch.from_numpy(numpy.asarray(size * signs)).to(self.dtype).double().numpy()


ValuePromises = Callable[[Any], ValuePromise]
"""Of a variable, by its name."""
Values = Mapping[Any, float]
"""Of variables by name; and the number of the draw by the name DRAW, which counts for inputs that are never made up."""
DRAW = "draw"


def distinguishing(equality: Equality, where: Unequal, promises: ValuePromises) -> Iterator[Values]:
    """Values of the variables of two formulas at which they differ by more than rounding, the most telling first."""
    graph = equality.graph
    names = [graph.nodes[n][1] for n in graph.cone((where.one, where.other)) if graph.nodes[n][0] == "variable"]
    drawn = list(_drawn(equality, where, names, promises))
    yield from drawn
    if not drawn and where.path.signs and all(promises(name).draws is None for name in names):
        yield from _solved(equality, where, names, promises)


# --- drawn values ----------------------------------------------------------------------------------------------------


def _drawn(equality: Equality, where: Unequal, names: list[Any], promises: ValuePromises) -> Iterator[Values]:
    generator = numpy.random.default_rng(0)
    values = {name: _draws(generator, promises(name)) for name in names}
    apart = _apart(equality, where, values)
    for place in numpy.argsort(-apart, kind="stable")[:BEST]:
        if apart[place] > NOTICEABLE:
            yield {name: values[name][place].item() for name in names} | {DRAW: int(place)}


def _draws(generator: Any, promise: ValuePromise) -> Any:
    if promise.draws is not None:
        return promise.draws
    if not promise.dtype.is_floating_point:
        limit = torch.iinfo(promise.dtype).max
        return generator.integers(-limit, limit, DRAWS)
    scales = numpy.repeat(SCALES, EACH)
    return promise.rounded(generator.standard_normal(len(scales)) * scales)


def _apart(equality: Equality, where: Unequal, values: Mapping[Any, Any]) -> Any:
    """The relative difference of the two formulas, for each choice of values."""
    found = values_of(equality.graph, (where.one, where.other), values)
    one, other = (numpy.asarray(found[node], dtype=numpy.float64) for node in (where.one, where.other))
    with numpy.errstate(all="ignore"):
        apart = numpy.abs(one - other) / (numpy.abs(one) + numpy.abs(other) + 1e-30)
    count = len(next(iter(values.values()), numpy.zeros(1)))
    return numpy.broadcast_to(numpy.where(numpy.isfinite(other), numpy.nan_to_num(apart, nan=1.0), 0.0), count)


# --- solved for ------------------------------------------------------------------------------------------------------


def _solved(equality: Equality, where: Unequal, names: list[Any], promises: ValuePromises) -> Iterator[Values]:
    for step in (0, 8):
        for margin in MARGINS:
            solver = _solver(equality, promises, step)
            forms = equality.forms(where.path)
            if not solver.meets(where.path, forms.of(where.one), forms.of(where.other), margin):
                continue
            generator = numpy.random.default_rng(1)
            found = {name: solver.value(name, generator.standard_normal()) for name in names}
            values = {name: promises(name).rounded(numpy.array([found[name]])) for name in names}
            if _apart(equality, where, values)[0] > NOTICEABLE:
                yield {name: value[0].item() for name, value in values.items()}
                return


def _solver(equality: Equality, promises: ValuePromises, step: int) -> RegionSolver:
    solver = RegionSolver(equality.algebra, step)
    solver.promise = lambda name: (promises(name).least, promises(name).most, promises(name).signed)
    return solver


# --- what formulas are for given values: float64, or integers that wrap, for many choices of values at once -----------


ValueColumns = Mapping[Any, Any]
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


def values_of(graph: Graph, roots: Iterable[int], values: ValueColumns) -> dict[int, Any]:
    """The value of each node that the roots are made of, by node."""
    found: dict[int, Any] = {}
    with numpy.errstate(all="ignore"):
        for node in graph.cone(roots):
            found[node] = _value(graph, node, found, values)
    return found


def _value(graph: Graph, node: int, found: Mapping[int, Any], values: ValueColumns) -> Any:
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
