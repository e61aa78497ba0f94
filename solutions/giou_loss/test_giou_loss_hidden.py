"""What staff check of giou_loss beyond the public tests: batches of a detector, all at once, many programs."""

from hypothesis import given, settings

from gradekit import FLOATS, LAYOUTS, assert_close, assert_memory_clean, points, public_tests

public = public_tests(__file__)

ALL_KINDS = (public.REAL, public.PADDED, public.JUNK, public.NO_BOX)


@points(8)
@settings(max_examples=15)
@given(pair=public.pairs(dtypes=FLOATS, batch=(16, 64), boxes=(100, 300), kinds=[public.PADDED, public.JUNK]))
def test_batches_of_a_detector(submission, pair):
    """Is right for batches of real size"""
    assert_close(submission.giou_loss(*pair), public.expected(*pair))


@points(8)
@given(pair=public.pairs(dtypes=["float32"], batch=(1, 20), boxes=(1, 130)), upstream=public.UPSTREAM)
def test_both_passes(submission, pair, upstream):
    """Loss and gradient are right for the same boxes, padding and all"""
    assert_close(submission.giou_loss(*pair), public.expected(*pair))
    found = submission.giou_loss.gradient(*pair, upstream=upstream)
    assert_close(found, public.expected_gradient(*pair, upstream))


@points(8)
@given(pair=public.pairs(layouts=LAYOUTS, boxes=(1, 150), kinds=[public.REAL, public.PADDED, public.APART]))
def test_everything_at_once(submission, pair):
    """Dtypes, layouts and padding all at once"""
    assert_close(submission.giou_loss(*pair), public.expected(*pair))


@points(6, kind="memory")
@settings(max_examples=20)
@given(
    pair=public.pairs(batch=(1, 30), boxes=(1, 200), kinds=ALL_KINDS),
    upstream=public.UPSTREAM,
)
def test_memory_with_padding(submission, pair, upstream):
    """Stays inside its tensors, with any padding, in both passes"""
    assert_memory_clean(submission.giou_loss(*pair))
    assert_memory_clean(submission.giou_loss.gradient(*pair, upstream=upstream))
