"""Checks of attention: tiles, a streaming softmax, forward and backward, and never a matrix of [S, S] in memory."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import (
    FLOATS,
    LAYOUTS,
    Input,
    assert_allocates,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    beside,
    like,
    normal,
    points,
    reference,
    tensors,
)

AttentionErrors = beside(__file__, "errors").AttentionErrors
PLAIN = ("contiguous",)
HEAD_SIZES = (16, 32, 64, 128)
AROUND_TILES = st.sampled_from([1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 193, 255, 256, 257])
KINDS = ("normal", "integers", "grid", "positive")


def hidden(size, causal, device):
    return torch.ones(size, size, dtype=torch.bool, device=device).triu(1) if causal else None


def one_head(q, k, v, causal, sm_scale):
    scores = q @ k.mT * sm_scale
    mask = hidden(q.shape[-2], causal, q.device)
    return torch.softmax(scores if mask is None else scores.masked_fill(mask, -torch.inf), -1) @ v


def by_heads(function, *tensors):
    """Head by head, so that the matrices of [S, S] are small; results are put together again."""
    shape = tensors[0].shape
    heads = [function(*head) for head in zip(*(x.flatten(0, 1) for x in tensors), strict=True)]
    return tuple(torch.stack(parts).reshape(shape) for parts in zip(*heads, strict=True))


def attention(q, k, v, causal, sm_scale):
    return by_heads(lambda *head: (one_head(*head, causal, sm_scale),), q, k, v)[0]


def errors(rounding, q, k, v, causal, sm_scale):
    def of_one(*head):
        return (AttentionErrors(rounding, *head, sm_scale, hidden(q.shape[-2], causal, q.device)).output,)

    return by_heads(of_one, q, k, v)[0]


def expected(*inputs):
    return reference(attention, *inputs, bound=errors, input_precision="tf32")


def gradients(q, k, v, causal, sm_scale, grad):
    """Those of q, k and v, by autograd."""
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(attention(*leaves, causal, sm_scale), leaves, grad)


def gradient_errors(rounding, q, k, v, causal, sm_scale, grad):
    def of_one(*head):
        mask = hidden(q.shape[-2], causal, q.device)
        return AttentionErrors(rounding, *head[:3], sm_scale, mask).gradients(head[3])

    return by_heads(of_one, q, k, v, grad)


def expected_gradient(number, *inputs):
    return reference(gradients, *inputs, bound=gradient_errors, input_precision="tf32")[number]


@st.composite
def calls(
    draw, dtypes=FLOATS, batch=(1, 2), heads=(1, 2), size=(1, 150), widths=HEAD_SIZES, causal=(False, True),
    layouts=PLAIN, profiles=KINDS,
):  # fmt: skip
    """q, k, v, causal and sm_scale."""
    d, values = draw(st.sampled_from(widths)), [draw(st.sampled_from(profiles))]
    q = draw(tensors(4, dtypes=dtypes, size=[batch, heads, size, d], layouts=layouts, profiles=values))
    k, v = (
        replace(x, seed=x.seed + n)
        for n, x in enumerate(draw(st.tuples(*2 * [like(q, layouts=layouts, profiles=values)])))
    )
    return q, k, v, draw(st.sampled_from(causal)), draw(st.sampled_from([d**-0.5, 1.0 / d, 0.2]))


@st.composite
def backward_calls(draw, **how):
    """The same, and the gradient of the result."""
    call = draw(calls(**how))
    grad = draw(like(call[0], layouts=how.get("layouts", PLAIN), profiles=["normal", "integers", "positive"]))
    return call, replace(grad, seed=grad.seed + 2)


def gradient(submission, call, grad, number):
    return submission.attention.gradient(*call, upstream=grad, wanted=(0, 1, 2), only=number)


@points(8)
@given(call=calls(dtypes=["float32"], causal=[False]))
def test_every_key(submission, call):
    """Agrees with softmax(q k^T) v in float32"""
    assert_close(submission.attention(*call), expected(*call))


@points(8)
@given(call=calls(dtypes=["float32"], causal=[True]))
def test_causal(submission, call):
    """Hides from each query what comes after it, where causal"""
    assert_close(submission.attention(*call), expected(*call))


@points(8)
@given(call=AROUND_TILES.flatmap(lambda s: calls(dtypes=["float16", "float32"], size=(s, s), widths=(16, 32))))
def test_boundary_sizes(submission, call):
    """Is right around the size of a tile, and for a single row"""
    assert_close(submission.attention(*call), expected(*call))


@points(9)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=20)
@given(call=calls(dtypes=["float32"]))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    call = [replace(x, dtype=dtype) if isinstance(x, Input) else x for x in call]
    assert_close(submission.attention(*call), expected(*call))


@points(6)
@settings(max_examples=30)
@given(call=calls(size=(1, 70), layouts=LAYOUTS))
def test_any_stride_and_offset(submission, call):
    """Reads q, k and v in any layout"""
    assert_close(submission.attention(*call), expected(*call))


@points(4)
@settings(max_examples=20)
@given(call=calls(dtypes=["float32", "bfloat16"], size=(1, 200), profiles=["mixed"]))
def test_large_scores(submission, call):
    """Stays right where scores are far too large for exp"""
    assert_close(submission.attention(*call), expected(*call))


@points(7)
@given(inputs=backward_calls())
def test_gradient_of_v(submission, inputs):
    """Gives v its gradient"""
    call, grad = inputs
    assert_close(gradient(submission, call, grad, 2), expected_gradient(2, *call, grad))


@points(7)
@given(inputs=backward_calls())
def test_gradient_of_q(submission, inputs):
    """Gives q its gradient"""
    call, grad = inputs
    assert_close(gradient(submission, call, grad, 0), expected_gradient(0, *call, grad))


@points(7)
@given(inputs=backward_calls())
def test_gradient_of_k(submission, inputs):
    """Gives k its gradient"""
    call, grad = inputs
    assert_close(gradient(submission, call, grad, 1), expected_gradient(1, *call, grad))


def room(call, tensors):
    """Bytes for so many tensors of the inputs' size, in float32, and for 16 numbers beside each row."""
    q = call[0]
    return q.numel * 4 * tensors + q.numel // q.shape[-1] * 64


LONG = {"dtypes": ["float16"], "batch": (1, 1), "heads": (1, 1), "size": (512, 1100), "widths": (16,)}


@points(6, kind="structure")
@settings(max_examples=6)
@given(inputs=backward_calls(**LONG))
def test_never_stores_the_weights(submission, inputs):
    """Allocates nothing as large as [S, S], forward or backward"""
    call, grad = inputs
    result = submission.attention(*call)
    assert_close(result, expected(*call))
    assert_allocates(result, only_the_result=False, at_most_bytes=room(call, 5))
    assert_allocates(gradient(submission, call, grad, 0), only_the_result=False, at_most_bytes=room(call, 14))


@points(6, kind="memory")
@settings(max_examples=20)
@given(inputs=backward_calls(size=(1, 100), layouts=LAYOUTS))
def test_memory(submission, inputs):
    """Stays inside its tensors, forward and backward"""
    call, grad = inputs
    assert_memory_clean(submission.attention(*call))
    assert_memory_clean(gradient(submission, call, grad, 0))


@points(4, kind="structure")
@settings(max_examples=15)
@given(call=calls(size=(1, 70)))
def test_inputs_unmodified(submission, call):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.attention(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))


def by_torch(q, k, v, causal, sm_scale):
    """torch's own fused attention."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=sm_scale)


def in_four_steps(q, k, v, causal, sm_scale):
    """As one would write it in torch: the matrix of weights is written and read again and again."""
    scores = q @ k.mT * sm_scale
    mask = hidden(q.shape[-2], causal, q.device)
    return torch.softmax(scores if mask is None else scores.masked_fill(mask, -torch.inf), -1) @ v


def timed(submission, causal, against):
    q, k, v = (normal((4, 16, 4096, 64), "float16", seed=seed) for seed in (1, 2, 3))
    return submission.attention.timed(q, k, v, causal, 0.125, against=against, expected=expected)


@points(10, kind="speed")
@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
def test_faster_than_four_steps(submission, causal):
    """Is twice as fast as attention in four steps at 4096, float16, on a GPU"""
    assert_speed(timed(submission, causal, in_four_steps), at_least(2.0, "eager", some_from=1.0))


@points(10, kind="speed")
@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
def test_speed_beside_torch(submission, causal):
    """Is half as fast as torch's own fused attention, on a GPU"""
    assert_speed(timed(submission, causal, by_torch), at_least(0.5, "eager", some_from=0.25))
