"""Mistakes that only certain values, sizes or ways of calling show."""

from pathlib import Path

import pytest

from gradekit.assignment import discover, get
from gradekit.findings import Outcome
from tests.graded import grade, graded

EDITS = {
    "only positive values": ("dropout", "x * scale, 0.0", "tl.abs(x) * scale, 0.0", "scales_what_it_keeps"),
    "no box left of 0": ("giou_loss", "real = its_bottom > 0", "real = its_right > 0", "contiguous_float32"),
    "64 heads at most": ("flash_attention", "block_m), heads)](\n        tiles(q, block_m), tiles(k, block_n), tiles(v, block_n), out",
                         "block_m), min(heads, 64))](\n        tiles(q, block_m), tiles(k, block_n), tiles(v, block_n), out", "causal"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
def test_a_mistake_that_needs_these_values_fails(name: str, tmp_path: Path) -> None:
    assignment, old, new, keyword = EDITS[name]
    solutions = get(assignment).solutions
    assert solutions is not None
    text = (solutions / "solution.py").read_text()
    assert text.count(old) == 1
    checks = graded(assignment, text.replace(old, new), tmp_path, keyword=keyword, shrink=False, diagnose=False).checks
    assert Outcome.FAILED in {check.outcome for check in checks}


# --- gradients must not depend on how a model calls -------------------------------------------------------------------


ASSIGNMENTS = discover(Path(__file__).parents[2] / "assignments")

WRONG = {
    "weights of a first layer are never trained": (
        "layer_norm", "test_gradient_of_bias",
        "        x, weight, mean, rstd = ctx.saved_tensors\n",
        ("        x, weight, mean, rstd = ctx.saved_tensors\n"
        "        if not ctx.needs_input_grad[0]:\n            return None, None, None, None\n"),
        "Where bias alone needs a gradient, the gradient must be the same: ",
    ),
    "a second pass draws another mask": (
        "dropout", "test_gradient",
        "        return dropped(dout, ctx.p, ctx.seed), None, None\n",
        "        ctx.seed += 1\n        return dropped(dout, ctx.p, ctx.seed - 1), None, None\n",
        "In a second backward pass of one graph (retain_graph=True), the gradient must be the same: ",
    ),
    "only leaves are trained": (
        "giou_loss", "test_gradient",
        "    return GIoULoss.apply(pred, targets)\n",
        "    return GIoULoss.apply(pred if pred.is_leaf else pred.detach(), targets)\n",
        "Where the inputs are views of other tensors, the gradient must be the same: ",
    ),
    "the bias of a first layer is never trained": (
        "custom_op", "test_gradient_of_bias",
        "    x, bias = ctx.saved_tensors\n",
        "    x, bias = ctx.saved_tensors\n    if not ctx.needs_input_grad[0]:\n        return None, None\n",
        "Where bias alone needs a gradient, the gradient must be the same: ",
    ),
    "no bias in evaluation": (
        "layer_norm", "test_contiguous_float32",
        "    return LayerNorm.apply(x, weight, bias, eps)\n",
        "    return LayerNorm.apply(x, weight, bias if torch.is_grad_enabled() else weight, eps)\n",
        "Under torch.no_grad(), the result must be the same: ",
    ),
}  # fmt: skip
EACH_TIME = ["the bias of a first layer is never trained", "a second pass draws another mask"]


@pytest.mark.parametrize("name", [n if n in EACH_TIME else pytest.param(n, marks=pytest.mark.slow) for n in WRONG])
def test_what_depends_on_the_way_of_calling_fails_and_the_way_is_told(name: str, tmp_path: Path) -> None:
    id, check, right, wrong, says = WRONG[name]
    assignment = ASSIGNMENTS[id]
    assert assignment.solution is not None
    text = assignment.solution.read_text()
    assert text.count(right) == 1
    path = tmp_path / "submission.py"
    path.write_text(text.replace(right, wrong))
    report = grade(assignment, path, profile="quick", device="cpu", keyword=check, diagnose=False)
    failed = next(one for one in report.checks if one.id == check)
    assert failed.outcome is Outcome.FAILED
    assert failed.message.startswith(says), failed.message
