"""Checks of matmul: [M, K] @ [K, N] in three dtypes and any layout, accumulated in float32."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings

from gradekit import (
    FLOATS,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    calls,
    domain_of,
    normal,
    points,
    reference,
)

MATMUL = domain_of(__file__)["matmul"]
PLAIN = ("contiguous",)
KINDS = ("ones", "grid", "normal", "positive")
TILES = [1, 16, 17, 33, 64, 129]
TALL = {"M": [*TILES, 1100], "K": TILES, "N": TILES}  # more rows of tiles than a group of them has
ANY_VIEW = calls(MATMUL, sizes={"M": [1, 16, 33, 70], "K": [1, 33, 70], "N": [1, 33, 70]}, values=["normal"],
                 how={"aliases": MATMUL.aliases})  # fmt: skip


def each(sizes):
    """These sizes for M, K and N."""
    return {"M": sizes, "K": sizes, "N": sizes}


def expected(a, b):
    """The product, allowing for sums of K rounded products; float32 inputs may be rounded to TF32 on the way."""
    return reference(torch.matmul, a, b, scale=torch.matmul, terms=a.shape[1], input_precision="tf32")


@points(16, handout="It returns a @ b")
@given(call=calls(MATMUL, dtypes=["float32"], layouts=PLAIN, values=KINDS))
def test_contiguous_float32(submission, call):
    """Multiplies contiguous float32 matrices"""
    assert_close(submission.matmul(*call), expected(*call))


@points(16, handout="the tail of the sum is lost")
@given(call=calls(MATMUL, dtypes=["float16"], sizes=TALL, layouts=PLAIN, values=["normal"]))
def test_boundary_sizes(submission, call):
    """Is right around the size of a tile, in M, K and N"""
    assert_close(submission.matmul(*call), expected(*call))


@points(12, handout="the result is a new [M, N] tensor of the inputs' dtype")
@pytest.mark.parametrize("dtype", FLOATS)
@given(call=calls(MATMUL, dtypes=["float32"], sizes=each([1, 32, 33, 130]), layouts=PLAIN, values=KINDS))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    call = [replace(matrix, dtype=dtype) for matrix in call]
    assert_close(submission.matmul(*call), expected(*call))


@points(12, handout="Two strides each")
@given(call=ANY_VIEW)
def test_any_stride_and_offset(submission, call):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.matmul(*call), expected(*call))


LONG = {"M": [1, 20], "K": [1500, 2048, 2500], "N": [1, 20]}


@points(8, handout="The sum is accumulated in float32")
@settings(max_examples=4)
@given(call=calls(MATMUL, sizes=LONG, layouts=PLAIN, values={"a b": [("positive", "positive"), ("normal", "normal")]}))
def test_accumulates_in_float32(submission, call):
    """Keeps the sum in float32, however long it is"""
    assert_close(submission.matmul(*call), expected(*call))


EXTREME = [("large", "tiny"), ("positive", "special"), ("special", "positive")]


@points(4, handout="what they meet is as torch says")
@given(call=calls(MATMUL, sizes=each([1, 17, 40]), layouts=PLAIN, values={"a b": EXTREME}))
def test_extreme_values(submission, call):
    """Multiplies the dtype's largest numbers by its smallest, and infinities"""
    assert_close(submission.matmul(*call), expected(*call))


@points(8, kind="memory", handout="The store still needs one")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, no races"""
    assert_memory_clean(submission.matmul(*call))


@points(4, kind="structure", handout="Inputs are never modified")
@given(call=ANY_VIEW)
def test_inputs_unmodified(submission, call):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.matmul(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))


SIZE = 4096


def timed_product(submission):
    a, b = normal((SIZE, SIZE), "float16", seed=1), normal((SIZE, SIZE), "float16", seed=2)
    return submission.matmul.timed(a, b, against=torch.matmul, expected=expected)


@points(20, kind="speed", handout="0.6 times as fast earns all points")
def test_speed(submission):
    """Is 0.6 times as fast as torch at 4096, float16, on a GPU"""
    assert_speed(timed_product(submission), at_least(0.6, "eager", some_from=0.3))


@points(5, kind="speed", bonus=True, handout="is worth 5 points of bonus")
def test_speed_bonus(submission):
    """Is 0.9 times as fast as torch at 4096: a bonus"""
    assert_speed(timed_product(submission), at_least(0.9, "eager"))
