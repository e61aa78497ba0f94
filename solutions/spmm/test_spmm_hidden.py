"""What staff check of spmm beyond the public tests: wider matrices, all at once, other work per element."""

from hypothesis import given, settings

from gradekit import LAYOUTS, assert_close, assert_memory_clean, points, public_tests

public = public_tests(__file__)


@points(10)
@settings(max_examples=20)
@given(call=public.calls(rows=(1, 100), cols=(200, 1500), columns=(100, 300), patterns=["few", "ragged", "one_long"]))
def test_larger_matrices(submission, call):
    """Is right for hundreds of columns, in the matrix and in dense"""
    assert_close(submission.spmm(*call), public.expected(*call))


@points(10)
@given(call=public.calls(rows=(1, 40), cols=(1, 200), layouts=LAYOUTS, profiles=["mixed", "tiny", "positive"]))
def test_everything_at_once(submission, call):
    """Is right for rows, layouts and magnitudes all at once"""
    assert_close(submission.spmm(*call), public.expected(*call))


@points(5)
@given(call=public.calls(rows=(1, 1), cols=(1, 3), columns=(1, 3), patterns=["none", "full", "even"]))
def test_smallest_matrices(submission, call):
    """Takes a single row, a single column, and nothing at all"""
    assert_close(submission.spmm(*call), public.expected(*call))


@points(5, kind="memory")
@settings(max_examples=20)
@given(call=public.calls(rows=(1, 60), cols=(100, 600), layouts=LAYOUTS))
def test_memory_in_any_layout(submission, call):
    """Stays inside its tensors, in any layout"""
    assert_memory_clean(submission.spmm(*call))
