"""Checks of the puzzle outer_sum."""

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

DOMAIN = domain_of(__file__)["outer_sum"]


def wanted(x, y):
    return x[:, None] + y


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="table of x[m] + y[n]")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.outer_sum(*call), expected(*call))


@points(25, handout="where the two meet in +, or <")
@given(call=calls(DOMAIN, sizes={"M": [1, 2, 7, 31, 32], "N": [1, 3, 16, 32]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.outer_sum(*call), expected(*call))


@points(25, kind="memory", handout="An element at (m, n) of a table with N columns lies at m N + n")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.outer_sum(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
