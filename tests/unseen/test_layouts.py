"""What further calls may change: layouts, looked for as sizes are where host code decides by strides, and nothing that a check has fixed."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradekit.assignment import get
from gradekit.domain import load
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.inputs.draws import Draws
from gradekit.inputs.layouts import LAYOUTS
from gradekit.program import Scalar, View
from gradekit.unseen.further import made
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.layouts import _strides, repeated
from gradekit.unseen.scope import CallScope


def places(shape: list[int], strides: list[int]) -> list[int]:
    """Where each element lies, repeated ones once."""
    steps = [range(1 if stride == 0 else size) for size, stride in zip(shape, strides, strict=True)]
    return [sum(n * stride for n, stride in zip(index, strides, strict=True)) for index in itertools.product(*steps)]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_elements_of_a_layout_that_is_looked_for_lie_apart_where_no_dimension_is_expanded(rank: int) -> None:
    generator = torch.Generator().manual_seed(rank)
    shape = torch.randint(1, 6, (rank, 200), generator=generator)
    for sizes, strides in zip(shape.T.tolist(), _strides(shape, LAYOUTS, (24,), generator).T.tolist(), strict=True):
        found = places(sizes, strides)
        assert len(set(found)) == len(found)


def test_no_stride_is_negative_where_a_dimension_is_empty() -> None:
    shape = torch.tensor([[0], [1], [0]]).expand(3, 500)
    assert _strides(shape, ["contiguous", "stepped", "transposed"], (5,), torch.Generator().manual_seed(1)).min() >= 0


@pytest.mark.parametrize(
    "layouts", [["contiguous", "offset"], ["contiguous", "transposed"], ["contiguous", "expanded:1"]]
)
def test_only_what_the_checks_layouts_have_is_looked_for(layouts: list[str]) -> None:
    shape = torch.full((2, 200), 3)
    found = {tuple(one) for one in _strides(shape, layouts, (), torch.Generator().manual_seed(1)).T.tolist()}
    assert found == {"offset": {(3, 1)}, "transposed": {(3, 1), (1, 3)}, "expanded:1": {(3, 1), (1, 0)}}[layouts[1]]


ATTENTION = domain_of(get("flash_attention").tests)["attention"]


def test_each_dimension_of_each_tensor_repeats_its_elements_in_some_call_with_each_flag() -> None:
    attention = draws_of(calls(ATTENTION, layouts=LAYOUTS))
    assert attention is not None
    views = [View(n, "float32", (2, 2, 9, 16), (288, 144, 16, 1)) for n in range(3)]
    forms = [TracedForm(str(flag), "attention", (*views, Scalar(flag), Scalar(0.25))) for flag in (False, True)]
    half = replace(views[0], stride=(288, 0, 16, 1))
    forms[0] = replace(forms[0], args=(half, *forms[0].args[1:]))
    found = [call.call for call in repeated(attention, forms)]
    each = [
        (flag, n, axis)
        for *tensors, flag, _ in found
        for n, one in enumerate(tensors)
        for axis in range(4)
        if not one.stride[axis]
    ]
    assert sorted(each) == sorted({*itertools.product((False, True), range(3), range(4))} - {(False, 0, 1)})
    assert all(
        [one.stride.index(0) for one in call[:3] if 0 in one.stride].count(axis) < 2
        for call in found
        for axis in range(4)
    )


# --- Scope ------------------------------------------------------------------------------------------------------------


DROPOUT = domain_of(get("dropout").tests)["dropout"]


def draws(**others: list[float]) -> Draws:
    """Draws of dropout with these values of its scalars."""
    found = draws_of(calls(DROPOUT, others=others))
    assert found is not None
    return found


def test_a_scalar_that_a_check_leaves_open_may_have_any_value_of_its_range() -> None:
    assert "seed" in CallScope(draws(), 1).names


def test_a_scalar_that_a_check_lists_keeps_to_its_values() -> None:
    assert "seed" not in CallScope(draws(seed=[0, 1]), 1).names


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
