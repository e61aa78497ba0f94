"""Checks of decode_attention: one query for each sequence, against a cache of which only `lengths` positions count."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import (
    FLOATS,
    Input,
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
from gradekit.inputs.strategies import shaped, sizes

errors, ragged = beside(__file__, "errors"), beside(__file__, "lengths")

PLAIN = ("contiguous",)
STRIDED = ("contiguous", "offset", "transposed", "sliced_columns", "sliced_rows", "every_second")
AROUND_TILES = st.sampled_from([1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300])
HEAD_SIZES = st.sampled_from([1, 2, 3, 8, 15, 16, 17, 32, 40, 64, 65, 80, 96, 128, 129, 200, 255, 256])


def sequences(q, k_cache, v_cache, lengths):
    """For each sequence: queries [Hkv, group, D], keys and values [Hkv, length, D]."""
    groups = q.reshape(len(q), k_cache.shape[1], -1, q.shape[-1])
    for query, keys, values, length in zip(groups, k_cache, v_cache, lengths.tolist(), strict=True):
        yield query, keys[:, :length], values[:, :length]


def decode(q, k_cache, v_cache, lengths, sm_scale):
    parts = [torch.softmax(a @ k.mT * sm_scale, -1) @ v for a, k, v in sequences(q, k_cache, v_cache, lengths)]
    return torch.stack(parts).reshape(q.shape)


def output_errors(rounding, q, k_cache, v_cache, lengths, sm_scale):
    parts = [errors.of_output(rounding, *part, sm_scale) for part in sequences(q, k_cache, v_cache, lengths)]
    return torch.stack(parts).reshape(q.shape)


def expected(*inputs):
    return reference(decode, *inputs, bound=output_errors, input_precision="tf32")


@st.composite
def lengths(draw, count, most, layouts=PLAIN, all_whole=False):
    """int32 [count]: lengths from 1 to `most`, or all of them `most`."""
    one_by_one = [layout for layout in layouts if layout in ("contiguous", "offset", "every_second")]
    placed = draw(shaped((count,), dtypes=["int32"], layouts=one_by_one, profiles=["ones"]))
    return replace(placed, profile=f"lengths:{most}:{-1 if all_whole else draw(st.integers(0, 99))}", seed=0)


@st.composite
def calls(
    draw, dtypes=FLOATS, batch=(1, 3), heads=(1, 3), group=(1, 1), size=(1, 200), width=None, layouts=PLAIN, poison=False,
    profiles=("normal", "integers", "grid", "positive"), whole=False,
):  # fmt: skip
    """q, the two caches, the lengths and sm_scale."""
    b, h, g, s = (draw(sizes(*extent)) for extent in (batch, heads, group, size))
    d = draw(width if width is not None else st.sampled_from([16, 32, 64, 80]))
    values = draw(st.sampled_from(profiles))
    q = draw(tensors(3, dtypes=dtypes, size=[b, h * g, d], layouts=layouts, profiles=[values]))
    k = draw(tensors(4, dtypes=[q.dtype], size=[b, h, s, d], layouts=layouts, profiles=[values]))
    v = draw(like(k, layouts=layouts, profiles=[values]))
    ends = draw(lengths(b, s, layouts=layouts, all_whole=whole))
    if poison:
        k, v = ragged.cut(k, ends), ragged.cut(replace(v, seed=v.seed + k.seed + 1), ends)
    return q, k, v, ends, draw(st.sampled_from([d**-0.5, 0.3, 1.0 / d]))


@points(8)
@given(call=calls(dtypes=["float32"], whole=True))
def test_whole_caches_in_float32(submission, call):
    """Agrees with softmax(q K^T) V where the whole cache counts"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(12)
@given(call=calls(poison=True))
def test_ragged_lengths(submission, call):
    """Ignores whatever lies past a sequence's length, NaN too"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(8)
@given(call=AROUND_TILES.flatmap(lambda s: calls(dtypes=["float16", "float32"], size=(s, s))))
def test_boundary_sizes(submission, call):
    """Is right around the size of a tile of positions"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(8)
@given(call=calls(heads=(1, 2), size=(1, 50), width=HEAD_SIZES))
def test_any_head_size(submission, call):
    """Takes heads of 1 to 256 elements, powers of two or not"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(8)
@given(call=calls(group=(2, 8)))
def test_grouped_queries(submission, call):
    """Lets a group of query heads share one head of the cache"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(9)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=20)
@given(call=calls(dtypes=["float32"], group=(1, 2)))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    call = [replace(x, dtype=dtype) if isinstance(x, Input) and x.dtype == "float32" else x for x in call]
    assert_close(submission.decode_attention(*call), expected(*call))


@points(8)
@given(call=calls(group=(1, 2), size=(1, 70), layouts=STRIDED, poison=True))
def test_any_stride_and_offset(submission, call):
    """Reads queries, caches and lengths in any layout"""
    assert_close(submission.decode_attention(*call), expected(*call))


@st.composite
def long_calls(draw):
    """A few thousand positions; sums of positive numbers, where a rounded sum loses most, more often than others."""
    kinds = ("positive", "positive", "normal")
    return draw(calls(batch=(1, 2), heads=(1, 1), size=(1000, 4000), width=st.sampled_from([16, 64]), profiles=kinds))


@points(4)
@settings(max_examples=15)
@given(call=long_calls())
def test_long_caches(submission, call):
    """Is right for caches of thousands of positions"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(4)
@given(call=calls(dtypes=["float32", "bfloat16"], profiles=["mixed"], size=(1, 100)))
def test_large_scores(submission, call):
    """Stays right where scores are far too large for exp"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(7, kind="memory")
@settings(max_examples=20)
@given(call=calls(group=(1, 2), size=(1, 150), width=HEAD_SIZES))
def test_memory(submission, call):
    """Stays inside its tensors, writes each element exactly once"""
    assert_memory_clean(submission.decode_attention(*call))


@points(4, kind="structure")
@settings(max_examples=15)
@given(call=calls(group=(1, 2)))
def test_inputs_unmodified(submission, call):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.decode_attention(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))


def in_one(q, k_cache, v_cache, lengths, sm_scale):
    """As one would write it in torch: every position takes part, and those past the length are masked."""
    scores = q.unflatten(1, (k_cache.shape[1], -1)) @ k_cache.mT * sm_scale
    past = torch.arange(k_cache.shape[2], device=q.device) >= lengths[:, None, None, None]
    return (torch.softmax(scores.masked_fill(past, -torch.inf), -1) @ v_cache).flatten(1, 2)


@points(20, kind="speed")
@pytest.mark.parametrize("heads", [(32, 8), (8, 8)], ids=["grouped", "one_each"])
def test_speed(submission, heads):
    """Is 1.2 times as fast as torch for 16 sequences of up to 4096, float16, on a GPU"""
    q = normal((16, heads[0], 128), "float16")
    k, v = (normal((16, heads[1], 4096, 128), "float16", seed=seed) for seed in (1, 2))
    ends = Input("int32", (16,), (1,), profile="lengths:4096:3")
    timed = submission.decode_attention.timed(q, k, v, ends, 0.08, against=in_one, expected=expected)
    assert_speed(timed, at_least(1.2, "eager", some_from=0.4))
