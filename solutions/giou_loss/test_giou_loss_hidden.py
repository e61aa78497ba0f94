"""What staff check of giou_loss beyond the public tests: batches of a detector, all at once, many programs."""

from hypothesis import given, settings

from gradekit import assert_close, assert_growth, assert_memory_clean, points, public_tests

public = public_tests(__file__)

DETECTOR = {"B": [16, 64], "N": [100, 256, 300]}
ALL_KINDS = (public.REAL, public.LEFT, public.PADDED, public.JUNK, public.NO_BOX)
MANY = {"B": [1, 30], "N": [1, 129, 200]}


@points(8)
@settings(max_examples=2)
@given(call=public.drawn([public.PADDED, public.JUNK], sizes=DETECTOR, layouts=public.PLAIN, how={"at_most": 1 << 17}))
def test_batches_of_a_detector(submission, call):
    """Is right for batches of real size"""
    assert_close(submission.giou_loss(*call), public.expected(*call))


@points(8)
@given(
    call=public.drawn(
        [public.REAL, public.PADDED, public.JUNK, public.MET],
        dtypes=["float32"],
        sizes={"B": [1, 2, 20], "N": [1, 64, 130]},
        layouts=public.PLAIN,
        upstream=public.UPSTREAM,
    )
)
def test_both_passes(submission, call):
    """Loss and gradient are right for the same boxes, padding and all"""
    assert_close(submission.giou_loss(*call[:2]), public.expected(*call[:2]))
    public.assert_gradient(submission, call)


@points(8)
@given(call=public.drawn([public.REAL, public.PADDED, public.APART], sizes={"B": (1, 8), "N": (1, 150)}))
def test_everything_at_once(submission, call):
    """Dtypes, layouts and padding all at once"""
    assert_close(submission.giou_loss(*call), public.expected(*call))


@points(6, kind="memory")
@given(call=public.drawn(ALL_KINDS, sizes=MANY, layouts=public.PLAIN, upstream=["normal"]))
def test_memory_with_padding(submission, call):
    """Stays inside its tensors, with any padding, in both passes; memory and traffic grow as the boxes"""
    *pair, upstream = call
    assert_memory_clean(submission.giou_loss(*pair))
    assert_memory_clean(submission.giou_loss.gradient(*pair, upstream=upstream))
    assert_growth(public.GIOU, submission.giou_loss, *pair)
    assert_growth(public.GIOU, submission.giou_loss, *pair, upstream=upstream, wanted=(0,))
