"""A related call has tensors that lie as the first call's do; arguments that may be one tensor are one in its backward pass, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.domain import load
from gradekit.findings import Outcome
from gradekit.inputs.spec import Input, normal
from gradekit.relations import Relation, relations_of
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


MATMUL = load(Path(__file__).parents[2] / "assignments" / "matmul" / "domain.toml")["matmul"]


@pytest.mark.parametrize("relation", relations_of(MATMUL), ids=lambda relation: f"{relation.kind} {relation.name}")
def test_contiguous_tensors_stay_contiguous(relation: Relation) -> None:
    """... also where a part of them is taken: who ignores strides must pass the checks that have none"""
    other = relation.of((normal((5, 7)), normal((7, 6), seed=1)))
    assert other is not None
    assert all((arg.tensor() if isinstance(arg, Input) else arg).is_contiguous() for arg in other.args)


def test_strided_tensors_keep_their_strides() -> None:
    relation = next(one for one in relations_of(MATMUL) if (one.kind, one.name) == ("alone", "M"))
    other = relation.of((Input("float32", (5, 7), (9, 1), 2), normal((7, 6))))
    assert other is not None and (other.args[0].stride(), other.args[0].storage_offset()) == ((9, 1), 2)
