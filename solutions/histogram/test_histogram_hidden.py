"""What staff check of histogram beyond the public tests: long vectors, every number of bins, views and crowds at once."""

from hypothesis import given

from gradekit import assert_close, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)
ROOM = {"at_most": 1 << 18}
LONG = {"N": [4095, 65_537, 200_000], "B": [1, 3, 500, 1025]}


@points(10)
@given(call=calls(public.HISTOGRAM, sizes=LONG, layouts=["contiguous", "every_second"], how=ROOM))
def test_long_vectors(submission, call):
    """Is right for hundreds of thousands of numbers"""
    assert_close(submission.histogram(*call), public.expected(*call))


@points(10)
@given(call=calls(public.HISTOGRAM, sizes={"N": (1, 3000), "B": [511, 513, 1023, 1024, 1025, 2000, 65_535]}))
def test_everything_at_once(submission, call):
    """Any length, number of bins and view"""
    assert_close(submission.histogram(*call), public.expected(*call))


@points(10, kind="memory")
@given(call=calls(public.HISTOGRAM, sizes={"N": [1, 1025, 5000], "B": [1, 1023, 1025, 5000]}))
def test_memory_of_any_bins(submission, call):
    """Stays inside its tensors for any number of bins"""
    assert_memory_clean(submission.histogram(*call))
