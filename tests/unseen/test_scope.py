"""What further calls may change: nothing that a check has fixed for itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gradekit.assignment import get
from gradekit.domain import load
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.inputs.draws import Draws
from gradekit.inputs.layouts import GAPS, LAYOUTS, place, variants
from gradekit.program import View
from gradekit.unseen.further import made
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.kernel_inputs import near_fractions
from gradekit.unseen.scope import CallScope, LaidOut, each_layout

DROPOUT = domain_of(get("dropout").tests)["dropout"]


def draws(**others: list[float]) -> Draws:
    """Draws of dropout with these values of its scalars."""
    found = draws_of(calls(DROPOUT, others=others))
    assert found is not None
    return found


def fractions(draws: Draws) -> set[object]:
    """What p is in calls near 0.35."""
    form = TracedForm("", "dropout", (View(0, "float32", (4, 4), (4, 1)),))
    return {call.call[1] for call in near_fractions(draws, [form], [0.35])}


def test_a_scalar_that_a_check_leaves_open_may_have_any_value_of_its_range() -> None:
    assert 0.35 in fractions(draws())
    assert "seed" in CallScope(draws(), 1).names


def test_a_scalar_that_a_check_lists_keeps_to_its_values() -> None:
    assert not fractions(draws(p=[0.5]))
    assert "seed" not in CallScope(draws(seed=[0, 1]), 1).names


SOFTMAX = domain_of(get("softmax").tests)["softmax"]


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if variants(layout, 2)])
def test_strides_of_many_sizes_are_those_of_each(layout: str) -> None:
    found = draws_of(calls(SOFTMAX))
    assert found is not None
    sizes = {"M": torch.tensor([1, 2, 30, 7]), "N": torch.tensor([1, 33, 64, 5])}
    for variant in range(variants(layout, 2)):
        strides = CallScope(found, 0, laid_out=(LaidOut("x", layout, variant),)).strides(sizes)
        for number, shape in enumerate(zip(sizes["M"].tolist(), sizes["N"].tolist(), strict=True)):
            each = [int(torch.as_tensor(strides["stride", 0, axis]).expand(4)[number]) for axis in (0, 1)]
            assert tuple(each) == place(layout, shape, variant)[0]


def test_strides_are_solved_for_with_each_layout_that_the_check_has() -> None:
    found = draws_of(calls(SOFTMAX, layouts=["contiguous", "transposed", "every_second"]))
    assert found is not None
    forms = [TracedForm("", "softmax", (View(0, "float32", (30, 33), stride),)) for stride in ((33, 1), (66, 2))]
    assert [list(each_layout(found, form)) for form in forms] == [
        [(LaidOut("x"),)],
        [(LaidOut("x", "every_second"),), (LaidOut("x", "transposed"),), (LaidOut("x", "transposed", 1),)],
    ]


def test_a_tensor_that_is_shifted_begins_wherever_the_check_lets_it() -> None:
    found = draws_of(calls(SOFTMAX))
    assert found is not None
    form = TracedForm("", "softmax", (View(0, "float32", (30, 33), (33, 1)),))
    assert {one.place((4, 5)) for (one,) in each_layout(found, form)} == {((5, 1), 0)}
    assert {one.place((4, 5))[1] for (one,) in each_layout(found, form, shifted=["x"])} == {0, *GAPS}


HISTOGRAM = """
[histogram]
arguments = ["x", "bins"]
result = { shape = ["B"], dtype = "int32" }
sizes.N = { most = 4096 }
sizes.B = { most = 65536, drawn = 40 }
tensors.x = { shape = ["N"], dtype = "int32", values = ["integers"], range = ["-8", "B + 7"] }
scalars.bins = { type = "int", least = 1, most = 65536, values = ["B"] }
"""


def test_a_scalar_that_sizes_decide_is_computed_and_never_chosen(tmp_path: Path) -> None:
    (tmp_path / "domain.toml").write_text(HISTOGRAM)
    found = draws_of(calls(load(tmp_path / "domain.toml")["histogram"]))
    assert found is not None
    scope, form = CallScope(found, 0, wide=True), TracedForm("", "histogram", (View(0, "int32", (8,), (1,)),))
    assert scope.names == ["N", "B"]
    assert scope.leaves({"N": 5, "B": 17})["scalar", 1] == 17
    assert made(found, form, {"N": 5, "B": 17}, 0, {})[1] == 17
