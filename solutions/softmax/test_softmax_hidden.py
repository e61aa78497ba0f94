"""What staff check of softmax beyond the public tests: every width, many rows, -inf and views all at once."""

from hypothesis import given

from gradekit import assert_bytes_moved, assert_close, assert_growth, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)

WIDTHS = {"M": [1, 3], "N": [513, 1536, 4096, 8191, 12_289, 16_384, 30_000]}
ROOM = {"at_most": 1 << 18}
MANY = {"M": [2000, 70_001], "N": [1, 3]}  # more rows than the second dimension of a grid may count


@points(8)
@given(call=calls(public.SOFTMAX, sizes=WIDTHS, values=["normal", "negative", "risen", "neg_inf_runs"], how=ROOM))
def test_widths(submission, call):
    """Is right for wide rows of any layout"""
    assert_close(submission.softmax(*call), public.expected(*call))


@points(8)
@given(call=calls(public.SOFTMAX, sizes=MANY, layouts=["contiguous", "transposed"], values=["normal"], how=ROOM))
def test_many_rows(submission, call):
    """Is right for thousands of short rows"""
    assert_close(submission.softmax(*call), public.expected(*call))


@points(8)
@given(call=calls(public.SOFTMAX, sizes={"M": (1, 30), "N": (1, 2000)}, values=[*public.INFINITE, *public.EXTREME]))
def test_everything_at_once(submission, call):
    """Hard values in any dtype and layout"""
    assert_close(submission.softmax(*call), public.expected(*call))


@points(3, kind="memory")
@given(call=calls(public.SOFTMAX, sizes=MANY, layouts=["contiguous"], values=["normal"], how=ROOM))
def test_each_row_once(submission, call):
    """Reads and writes each of thousands of rows a few times at most"""
    result = submission.softmax(*call)
    assert_memory_clean(result)
    assert_bytes_moved(result, at_most=20 * 4 * call[0].numel)
    assert_growth(public.SOFTMAX, submission.softmax, *call)


@points(3, kind="memory")
@given(call=calls(public.SOFTMAX, sizes=WIDTHS, values=["normal"], how=ROOM))
def test_memory_of_wide_rows(submission, call):
    """Stays inside its tensors in wide rows too"""
    assert_memory_clean(submission.softmax(*call))
