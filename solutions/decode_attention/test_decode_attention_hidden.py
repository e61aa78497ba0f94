"""What staff check of decode_attention beyond the public tests: shapes of real models, all at once, other scales."""

from hypothesis import given, settings

from gradekit import assert_close, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)

SHAPES = {"B": [1, 2], "H": [1, 2, 4], "G": [1, 8, 16], "S": [65, 300], "D": [80, 128, 256]}


@points(10)
@settings(max_examples=2)
@given(call=public.drawn(public.POISON, SHAPES, dtypes=["float16", "bfloat16"], how={"at_most": 1 << 18}))
def test_shapes_of_models(submission, call):
    """Is right for the shapes of real models"""
    assert_close(submission.decode_attention(*call), public.expected(*call))


@points(10)
@given(
    call=public.drawn(
        public.kinds("normal", "integers", "positive", "tiny"),
        {"G": [1, 3, 9], "S": [1, 32, 140], "D": public.HEAD_SIZES},
        (*public.STRIDED, "expanded:1"),  # heads that share values, as in multi-query attention
    )
)
def test_everything_at_once(submission, call):
    """Is right for groups, lengths, layouts and head sizes all at once"""
    assert_close(submission.decode_attention(*call), public.expected(*call))


@points(5)
@given(
    call=calls(
        public.DECODE,
        sizes={"B": [1, 3], "H": [1, 2], "G": 3, "S": [1, 33, 200], "D": [16, 80]},
        layouts=public.PLAIN,
        values=public.kinds("normal"),
        others={"sm_scale": [1.0, 0.01, 7.5, 32.0, "1 / D"]},
    )
)
def test_any_scale(submission, call):
    """Takes any scale that is promised: large and small"""
    assert_close(submission.decode_attention(*call), public.expected(*call))


@points(5, kind="memory")
@settings(max_examples=2)
@given(
    call=public.drawn(
        public.kinds("normal"),
        {"G": [1, 5], "S": [200, 1024, 1500], "D": [16, 24]},
        public.VIEWS,
        how={"at_most": 1 << 18},
    )
)
def test_memory_in_any_layout(submission, call):
    """Stays inside its tensors, in any layout"""
    assert_memory_clean(submission.decode_attention(*call))
