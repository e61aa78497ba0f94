"""What a submission's text says of its failure: a line and what was meant, or nothing."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.causes import Cause
from gradekit.judge.by_text import missing_gradient, never_used, operator_mistake, refused_gradient
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Evidence
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Reference, Worked
from tests.repair.corpora import ROOT

FAILURE = Failure(Cause.UNWRITTEN_OUTPUT, "nothing is written")


IDLE = """
@triton.jit
def kernel(p, q, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(p + i)
    total = x * 0
    for k in range(n):
        total += tl.load(p + i)
    one = x * 2 + n
    two = x * 2 + n
    tl.store(q + i, one + two + total)
"""


def of_wrong_values(text: str) -> Evidence:
    wanted = torch.ones(2)
    worked = Worked(
        wanted.double(), wanted, torch.zeros(2, dtype=torch.float64), (), lambda *args: wanted, lambda others: wanted
    )
    comparison = Comparison(torch.zeros(2), Reference(lambda: [worked], 0, None))
    program: Any = SimpleNamespace(kernels={"k": SimpleNamespace(name="kernel")})
    return Evidence(Failure(Cause.WRONG_VALUES, "", comparison=comparison), program=program, text=text)


def test_what_a_kernel_computes_for_nothing_is_told_of_a_wrong_result() -> None:
    text = IDLE.replace("q + i, one + two + total", "q + i, one + total")
    found = never_used(of_wrong_values(text))
    assert found is not None and found.line == 10
    assert "Nothing in kernel uses `two`, which line 10 computes" in found.sentence
    assert never_used(of_wrong_values(IDLE)) is None
    assert never_used(Evidence(FAILURE, text=text)) is None


# --- A gradient that autograd refuses for its shape -------------------------------------------------------------------


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


@pytest.mark.parametrize(("text", "index", "name", "line"), [
    (OPERATOR, 1, "bias", 6),
    (OPERATOR, 0, "x", 5),
    (FUNCTION, 1, "weight", 8),
    (FUNCTION, 0, "x", 8),
    (WITH_ANOTHER_NAME, 1, "bias", 6),
    (WITH_ANOTHER_NAME, 0, "x", 5),
])
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


# --- what a submission's text says of an operator that torch does not take --------------------------------------------


RIGHT = (ROOT / "solutions/custom_op/right_flat.py").read_text(encoding="utf-8")
DECORATOR = '@triton_op("mylib::bias_gelu", mutates_args={})\n'
FAKE = "@bias_gelu.register_fake\ndef _(x, bias):\n    return torch.empty_like(x)\n"


@pytest.mark.parametrize(("old", "new", "line", "said"), [
    ("wrap_triton(forward_kernel)[", "forward_kernel[", "    forward_kernel[", "without wrap_triton"),
    (DECORATOR, DECORATOR.replace("{}", '{"x"}'), "@triton_op", "says by mutates_args"),
    (DECORATOR, "", "def bias_gelu(", "which is not an operator"),
    (DECORATOR, DECORATOR.replace("triton_op", "custom_op"), "@custom_op", "register_fake"),
])
def test_what_is_missing_of_an_operator_is_named_with_its_line(old: str, new: str, line: str, said: str) -> None:
    text = RIGHT.replace(old, new)
    found = operator_mistake(text, Cause.EXCEPTION)
    assert found is not None and said in found.sentence and found.cause is Cause.EXCEPTION
    assert text.splitlines()[(found.line or 0) - 1].startswith(line)


@pytest.mark.parametrize(
    "text", [RIGHT, RIGHT.replace(DECORATOR, DECORATOR.replace("triton_op", "custom_op")) + FAKE, "def f(:", "x = 1\n"],
)
def test_nothing_is_said_of_an_operator_that_is_whole(text: str) -> None:
    assert operator_mistake(text, Cause.EXCEPTION) is None


GRADIENTS = """\
def forward(ctx, x, bias):
    return x

def backward(ctx, g):
    if not ctx.needs_input_grad[0]:
        return None, None
    return g, g.sum(0)
"""


@pytest.mark.parametrize(("name", "text", "told"), [
    ("bias", GRADIENTS, "Line 6 returns None for `bias` from `backward`, where `not ctx.needs_input_grad[0]` holds."),
    ("bias", GRADIENTS.replace("None, None", "None, g.sum(0)"), None),
    ("bias", GRADIENTS.replace("g, g.sum(0)", "g, None"), None),  # which of the two was taken is not known
    ("bias", GRADIENTS[: GRADIENTS.index("    if")] + "    return g, None\n", "Line 5 returns None for `bias` from `backward`."),
    ("scale", GRADIENTS, None),
])
def test_the_return_that_gives_no_gradient_is_told_with_its_condition(name: str, text: str, told: str | None) -> None:
    found = missing_gradient(text, f"The backward pass of f gives no gradient for {name}: its `backward` ...", Cause.WRONG_TYPE)
    assert (found.sentence if found is not None else None) == told
