"""What is right only among the values that checks draw fails: each form of a call is tried far from them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gradekit.findings import Cause, Outcome
from gradekit.inputs.value_kinds import FAR_ROWS, make
from tests.exact.test_wrong_formulas import checked

WRONG = {
    "a finite number for what is masked": (
        "softmax", "contiguous", [('other=-float("inf")', "other=-1.0e9")], Cause.WRONG_FORMULA,
    ),
    "a product that is cut off": (
        "fused_chain", "contiguous", [("tl.sigmoid(2 * u)", "tl.sigmoid(tl.maximum(2 * u, -30.0))")], Cause.WRONG_FORMULA,
    ),
    "a logarithm beside a large number": (
        "cross_entropy", "boundary", [("tl.log(total) + (highest - logit)", "(tl.log(total) + highest) - logit")], Cause.WRONG_VALUES,
    ),
    "the same where bits are looked at, so that nothing is exact": (
        "cross_entropy", "boundary",
        [("tl.log(total) + (highest - logit)", "(tl.log(total) + highest).to(tl.int32, bitcast=True).to(tl.float32, bitcast=True) - logit")],
        Cause.WRONG_VALUES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_right_for_usual_values_alone_fails(name: str, tmp_path: Path) -> None:
    assignment, keyword, edits, cause = WRONG[name]
    check = checked(tmp_path, assignment, edits, keyword)
    assert (check.outcome, check.cause) == (Outcome.FAILED, cause), check.message
    assert "of values 'far" in check.message


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["far:0", "farthest:3"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3), (1,), (2, 4, 5)])
def test_far_values_are_finite_in_any_shape(shape: tuple[int, ...], kind: str, dtype: torch.dtype) -> None:
    values = make(kind, shape, dtype, torch.Generator().manual_seed(0))
    assert values.shape == shape and bool(values.to(dtype).isfinite().all())


def test_each_row_is_far_in_another_way_and_each_kind_comes_in_turn() -> None:
    rows = len(FAR_ROWS)
    first, second = (make(f"far:{n}", (rows, 50), torch.float32, torch.Generator().manual_seed(0)) for n in (0, 1))
    below, above = FAR_ROWS.index("below"), FAR_ROWS.index("above")
    assert bool((first[below] < -1e8).all()) and bool((first[above] > 1e8).all())
    assert bool((second[below - 1] < -1e8).all()) and bool((second[above - 1] > 1e8).all())
    beside = first[FAR_ROWS.index("beside")]
    assert 1e6 < float(beside.min()) and 1 < float(beside.max() - beside.min()) < 10
