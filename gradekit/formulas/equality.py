"""Whether two formulas are equal for all values: by their normal forms, in each region that a condition makes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy
import torch
import z3

from gradekit.formulas.algebra import Algebra, Constants, Polynomial
from gradekit.formulas.graph import Graph, NoFormula
from gradekit.formulas.normal import CONSTANTS, Fork, Normal, NormalForms, ValuePath

MOST_PATHS = 96
"""Regions of one element that are looked at."""
MOST_FORMS = 4000
"""Regions of all elements together."""


@dataclass
class Unequal:
    """A region in which two formulas are not known to be equal: nodes of the graph, and the path to it."""

    one: int
    other: int
    path: ValuePath


@dataclass
class Equality:
    """Compares formulas of one graph; `regions` counts those that were looked at."""

    graph: Graph
    algebra: Algebra = field(init=False)
    constants: Constants = field(init=False)
    regions: int = 0
    _forms: dict[frozenset[object], NormalForms] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.algebra = Algebra(self.graph.modulus)
        self.constants = Constants(self.algebra)

    def tell_reference(self, nodes: list[int]) -> None:
        """The numbers of the reference's formulas are what a kernel's rounded ones may stand for."""
        for node in self.graph.cone(nodes):
            kind, *rest = self.graph.nodes[node]
            if kind == "number" and rest[1] != "exact" and rest[0] != "nan":
                self.constants.tell(rest[0], rest[1])

    def unequal(self, one: int, other: int) -> Iterator[Unequal]:
        """The regions in which two formulas are not known to be equal; none where they are equal for all values.

        Raises:
            NoFormula: there are too many regions, or a formula is too long.
        """
        if one == other:
            return
        waiting, seen = [ValuePath()], 0
        while waiting:
            path = waiting.pop()
            seen += 1
            self.regions += 1
            if seen > MOST_PATHS or self.regions > MOST_FORMS:
                raise NoFormula("too many regions of values")
            try:
                if not self._equal(one, other, path) and not self._is_empty(path):
                    yield Unequal(one, other, path)
            except Fork as fork:
                waiting += path.forked(fork, self.algebra)

    def _equal(self, one: int, other: int, path: ValuePath) -> bool:
        forms = self.forms(path)
        p, q = forms.of(one), forms.of(other)
        if isinstance(p, float) or isinstance(q, float):
            return str(p) == str(q)
        d = self.algebra.difference(p, q)
        if not d or not self.algebra.cleared(d):
            return True
        self._split(d, path)
        return False

    def _is_empty(self, path: ValuePath) -> bool:
        return len(path.signs) > 1 and RegionSolver(self.algebra, steps=EMPTY_STEPS).is_empty(path)

    def forms(self, path: ValuePath) -> NormalForms:
        """Normal forms on a path, which several elements may share."""
        key = frozenset(path.signs.items())
        if key not in self._forms:
            self._forms[key] = NormalForms(self.graph, self.algebra, self.constants, path)
        return self._forms[key]

    def _split(self, d: Polynomial, path: ValuePath) -> None:
        """Raises Fork for a sign that decides which part of a maximum counts, if there is one in the difference."""
        atoms = self.algebra.atoms
        inside = [a for a in self.algebra.inside(d) if atoms[a][0] == "positive" and atoms[a][1] not in path.signs]
        plain = [
            a for a in inside if not any(atoms[b][0] == "positive" for b in self.algebra.inside(dict(atoms[a][1])))
        ]
        if plain:
            raise Fork(atoms[min(plain)][1], frozenset((1,)))


# --- whether there are any values in a region, and which --------------------------------------------------------------
#
# Variables are reals; of what a function gives only its sign is known. So a region that is empty for the solver is
# empty, and values that it finds may still lie outside: they are tried. Limits count the solver's own steps.

STEPS = 1_000_000
EMPTY_STEPS = 200_000
"""What the solver may take for values, and to see that there are none."""


class RegionSolver:
    """Asks about one region; with a `step`, variables are whole numbers over it.

    `promise` gives the least and the most absolute value of a variable, and whether it may be negative.
    """

    promise: Callable[[Any], tuple[float, float, bool]] | None = None

    def __init__(self, algebra: Algebra, step: int = 0, steps: int = STEPS) -> None:
        self._algebra, self._step = algebra, step
        self._context = z3.Context()
        self._solver = z3.Solver(ctx=self._context)
        self._solver.set("rlimit", steps)
        self._atoms: dict[Any, Any] = {}
        self._model: Any = None

    def is_empty(self, path: ValuePath) -> bool:
        """Whether no values are in the region of a path."""
        self._add(path, 0.0)
        return bool(self._solver.check() == z3.unsat)

    def meets(self, path: ValuePath, one: Normal, other: Normal, margin: float) -> bool:
        """Whether there are values in the region, by a margin, for which two normal forms differ."""
        self._add(path, margin)
        if not isinstance(one, float) and not isinstance(other, float):
            self._solver.add(z3.Not(self._term(one) == self._term(other)))
        met = self._solver.check() == z3.sat
        self._model = self._solver.model() if met else None
        return bool(met)

    def value(self, name: Any, otherwise: float) -> float:
        """The value that was found for a variable; `otherwise` where any would do."""
        found = self._atoms.get((self._algebra.atom("variable", name), 1))
        if found is None:
            return otherwise
        number = self._model.eval(found, model_completion=True)
        exact = number if z3.is_rational_value(number) else number.approx(20)
        return float(exact.as_fraction())

    def _add(self, path: ValuePath, margin: float) -> None:
        for key, signs in path.signs.items():
            term = self._term(dict(key))
            above, below = (term >= margin, term <= -margin) if margin else (term > 0, term < 0)
            holds = {1: above, 0: term == 0, -1: below}
            self._solver.add(z3.Or(*(holds[sign] for sign in sorted(signs))))

    def _term(self, p: Polynomial) -> Any:
        terms = [z3.RealVal(str(c), self._context) * self._monomial(monomial) for monomial, c in p.items()]
        return z3.Sum(terms) if terms else z3.RealVal(0, self._context)

    def _monomial(self, monomial: Any) -> Any:
        result = z3.RealVal(1, self._context)
        for atom, exponent in monomial:
            if Fraction(exponent).denominator > 1:
                result = result * self._atom(atom, exponent)
                continue
            for _ in range(abs(int(exponent))):
                result = result * self._atom(atom, 1) if exponent > 0 else result / self._atom(atom, 1)
        return result

    def _atom(self, atom: int, exponent: Any) -> Any:
        """An atom, or its root, as a real of which little is known."""
        if (atom, exponent) not in self._atoms:
            kind, *what = self._algebra.atoms[atom]
            found = z3.Real(f"a{len(self._atoms)}", self._context)
            if kind == "variable":
                found = self._variable(found, what[0])
            elif kind == "constant" and exponent == 1:
                near = CONSTANTS[what[0]]
                self._solver.add(found > near - 1e-9, found < near + 1e-9)
            elif kind in ("exp", "constant"):
                self._solver.add(found > 0)
            elif kind == "sqrt":
                self._solver.add(found >= 0)
            elif kind == "positive":
                self._solver.add(z3.Or(found == 0, found == 1))
            self._atoms[atom, exponent] = found
        return self._atoms[atom, exponent]

    def _variable(self, found: Any, name: Any) -> Any:
        if self._step:
            found = z3.ToReal(z3.Int(f"n{len(self._atoms)}", self._context)) / self._step
        if self.promise is not None:
            least, most, signed = self.promise(name)
            size = z3.If(found < 0, -found, found)
            self._solver.add(size <= most, size >= least)
            if not signed:
                self._solver.add(found >= 0)
        return found


# --- values at which two formulas differ: drawn, or solved for where a condition is hardly ever met -------------------

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
