"""What staff check of matmul beyond the public tests: larger sizes, vectors as matrices, everything at once."""

from hypothesis import given, settings

from gradekit import assert_close, assert_growth, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)

LARGER = {"M": [200, 257], "K": [100, 256, 300], "N": [129, 256, 300]}
MANY = calls(public.MATMUL, sizes=LARGER, layouts=public.PLAIN, values=["normal"], how={"at_most": 1 << 17})


@points(8)
@settings(max_examples=2)
@given(call=MANY)
def test_larger_sizes(submission, call):
    """Is right for matrices of many tiles"""
    assert_close(submission.matmul(*call), public.expected(*call))


@points(8)
@given(
    call=calls(
        public.MATMUL, sizes={"M": 1, "K": [1, 16, 600], "N": [1, 17, 300]}, values=["normal"], how={"at_most": 1 << 18}
    )
)
def test_one_row(submission, call):
    """Multiplies a single row"""
    assert_close(submission.matmul(*call), public.expected(*call))


@points(8)
@given(call=calls(public.MATMUL, sizes=public.each((1, 90))))
def test_everything_at_once(submission, call):
    """Dtypes, layouts and kinds of values all at once"""
    assert_close(submission.matmul(*call), public.expected(*call))


@points(6, kind="memory")
@settings(max_examples=2)
@given(call=MANY)
def test_memory_of_many_tiles(submission, call):
    """Stays inside its tensors with many tiles too, and loads no more than grows as the products"""
    assert_memory_clean(submission.matmul(*call))
    assert_growth(public.MATMUL, submission.matmul, *call)
