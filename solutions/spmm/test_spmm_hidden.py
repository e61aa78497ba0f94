"""What staff check of spmm beyond the public tests: wider matrices, all at once, other work per element."""

from hypothesis import given, settings

from gradekit import assert_close, assert_memory_clean, points, public_tests

public = public_tests(__file__)

LARGER = {"M": [1, 100], "K": [200, 1024, 1500], "N": [100, 256, 300]}


@points(10)
@settings(max_examples=4)
@given(call=public.drawn(["few", "ragged", "one_long"], LARGER, ("normal", "special", "zero_runs")))
def test_larger_matrices(submission, call):
    """Is right for hundreds of columns, in the matrix and in dense"""
    assert_close(submission.spmm(*call), public.expected(*call))


@points(2)
@settings(max_examples=2)
@given(call=public.drawn(["alone"], {"M": [4200], "K": [1024], "N": [1, 16]}))
def test_one_row_of_thousands(submission, call):
    """Is right for one long row among thousands of empty ones"""
    assert_close(submission.spmm(*call), public.expected(*call))


@points(2)
@settings(max_examples=2)
@given(call=public.drawn(["full"], {"M": 1, "K": [10_000], "N": [20]}, ["positive"], dtypes=["bfloat16", "float16"]))
def test_ten_thousand_in_a_row(submission, call):
    """Rounds the sum of a row of ten thousand elements once"""
    assert_close(submission.spmm(*call), public.expected(*call))


@points(6)
@given(
    call=public.drawn(
        sizes={"M": (1, 40), "K": [1, 64, 200]},
        kinds=["mixed", "tiny", "positive", "special", "zero_runs"],
        layouts=public.VIEWS,
    )
)
def test_everything_at_once(submission, call):
    """Is right for rows, layouts and magnitudes all at once"""
    assert_close(submission.spmm(*call), public.expected(*call))


@points(5)
@given(call=public.drawn(["none", "full", "even"], {"M": 1, "K": [1, 2, 3], "N": [1, 2, 3]}))
def test_smallest_matrices(submission, call):
    """Takes a single row, a single column, and nothing at all"""
    assert_close(submission.spmm(*call), public.expected(*call))


@points(5, kind="memory")
@settings(max_examples=2)
@given(
    call=public.drawn(
        sizes={"M": [1, 60], "K": [100, 512, 600]}, layouts=["contiguous", "sliced_rows", "stepped", "expanded"]
    )
)
def test_memory_in_any_layout(submission, call):
    """Stays inside its tensors, in any layout"""
    assert_memory_clean(submission.spmm(*call))
