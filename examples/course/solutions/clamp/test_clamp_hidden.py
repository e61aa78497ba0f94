"""Hidden checks of clamp(x, low, high)."""

from hypothesis import given

from gradekit import assert_close, calls, points, public_tests

public = public_tests(__file__)


@points(20)
@given(call=calls(public.DOMAIN, sizes={"N": [1, 127, 128, 129, 1000]}))
def test_boundary_sizes(submission, call):
    """Is right where a tile begins and ends"""
    assert_close(submission.clamp(*call), public.expected(*call))
