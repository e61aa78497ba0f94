"""Checks of the puzzle row_sum."""

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

DOMAIN = domain_of(__file__)["row_sum"]


def wanted(x):
    return x.sum(1)


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="Return the sum of each row of x [M, N]")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.row_sum(*call), expected(*call))


@points(25, handout="Lanes past the end must add nothing")
@given(call=calls(DOMAIN, sizes={"M": [1, 3], "N": [1, 127, 128, 129, 257, 1000]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.row_sum(*call), expected(*call))


@points(25, kind="memory", handout="in tiles of 128. Any N")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.row_sum(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
