"""Checks of the puzzle reverse."""

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

DOMAIN = domain_of(__file__)["reverse"]


def wanted(x):
    return x.flip(0)


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="Return x with its elements in the opposite order")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.reverse(*call), expected(*call))


@points(25, handout="A mask for the load and one for the store may differ")
@given(call=calls(DOMAIN, sizes={"N": [1, 2, 127, 128, 129, 257, 1000]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.reverse(*call), expected(*call))


@points(25, kind="memory", handout="ask of each address by itself whether it is inside")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.reverse(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
