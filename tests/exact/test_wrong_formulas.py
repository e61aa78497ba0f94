"""Submissions that a narrow dtype's tolerance excuses lose the checks that show it, and name what is wrong."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from gradekit.assignment import discover
from gradekit.findings import Cause, Check, Outcome
from tests import right
from tests.graded import grade, graded
from tests.sampling import sampled

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = discover(ROOT / "assignments")


def checked(
    folder: Path, assignment: str, edits: list[tuple[str, str]], keyword: str, base: str = "solution", **more: bool
) -> Check:
    """The check whose name the keyword matches, of a solution with edits."""
    text = (ROOT / "solutions" / assignment / f"{base}.py").read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    options = {"profile": "quick", "device": "cpu", "shrink": False, "diagnose": False} | more
    return graded(assignment, text, folder, keyword=keyword, **options).checks[-1]


def _first_often(names: Iterable[str]) -> list[object]:
    """The first shows each time what the others show of another assignment in the slow tests."""
    return sampled(names, str, lambda number, _: number == 0)


NARROW = "x_ptr.dtype.element_ty == tl.bfloat16"
FORMULAS = {
    "a constant nearly right": (
        "fused_chain", "every_dtype and bfloat16", [("0.044715", "0.0447")],
    ),
    "small weights dropped": (
        "softmax", "every_dtype and float16", [("        denominator =", "        numerator = tl.where(numerator < 6.1e-5, 0.0, numerator)\n        denominator =")],
    ),
    "an epsilon added in a backward pass": (
        "giou_loss", "gradient_of_views and float32", [("tl.maximum(union, EPSILON), tl.maximum(enclosing, EPSILON)\n", "union + EPSILON, enclosing + EPSILON\n")],
    ),
    "lanes 17 below the largest left out": (
        "cross_entropy", "large_vocabularies", [("tl.where(total > 0.0,", "tl.where(largest > highest - 17.0,")],
    ),
    "small weights dropped by attention": (
        "decode_attention", "every_dtype and bfloat16", [("        shrink =", "        weights = tl.where(weights < 6.1e-5, 0.0, weights)\n        shrink =")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(FORMULAS, str, lambda number, _: number < 2))
def test_a_formula_that_is_nearly_right_fails_at_any_dtype(name: str, tmp_path: Path) -> None:
    assignment, keyword, edits = FORMULAS[name]
    check = checked(tmp_path, assignment, edits, keyword)
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.WRONG_FORMULA), check.message
    assert check.source is not None and "without any rounding" in check.message


OTHER_FORM = {
    "custom_op": [("    out = 0.5 * h * (1 + tl.erf(h * HALF_ROOT))", f"    if {NARROW}:\n        out = h * tl.sigmoid(1.5957691216 * (h + 0.044715 * h * h * h))\n    else:\n        out = 0.5 * h * (1 + tl.erf(h * HALF_ROOT))")],
    "fused_chain": [("gelu(x + bias) + residual", "(gelu(x + bias) if x_ptr.dtype.element_ty != tl.bfloat16 else 0.5 * (x + bias) * (1 + tl.erf((x + bias) * 0.70710678))) + residual")],
}  # fmt: skip


@pytest.mark.parametrize("assignment", _first_often(OTHER_FORM))
def test_the_other_published_gelu_is_beyond_the_tolerance_of_bfloat16(assignment: str, tmp_path: Path) -> None:
    check = checked(tmp_path, assignment, OTHER_FORM[assignment], "every_dtype and bfloat16")
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.WRONG_VALUES), check.message


ROUNDED = {
    "the argument of tanh": (
        "fused_chain", "every_dtype and bfloat16",
        [("h * tl.sigmoid(2 * u)", "h * tl.sigmoid(2 * u.to(tl.bfloat16).to(tl.float32))")],
        "u.to(tl.bfloat16)",
    ),
    "scores in float16": (
        "decode_attention", "every_dtype and float16",
        [('input_precision="tf32x3") * scale', 'input_precision="tf32x3") * scale\n        scores = scores.to(q.dtype).to(tl.float32)')],
        "scores = scores.to",
    ),
    "logarithms of parts in float16": (
        "decode_attention", "long_caches",
        [("log_sums = torch.empty((B, Hq, parts), dtype=torch.float32", "log_sums = torch.empty((B, Hq, parts), dtype=torch.float16 if q.element_size() == 2 else torch.float32")],
        "tl.store(log_sum_ptr",
    ),
    "the scale of what is kept, twice": (
        "dropout", "every_dtype and bfloat16", [("x * scale, 0.0)", "x * scale.to(x_ptr.dtype.element_ty).to(tl.float32), 0.0)")], "scale.to(",
    ),
    "one over the sum, twice": (
        "softmax", "every_dtype and bfloat16",
        [("numerator / denominator, mask", "numerator * (1 / denominator).to(x_ptr.dtype.element_ty).to(tl.float32), mask")],
        "(1 / denominator).to(",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(ROUNDED, str, lambda number, _: number in (0, 2, 3)))
def test_a_rounding_that_nothing_allows_fails_with_its_line(name: str, tmp_path: Path) -> None:
    assignment, keyword, edits, text = ROUNDED[name]
    check = checked(tmp_path, assignment, edits, keyword, diagnose=True)
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.LOW_PRECISION), check.message
    assert check.source is not None and text in check.source.text
    assert ("rounds to bfloat16 on the way, which alone moves" if "twice" in name else "rounds to") in check.message


TUNED = [
    (
        "@triton.jit\ndef fused_chain_kernel",
        "@triton.autotune([triton.Config(dict(BLOCK_M=m, BLOCK_N=256)) for m in (4, 8)], ['rows'])\n@triton.jit\ndef fused_chain_kernel",
    ),
    ("def gelu(h)", "def gelu(h, FACTOR: tl.constexpr)"),
    ("0.044715", "FACTOR"),
    ("gelu(x + bias)", "gelu(x + bias, 0.044715 if BLOCK_M == 4 else 0.0447)"),
    ("grid = (triton.cdiv(rows, BLOCK_M) * triton.cdiv(columns, BLOCK_N),)", "grid = lambda m: (triton.cdiv(rows, m['BLOCK_M']) * triton.cdiv(columns, m['BLOCK_N']),)"),
    ("        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N,\n", ""),
]  # fmt: skip


def test_configurations_of_another_form_are_tried(tmp_path: Path) -> None:
    """A tuner may keep the second, whose constant is nearly right."""
    check = checked(tmp_path, "fused_chain", TUNED, "every_dtype and bfloat16")
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.WRONG_FORMULA), check.message


def test_a_constant_in_float32_is_no_other_formula(tmp_path: Path) -> None:
    check = checked(tmp_path, "fused_chain", [("0.7978845608", "0.79788456")], "every_dtype and bfloat16")
    assert check.outcome is Outcome.PASSED
    assert check.details["exact"]["forms"] == check.details["exact"]["exact"] >= 1


def test_what_looks_at_bits_is_judged_by_its_examples_and_says_so(tmp_path: Path) -> None:
    edits = [
        ("x = tl.load(x_ptr", "x = tl.load(x_ptr"),
        (
            "numerator / denominator, mask",
            "(numerator / denominator).to(tl.int32, bitcast=True).to(tl.float32, bitcast=True), mask",
        ),
    ]
    check = checked(tmp_path, "softmax", edits, "contiguous")
    assert check.outcome is Outcome.PASSED
    assert check.details["exact"]["exact"] == 0 and "bits" in check.details["exact"]["not"][0]


def test_gradients_of_some_inputs_are_held_against_their_own_references() -> None:
    """Of x and bias alone, where the reference has weight's between them."""
    path = right.file("tests/course/right/layer_norm/walks.py")
    options = {"profile": "quick", "device": "cpu", "shrink": False, "diagnose": False}
    report = grade(ASSIGNMENTS["layer_norm"], path, keyword="gradient", seed=12, **options)
    assert [check.message for check in report.checks if check.outcome is not Outcome.PASSED] == []
