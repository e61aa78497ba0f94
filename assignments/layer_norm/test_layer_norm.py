"""Checks of layer_norm: forward, and each gradient by itself, against float64 autograd of torch's own."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given

from gradekit import (
    FLOATS,
    assert_allocates,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    beside,
    calls,
    domain_of,
    normal,
    points,
    reference,
)

beside(__file__, "outliers")
LAYER_NORM = domain_of(__file__)["layer_norm"]
PLAIN = ("contiguous",)
AROUND_POWERS = {"M": [1, 3, 70_000], "N": [1, 2, 3, 127, 128, 129, 1000, 1023, 1024, 1025, 2049, 4097, 16_384]}
PARAMETERS = {"weight bias": [("ones", "integers"), ("integers", "normal"), ("positive", "positive")]}
UPSTREAM = ("integers", "normal", "positive")
X, WEIGHT, BIAS = 0, 1, 2
EPS = LAYER_NORM.scalars[0].values  # the optional eps is drawn where it is named
UNIT = 2.0**-24  # half the distance of float32 numbers around 1: right kernels compute in float32
TRAINED = calls(
    LAYER_NORM,
    sizes={"M": [1, 2, 30, 300], "N": [1, 2, 33, 64, 100, 600]},
    layouts=PLAIN,
    values={"x": ["normal", "positive", "mixed", "ones"], **PARAMETERS},
    others={"eps": EPS},
    upstream=UPSTREAM,
    how={"at_most": 1 << 18},  # 300 rows of 600 columns: many partial sums of the gradients of weight and bias
)
NORMAL = {"x": ["normal"], "weight": ["normal"], "bias": ["normal"]}
VIEWS = {"sizes": {"M": [1, 32, 150], "N": [1, 32, 100]}, "values": NORMAL}
ANY_VIEW = calls(LAYER_NORM, **VIEWS, upstream=["normal"])


def layer_norm(x, weight, bias, eps=1e-5):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def row_statistics(x, eps=1e-5):
    """1 / std of each row, and how large the numbers are, beside it, whose difference is normalized."""
    rstd = (x.var(-1, correction=0, keepdim=True) + eps).rsqrt()
    return rstd, (x.abs() + x.abs().mean(-1, keepdim=True)) * rstd


def size_on_the_way(x, weight, bias, eps=1e-5):
    """x - mean(x) is rounded as x is, and so is off by more than its own size tells where x is far from zero."""
    _, terms = row_statistics(x, eps)
    return terms * weight.abs() + bias.abs()


def gradients(x, weight, bias, *eps_upstream):
    *eps, upstream = eps_upstream
    leaves = [tensor.detach().requires_grad_() for tensor in (x, weight, bias)]
    return torch.autograd.grad(layer_norm(*leaves, *eps), leaves, upstream)


def sizes_in_the_gradients(x, weight, bias, *eps_upstream):
    """The terms of each sum, and what the rounding of the normalized x does to them."""
    *eps, upstream = eps_upstream
    rstd, terms = row_statistics(x, *eps)
    normalized = (x - x.mean(-1, keepdim=True)) * rstd
    scaled = upstream * weight
    along = (scaled * normalized).mean(-1, keepdim=True).abs()
    common = scaled.abs().mean(-1, keepdim=True)
    of_x = scaled.abs() + common + terms * along + normalized.abs() * (terms * scaled.abs()).mean(-1, keepdim=True)
    # Of a row that is far from zero and constant, what is normalized is rounding alone: its square counts, too, and
    # carries rstd away.
    size = scaled.abs() + common + normalized.abs() * along
    of_x += UNIT * (terms * (terms * scaled.abs()).mean(-1, keepdim=True) + size * terms.square().mean(-1, keepdim=True))
    return of_x * rstd, (upstream.abs() * terms).sum(0), upstream.abs().sum(0)


size_on_the_way.signed = sizes_in_the_gradients.signed = True  # `reference` calls them with x as it is, not with |x|


def expected(*inputs):
    return reference(layer_norm, *inputs, scale=size_on_the_way)


def expected_gradients(*inputs):
    return reference(gradients, *inputs, scale=sizes_in_the_gradients)


def gradient(submission, call, only):
    """The observation of one gradient, where all three are asked for, as in training."""
    *inputs, upstream = call
    return submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=(X, WEIGHT, BIAS), only=only)


@points(12, handout="Rows are normalized by their own mean and variance")
@given(
    call=calls(
        LAYER_NORM,
        dtypes=["float32"],
        layouts=PLAIN,
        values={"x": ["normal", "mixed", "spike", "outliers"], **PARAMETERS},
    )
)
def test_contiguous_float32(submission, call):
    """Agrees with torch's layer_norm on contiguous float32 inputs"""
    assert_close(submission.layer_norm(*call), expected(*call))


@points(8, handout="loaded as 0 they are harmless in the mean")
@given(
    call=calls(
        LAYER_NORM, dtypes=["float32"], sizes=AROUND_POWERS, layouts=PLAIN, values=["normal"],
        how={"aliases": LAYER_NORM.aliases, "at_most": 1 << 18},
    )
)  # fmt: skip
def test_boundary_sizes(submission, call):
    """Is right for rows around a power of two, up to 16384"""
    assert_close(submission.layer_norm(*call), expected(*call))


@points(10, handout="All arithmetic and all sums are float32")
@pytest.mark.parametrize("dtype", FLOATS)
@given(
    call=calls(
        LAYER_NORM,
        dtypes=["float32"],
        sizes={"M": [1, 2, 40], "N": [1, 2, 64, 65, 300]},
        layouts=PLAIN,
        values={"x": ["normal", "positive", "mixed"], **PARAMETERS},
    )
)
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    inputs = [replace(tensor, dtype=dtype) for tensor in call]
    assert_close(submission.layer_norm(*inputs), expected(*inputs))


@points(8, handout="All tensors may be any view")
@given(call=calls(LAYER_NORM, **VIEWS, how={"aliases": LAYER_NORM.aliases}))
def test_any_stride_and_offset(submission, call):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.layer_norm(*call), expected(*call))


@points(7, handout="Take the differences first")
@given(
    call=calls(
        LAYER_NORM,
        dtypes=["float32"],
        sizes={"M": [1, 20], "N": [1, 2, 33, 300]},
        layouts=PLAIN,
        values={"x": ["shifted", "ones", "normal", "faint"], **PARAMETERS},
        others={"eps": EPS},
    )
)
def test_far_from_zero(submission, call):
    """Stays right for rows far from zero or constant, and takes eps"""
    assert_close(submission.layer_norm(*call), expected(*call))


@points(12, handout="A gradient of x without its two sums")
@given(call=TRAINED)
def test_gradient_of_x(submission, call):
    """The gradient of x agrees with autograd's"""
    assert_close(gradient(submission, call, X), expected_gradients(*call)[X])


@points(10, handout="Sums over rows in float16")
@given(call=TRAINED)
def test_gradient_of_weight(submission, call):
    """The gradient of weight agrees with autograd's"""
    assert_close(gradient(submission, call, WEIGHT), expected_gradients(*call)[WEIGHT])


@points(6, handout="with respect to x, weight and bias")
@given(call=TRAINED)
def test_gradient_of_bias(submission, call):
    """The gradient of bias agrees with autograd's"""
    assert_close(gradient(submission, call, BIAS), expected_gradients(*call)[BIAS])


@points(5, handout="y.sum().backward() sends one number")
@given(call=ANY_VIEW)
def test_gradients_any_stride(submission, call):
    """Gradients are right for views too, also for an expanded upstream"""
    *inputs, upstream = call
    found = submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=(X, WEIGHT, BIAS))
    assert_close(found, expected_gradients(*call))


@points(8, kind="memory", handout="Columns beyond the end")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Both passes stay inside their tensors; nobody writes to one place"""
    plain = [normal(one.shape, one.dtype) for one in call[:3]]  # the calls of other checks count here, too: those of views
    assert_memory_clean(submission.layer_norm(*plain))
    assert_memory_clean(gradient(submission, call, X))


@points(4, kind="structure", handout="at most 16 bytes for each row")
@given(call=TRAINED)
def test_frugal(submission, call):
    """Keeps a few numbers a row for backward; inputs stay as they are"""
    x = call[0]
    result = submission.layer_norm(*call[:3])
    most = x.nbytes + 16 * x.shape[0]
    assert_allocates(result, only_the_result=False, at_most_bytes=most, copies_of_views=True)
    assert_inputs_unmodified(result)
    assert_inputs_unmodified(gradient(submission, call, X))
    assert_close(result, expected(*call[:3]))


@points(10, kind="speed", handout="A right forward pass reads x once and writes the result once")
@pytest.mark.parametrize("shape", [(8192, 4096), (32_768, 1000)], ids=["8192x4096", "32768x1000"])
def test_speed(submission, shape):
    """The forward pass is as fast as torch's, on a GPU"""
    inputs = normal(shape), normal(shape[1:]), normal(shape[1:])
    timed = submission.layer_norm.timed(*inputs, against=layer_norm, expected=expected)
    assert_speed(timed, at_least(1.0, "eager", some_from=0.5), at_least(0.85, "compiled", some_from=0.5))
