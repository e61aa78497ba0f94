"""Formulas are called equal where they are, for all values, and where they are not, values tell them apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradekit.compat.torch import without_dtensor
from gradekit.formulas import torch_rules  # noqa: F401  # enters torch's operations
from gradekit.formulas.equality import Equality, ValuePromise, distinguishing, values_of
from gradekit.formulas.graph import Graph, NoFormula
from gradekit.formulas.torch_rules import FormulaTensor

Function = Callable[..., Any]
where, maximum, minimum, exp = torch.where, torch.maximum, torch.minimum, torch.exp
F32 = torch.float32

EQUAL: list[tuple[str, Function, Function]] = [
    ("sums commute", lambda x, y, z: x + y + z, lambda x, y, z: z + (y + x)),
    ("products are multiplied out", lambda x, y, z: (x + y) * (x - y), lambda x, y, z: x * x - y * y),
    ("a division is a product", lambda x, y, z: x / y / z, lambda x, y, z: x / (y * z)),
    ("denominators are cleared", lambda x, y, z: 1 / (x + y) + 1 / (x - y), lambda x, y, z: 2 * x / (x * x - y * y)),
    ("exp of a sum", lambda x, y, z: exp(x - y) * exp(y), lambda x, y, z: exp(x)),
    ("exp2", lambda x, y, z: torch.exp2(x * 1.4426950408889634), lambda x, y, z: exp(x)),
    ("log of exp", lambda x, y, z: torch.log(exp(x) * (1 + exp(y - x))), lambda x, y, z: torch.log(exp(x) + exp(y))),
    ("tanh", lambda x, y, z: torch.tanh(x), lambda x, y, z: 2 * torch.sigmoid(2 * x) - 1),
    ("logistic function", lambda x, y, z: torch.sigmoid(-x), lambda x, y, z: 1 - torch.sigmoid(x)),
    ("erf is odd", lambda x, y, z: torch.erf(y - x), lambda x, y, z: -torch.erf(x - y)),
    ("root", lambda x, y, z: torch.sqrt(x * x + 1) ** 2, lambda x, y, z: x * x + 1),
    ("rsqrt", lambda x, y, z: x * torch.rsqrt(y * y + 1), lambda x, y, z: x / torch.sqrt(1 + y * y)),
    ("max and min", lambda x, y, z: maximum(x, y) + minimum(x, y), lambda x, y, z: x + y),
    ("max by a condition", lambda x, y, z: maximum(x, y), lambda x, y, z: where(x >= y, x, y)),
    ("abs", lambda x, y, z: x.abs(), lambda x, y, z: where(x < 0, -x, x)),
    ("clamp", lambda x, y, z: x.clamp(-1, 1), lambda x, y, z: where(x > 1, 1.0, where(x < -1, -1.0, x))),
    ("a condition that never holds", lambda x, y, z: where((x > y) & (y > z) & (z > x), 0.0, x), lambda x, y, z: x),
    ("an equation that changes nothing", lambda x, y, z: where(x == 1.5 * y, 2.5 * y, x + y), lambda x, y, z: x + y),
    ("gelu", lambda x, y, z: torch.nn.functional.gelu(x), lambda x, y, z: 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))),
    ("square of a max", lambda x, y, z: maximum(x, y) ** 2, lambda x, y, z: maximum(x * x, y * y) * 0 + maximum(y, x) ** 2),
]  # fmt: skip

UNEQUAL: list[tuple[str, Function, Function]] = [
    ("a sign", lambda x, y, z: x + y, lambda x, y, z: x - y),
    ("a constant", lambda x, y, z: 0.044 * x, lambda x, y, z: 0.044715 * x),
    ("a clamp", lambda x, y, z: x.clamp(-100, 100), lambda x, y, z: x),
    ("a clamp far out", lambda x, y, z: x.clamp(max=4000), lambda x, y, z: x),
    ("a corner of two conditions", lambda x, y, z: where((x > 50) & (y < -50), x - y, x + y), lambda x, y, z: x + y),
    ("a line", lambda x, y, z: where((x == 1.5 * y) & (x > 0.25), 0.0, x), lambda x, y, z: x),
    ("a number", lambda x, y, z: where(x == 1234.5, 0.0, x), lambda x, y, z: x),
    ("a sum that is met", lambda x, y, z: where(x + y == 10 * z, y, z), lambda x, y, z: z),
    ("roots of squares", lambda x, y, z: torch.sqrt(x * x), lambda x, y, z: x),
    ("erf for tanh", lambda x, y, z: torch.tanh(x), lambda x, y, z: torch.erf(x)),
    ("min for max", lambda x, y, z: maximum(maximum(x, y), z), lambda x, y, z: maximum(minimum(x, y), z)),
    ("a product of signs", lambda x, y, z: where(x * y > 200, 0.0, x), lambda x, y, z: x),
]  # fmt: skip


def sides(one: Function, other: Function) -> tuple[Graph, int, int]:
    """Both functions of three variables as formulas; constants of the first are a kernel's, in float32."""
    graph = Graph()
    xyz = [FormulaTensor(torch.tensor([graph.variable(name)]), graph, F32) for name in "xyz"]
    with without_dtensor():
        return graph, *(int(function(*xyz).nodes) for function in (one, other))


def promise(name: Any) -> ValuePromise:
    return ValuePromise(F32)


@pytest.mark.parametrize(("one", "other"), [pair[1:] for pair in EQUAL], ids=[pair[0] for pair in EQUAL])
def test_formulas_that_are_equal_for_all_values_are_proved_equal(one: Function, other: Function) -> None:
    graph, a, b = sides(one, other)
    equality = Equality(graph)
    equality.tell_reference([b])
    assert not list(equality.unequal(a, b))


@pytest.mark.parametrize(("one", "other"), [pair[1:] for pair in UNEQUAL], ids=[pair[0] for pair in UNEQUAL])
def test_values_tell_formulas_apart_that_are_not_equal(one: Function, other: Function) -> None:
    graph, a, b = sides(one, other)
    equality = Equality(graph)
    found = [values for where in equality.unequal(a, b) for values in distinguishing(equality, where, promise)]
    assert found
    x, y, z = (torch.tensor(float(found[0].get(name, 0.0))) for name in "xyz")
    assert not torch.isclose(*(torch.as_tensor(f(x, y, z)) for f in (one, other)), rtol=1e-6, atol=0)


def test_a_graph_has_the_values_of_the_functions_that_it_was_made_of() -> None:
    for _, one, other in (*EQUAL, *UNEQUAL):
        graph, a, b = sides(one, other)
        x, y, z = (torch.randn(50, dtype=torch.float64, generator=torch.Generator().manual_seed(s)) for s in range(3))
        found = values_of(graph, (a, b), {"x": x.numpy(), "y": y.numpy(), "z": z.numpy()})
        for node, function in ((a, one), (b, other)):
            torch.testing.assert_close(torch.as_tensor(found[node]).expand(50), function(x, y, z), equal_nan=True)


def test_integers_wrap() -> None:
    graph = Graph(1 << 32)
    x, y = (FormulaTensor(torch.tensor([graph.variable(name)]), graph, torch.int32) for name in "xy")
    with without_dtensor():
        a, b, c = (int(t.nodes) for t in (x * 65536 * 65536 + y, y + 0, x + y))
    equality = Equality(graph)
    assert not list(equality.unequal(a, b))
    assert list(equality.unequal(b, c))


def test_control_flow_that_depends_on_values_has_no_formula() -> None:
    with pytest.raises(NoFormula, match="control flow"):
        sides(lambda x, y, z: x if x > 0 else y, lambda x, y, z: x)
