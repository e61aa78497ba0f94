"""Checks of the puzzle gather_rows."""

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

DOMAIN = domain_of(__file__)["gather_rows"]


def wanted(table, index):
    return table[index]


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="row index[i] of table [V, D] as row i")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.gather_rows(*call), expected(*call))


@points(25, handout="D is at most 1024")
@given(call=calls(DOMAIN, sizes={"V": [1, 7], "I": [1, 9], "D": [1, 31, 32, 33, 100]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.gather_rows(*call), expected(*call))


@points(25, kind="memory", handout="The number is loaded, and becomes an address")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.gather_rows(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
