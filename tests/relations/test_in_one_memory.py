"""Arguments that may be one tensor are that in a call with its backward pass, too: two leaves over one memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.findings import Outcome
from tests import right
from tests.graded import graded

SAVED, RETURNED = "ctx.causal, ctx.sm_scale = causal, sm_scale", "return *(x.view(grad.shape) for x in gradients), None, None"
SUMMED = """dq, dk, dv = (x.view(grad.shape) for x in gradients)
        return dq, dk, (None if ctx.shared else dv), None, None"""


@pytest.mark.parametrize("shares", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_gradient_that_is_left_out_where_two_arguments_lie_in_one_memory_is_missed(shares: bool, tmp_path: Path) -> None:
    text = right.text(Path("solutions/flash_attention/solution.py"))
    assert text.count(SAVED) == 1 and text.count(RETURNED) == 1
    where = "k.data_ptr() == v.data_ptr()" if shares else "False"
    text = text.replace(SAVED, f"{SAVED}\n        ctx.shared = {where}").replace(RETURNED, SUMMED)
    (check,) = graded("flash_attention", text, tmp_path, keyword="test_gradient_of_v", profile="quick").checks
    assert check.outcome is (Outcome.FAILED if shares else Outcome.PASSED), check.message
    assert not shares or "Where k and v lie in one memory" in check.message
