"""Checks of the puzzle add_tiles."""

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

DOMAIN = domain_of(__file__)["add_tiles"]


def wanted(x, y):
    return x + y


def expected(*call):
    return reference(wanted, *call, scale=conditioned(wanted))


@points(50, handout="Return x + y")
@given(call=calls(DOMAIN))
def test_values(submission, call):
    """Gives the right numbers"""
    assert_close(submission.add_tiles(*call), expected(*call))


@points(25, handout="the last one may have less to do")
@given(call=calls(DOMAIN, sizes={"N": [1, 127, 128, 129, 255, 256, 257, 5000]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.add_tiles(*call), expected(*call))


@points(25, kind="memory", handout="takes its own tile")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, changes no input"""
    result = submission.add_tiles(*call)
    assert_memory_clean(result)
    assert_inputs_unmodified(result)
