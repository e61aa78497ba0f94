"""Checks of the puzzle quantized_matmul."""

import torch
from hypothesis import given

from gradekit import (
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    calls,
    conditioned,
    domain_of,
    points,
    reference,
)

DOMAIN = domain_of(__file__)["quantized_matmul"]


def wanted(x, packed, scales):
    low, high = (packed & 15).to(scales.dtype) - 8, (packed >> 4).to(scales.dtype) - 8
    return (x.to(scales.dtype) @ torch.stack([low, high], 1).reshape(-1, packed.shape[1])) * scales


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="Two of them share a byte")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.quantized_matmul(*call), expected(*call))


@points(25, handout="load the even and the odd columns of x as two tiles")
@given(call=calls(DOMAIN, sizes={"M": [1, 17, 33], "N": [1, 31, 64], "J": [1, 15, 16, 17, 40]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.quantized_matmul(*call), expected(*call))


@points(25, kind="memory", handout="a tile is unpacked where it is needed")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.quantized_matmul(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
