"""An input that is left out of the formula, or has the wrong sign, is named; nothing is, where two would explain it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge import Failure, assert_close, reference
from gradekit.judge.by_operand import one_input_replaced
from gradekit.judge.evidence import Evidence
from gradekit.program import Kernel, Launch, Program, View

Formula = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def right(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return x.tanh() * weight + bias


def said(wrong: Formula, size: int = 5, profile: str = "normal") -> str:
    """What is said of a submission that computes `wrong`."""
    names = enumerate(("x", "weight", "bias"))
    specs = [
        Input("float32", (size,), row_major((size,)), profile=profile, seed=seed, name=name) for seed, name in names
    ]
    with pytest.raises(Failure) as caught:
        assert_close(wrong(*(spec.tensor() for spec in specs)), reference(right, *specs))
    found = one_input_replaced(Evidence(caught.value, tuple(specs)))
    return found.sentence if found else ""


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x, weight, bias: x.tanh() * weight, "bias filled with zeros"),
        (lambda x, weight, bias: x.tanh() + bias, "weight filled with ones, as if it were missing as a factor"),
        (lambda x, weight, bias: x.tanh() * weight - bias, "-bias, as if its sign"),
    ],
)
@pytest.mark.parametrize("size", [1, 5])
def test_what_is_missing_from_a_formula_is_named(wrong: Formula, words: str, size: int) -> None:
    assert words in said(wrong, size)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, weight, bias: x * weight + bias,  # another function
        lambda x, weight, bias: bias * 1,  # x left out, or weight
        lambda x, weight, bias: x.tanh() * weight + 0.5 * bias,
        lambda x, weight, bias: torch.where(torch.arange(5) < 4, x.tanh() * weight, x),  # all but one element
    ],
)
def test_what_is_not_clear_is_not_said(wrong: Formula) -> None:
    assert said(wrong) == ""


def test_of_inputs_that_are_all_alike_the_one_that_no_kernel_reads_is_named() -> None:
    """x + y of ones without y: that x or y is left out would explain it, and the kernel does not use y_ptr."""
    specs = [Input("float32", (4,), (1,), profile="ones", seed=seed, name=name) for seed, name in enumerate("xy")]
    with pytest.raises(Failure) as caught:
        assert_close(specs[0].tensor(), reference(torch.add, *specs))
    x, y, out = (View(storage, "float32", (4,), (1,)) for storage in range(3))
    ttir = (
        "module {\n  tt.func public @k(%x_ptr: !tt.ptr<f32>, %y_ptr: !tt.ptr<f32>, %out_ptr: !tt.ptr<f32>) {\n"
        "    %x = tt.load %x_ptr : !tt.ptr<f32>\n    tt.store %out_ptr, %x : !tt.ptr<f32>\n    tt.return\n  }\n}\n"
    )
    steps = (Launch("k", (1, 1, 1), (x, y, out)),)
    program = Program((x, y), {0: 16, 1: 16}, steps, (out,), "tensor", {"k": Kernel("k", ttir)})
    found = one_input_replaced(Evidence(caught.value, tuple(specs), program=program))
    assert found is not None and "what comes of y filled with zeros" in found.sentence
    assert one_input_replaced(Evidence(caught.value, tuple(specs))) is None
