"""Hidden checks of clamp(x, low, high)."""

from hypothesis import given

from gradekit import assert_close, points, public_tests, vectors

public = public_tests(__file__)


@points(20)
@given(x=vectors(dtypes=["float32"], size=(1, 300)))
def test_other_limits(submission, x):
    """Takes any two limits"""
    assert_close(submission.clamp(x, 0.0, 2.0), public.expected(x, 0.0, 2.0))
