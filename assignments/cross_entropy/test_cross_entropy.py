"""Checks of cross_entropy: the loss of each row of logits [M, V] at its label, in three dtypes, stable for any size of logits."""

import math
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
    calls,
    domain_of,
    points,
    reference,
)

LOSS = domain_of(__file__)["cross_entropy"]
PLAIN = ("contiguous",)
AROUND_TILES = [1, 2, 3, 127, 128, 129, 255, 257, 511, 1023, 1024, 1025, 2049]
ANY_VIEW = calls(LOSS, sizes={"M": [1, 2, 7, 20], "V": [1, 2, 33, 300]}, values={"logits": ["normal", "ties"]})


def cross_entropy(logits, labels):
    wide = logits if logits.dtype == torch.float64 else logits.float()
    below = wide - wide.amax(-1, keepdim=True)  # first: behind a maximum of 1e16, float64 too has no room for a logarithm
    return torch.logsumexp(below, -1) - below.gather(-1, labels[:, None])[:, 0]


def sizes(logits, labels):
    """What is rounded on the way: the sum of exponents and its logarithm, and how far the label lies below the maximum."""
    return logits.amax(-1) - logits.gather(-1, labels[:, None])[:, 0] + 1 + math.log(logits.shape[-1])


sizes.signed = True  # `reference` calls it with the logits as they are, not with their absolute values


def expected(*call):
    return reference(cross_entropy, *call, scale=sizes)


@points(15, handout="the loss of each row")
@given(call=calls(LOSS, dtypes=["float32"], layouts=PLAIN))
def test_contiguous_float32(submission, call):
    """Agrees with torch on contiguous float32 logits"""
    assert_close(submission.cross_entropy(*call), expected(*call))


@points(15, handout="zeros past the end win the maximum")
@given(call=calls(LOSS, dtypes=["float32"], sizes={"M": [1, 3], "V": AROUND_TILES}, layouts=PLAIN))
def test_boundary_sizes(submission, call):
    """Is right for vocabularies around a power of two"""
    assert_close(submission.cross_entropy(*call), expected(*call))


@points(12, handout="a loss of 11.76 is 11.75 in bfloat16")
@pytest.mark.parametrize("dtype", FLOATS)
@given(call=calls(LOSS, dtypes=["float32"], sizes={"M": [1, 5, 30], "V": [1, 2, 100, 900]}, layouts=PLAIN))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and answers with float32"""
    inputs = replace(call[0], dtype=dtype), call[1]
    assert_close(submission.cross_entropy(*inputs), expected(*inputs))


@points(10, handout="V is 1 to 262144")
@given(call=calls(LOSS, sizes={"M": [1, 2], "V": [8191, 32_000, 50_257, 128_256]}, layouts=PLAIN, values={"logits": ["normal"]},
                  how={"at_most": 1 << 18}))  # fmt: skip
def test_large_vocabularies(submission, call):
    """Is right for vocabularies of up to a hundred thousand words"""
    assert_close(submission.cross_entropy(*call), expected(*call))


@points(8, handout="it lies in one of them, and is 0 in all the others")
@given(call=calls(LOSS, sizes={"M": [1, 4], "V": [1, 2, 33, 300, 2000]}, layouts=PLAIN, values={"labels": ["least", "most"]}))
def test_first_and_last_label(submission, call):
    """Finds the first word and the last"""
    assert_close(submission.cross_entropy(*call), expected(*call))


EXTREME = {"logits": ["far_above", "far_below", "negative", "spread", "spike", "zeros", "shifted", "risen"]}


@points(10, handout="take the maximum away before exp")
@given(call=calls(LOSS, sizes={"M": [1, 8], "V": [1, 2, 33, 300, 1500, 50_257]}, layouts=PLAIN, values=EXTREME))
def test_extreme_values(submission, call):
    """Stays right where exp alone overflows, or gives nothing but zeros"""
    assert_close(submission.cross_entropy(*call), expected(*call))


@points(12, handout="logits has two strides, labels one")
@given(call=ANY_VIEW)
def test_any_stride_and_offset(submission, call):
    """Reads transposed, sliced and expanded logits and labels as they are"""
    assert_close(submission.cross_entropy(*call), expected(*call))


@points(8, kind="memory", handout="load it by its address")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, no races"""
    assert_memory_clean(submission.cross_entropy(*call))


@points(5, kind="memory", handout="No second matrix")
@given(call=calls(LOSS, sizes={"M": [1, 20, 30], "V": [1, 60, 700, 900]}))
def test_no_second_matrix(submission, call):
    """Allocates far less than the logits: no matrix of probabilities"""
    logits, labels = call
    rows = labels.numel
    assert_allocates(submission.cross_entropy(*call), at_most_bytes=4 * rows + max(logits.numel // 4, 64 * rows))


@points(5, kind="structure", handout="Inputs are never modified")
@given(call=ANY_VIEW)
def test_inputs_unmodified(submission, call):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.cross_entropy(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))
