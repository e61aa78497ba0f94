"""What is right only among the values that checks draw fails: each form of a call is tried far from them, and on both
sides of the numbers in its text."""

from pathlib import Path

import pytest
import torch

from gradekit.exact.thresholds import thresholds
from gradekit.findings import Cause, Check, Outcome
from gradekit.inputs.value_kinds import make
from tests.exact.test_wrong_formulas import ROOT, checked
from tests.graded import graded

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
    "a finite number for what is masked, beside products whose operands may be rounded": (
        "decode_attention", "whole_caches", [('end, scores, -float("inf"))', "end, scores, -1.0e9)")], Cause.WRONG_FORMULA,
    ),
    "a maximum that begins with a number": (
        "cross_entropy", "boundary", [('tl.full((BLOCK,), -float("inf")', "tl.full((BLOCK,), -1.0e30")], Cause.WRONG_FORMULA,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_right_for_usual_values_alone_fails(name: str, tmp_path: Path) -> None:
    assignment, keyword, edits, cause = WRONG[name]
    check = checked(tmp_path, assignment, edits, keyword)
    assert (check.outcome, check.cause) == (Outcome.FAILED, cause), check.message
    assert ("values of one sign" if cause is Cause.WRONG_FORMULA else "one large number") in check.message


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["far:0", "far:1", "scaled:-4096"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3), (1,), (2, 4, 5)])
def test_far_values_are_finite_in_any_shape(shape: tuple[int, ...], kind: str, dtype: torch.dtype) -> None:
    values = make(kind, shape, dtype, torch.Generator().manual_seed(0))
    assert values.shape == shape and bool(values.to(dtype).isfinite().all())


def test_rows_are_far_in_two_ways_by_turns() -> None:
    first, second = (make(f"far:{n}", (2, 50), torch.float32, torch.Generator().manual_seed(0)) for n in (0, 1))
    for beside, around in ((first[0], first[1]), (second[1], second[0])):
        assert 1e6 < float(beside.min()) and 1 < float(beside.max() - beside.min()) < 10
        assert float(around[0]) == 65536 and float(around[1:].abs().max()) < 10


def test_a_number_is_met_by_what_is_loaded_compared_chosen_or_added() -> None:
    ttir = """
module {
  tt.func public @kernel(%p: !tt.ptr<f32>, %m: i1) {
    %big = arith.constant 1.000000e+06 : f32
    %none = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.000000e+00 : f32
    %half = arith.constant 5.000000e-01 : f32
    %x = tt.load %p, %m, %big : !tt.ptr<f32>
    %y = arith.maxnumf %x, %none : f32
    %z = arith.mulf %y, %half : f32
    %c = arith.select %m, %zero, %big : f32
    %w = arith.addf %c, %z : f32
    tt.store %p, %w : !tt.ptr<f32>
    tt.return
  }
}
"""
    assert [(one.met, one.number) for one in thresholds(ttir)] == [("x", 1e6), ("z", 1e6)]


def test_where_all_is_float32_no_dtype_is_called_too_narrow(tmp_path: Path) -> None:
    check = _summed_first("tl.fma(tl.log(total), 1.0, highest) - logit", tmp_path)
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.LOW_PRECISION), check.message
    assert check.message.endswith("small numbers are lost beside large ones.")


def test_a_sum_that_loses_digits_before_a_difference_is_told_with_the_order_that_keeps_them(tmp_path: Path) -> None:
    check = _summed_first("highest + tl.log(total) - logit", tmp_path)
    assert check.outcome is Outcome.FAILED
    assert "adds up `highest + tl.log(total)` before it takes `logit` away" in check.message
    assert "take `logit` away from `highest` first" in check.details["hint"]


def _summed_first(loss: str, folder: Path) -> Check:
    """The check of extreme values, with the logarithm beside a large number before the difference is taken."""
    text = (ROOT / "solutions/cross_entropy/solution.py").read_text()
    text = text.replace("tl.log(total) + (highest - logit)", loss)
    (check,) = graded("cross_entropy", text, folder, keyword="extreme", device="cpu").checks
    return check
