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


def size_on_the_way(x, bias):
    """x + bias is rounded, and 1 + erf cancels where it is negative."""
    return x + bias


def narrow_size_on_the_way(x, bias):
    """A quarter: `reference` allows four roundings to the narrow dtype, and a right kernel makes one, of x + bias."""
    return size_on_the_way(x, bias) / 4


def expected(x, bias):
    scale = size_on_the_way if x.dtype == "float32" else narrow_size_on_the_way
    return reference(bias_gelu, x, bias, scale=scale, steps="native", terms=1)


def gradients(x, bias, upstream):
    leaves = [tensor.detach().requires_grad_() for tensor in (x, bias)]
    return torch.autograd.grad(bias_gelu(*leaves), leaves, upstream)


def sizes_in_the_gradients(x, bias, upstream):
    """The slope is about 1, and moves with x + bias by as much as that is rounded; bias's is a sum over all rows."""
    of_x = upstream * (1 + x + bias)
    return of_x, of_x.reshape(-1, x.shape[-1]).sum(0)


def narrow_sizes_in_the_gradients(x, bias, upstream):
    """A quarter, as above: x + bias is rounded, and what it is x's gradient; their sum is not, from one row to the next."""
    of_x, of_bias = sizes_in_the_gradients(x, bias, upstream)
    return of_x / 4, of_bias / 4


def expected_gradients(*inputs):
    """A kernel may round x's gradient to its dtype before it is added up for bias's."""
    x, bias, _ = inputs
    scale = sizes_in_the_gradients if x.dtype == "float32" else narrow_sizes_in_the_gradients
    rows = x.numel // max(bias.numel, 1)
    return reference(gradients, *inputs, scale=scale, steps="native", terms=max(rows, 1))


KINDS = ("ones", "grid", "normal", "mixed")
VIEWS = ("contiguous", "offset", "transposed", "permuted", "every_second", "stepped", "expanded")
ANY_RANK = calls(
    BIAS_GELU,
    sizes={"...": [1, 2, 8], "N": [1, 16, 33, 60]},
    layouts={"x": VIEWS, "bias": [*PLAIN, "offset", "every_second", "stepped", "expanded"], "upstream": VIEWS},
    values=["normal"],
    upstream=["normal", "positive"],  # positive numbers add up to what half precision cannot count on from
)


def inspected(submission):
    """What torch makes of a model around the entry."""
    return submission.bias_gelu.inspected(normal((3, 5, 70)), normal((70,)))


@points(15)
@given(call=calls(BIAS_GELU, dtypes=["float32"], sizes={"N": (1, 1100)}, layouts=PLAIN, values=KINDS, how=MATRICES))
def test_contiguous_float32(submission, call):
    """Agrees with torch's gelu(x + bias) on contiguous float32 inputs"""
    assert_close(submission.bias_gelu(*call), expected(*call))


@points(10)
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


@points(10)
@given(call=ANY_RANK)
def test_any_shape_and_layout(submission, call):
    """Takes one to four dimensions, and reads any view as it is"""
    assert_close(submission.bias_gelu(*call[:2]), expected(*call[:2]))


@points(10)
@given(call=ANY_RANK)
def test_gradient_of_x(submission, call):
    """The gradient of x agrees with autograd's"""
    *inputs, upstream = call
    found = submission.bias_gelu.gradient(*inputs, upstream=upstream, wanted=(X, BIAS), only=X)
    assert_close(found, expected_gradients(*call)[X])


@points(10)
@given(call=ANY_RANK)
def test_gradient_of_bias(submission, call):
    """The gradient of bias agrees with autograd's"""
    *inputs, upstream = call
    found = submission.bias_gelu.gradient(*inputs, upstream=upstream, wanted=(X, BIAS), only=BIAS)
    assert_close(found, expected_gradients(*call)[BIAS])


@points(5, kind="memory")
@given(call=ANY_RANK)
def test_memory(submission, call):
    """Both passes stay inside their tensors; inputs stay as they are"""
    result = submission.bias_gelu(*call[:2])
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
    assert_memory_clean(submission.bias_gelu.gradient(*call[:2], upstream=call[2], wanted=(X, BIAS)))


@points(10, kind="structure")
def test_operator(submission):
    """Is an operator of torch, with a schema that changes no input"""
    assert_operator(inspected(submission))


@points(10, kind="structure")
@pytest.mark.parametrize("check", OPCHECKS)
def test_opcheck(submission, check):
    """Passes torch's own checks of operators"""
    assert_opcheck(inspected(submission), check)


@points(10, kind="structure")
def test_in_a_model(submission):
    """A model with it compiles to one graph, its kernel inside"""
    assert_compiles(inspected(submission))


@points(10, kind="speed")
def test_speed(submission):
    """Is faster than torch's two operations, on a GPU"""
    timed = submission.bias_gelu.timed(normal((8192, 4096)), normal((4096,)), against=bias_gelu, expected=expected)
    assert_speed(timed, at_least(1.5, "eager", some_from=1.0), at_least(0.85, "compiled", some_from=0.5))
