"""Checks of the puzzle add_constant."""

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

DOMAIN = domain_of(__file__)["add_constant"]


def wanted(x):
    return x + 10


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="Return x + 10")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.add_constant(*call), expected(*call))


@points(25, handout="a mask says which lanes exist")
@given(call=calls(DOMAIN, sizes={"N": [1, 2, 3, 31, 32, 33, 128, 1000, 1024]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.add_constant(*call), expected(*call))


@points(25, kind="memory", handout="the others are neither loaded nor stored")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.add_constant(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
