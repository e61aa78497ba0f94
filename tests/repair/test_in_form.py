"""A result in the form that is asked for, so that what is wrong beside a wrong dtype, shape or number of gradients is seen."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradekit.causes import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.failure import Failure
from gradekit.repair.in_form import in_form
from tests.graded import failed_checks
from tests.repair.corpora import ROOT

TEXT = "def add(x, y):\n    out = run(x, y)\n    return out\n"
BACKWARD = "class F:\n    def forward(ctx, x, p, seed):\n        return x\n\n    def backward(ctx, dout):\n        return dout\n"


def called(*inputs: Input) -> Any:
    return SimpleNamespace(entry="add", args=inputs)


@pytest.mark.parametrize(("cause", "facts", "returned"), [
    (Cause.WRONG_DTYPE, {"dtype": "float32", "expected_dtype": "float16"}, "(out).to(x.dtype)"),
    (Cause.WRONG_DTYPE, {"dtype": "float16", "expected_dtype": "float32"}, "(out).to(torch.float32)"),
    (Cause.WRONG_SHAPE, {"shape": [6], "expected_shape": [2, 3]}, "(out).reshape(x.shape)"),
])
def test_what_is_returned_gets_the_form_of_an_input_or_that_which_is_asked_for(
    cause: Cause, facts: dict[str, Any], returned: str
) -> None:
    mend = in_form(TEXT, Failure(cause, "wrong", facts=facts), called(Input("float16", (2, 3), (3, 1))))
    assert mend is not None and mend.applied(TEXT) == TEXT.replace("return out", f"return {returned}")


def test_what_is_allocated_with_another_dtype_is_allocated_with_that_which_is_asked_for() -> None:
    """Converted when it is returned, it would be rounded still, and that told as another mistake."""
    text = TEXT.replace("run(x, y)", "torch.empty(x.shape, dtype=y.dtype, device=x.device)")
    wrong = Failure(Cause.WRONG_DTYPE, "wrong", facts={"dtype": "float16", "expected_dtype": "float32"})
    mend = in_form(text, wrong, called(Input("float16", (2, 3), (3, 1))))
    assert mend is not None and mend.applied(text) == text.replace("y.dtype", "torch.float32")


def test_sums_that_are_allocated_with_more_digits_than_are_asked_for_keep_them_until_they_are_returned() -> None:
    """Added up in float16, they would be wrong, and that told as another mistake."""
    text = TEXT.replace("run(x, y)", "torch.zeros(x.shape, dtype=torch.float32, device=x.device)")
    wrong = Failure(Cause.WRONG_DTYPE, "wrong", facts={"dtype": "float32", "expected_dtype": "float16"})
    mend = in_form(text, wrong, called(Input("float16", (2, 3), (3, 1))))
    assert mend is not None and mend.applied(text) == text.replace("return out", "return (out).to(x.dtype)")


def test_of_a_shape_that_no_input_has_nothing_is_made() -> None:
    wrong = Failure(Cause.WRONG_SHAPE, "wrong", facts={"shape": [6], "expected_shape": [3, 2]})
    assert in_form(TEXT, wrong, called(Input("float16", (2, 3), (3, 1)))) is None


def test_gradients_that_are_missing_are_filled_up() -> None:
    said = "function FBackward returned an incorrect number of gradients (expected 3, got 1)"
    mend = in_form(BACKWARD, Failure(Cause.EXCEPTION, said), called())
    assert mend is not None and mend.applied(BACKWARD) == BACKWARD.replace("return dout", "return dout, None, None")


def test_behind_a_wrong_dtype_another_mistake_is_named(tmp_path: Path) -> None:
    text = (ROOT / "tests/course/right/vector_add/tutorial.py").read_text(encoding="utf-8")
    wrong = text.replace("offsets < n_elements", "offsets < n_elements - 1")
    wrong = wrong.replace("torch.empty_like(x)", "torch.empty(x.shape, device=x.device)")
    failed = failed_checks("vector_add", wrong, tmp_path, keyword="every_dtype")
    said = [f"{one['message']} {one['hint']}" for one in failed]
    assert any("must be float16" in one for one in said)
    assert any("another mistake: " in one and "line 22" in one for one in said)
