"""Checks of bias_gelu: right values and gradients, and an operator that torch, models and torch.compile can use."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given

from gradekit import (
    FLOATS,
    assert_close,
    assert_compiles,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_opcheck,
    assert_operator,
    assert_speed,
    at_least,
    calls,
    domain_of,
    normal,
    points,
    reference,
)

BIAS_GELU = domain_of(__file__)["bias_gelu"]
PLAIN = ("contiguous",)
MATRICES = {"ranks": [1]}
OPCHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
X, BIAS = 0, 1


def bias_gelu(x, bias):
    return torch.nn.functional.gelu(x + bias)


def ways_of_sum(rounding, x, bias):
    """x + bias, and as far to either side as rounding it may carry it."""
    h = x + bias
    of_sum = torch.finfo(rounding.dtype).eps / 2 * h.abs()
    return h, h - of_sum, h + of_sum


def near_zero(h):
    """The size of h as far as it counts: from -8 on down, 1 + erf is less than float32 has beside 1."""
    return h.abs().clamp(max=8.0)


def errors(rounding, x, bias):
    """What rounding x + bias changes, and float32 arithmetic: 1 + erf cancels where h is a little below zero, and is
    exactly 0 where it is far below."""
    right, *others = map(torch.nn.functional.gelu, ways_of_sum(rounding, x, bias))
    return farthest(right, others) + rounding.sum(near_zero(x + bias) + right.abs(), 1)


def farthest(right, others):
    return torch.stack([(other - right).abs() for other in others]).amax(0)


def expected(x, bias):
    return reference(bias_gelu, x, bias, bound=errors)


def gradients(x, bias, upstream):
    leaves = [tensor.detach().requires_grad_() for tensor in (x, bias)]
    return torch.autograd.grad(bias_gelu(*leaves), leaves, upstream)


def slope(h):
    return 0.5 * (1 + torch.erf(h * 0.5**0.5)) + h * torch.exp(-0.5 * h * h) / (2 * torch.pi) ** 0.5


def errors_of_gradients(rounding, x, bias, upstream):
    """The same for x's gradient, which may be rounded to its dtype before it is added up for bias's."""
    right, *others = map(slope, ways_of_sum(rounding, x, bias))
    of_x = upstream.abs() * farthest(right, others)
    size = upstream.abs() * (1 + near_zero(x + bias))
    narrow = 0.0 if rounding.dtype == torch.float32 else torch.finfo(rounding.dtype).eps / 2
    by_columns = lambda values: values.reshape(-1, x.shape[-1]).sum(0)
    of_bias = by_columns(of_x + narrow * (upstream * right).abs())
    rows = x.numel() // max(bias.numel(), 1)
    return of_x + rounding.sum(size, 1), of_bias + rounding.sum(by_columns(size), max(rows, 1))


def expected_gradients(*inputs):
    return reference(gradients, *inputs, bound=errors_of_gradients)


KINDS = ("ones", "grid", "normal", "mixed")
VIEWS = ("contiguous", "offset", "transposed", "permuted", "every_second", "stepped", "expanded")
ANY_RANK = calls(
    BIAS_GELU,
    sizes={"...": [1, 2, 8], "N": [1, 16, 33, 60]},
    layouts={"x": VIEWS, "bias": [*PLAIN, "offset", "every_second", "stepped", "expanded"], "upstream": VIEWS},
    values=["normal"],
    upstream=["normal", "positive"],  # positive numbers add up to what half precision cannot count on from
)
IN_MODELS = calls(
    BIAS_GELU,
    dtypes=["float32"],
    sizes={"...": [3], "N": [70]},
    layouts={"x": [*PLAIN, "transposed"], "bias": [*PLAIN, "every_second"]},
    values=["normal"],
    how={"ranks": [2]},
)


def inspected(submission, *inputs):
    """What torch makes of a model around the entry."""
    return submission.bias_gelu.inspected(*inputs, wanted=(X, BIAS))


@points(15, handout="gelu is the exact one")
@given(call=calls(BIAS_GELU, dtypes=["float32"], sizes={"N": (1, 1100)}, layouts=PLAIN, values=KINDS, how=MATRICES))
def test_contiguous_float32(submission, call):
    """Agrees with torch's gelu(x + bias) on contiguous float32 inputs"""
    assert_close(submission.bias_gelu(*call), expected(*call))


@points(10, handout="Arithmetic is float32, but for x + bias")
@pytest.mark.parametrize("dtype", FLOATS)
@given(
    call=calls(
        BIAS_GELU,
        dtypes=["float32"],
        sizes={"...": [1, 60], "N": [1, 33, 64, 400]},
        layouts=PLAIN,
        values=KINDS,
        how=MATRICES,
    )
)
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    inputs = [replace(tensor, dtype=dtype) for tensor in call]
    assert_close(submission.bias_gelu(*inputs), expected(*inputs))


@points(10, handout="of one to four dimensions")
@given(call=ANY_RANK)
def test_any_shape_and_layout(submission, call):
    """Takes one to four dimensions, and reads any view as it is"""
    assert_close(submission.bias_gelu(*call[:2]), expected(*call[:2]))


@points(10, handout="Its derivative is")
@given(call=ANY_RANK)
def test_gradient_of_x(submission, call):
    """The gradient of x agrees with autograd's"""
    *inputs, upstream = call
    found = submission.bias_gelu.gradient(*inputs, upstream=upstream, wanted=(X, BIAS), only=X)
    assert_close(found, expected_gradients(*call)[X])


@points(10, handout="which is that of x added up over all rows")
@given(call=ANY_RANK)
def test_gradient_of_bias(submission, call):
    """The gradient of bias agrees with autograd's"""
    *inputs, upstream = call
    found = submission.bias_gelu.gradient(*inputs, upstream=upstream, wanted=(X, BIAS), only=BIAS)
    assert_close(found, expected_gradients(*call)[BIAS])


@points(5, kind="memory", handout="Both may be any view, also the gradient that backward gets")
@given(call=ANY_RANK)
def test_memory(submission, call):
    """Both passes stay inside their tensors; inputs stay as they are"""
    result = submission.bias_gelu(*call[:2])
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
    assert_memory_clean(submission.bias_gelu.gradient(*call[:2], upstream=call[2], wanted=(X, BIAS)))


@points(10, kind="structure", handout="as an operator of torch, in a namespace of your choice")
def test_operator(submission):
    """Is an operator of torch, with a schema that changes no input"""
    assert_operator(inspected(submission, normal((3, 3, 70)), normal((70,))))


@points(10, kind="structure", handout="torch's own torch.library.opcheck is asked about it")
@pytest.mark.parametrize("check", OPCHECKS)
@given(call=IN_MODELS)
def test_opcheck(submission, check, call):
    """Passes torch's own checks of operators"""
    assert_opcheck(inspected(submission, *call), check)


@points(10, kind="structure", handout="A model that calls it compiles with")
@given(call=IN_MODELS)
def test_in_a_model(submission, call):
    """A model with it compiles to one graph, its kernel inside"""
    assert_compiles(inspected(submission, *call))


@points(10, kind="speed", handout="the most that you can do is to be its equal")
def test_speed(submission):
    """Is faster than torch's two operations, on a GPU"""
    timed = submission.bias_gelu.timed(normal((8192, 4096)), normal((4096,)), against=bias_gelu, expected=expected)
    assert_speed(timed, at_least(1.5, "eager", some_from=1.0), at_least(0.85, "compiled", some_from=0.5))
