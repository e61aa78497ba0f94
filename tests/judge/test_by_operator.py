"""What a submission's text says of an operator that torch does not take: the line, or nothing."""

from __future__ import annotations

import pytest

from gradekit.causes import Cause
from gradekit.judge.by_text import operator_mistake
from tests.repair.corpora import ROOT

RIGHT = (ROOT / "solutions/custom_op/right_flat.py").read_text(encoding="utf-8")
DECORATOR = '@triton_op("mylib::bias_gelu", mutates_args={})\n'
FAKE = "@bias_gelu.register_fake\ndef _(x, bias):\n    return torch.empty_like(x)\n"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("wrap_triton(forward_kernel)[", "forward_kernel[", "    forward_kernel[", "without wrap_triton"),
        (DECORATOR, DECORATOR.replace("{}", '{"x"}'), "@triton_op", "says by mutates_args"),
        (DECORATOR, "", "def bias_gelu(", "which is no operator"),
        (DECORATOR, DECORATOR.replace("triton_op", "custom_op"), "@custom_op", "register_fake"),
    ],
)
def test_what_is_missing_of_an_operator_is_named_with_its_line(old: str, new: str, line: str, said: str) -> None:
    text = RIGHT.replace(old, new)
    found = operator_mistake(text, "bias_gelu", Cause.EXCEPTION)
    assert found is not None and said in found.sentence and found.cause is Cause.EXCEPTION
    assert text.splitlines()[(found.line or 0) - 1].startswith(line)


@pytest.mark.parametrize(
    "text",
    [RIGHT, RIGHT.replace(DECORATOR, DECORATOR.replace("triton_op", "custom_op")) + FAKE, "def f(:", "x = 1\n"],
)
def test_nothing_is_said_of_an_operator_that_is_whole(text: str) -> None:
    assert operator_mistake(text, "bias_gelu", Cause.EXCEPTION) is None
