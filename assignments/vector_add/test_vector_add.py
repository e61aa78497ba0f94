"""Checks of vector_add: add(x, y) for equal shapes of rank 1 to 3, in four dtypes, in any layout."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradekit import (
    FLOATS,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    like,
    points,
    reference,
    shaped,
    tensors,
)

DTYPES = (*FLOATS, "int32")
PLAIN = ("contiguous",)


def pairs(inputs, **choices):
    """Two tensors that agree in shape and dtype; the second has a layout and values of its own."""
    return inputs.flatmap(lambda x: st.tuples(st.just(x), like(x, **choices)))


def expected(x, y):
    return reference(lambda x, y: x + y, x, y)


@points(20)
@given(pair=pairs(tensors(1, dtypes=["float32"], size=(1, 5000), layouts=PLAIN), layouts=PLAIN))
def test_contiguous_float32(submission, pair):
    """Adds two contiguous float32 vectors"""
    assert_close(submission.add(*pair), expected(*pair))


@points(20)
@pytest.mark.parametrize("size", [(1, 3), (127, 129), (255, 257), (1023, 1025), (98431, 98433)], ids=str)
@given(data=st.data())
def test_boundary_sizes(submission, size, data):
    """Is right just below, at and just above the size of a block"""
    pair = data.draw(pairs(tensors(1, dtypes=["float32"], size=size, layouts=PLAIN), layouts=PLAIN))
    assert_close(submission.add(*pair), expected(*pair))


@points(16)
@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_every_dtype(submission, dtype, data):
    """Adds float32, float16, bfloat16 and int32, and returns what it was given"""
    pair = data.draw(pairs(tensors(1, dtypes=[dtype], size=(1, 3000), layouts=PLAIN), layouts=PLAIN))
    assert_close(submission.add(*pair), expected(*pair))


@points(9)
@pytest.mark.parametrize("rank", [1, 2, 3])
@given(data=st.data())
def test_ranks(submission, rank, data):
    """Takes vectors, matrices and rank 3, and gives the result their shape"""
    pair = data.draw(pairs(tensors(rank, dtypes=DTYPES, size=(1, 40), layouts=PLAIN), layouts=PLAIN))
    assert_close(submission.add(*pair), expected(*pair))


@points(15)
@given(pair=st.integers(1, 3).flatmap(lambda rank: pairs(tensors(rank, dtypes=DTYPES, size=(1, 40)))))
def test_any_stride_and_offset(submission, pair):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.add(*pair), expected(*pair))


@points(5, kind="structure")
@pytest.mark.parametrize("shape", [(0,), (3, 0), (2, 0, 5)], ids=str)
@given(data=st.data())
def test_empty(submission, shape, data):
    """Returns an empty tensor for empty ones"""
    pair = data.draw(pairs(shaped(shape, dtypes=DTYPES, layouts=PLAIN, profiles=["ones"]), layouts=PLAIN))
    assert_close(submission.add(*pair), expected(*pair))


@points(10, kind="memory")
@given(pair=pairs(tensors(2, dtypes=DTYPES, size=(1, 60))))
def test_memory(submission, pair):
    """Stays inside its tensors, and writes every element of the result exactly once"""
    assert_memory_clean(submission.add(*pair))


@points(5, kind="structure")
@given(pair=pairs(tensors(1, dtypes=DTYPES, size=(1, 2000), layouts=PLAIN), layouts=PLAIN))
def test_inputs_unmodified(submission, pair):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.add(*pair)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*pair))
