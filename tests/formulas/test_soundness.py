"""The normal form of a formula has the formula's values: for random formulas at random points; each rule, broken, is caught."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy
import pytest

from gradekit.formulas import algebra, equality, normal
from gradekit.formulas.algebra import Algebra, Constants
from gradekit.formulas.equality import Equality
from gradekit.formulas.graph import Graph, NoFormula
from gradekit.formulas.normal import CONSTANTS, Fork, NormalForms, ValuePath

Point = Mapping[str, float]
TIE = 1e-12
"""Below it, two sides that are equal over the reals differ by the rounding of their normal forms alone."""
NUMBERS = (2, -1, 3, 0.5, 0.1, 1 / 3, 0.7978845608, 1.4426950408889634, math.sqrt(2), -0.044715)


def formula(graph: Graph, dice: random.Random, depth: int) -> int:
    """A random formula of x, y and z that has a value everywhere, but for divisions by zero."""
    if depth == 0:
        name = dice.choice("xyz")
        return graph.variable(name) if dice.random() < 0.7 else graph.number(dice.choice(NUMBERS))
    a, b = (formula(graph, dice, depth - 1) for _ in range(2))
    bounded = graph.apply("tanh", a)
    above = graph.add(graph.one, graph.mul(a, a))
    made: list[Callable[[], int]] = [
        lambda: graph.add(a, b), lambda: graph.sub(a, b), lambda: graph.mul(a, b), lambda: graph.div(a, above),
        lambda: graph.div(b, graph.sub(a, b)), lambda: graph.max(a, b), lambda: graph.min(a, b),
        lambda: graph.max(a, b, graph.mul(a, b)), lambda: graph.max(a, graph.neg(a)),
        lambda: graph.apply("exp", bounded), lambda: graph.apply("exp", graph.sub(bounded, graph.number(0.5))),
        lambda: graph.apply("log", above), lambda: graph.apply("log", graph.mul(above, graph.apply("exp", bounded))),
        lambda: graph.apply("exp", graph.neg(graph.apply("log", above))),
        lambda: graph.apply("sqrt", above), lambda: graph.mul(graph.apply("sqrt", above), graph.apply("sqrt", above)),
        lambda: graph.div(b, graph.apply("sqrt", graph.mul(graph.number(3), above))),
        lambda: bounded, lambda: graph.apply("sigmoid", a), lambda: graph.apply("erf", graph.sub(b, a)),
        lambda: graph.select(graph.compare("gt", a, b), a, graph.number(2)),
        lambda: graph.select(graph.both(graph.compare("le", a, b), graph.compare("ne", a, graph.one)), b, graph.neg(a)),
        lambda: graph.select(graph.either(graph.compare("lt", a, b), graph.compare("eq", b, graph.one)), b, a),
    ]  # fmt: skip
    return dice.choice(made)()


def value(p: Any, algebra: Algebra, at: Point) -> float:
    """A normal form at a point: computed here anew, from what the atoms stand for."""
    if isinstance(p, float):
        return p
    return math.fsum(
        float(c) * math.prod(_power(algebra, atom, float(e), at) for atom, e in monomial) for monomial, c in p.items()
    )


def _power(algebra: Algebra, atom: int, exponent: float, at: Point) -> float:
    """An atom to a power; exp(p) to a small one is exp of a small number, where exp(p) alone would be 0 or infinite."""
    kind, *what = algebra.atoms[atom]
    if kind == "exp":
        return math.exp(value({what[0]: 1}, algebra, at) * exponent)
    return float(_atom(algebra, atom, at) ** exponent)


def _atom(algebra: Algebra, atom: int, at: Point) -> float:
    kind, *what = algebra.atoms[atom]
    if kind in ("variable", "constant"):
        return (at if kind == "variable" else CONSTANTS)[what[0]]
    keys = what[1] if kind == "apply" else what[0] if kind == "max" else (what[0],)
    operands = [value(dict(key), algebra, at) for key in keys]
    if kind == "apply":
        with numpy.errstate(all="ignore"):
            return float(equality.FUNCTIONS[what[0]](*operands))
    return {"inverse": lambda v: 1 / v, "positive": lambda v: float(v > 0), "sqrt": math.sqrt, "max": max}[kind](
        *([operands] if kind == "max" else operands)
    )


def normal_form(forms: Equality, node: int, at: Point) -> Any:
    """The normal form in the region of a point."""
    path = ValuePath()
    while True:
        try:
            return NormalForms(forms.graph, forms.algebra, forms.constants, path).of(node)
        except Fork as fork:
            d = value(dict(fork.key), forms.algebra, at)
            sign = (d > TIE) - (d < -TIE)
            path = next(p for p in path.forked(fork, forms.algebra) if sign in p.signs[fork.key])


def wrong(seed: int, points: int = 3) -> bool:
    """Whether a random formula and its normal form differ anywhere."""
    dice = random.Random(seed)
    graph = Graph()
    node = formula(graph, dice, dice.choice((2, 3, 3)))
    forms = Equality(graph)
    for _ in range(points):
        at = {name: dice.choice((1.0, 0.25)) * dice.gauss(0, 1) for name in "xyz"}
        right = float(equality.values_of(graph, [node], {n: numpy.float64(v) for n, v in at.items()})[node])
        try:
            found = value(normal_form(forms, node, at), forms.algebra, at)
        except (NoFormula, OverflowError, ZeroDivisionError):
            continue
        except ValueError:  # the root or the logarithm of a negative number
            return True
        if math.isfinite(right) and abs(right) < 1e6 and not math.isclose(found, right, rel_tol=1e-6, abs_tol=1e-6):
            return True
    return False


def test_normal_forms_have_the_values_of_their_formulas() -> None:
    assert [seed for seed in range(400) if wrong(seed)] == []


@pytest.mark.slow
def test_normal_forms_have_the_values_of_their_formulas_thousands_of_times() -> None:
    assert [seed for seed in range(1000, 12_000) if wrong(seed)] == []


def _times(factor: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A rule whose result is off by a factor."""

    def broken(rule: Callable[..., Any]) -> Callable[..., Any]:
        def apply(forms: NormalForms, *operands: Any) -> Any:
            p = rule(forms, *operands)
            return p if isinstance(p, float) else forms.algebra.scaled(p, factor)

        return apply

    return broken


def _other_sign(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda forms, p: rule(forms, p if isinstance(p, float) else forms.algebra.scaled(p, -1))


BROKEN: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "a sum without its last term": (NormalForms, "add", lambda rule: lambda self, *nodes: rule(self, *nodes[:-1])),
    "the first of two factors alone": (NormalForms, "mul", lambda rule: lambda self, a, b: self.of(a)),
    "a quotient upside down": (NormalForms, "div", lambda rule: lambda self, a, b: rule(self, b, a)),
    "select the other way round": (NormalForms, "select", lambda rule: lambda self, c, a, b: rule(self, c, b, a)),
    "less for greater": (NormalForms, "gt", lambda rule: lambda self, a, b: rule(self, b, a)),
    "or for and": (NormalForms, "both", lambda rule: NormalForms.either),
    "not is forgotten": (NormalForms, "negated", lambda rule: lambda self, c: self.of(c)),
    "the smaller for the larger": (NormalForms, "_larger", lambda rule: lambda self, p, q: self.algebra.scaled(
        rule(self, self.algebra.scaled(p, -1), self.algebra.scaled(q, -1)), -1)),
    "an inverse without its leading coefficient": (Algebra, "inverse", lambda rule: lambda self, p: rule(
        self, self.parts(p)[1])),
    "roots whose squares are forgotten": (Algebra, "_without_squares", lambda rule: lambda self, m, squares, c: {
        tuple((a, e) for a, e in m if a not in squares): c}),
    "a constant for its neighbour": (algebra, "simplest", lambda rule: lambda size, dtype: rule(size, "bfloat16")),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, attribute, broken = BROKEN[name]
    rule = getattr(where, attribute)
    monkeypatch.setattr(where, attribute, broken(rule))
    for kind, known in list(normal._RULES.items()):
        if known is rule:
            monkeypatch.setitem(normal._RULES, kind, broken(rule))
    assert any(wrong(seed) for seed in range(400))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sigmoid", "tanh", "erf"])
@pytest.mark.parametrize("broken", [_times(2), _times(-1), _other_sign])
def test_a_broken_function_is_caught(name: str, broken: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(normal.FUNCTIONS, name, broken(normal.FUNCTIONS[name]))
    assert any(wrong(seed) for seed in range(400))


def test_a_number_is_read_as_what_rounds_to_it() -> None:
    algebra = Algebra()
    reader = Constants(algebra)
    reader.tell(0.7978845608, "float64")
    near = numpy.float32
    assert reader.read(float(near(0.7978845608)), "float32") == reader.read(0.7978845608, "float64")
    assert reader.read(float(near(0.1)), "float32") == algebra.number(Fraction(1, 10))
    assert reader.read(float(near(1 / 3)), "float32") == algebra.number(Fraction(1, 3))
    assert reader.read(float(near(0.79788)), "float32") == algebra.number(Fraction(79788, 100000))
    for number in (0.1, 1 / 3, 0.7978845608, 1.442695, 3.1415927, 1e-5, 123.456, 0.0317):
        for dtype, size in (("float32", 2.0**-23), ("float64", 2.0**-52)):
            rounded = float(near(number)) if dtype == "float32" else number
            assert math.isclose(value(reader.read(rounded, dtype), algebra, {}), rounded, rel_tol=1.01 * size)
