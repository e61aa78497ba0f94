"""Values at which two formulas differ, to be tried on the engine: drawn, or solved for where a condition is hardly ever met.

Everything is deterministic: draws have a fixed seed, and the solver's limit counts its own steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import torch
import z3

from gradekit.formulas.algebra import Key, Polynomial
from gradekit.formulas.equality import Equality, Unequal
from gradekit.formulas.numeric import values_of

SCALES = (1.0, 0.05, 4.0, 30.0, 300.0, 3000.0)
EACH = 64
"""Draws of each scale."""
DRAWS = len(SCALES) * EACH
BEST = 3
"""Drawn values that are tried on the engine."""
STEPS = 1_000_000
MARGINS = (1.0, 2.0**-6, 0.0)
"""By how much an inequality must hold, if it can: what is nearer may be lost in rounding."""
NOTICEABLE = 1e-6
"""The relative difference under which values are not worth trying."""


@dataclass(frozen=True)
class Promise:
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


Promises = Callable[[Any], Promise]
"""Of a variable, by its name."""
Values = Mapping[Any, float]
"""Of variables by name; and the number of the draw by the name DRAW, which counts for inputs that are never made up."""
DRAW = "draw"
"""Of variables by name; where inputs are drawn and never made up, the number of the draw by the name DRAW."""
DRAW = "draw"


def distinguishing(equality: Equality, where: Unequal, promises: Promises) -> Iterator[Values]:
    """Values of the variables of two formulas at which they differ by more than rounding, the most telling first."""
    graph = equality.graph
    names = [graph.nodes[n][1] for n in graph.cone((where.one, where.other)) if graph.nodes[n][0] == "variable"]
    drawn = list(_drawn(equality, where, names, promises))
    yield from drawn
    if not drawn and all(promises(name).draws is None for name in names):
        yield from _solved(equality, where, names, promises)


# --- drawn values ----------------------------------------------------------------------------------------------------


def _drawn(equality: Equality, where: Unequal, names: list[Any], promises: Promises) -> Iterator[Values]:
    generator = numpy.random.default_rng(0)
    values = {name: _draws(generator, promises(name)) for name in names}
    apart = _apart(equality, where, values)
    for place in numpy.argsort(-apart, kind="stable")[:BEST]:
        if apart[place] > NOTICEABLE:
            yield {name: values[name][place].item() for name in names} | {DRAW: int(place)}


def _draws(generator: Any, promise: Promise) -> Any:
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


def _solved(equality: Equality, where: Unequal, names: list[Any], promises: Promises) -> Iterator[Values]:
    for step in (0, 8):
        for margin in MARGINS:
            found = _Region(equality, promises, step).values(where, names, margin)
            if found is None:
                continue
            values = {name: promises(name).rounded(numpy.array([found[name]])) for name in names}
            if _apart(equality, where, values)[0] > NOTICEABLE:
                yield {name: value[0].item() for name, value in values.items()}
                return


class _Region:
    """A region of values as the solver sees it; with a `step`, values are whole numbers over it."""

    def __init__(self, equality: Equality, promises: Promises, step: int) -> None:
        self._algebra, self._forms, self._promises, self._step = equality.algebra, equality.forms, promises, step
        self._context = z3.Context()
        self._solver = z3.Solver(ctx=self._context)
        self._solver.set("rlimit", STEPS)
        self._atoms: dict[int, Any] = {}

    def values(self, where: Unequal, names: list[Any], margin: float) -> dict[Any, float] | None:
        """Values in the region where the two formulas differ by the margin; None where none are found."""
        for key, signs in where.path.signs.items():
            self._solver.add(self._in_signs(self._term(dict(key)), signs, margin))
        forms = self._forms(where.path)
        one, other = forms.of(where.one), forms.of(where.other)
        if not isinstance(one, float) and not isinstance(other, float):
            self._solver.add(z3.Not(self._term(one) == self._term(other)))
        if self._solver.check() != z3.sat:
            return None
        model = self._solver.model()
        generator = numpy.random.default_rng(1)
        return {name: self._value(model, name, generator.standard_normal()) for name in names}

    def _in_signs(self, term: Any, signs: frozenset[int], margin: float) -> Any:
        holds = {1: term >= margin if margin else term > 0, 0: term == 0, -1: term <= -margin if margin else term < 0}
        return z3.Or(*(holds[sign] for sign in sorted(signs)))

    def _value(self, model: Any, name: Any, otherwise: float) -> float:
        atom = self._algebra.atom("variable", name)
        if atom not in self._atoms:
            return otherwise
        number = model.eval(self._atoms[atom], model_completion=True)
        exact = number if z3.is_rational_value(number) else number.approx(20)
        return float(exact.as_fraction())

    def _term(self, p: Polynomial | Key) -> Any:
        terms = [z3.RealVal(str(c), self._context) * self._monomial(monomial) for monomial, c in dict(p).items()]
        return z3.Sum(terms) if terms else z3.RealVal(0, self._context)

    def _monomial(self, monomial: Any) -> Any:
        result = z3.RealVal(1, self._context)
        for atom, exponent in monomial:
            factor = self._atom(atom)
            for _ in range(abs(int(exponent))):
                result = result * factor if exponent > 0 else result / factor
        return result

    def _atom(self, atom: int) -> Any:
        if atom not in self._atoms:
            kind, *what = self._algebra.atoms[atom]
            found = z3.Real(f"a{atom}", self._context)
            if kind == "variable":
                found = self._variable(atom, self._promises(what[0]))
            elif kind in ("exp", "sqrt", "constant"):
                self._solver.add(found > 0)
            elif kind == "positive":
                self._solver.add(z3.Or(found == 0, found == 1))
            self._atoms[atom] = found
        return self._atoms[atom]

    def _variable(self, atom: int, promise: Promise) -> Any:
        found = z3.Real(f"x{atom}", self._context)
        if self._step:
            found = z3.ToReal(z3.Int(f"n{atom}", self._context)) / self._step
        size = z3.If(found < 0, -found, found)
        self._solver.add(size <= promise.most, size >= promise.least)
        if not promise.signed:
            self._solver.add(found >= 0)
        return found
