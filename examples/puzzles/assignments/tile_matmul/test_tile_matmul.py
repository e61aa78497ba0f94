"""Checks of the puzzle tile_matmul."""

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

DOMAIN = domain_of(__file__)["tile_matmul"]


def wanted(a, b):
    return (a if a.dtype == torch.float64 else a.float()) @ (b if b.dtype == torch.float64 else b.float())


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="Return a @ b for a [M, K] and b [K, N]")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.tile_matmul(*call), expected(*call))


@points(25, handout="Lanes past K must add nothing, in a or in b")
@given(call=calls(DOMAIN, sizes={"M": [1, 31, 33], "N": [1, 32, 65], "K": [1, 16, 31, 33, 100]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.tile_matmul(*call), expected(*call))


@points(25, kind="memory", handout="in tiles of 32")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.tile_matmul(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
