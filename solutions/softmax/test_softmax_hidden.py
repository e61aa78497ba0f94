"""What staff check of softmax beyond the public tests: every width, many rows, -inf and views all at once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import FLOATS, LAYOUTS, assert_close, assert_memory_clean, matrices, points, public_tests

public = public_tests(__file__)

WIDTHS = st.sampled_from([513, 1536, 4096, 8191, 12_289, 16_384, 30_000])
INFINITE = ["neg_inf_first", "neg_inf"]


@points(8)
@settings(max_examples=15)
@given(x=WIDTHS.flatmap(lambda cols: matrices(dtypes=FLOATS, rows=(1, 3), cols=cols)))
def test_widths(submission, x):
    """Is right for wide rows of any layout"""
    assert_close(submission.softmax(x), public.expected(x))


@points(8)
@settings(max_examples=15)
@given(x=matrices(dtypes=FLOATS, rows=(2000, 5000), cols=(1, 9)))
def test_many_rows(submission, x):
    """Is right for thousands of short rows"""
    assert_close(submission.softmax(x), public.expected(x))


@points(8)
@given(x=matrices(dtypes=FLOATS, rows=(1, 30), cols=(1, 2000), layouts=LAYOUTS, profiles=[*INFINITE, "large", "mixed"]))
def test_everything_at_once(submission, x):
    """Hard values in any dtype and layout"""
    assert_close(submission.softmax(x), public.expected(x))


@points(6, kind="memory")
@settings(max_examples=15)
@given(x=WIDTHS.flatmap(lambda cols: matrices(dtypes=FLOATS, rows=(1, 3), cols=cols)))
def test_memory_of_wide_rows(submission, x):
    """Stays inside its tensors in wide rows too"""
    assert_memory_clean(submission.softmax(x))
