"""A gradient that autograd refuses for its shape: whose it is, and the line that made it."""

from __future__ import annotations

import pytest

from gradekit.causes import Cause
from gradekit.judge.by_text import refused_gradient

OPERATOR = """\
def bias_gelu(x, bias):
    return x

def backward(ctx, dout):
    dx = run(dout)
    dbias = dx.sum(0)
    return dx, dbias.to(dx.dtype)
"""
WITH_ANOTHER_NAME = """\
def bias_gelu(x, bias):
    return x

def slope(ctx, dout):
    dx = run(dout)
    return dx, dx.sum(0)

bias_gelu.register_autograd(slope)
"""
FUNCTION = """\
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        return x

    @staticmethod
    def backward(ctx, dout):
        return run(dout), dout.sum()
"""


def said(index: int) -> str:
    return f"RuntimeError: Function B returned an invalid gradient at index {index} - got [] but expected shape compatible with [3]"


@pytest.mark.parametrize(
    ("text", "index", "name", "line"),
    [
        (OPERATOR, 1, "bias", 6),
        (OPERATOR, 0, "x", 5),
        (FUNCTION, 1, "weight", 8),
        (FUNCTION, 0, "x", 8),
        (WITH_ANOTHER_NAME, 1, "bias", 6),
        (WITH_ANOTHER_NAME, 0, "x", 5),
    ],
)
def test_a_refused_gradient_is_named_with_the_line_that_makes_it(text: str, index: int, name: str, line: int) -> None:
    found = refused_gradient(text, "bias_gelu", said(index), Cause.EXCEPTION)
    assert found is not None and found.line == line
    assert f"gradient of `{name}`, which line {line} makes, has the shape []" in found.sentence


@pytest.mark.parametrize(
    ("text", "message"),
    [(OPERATOR, "RuntimeError: x"), ("def f(:", said(1)), (OPERATOR, said(2)), (OPERATOR + FUNCTION, said(0))],
)
def test_nothing_is_said_where_the_text_does_not_show_it(text: str, message: str) -> None:
    assert refused_gradient(text, "bias_gelu", message, Cause.EXCEPTION) is None
