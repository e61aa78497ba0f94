"""Right submissions keep their points in exact arithmetic, and the record says how far it reached."""

from pathlib import Path

from gradekit.assignment import get
from gradekit.findings import Check, Outcome
from tests import right
from tests.graded import grade, graded

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
