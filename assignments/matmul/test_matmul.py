"""Checks of matmul: [M, K] @ [K, N] in three dtypes and any layout, accumulated in float32."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import (
    FLOATS,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    matmul_pairs,
    matrices,
    normal,
    points,
    reference,
    shaped,
)

PLAIN = ("contiguous",)
AROUND_TILES = st.sampled_from([(1, 3), (15, 17), (31, 33), (63, 65), (127, 129), (30, 260)])  # ranges, ends included


def expected(a, b):
    """The product, allowing for sums of K rounded products; float32 inputs may be rounded to TF32 on the way."""
    return reference(torch.matmul, a, b, scale=torch.matmul, terms=a.shape[1], input_precision="tf32")


@points(16)
@given(pair=matmul_pairs(dtypes=["float32"], layouts=PLAIN))
def test_contiguous_float32(submission, pair):
    """Multiplies contiguous float32 matrices"""
    assert_close(submission.matmul(*pair), expected(*pair))


@points(16)
@given(pair=AROUND_TILES.flatmap(lambda n: matmul_pairs(dtypes=["float16"], rows=n, inner=n, cols=n, layouts=PLAIN)))
def test_boundary_sizes(submission, pair):
    """Is right around the size of a tile, in M, K and N"""
    assert_close(submission.matmul(*pair), expected(*pair))


@points(12)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=20)
@given(pair=matmul_pairs(dtypes=["float32"], layouts=PLAIN))
def test_every_dtype(submission, dtype, pair):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    pair = [replace(matrix, dtype=dtype) for matrix in pair]
    assert_close(submission.matmul(*pair), expected(*pair))


@points(12)
@given(pair=matmul_pairs(rows=(1, 70), inner=(1, 70), cols=(1, 70)))
def test_any_stride_and_offset(submission, pair):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.matmul(*pair), expected(*pair))


LONG_SUMS = matmul_pairs(rows=(1, 20), inner=(1500, 2500), cols=(1, 20), layouts=PLAIN, profiles=["positive", "normal"])


@points(8)
@settings(max_examples=20)
@given(pair=LONG_SUMS)
def test_accumulates_in_float32(submission, pair):
    """Keeps the sum in float32, however long it is"""
    assert_close(submission.matmul(*pair), expected(*pair))


@st.composite
def far_apart(draw):
    """Huge numbers times tiny ones: the products are ordinary numbers, in every dtype."""
    a = draw(matrices(rows=(1, 40), cols=(1, 40), layouts=PLAIN, profiles=["large"]))
    return a, draw(shaped((a.shape[1], draw(st.integers(1, 40))), dtypes=[a.dtype], layouts=PLAIN, profiles=["tiny"]))


@points(4)
@given(pair=far_apart())
def test_extreme_values(submission, pair):
    """Multiplies the dtype's largest numbers by its smallest"""
    assert_close(submission.matmul(*pair), expected(*pair))


@points(8, kind="memory")
@settings(max_examples=30)
@given(pair=matmul_pairs(rows=(1, 70), inner=(1, 70), cols=(1, 70)))
def test_memory(submission, pair):
    """Stays inside its tensors, writes each element exactly once"""
    assert_memory_clean(submission.matmul(*pair))


@points(4, kind="structure")
@settings(max_examples=15)
@given(pair=matmul_pairs(rows=(1, 70), inner=(1, 70), cols=(1, 70), layouts=PLAIN))
def test_inputs_unmodified(submission, pair):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.matmul(*pair)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*pair))


SIZE = 4096


def timed_product(submission):
    a, b = normal((SIZE, SIZE), "float16", seed=1), normal((SIZE, SIZE), "float16", seed=2)
    return submission.matmul.timed(a, b, against=torch.matmul, expected=expected)


@points(20, kind="speed")
def test_speed(submission):
    """Is 0.6 times as fast as torch at 4096, float16, on a GPU"""
    assert_speed(timed_product(submission), at_least(0.6, "eager", some_from=0.3))


@points(5, kind="speed", bonus=True)
def test_speed_bonus(submission):
    """Is 0.9 times as fast as torch at 4096: a bonus"""
    assert_speed(timed_product(submission), at_least(0.9, "eager"))
