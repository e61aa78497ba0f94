"""Checks of kv_cache_update: each sequence's new key and value in its own place of the caches, and nothing else changed."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given

from gradekit import (
    FLOATS,
    assert_allocates,
    assert_bytes_moved,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    calls,
    domain_of,
    points,
    reference,
)

UPDATE = domain_of(__file__)["kv_cache_update"]
PLAIN = ("contiguous",)
SMALL = {"B": [1, 3], "H": [1, 2], "S": [1, 2, 17], "D": [1, 16, 80]}
AROUND_TILES = [1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257]
ANY_VIEW = calls(
    UPDATE, sizes={"B": [1, 3], "H": [1, 2], "S": [1, 9], "D": [1, 16, 33]}, how={"aliases": UPDATE.aliases}
)


def kv_cache_update(k_cache, v_cache, k, v, positions):
    new = k_cache.clone(), v_cache.clone()
    for cache, row in zip(new, (k, v), strict=True):
        cache[torch.arange(len(positions)), :, positions] = row
    return new


def expected(*call):
    return reference(kv_cache_update, *call, steps="copied")


@points(20, handout="It writes to both caches")
@given(call=calls(UPDATE, dtypes=["float32"], sizes=SMALL, layouts=PLAIN))
def test_contiguous_float32(submission, call):
    """Puts each key and value in its place, and leaves the rest"""
    assert_close(submission.kv_cache_update(*call), expected(*call))


@points(12, handout="D is 1 to 1024, a power of two or not")
@given(
    call=calls(
        UPDATE, dtypes=["float32"], sizes={"B": [1, 3], "H": [1, 2], "S": [1, 7], "D": AROUND_TILES}, layouts=PLAIN
    )
)
def test_head_sizes(submission, call):
    """Is right for heads of any size, powers of two or not"""
    assert_close(submission.kv_cache_update(*call), expected(*call))


@points(12, handout="each from 0 to S - 1")
@given(call=calls(UPDATE, sizes=SMALL, layouts=PLAIN, values={"positions": ["least", "most"]}))
def test_first_and_last_position(submission, call):
    """Writes the first place of a cache and the last"""
    assert_close(submission.kv_cache_update(*call), expected(*call))


@points(12, handout="Every bit is copied as it is")
@pytest.mark.parametrize("dtype", FLOATS)
@given(
    call=calls(UPDATE, dtypes=["float32"], sizes={"B": [1, 9], "H": [1, 5], "S": [1, 60], "D": [8, 100]}, layouts=PLAIN)
)
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and copies every bit, NaN too"""
    *tensors, positions = call
    inputs = (*(replace(one, dtype=dtype) for one in tensors), positions)
    assert_close(submission.kv_cache_update(*inputs), expected(*inputs))


@points(16, handout="Use all strides: a cache has four")
@given(call=ANY_VIEW)
def test_any_stride_and_offset(submission, call):
    """Writes caches, and reads keys, values and positions, in any layout"""
    assert_close(submission.kv_cache_update(*call), expected(*call))


@points(13, kind="memory", handout="no two elements of a cache share memory")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Writes to no other memory, also between the elements of a sliced cache; no races"""
    assert_memory_clean(submission.kv_cache_update(*call))


@points(10, kind="memory", handout="Nothing as large as a cache is allocated, read or written")
@given(call=calls(UPDATE, sizes={"B": [2], "H": [2], "S": (24, 800), "D": [64, 80]}, how={"at_most": 1 << 18}))
def test_no_copy_of_the_cache(submission, call):
    """Touches the new rows alone: no second cache, no pass over the old one"""
    *_, k, _, positions = call
    result = submission.kv_cache_update(*call)
    assert_allocates(result, at_most_bytes=8 * (k.numel + positions.numel))  # copies of what is read
    assert_bytes_moved(result, at_most=64 * k.numel)  # each new number, its copy and its position, read and written


@points(5, kind="structure", handout="k, v and positions are never modified")
@given(call=ANY_VIEW)
def test_inputs_unmodified(submission, call):
    """Leaves keys, values and positions as they were"""
    result = submission.kv_cache_update(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))
