"""Checks of decode_attention: one query for each sequence, against a cache of which only `lengths` positions count."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings

from gradekit import (
    FLOATS,
    Input,
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

errors = beside(__file__, "errors")
beside(__file__, "lengths")  # kinds of values
DECODE = domain_of(__file__)["decode_attention"]
PLAIN = ("contiguous",)
STRIDED = ("contiguous", "offset", "transposed", "permuted", "sliced_columns", "sliced_rows", "every_second", "stepped")
VIEWS = {
    **dict.fromkeys(
        ("q", "k_cache", "v_cache"), ("contiguous", "offset", "transposed", "permuted", "sliced_columns")
    ),
    "lengths": ("contiguous", "offset", "stepped"),
}
AROUND_TILES = [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300]
HEAD_SIZES = [1, 2, 3, 8, 15, 16, 17, 32, 40, 64, 65, 80, 96, 128, 129, 200, 255, 256]
KINDS = ("normal", "integers", "grid", "positive")
WHOLE, RAGGED = "lengths:{S}:-1", "lengths:{S}:{seed}"
CUT = "cut:{S}:{seed}:{own}"  # NaN and infinity past the length


def in_groups(q, k_cache):
    """The queries of heads that share a head of the caches, together: [B, Hkv, group, D]."""
    return q.reshape(len(q), k_cache.shape[1], -1, q.shape[-1])


def decode(q, k_cache, v_cache, lengths, sm_scale):
    """All sequences of one length together: keys and values are [n, Hkv, length, D]."""
    groups, result = in_groups(q, k_cache), torch.empty_like(q)
    for length in set(lengths.tolist()):
        mine = lengths == length
        k, v = (cache[mine, :, :length] for cache in (k_cache, v_cache))
        result[mine] = (torch.softmax(groups[mine] @ k.mT * sm_scale, -1) @ v).reshape(q[mine].shape)
    return result


def output_errors(rounding, q, k_cache, v_cache, lengths, sm_scale):
    """Heads of the caches of nearly one length together, as many as make small matrices of scores, or some of the queries
    of one alone."""
    groups, k_cache, v_cache = (x.flatten(0, 1) for x in (in_groups(q, k_cache), k_cache, v_cache))
    lengths, result = lengths.repeat_interleave(len(k_cache) // len(q)), torch.empty_like(groups)
    rows = max((1 << 17) // k_cache.shape[1], 1)
    for part in lengths.argsort().split(max(rows // groups.shape[1], 1)):
        k, v = (cache[part, : lengths[part].max()] for cache in (k_cache, v_cache))
        most = lengths[part, None, None]
        some = groups[part].split(rows, 1)
        each = [errors.of_output(rounding, queries, k, v, sm_scale, most) for queries in some]
        result[part] = torch.cat(each, 1)
    return result.reshape(q.shape)


def expected(*inputs):
    return reference(decode, *inputs, bound=output_errors, input_precision="tf32")


def kinds(*names, ends=RAGGED):
    """Kinds of values that q and the caches have in common, and the lengths."""
    return {"q k_cache v_cache": [(name, name, name) for name in names], "lengths": [ends]}


POISON = {"q": ["normal"], "k_cache": [CUT], "v_cache": [CUT]}


def drawn(values, sizes=None, layouts=PLAIN, **said):
    """q, the two caches, the lengths and sm_scale."""
    sized = {"B": [1, 3], "H": [1, 2], "G": 1, "S": [1, 2, 16, 33, 64, 200], "D": [16, 32, 64, 80], **(sizes or {})}
    return calls(DECODE, sizes=sized, layouts=layouts, values=values, **said)


GROUPED = drawn(POISON, {"G": [1, 2], "S": [1, 33, 300], "D": [16, 80]}, VIEWS)


@points(8, handout="It returns a new [B, Hq, D] tensor")
@given(call=drawn(kinds(*KINDS, ends=WHOLE), {"H": [1, 2, 8]}, dtypes=["float32"]))
def test_whole_caches_in_float32(submission, call):
    """Agrees with softmax(q K^T) V where the whole cache counts"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(12, handout="so many positions of sequence b count")
@given(call=drawn(POISON, {"B": [1, 2, 5]}))
def test_ragged_lengths(submission, call):
    """Ignores whatever lies past a sequence's length, NaN too"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(8, handout="A part without positions")
@given(call=drawn(kinds("normal"), {"S": AROUND_TILES, "D": [16, 64]}, dtypes=["float16", "float32"]))
def test_boundary_sizes(submission, call):
    """Is right around the size of a tile of positions"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(8, handout="D from 1 to 256, a power of two or not")
@given(call=drawn(kinds("normal"), {"S": [1, 65], "D": HEAD_SIZES}))
def test_any_head_size(submission, call):
    """Takes heads of 1 to 256 elements, powers of two or not"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(8, handout="Query heads 0 to Hq / Hkv - 1 share head 0 of the cache")
@given(call=drawn(kinds("normal"), {"G": [2, 3, 8, 40], "S": [1, 33, 64, 200]}))
def test_grouped_queries(submission, call):
    """Lets a group of query heads share one head of the cache"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(9, handout="may be rounded to the inputs' dtype")
@pytest.mark.parametrize("dtype", FLOATS)
@given(call=drawn(kinds(*KINDS), {"G": [1, 2], "S": [1, 33, 64, 200]}, dtypes=["float32"]))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    call = [replace(x, dtype=dtype) if isinstance(x, Input) and x.dtype == "float32" else x for x in call]
    assert_close(submission.decode_attention(*call), expected(*call))


@points(8, handout="All may be any view, lengths too")
@given(call=GROUPED)
def test_any_stride_and_offset(submission, call):
    """Reads queries, caches and lengths in any layout"""
    assert_close(submission.decode_attention(*call), expected(*call))


LONG_KINDS = kinds("positive", "normal")
LONG_KINDS["q k_cache v_cache"][1:] = [("faint", "faint", "trend"), ("normal", "normal", "faint")]
LONG = {"B": [1, 16], "H": 1, "S": [1000, 1024, 4000], "D": [16, 64]}


@points(4, handout="Split the positions over several programs")
@settings(max_examples=2)
@given(call=drawn(LONG_KINDS, LONG, how={"at_most": 1 << 18}))
def test_long_caches(submission, call):
    """Is right for caches of thousands of positions"""
    assert_close(submission.decode_attention(*call), expected(*call))


# Scores of thousands that every right kernel computes exactly: else two that are close may change places.
LARGE_SCORES = calls(
    DECODE,
    dtypes=["float32", "bfloat16"],
    sizes={"B": [1, 3], "H": [1, 2], "G": 1, "S": [1, 2, 33, 100, 700], "D": [16, 32, 64, 80]},
    layouts=PLAIN,
    values={"q k_cache v_cache": [("integers", "integers", "normal")], "lengths": [RAGGED]},
    others={"sm_scale": [32.0]},
)


@points(4, handout="take the maximum away before exp")
@given(call=LARGE_SCORES)
def test_large_scores(submission, call):
    """Stays right where scores are far too large for exp"""
    assert_close(submission.decode_attention(*call), expected(*call))


@points(7, kind="memory", handout="the NaN there comes through: mask the load")
@given(call=GROUPED)
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, no races"""
    assert_memory_clean(submission.decode_attention(*call))


@points(4, kind="structure", handout="Inputs are never modified")
@given(call=GROUPED)
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


@points(20, kind="speed", handout="most of the card has nothing to do")
@pytest.mark.parametrize("heads", [(32, 8), (8, 8)], ids=["grouped", "one_each"])
def test_speed(submission, heads):
    """Is 1.2 times as fast as torch for 16 sequences of up to 4096, float16, on a GPU"""
    q = normal((16, heads[0], 128), "float16")
    k, v = (normal((16, heads[1], 4096, 128), "float16", seed=seed) for seed in (1, 2))
    ends = Input("int32", (16,), (1,), profile="lengths:4096:3")
    timed = submission.decode_attention.timed(q, k, v, ends, 0.08, against=in_one, expected=expected)
    assert_speed(timed, at_least(1.2, "eager", some_from=0.4))
