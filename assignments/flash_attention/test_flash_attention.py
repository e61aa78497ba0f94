"""Checks of attention: tiles, a streaming softmax, forward and backward, and never a matrix of [S, S] in memory."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings

from gradekit import (
    FLOATS,
    Input,
    assert_close,
    assert_growth,
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

bounds = beside(__file__, "errors")
ATTENTION = domain_of(__file__)["attention"]
PLAIN = ("contiguous",)
# Heads may share values, but not the elements of a head: its roundings would all be the same, and add up.
VIEWS = ("contiguous", "offset", "transposed", "permuted", "sliced_columns", "expanded:1")
AROUND_TILES = [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 193, 255, 256, 257]
KINDS = ("normal", "integers", "grid", "positive")


def hidden(size, causal, device):
    return torch.ones(size, size, dtype=torch.bool, device=device).triu(1) if causal else None


def of_queries(q, k, v, mask, sm_scale):
    scores = q @ k.mT * sm_scale
    return torch.softmax(scores if mask is None else scores.masked_fill(mask, -torch.inf), -1) @ v


def of_heads(q, k, v, mask, sm_scale):
    """As many queries at a time as leave no matrix of [S, S] but the weights, where gradients need them."""
    some = q.split(max((1 << 19) // k.shape[-2], 1), -2)
    masks = [None] * len(some) if mask is None else mask.split(some[0].shape[-2])
    return torch.cat([of_queries(one, k, v, hides, sm_scale) for one, hides in zip(some, masks, strict=True)], -2)


def by_groups(function, *tensors):
    """As many heads at a time as make small matrices of [heads, S, S] together: many short ones take as long as one.
    Results are put together again."""
    shape = tensors[0].shape
    several = max((1 << 14) // shape[-2] ** 2, 1)
    groups = [function(*group) for group in zip(*(x.flatten(0, 1).split(several) for x in tensors), strict=True)]
    return tuple(torch.cat(parts).reshape(shape) for parts in zip(*groups, strict=True))


def attention(q, k, v, causal, sm_scale):
    mask = hidden(q.shape[-2], causal, q.device)
    return by_groups(lambda *heads: (of_heads(*heads, mask, sm_scale),), q, k, v)[0]


def errors(rounding, q, k, v, causal, sm_scale):
    mask = hidden(q.shape[-2], causal, q.device)

    def of_several(*heads):
        return (bounds.of_output(rounding, *heads, sm_scale, mask),)

    return by_groups(of_several, q, k, v)[0]


def expected(*inputs):
    return reference(attention, *inputs, bound=errors, input_precision="tf32")


def gradients(q, k, v, causal, sm_scale, grad):
    """Those of q, k and v, by autograd."""
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(attention(*leaves, causal, sm_scale), leaves, grad)


def gradient_errors(rounding, q, k, v, causal, sm_scale, grad):
    mask = hidden(q.shape[-2], causal, q.device)

    def of_several(*heads):
        return bounds.of_gradients(rounding, *heads, sm_scale, mask)

    return by_groups(of_several, q, k, v, grad)


def expected_gradients(*inputs):
    return reference(gradients, *inputs, bound=gradient_errors, input_precision="tf32")


def expected_gradient(number, *inputs):
    return expected_gradients(*inputs)[number]


def alike(*kinds):
    """Kinds of values that q, k and v have in common."""
    return {"q k v": [(kind, kind, kind) for kind in kinds]}


def drawn(causal=(False, True), kinds=KINDS, layouts=PLAIN, **said):
    """q, k, v, causal and sm_scale; then the gradient of the result, where its kinds of values are said."""
    return calls(ATTENTION, others={"causal": causal}, values=alike(*kinds), layouts=layouts, **said)


TRAINED = drawn(
    kinds=("normal", "positive"),
    sizes={"B": [1, 2], "H": [1, 3], "S": [1, 2, 16, 33, 64, 150], "D": [16, 32, 64, 128]},
    upstream=["normal", "integers", "positive"],
)
IN_ANY_LAYOUT = {"sizes": {"B": [1, 2], "H": [1, 3], "S": [1, 33, 70], "D": [16, 32]}, "kinds": ["normal"]}


def gradient(submission, call, number):
    *inputs, grad = call
    return submission.attention.gradient(*inputs, upstream=grad, wanted=(0, 1, 2), only=number)


MANY_HEADS = {"B": [1, 2], "H": [1, 2, 40], "S": (1, 150), "D": [16, 32, 64, 128]}


@points(8, handout="It returns a new [B, H, S, D] tensor")
@given(call=drawn(dtypes=["float32"], causal=[False], sizes=MANY_HEADS))
def test_every_key(submission, call):
    """Agrees with softmax(q k^T) v in float32"""
    assert_close(submission.attention(*call), expected(*call))


@points(8, handout="query i sees keys 0 to i alone")
@given(call=drawn(dtypes=["float32"], causal=[True], sizes=MANY_HEADS))
def test_causal(submission, call):
    """Hides from each query what comes after it, where causal"""
    assert_close(submission.attention(*call), expected(*call))


@points(8, handout="Keys past the end")
@given(
    call=drawn(
        dtypes=["float16", "float32"], sizes={"B": 1, "H": [1, 2], "S": AROUND_TILES, "D": [16, 32]}, kinds=["normal"]
    )
)
def test_boundary_sizes(submission, call):
    """Is right around the size of a tile, and for a single row"""
    assert_close(submission.attention(*call), expected(*call))


@points(9, handout="may be rounded to the inputs' dtype")
@pytest.mark.parametrize("dtype", FLOATS)
@given(call=drawn(dtypes=["float32"], sizes={"B": [1, 2], "H": [1, 2], "S": [1, 16, 33, 150], "D": [16, 32, 64, 128]}))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    call = [replace(x, dtype=dtype) if isinstance(x, Input) else x for x in call]
    assert_close(submission.attention(*call), expected(*call))


@points(6, handout="Any strides")
@given(call=drawn(layouts=VIEWS, how={"aliases": ATTENTION.aliases}, **IN_ANY_LAYOUT))
def test_any_stride_and_offset(submission, call):
    """Reads q, k and v in any layout"""
    assert_close(submission.attention(*call), expected(*call))


# Scores of thousands that every right kernel computes exactly: else two that are close may change places.
LARGE_SCORES = calls(
    ATTENTION,
    dtypes=["float32", "bfloat16"],
    sizes={"B": [1, 2], "H": [1, 2], "S": [1, 2, 33, 200], "D": [16, 128]},
    layouts=PLAIN,
    values={"q k v": [("integers", "integers", "normal")]},  # v has low bits, which a result must keep
    others={"sm_scale": [32.0]},
)


@points(4, handout="Scores may be large")
@given(call=LARGE_SCORES)
def test_large_scores(submission, call):
    """Stays right where scores are far too large for exp"""
    assert_close(submission.attention(*call), expected(*call))


@points(6, handout="The backward pass makes P again, and must hide the same")
@given(call=TRAINED)
def test_gradient_of_v(submission, call):
    """Gives v its gradient"""
    assert_close(gradient(submission, call, 2), expected_gradient(2, *call))


@points(6, handout="A wrong delta")
@given(call=TRAINED)
def test_gradient_of_q(submission, call):
    """Gives q its gradient"""
    assert_close(gradient(submission, call, 0), expected_gradient(0, *call))


@points(6, handout="sm_scale missing")
@given(call=TRAINED)
def test_gradient_of_k(submission, call):
    """Gives k its gradient"""
    assert_close(gradient(submission, call, 1), expected_gradient(1, *call))


# The weights are nearly alike and exact, so that what a sum loses on its way over the tiles is all that a result may lose:
# that of k and v, that of q, and the logarithm of a row's sum.
LONG_SUMS = [("positive", "faint", "trend"), ("faint", "positive", "trend"), ("faint", "trend", "trend")]


@points(4, handout="A sum kept in 16 bit")
@given(
    call=calls(
        ATTENTION,
        dtypes=["float16", "bfloat16"],
        sizes={"B": 1, "H": 1, "S": 600, "D": 16},
        layouts=PLAIN,
        values={"q k v": LONG_SUMS},
        others={"causal": [False], "sm_scale": [0.25]},
        upstream=["trend"],
    )
)
@settings(max_examples=len(LONG_SUMS))
def test_long_sums(submission, call):
    """Sums over hundreds of rows in float32, whatever the dtype"""
    *inputs, grad = call
    assert_close(submission.attention(*inputs), expected(*inputs))
    found = submission.attention.gradient(*inputs, upstream=grad, wanted=(0, 1, 2))
    assert_close(found, expected_gradients(*call))


def long(sizes):
    """One head of that many rows, in float16."""
    shape = {"B": 1, "H": 1, "S": sizes, "D": 16}
    return drawn(dtypes=["float16"], sizes=shape, kinds=["normal"], upstream=["normal"])


@points(5, kind="structure", handout="Never allocate a tensor of [S, S]")
@settings(max_examples=1)
@given(call=long([512, 1100]))
def test_never_stores_the_weights(submission, call):
    """Allocates nothing as large as [S, S], forward or backward"""
    result = submission.attention(*call[:5])
    assert_close(result, expected(*call[:5]))
    *inputs, grad = call
    assert_close(submission.attention.gradient(*inputs, upstream=grad, wanted=(0, 1, 2)), expected_gradients(*call))
    assert_growth(ATTENTION, submission.attention, *inputs)
    assert_growth(ATTENTION, submission.attention, *inputs, upstream=grad, wanted=(0, 1, 2))


@points(6, kind="memory", handout="Keys past the end")
@given(call=drawn(layouts=["contiguous", "transposed", "expanded"], upstream=["normal"], **IN_ANY_LAYOUT))
def test_memory(submission, call):
    """Stays inside its tensors, forward and backward"""
    assert_memory_clean(submission.attention(*call[:5]))
    assert_memory_clean(gradient(submission, call, 0))


@points(4, kind="structure", handout="It returns a new [B, H, S, D] tensor")
@given(call=drawn(layouts=VIEWS, how={"aliases": ATTENTION.aliases}, **IN_ANY_LAYOUT))
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


@points(10, kind="speed", handout="what happens when a tile is too large")
@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
def test_faster_than_four_steps(submission, causal):
    """Is twice as fast as attention in four steps at 4096, float16, on a GPU"""
    assert_speed(timed(submission, causal, in_four_steps), at_least(2.0, "eager", some_from=1.0))


@points(10, kind="speed", handout="Try tiles of 64 and 128, 4 and 8 warps")
@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
def test_speed_beside_torch(submission, causal):
    """Is half as fast as torch's own fused attention, on a GPU"""
    assert_speed(timed(submission, causal, by_torch), at_least(0.5, "eager", some_from=0.25))
