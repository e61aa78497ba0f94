"""What staff check of matmul beyond the public tests: larger sizes, vectors as matrices, everything at once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import FLOATS, LAYOUTS, assert_close, assert_memory_clean, matmul_pairs, points, public_tests

public = public_tests(__file__)

SIDES = st.sampled_from([200, 256, 257, 300])


@points(8)
@settings(max_examples=12)
@given(pair=SIDES.flatmap(lambda n: matmul_pairs(rows=n, inner=(100, 300), cols=(100, 300), layouts=public.PLAIN)))
def test_larger_sizes(submission, pair):
    """Is right for matrices of many tiles"""
    assert_close(submission.matmul(*pair), public.expected(*pair))


@points(8)
@settings(max_examples=20)
@given(pair=matmul_pairs(dtypes=FLOATS, rows=(1, 1), inner=(1, 600), cols=(1, 300), layouts=LAYOUTS))
def test_one_row(submission, pair):
    """Multiplies a single row"""
    assert_close(submission.matmul(*pair), public.expected(*pair))


@points(8)
@given(pair=matmul_pairs(dtypes=FLOATS, rows=(1, 90), inner=(1, 90), cols=(1, 90), layouts=LAYOUTS))
def test_everything_at_once(submission, pair):
    """Dtypes, layouts and kinds of values all at once"""
    assert_close(submission.matmul(*pair), public.expected(*pair))


@points(6, kind="memory")
@settings(max_examples=12)
@given(pair=SIDES.flatmap(lambda n: matmul_pairs(rows=n, inner=(1, 300), cols=(1, 300), layouts=public.PLAIN)))
def test_memory_of_many_tiles(submission, pair):
    """Stays inside its tensors with many tiles too"""
    assert_memory_clean(submission.matmul(*pair))
