"""Checks of the puzzle row_softmax."""

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

DOMAIN = domain_of(__file__)["row_softmax"]


def wanted(x):
    return torch.softmax(x, 1)


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="Return the softmax of each row of x [M, N]")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.row_softmax(*call), expected(*call))


@points(25, handout="The lanes past the end take part in the maximum and in the sum")
@given(call=calls(DOMAIN, sizes={"M": [1, 3], "N": [1, 2, 31, 32, 33, 300, 1024]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.row_softmax(*call), expected(*call))


@points(25, kind="memory", handout="read it once, do everything on chip, write it once")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.row_softmax(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
