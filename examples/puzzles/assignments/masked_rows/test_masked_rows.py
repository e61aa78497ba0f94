"""Checks of the puzzle masked_rows."""

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

DOMAIN = domain_of(__file__)["masked_rows"]


def wanted(x, lengths):
    return torch.where(torch.arange(x.shape[1]) < lengths[:, None], x, 0.0)


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="with everything from lengths[m] on set to 0 in row m")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.masked_rows(*call), expected(*call))


@points(25, handout="row m counts up to lengths[m], and no further")
@given(call=calls(DOMAIN, sizes={"M": [1, 5], "N": [1, 2, 31, 32, 33, 300]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.masked_rows(*call), expected(*call))


@points(25, kind="memory", handout="N is at most 1024")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.masked_rows(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
