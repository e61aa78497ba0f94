"""Checks of the puzzle outer_product."""

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

DOMAIN = domain_of(__file__)["outer_product"]


def wanted(x, y):
    return torch.relu(x[:, None] * y)


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="Return max(x[m] y[n], 0) for all m, n")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.outer_product(*call), expected(*call))


@points(25, handout="in tiles of 32 by 32. Any sizes")
@given(call=calls(DOMAIN, sizes={"M": [1, 31, 32, 33, 65], "N": [1, 32, 64, 100]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.outer_product(*call), expected(*call))


@points(25, kind="memory", handout="program (i, j) has rows i BLOCK_M and on, columns j BLOCK_N and on")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.outer_product(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
