"""Values far from those that checks draw, and on both sides of the numbers in a kernel's text; tests/hostile/undeserved has what fails
there alone."""

from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit import reuse
from gradekit.assignment import get
from gradekit.exact.borders import borders
from gradekit.findings import Cause, Check, Outcome
from gradekit.inputs.value_kinds import make
from gradekit.plugin import beside_examples
from tests import right
from tests.graded import grade, graded


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
    assert [(one.met, one.size) for one in borders(ttir)] == [("x", 1e6), ("z", 1e6)]


# --- Right formulas ---------------------------------------------------------------------------------------------------


OPTIONS = {"profile": "quick", "device": "cpu", "shrink": False, "diagnose": False}


def passed(folder: Path, assignment: str, old: str, new: str, keyword: str) -> Check:
    """The check whose name the keyword matches, of a solution in which `new` stands for `old`; it has passed."""
    text = right.text(f"solutions/{assignment}/solution.py")
    assert old in text
    check = graded(assignment, text.replace(old, new), folder, keyword=keyword, **OPTIONS).checks[-1]
    assert check.outcome is Outcome.PASSED, check.message
    return check


def test_a_constant_in_float32_is_no_other_formula(tmp_path: Path) -> None:
    check = passed(tmp_path, "fused_chain", "0.7978845608", "0.79788456", "every_dtype and bfloat16")
    assert check.details["exact"]["forms"] == check.details["exact"]["exact"] >= 1


def test_what_looks_at_bits_is_judged_by_its_examples_and_says_so(tmp_path: Path) -> None:
    bits = "(numerator / denominator).to(tl.int32, bitcast=True).to(tl.float32, bitcast=True), mask"
    check = passed(tmp_path, "softmax", "numerator / denominator, mask", bits, "contiguous")
    assert check.details["exact"]["exact"] == 0 and "bits" in check.details["exact"]["not"][0]


def test_gradients_of_some_inputs_are_held_against_their_own_references() -> None:
    """Of x and bias alone, where the reference has weight's between them."""
    path = right.file("tests/course/right/layer_norm/walks.py")
    report = grade(get("layer_norm"), path, keyword="gradient", seed=12, **OPTIONS)
    assert [check.message for check in report.checks if check.outcome is not Outcome.PASSED] == []


# --- Outcomes that are kept -------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[2]
RIGHT = (ROOT / "solutions/fused_chain/solution.py").read_text()
UNUSED = RIGHT + "\n\ndef unused():\n    return 1\n"
WRONG = RIGHT.replace("0.044715", "0.0447")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows with each call that is tried in exact arithmetic."""
    seen: list[Any] = []
    before = beside_examples.tried
    monkeypatch.setattr(beside_examples, "tried", lambda call, specs: (seen.append(call), before(call, specs))[1])
    return seen


def checked(text: str, folder: Path) -> Check:
    options = {"profile": "quick", "device": "cpu", "shrink": False, "diagnose": False}
    return graded("fused_chain", text, folder, keyword="every_dtype and bfloat16", **options).checks[-1]


def test_a_wrong_formula_is_shown_where_its_own_result_is_stored(tmp_path: Path) -> None:
    text = right.text("solutions/layer_norm/solution.py").replace("/ columns + eps)", "/ columns + 1.001 * eps)", 1)
    (check,) = graded("layer_norm", text, tmp_path, keyword="every_dtype and bfloat16", **OPTIONS).checks
    assert check.cause is Cause.WRONG_FORMULA and check.source is not None
    assert check.source.text.strip().startswith("tl.store(out_ptr"), "two others follow it"


def test_a_call_that_was_right_is_not_tried_again_after_an_edit_elsewhere(calls: list[Any], tmp_path: Path) -> None:
    with reuse.kept():
        first, count = checked(RIGHT, tmp_path), len(calls)
        assert first.outcome is Outcome.PASSED and first.details["exact"]["exact"] > 0 and count > 0
        assert checked(UNUSED, tmp_path).details == first.details
        assert len(calls) == count


def test_another_formula_is_tried_after_a_right_one_and_each_time(calls: list[Any], tmp_path: Path) -> None:
    with reuse.kept():
        checked(RIGHT, tmp_path)
        for _ in range(2):
            before = len(calls)
            assert (checked(WRONG, tmp_path).cause, len(calls) > before) == (Cause.WRONG_FORMULA, True)
