"""What staff check of cross_entropy beyond the public tests: every vocabulary, many rows, hard logits and views at once."""

from hypothesis import given

from gradekit import assert_bytes_moved, assert_close, assert_growth, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)
ROOM = {"at_most": 1 << 18}
WIDE = {"M": [1, 3], "V": [2047, 4096, 10_001, 50_304, 131_073]}


@points(10)
@given(call=calls(public.LOSS, sizes=WIDE, values={"logits": ["normal", "spread", "spike", "negative", "risen"]}, how=ROOM))
def test_wide_rows_of_any_layout(submission, call):
    """Is right for wide rows of any layout"""
    assert_close(submission.cross_entropy(*call), public.expected(*call))


@points(10)
@given(call=calls(public.LOSS, sizes={"M": (1, 30), "V": (1, 1500)}, values=public.EXTREME))
def test_everything_at_once(submission, call):
    """Hard values in any dtype and layout"""
    assert_close(submission.cross_entropy(*call), public.expected(*call))


@points(5)
@given(call=calls(public.LOSS, sizes={"M": [2000, 70_001], "V": [1, 3]}, layouts=public.PLAIN, values={"logits": ["normal"]}, how=ROOM))
def test_many_rows(submission, call):
    """Is right for tens of thousands of short rows"""
    assert_close(submission.cross_entropy(*call), public.expected(*call))


@points(5, kind="memory")
@given(call=calls(public.LOSS, sizes=WIDE, values={"logits": ["normal"]}, layouts=public.PLAIN, how=ROOM))
def test_each_row_twice_at_most(submission, call):
    """Reads each logit twice at most, and needs no memory that grows faster than the logits"""
    logits, labels = call
    result = submission.cross_entropy(*call)
    assert_memory_clean(result)
    rows = logits.shape[0]
    kept = 64 * rows  # what the handout lets every call allocate, written once and read once
    assert_bytes_moved(result, at_most=2.2 * (logits.nbytes + labels.nbytes + 4 * rows) + 2 * kept)
    assert_growth(public.LOSS, submission.cross_entropy, *call)
