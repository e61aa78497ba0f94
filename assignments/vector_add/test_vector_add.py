"""Checks of vector_add: add(x, y) for equal shapes of rank 1 to 3, in four dtypes, in any layout."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradekit import (
    FLOATS,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    like,
    normal,
    points,
    reference,
    shaped,
    tensors,
)

DTYPES = (*FLOATS, "int32")
PLAIN = ("contiguous",)
RANKS = st.integers(1, 3)
EMPTY = st.sampled_from([(0,), (3, 0), (2, 0, 5)])


def pairs(inputs, **choices):
    """Two tensors that agree in shape and dtype; the second has a layout and values of its own."""
    return inputs.flatmap(lambda x: st.tuples(st.just(x), like(x, **choices)))


def expected(x, y):
    return reference(lambda x, y: x + y, x, y)


@points(16)
@given(pair=pairs(tensors(1, dtypes=["float32"], size=(1, 5000), layouts=PLAIN), layouts=PLAIN))
def test_contiguous_float32(submission, pair):
    """Adds two contiguous float32 vectors"""
    assert_close(submission.add(*pair), expected(*pair))


AROUND_BLOCKS = st.sampled_from([1, 2, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4095, 4097, 98432, 100_003])


@points(16)
@given(pair=AROUND_BLOCKS.flatmap(lambda n: pairs(shaped([n], dtypes=["float32"], layouts=PLAIN), layouts=PLAIN)))
def test_boundary_sizes(submission, pair):
    """Is right around the size of a block"""
    assert_close(submission.add(*pair), expected(*pair))


TELLING = ("normal", "large", "mixed")  # large integers are not exact in float32


@points(12)
@pytest.mark.parametrize("dtype", DTYPES)
@given(pair=pairs(tensors(1, dtypes=["float32"], size=(1, 3000), layouts=PLAIN, profiles=TELLING), layouts=PLAIN))
def test_every_dtype(submission, dtype, pair):
    """Adds float32, float16, bfloat16 and int32, and keeps the dtype"""
    pair = [replace(vector, dtype=dtype) for vector in pair]
    assert_close(submission.add(*pair), expected(*pair))


@points(8)
@given(pair=RANKS.flatmap(lambda rank: pairs(tensors(rank, size=(1, 40), layouts=PLAIN), layouts=PLAIN)))
def test_ranks(submission, pair):
    """Takes vectors, matrices and rank 3, and keeps the shape"""
    assert_close(submission.add(*pair), expected(*pair))


@points(12)
@given(pair=RANKS.flatmap(lambda rank: pairs(tensors(rank, dtypes=DTYPES, size=(1, 40)))))
def test_any_stride_and_offset(submission, pair):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.add(*pair), expected(*pair))


@points(4, kind="structure")
@given(pair=EMPTY.flatmap(lambda shape: pairs(shaped(shape, dtypes=DTYPES, layouts=PLAIN), layouts=PLAIN)))
def test_empty(submission, pair):
    """Returns an empty tensor for empty ones"""
    assert_close(submission.add(*pair), expected(*pair))


@points(8, kind="memory")
@given(pair=pairs(tensors(2, dtypes=DTYPES, size=(1, 60))))
def test_memory(submission, pair):
    """Stays inside its tensors, writes each element exactly once"""
    assert_memory_clean(submission.add(*pair))


@points(4, kind="structure")
@given(pair=pairs(tensors(1, dtypes=DTYPES, size=(1, 2000), layouts=PLAIN), layouts=PLAIN))
def test_inputs_unmodified(submission, pair):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.add(*pair)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*pair))


N = 1 << 25


@points(20, kind="speed")
def test_speed(submission):
    """Adds 33 million numbers about as fast as torch, on a GPU"""
    x, y = normal((N,), seed=1), normal((N,), seed=2)
    timed = submission.add.timed(x, y, against=torch.add, expected=expected)
    assert_speed(timed, at_least(0.9, "eager", some_from=0.6), at_least(0.9, "compiled", some_from=0.6))
