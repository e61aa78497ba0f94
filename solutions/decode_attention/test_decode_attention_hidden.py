"""What staff check of decode_attention beyond the public tests: shapes of real models, all at once, other scales."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import FLOATS, assert_close, assert_memory_clean, points, public_tests

public = public_tests(__file__)


def model(heads, group, width, size):
    return public.calls(
        dtypes=["float16", "bfloat16"], batch=(1, 2), heads=(heads, heads), group=(group, group), size=size,
        width=st.just(width), poison=True,
    )  # fmt: skip


MODELS = st.sampled_from(
    [(2, 4, 128, (65, 400)), (1, 8, 128, (65, 400)), (4, 1, 80, (65, 400)), (1, 16, 256, (65, 300))]
)


@points(10)
@settings(max_examples=20)
@given(call=MODELS.flatmap(lambda shape: model(*shape)))
def test_shapes_of_models(submission, call):
    """Is right for the shapes of real models"""
    assert_close(submission.decode_attention(*call), public.expected(*call))


@points(10)
@given(
    call=public.calls(
        group=(1, 9),
        size=(1, 140),
        width=public.HEAD_SIZES,
        layouts=public.STRIDED,
        poison=True,
        profiles=["normal", "integers", "positive", "tiny"],
    )
)
def test_everything_at_once(submission, call):
    """Is right for groups, lengths, layouts and head sizes all at once"""
    assert_close(submission.decode_attention(*call), public.expected(*call))


@points(5)
@given(call=public.calls(dtypes=FLOATS, group=(3, 3)), scale=st.sampled_from([1.0, 0.01, -0.5, 0.0]))
def test_any_scale(submission, call, scale):
    """Takes any scale: large, small, negative, zero"""
    call = (*call[:-1], scale)
    assert_close(submission.decode_attention(*call), public.expected(*call))


@points(5, kind="memory")
@settings(max_examples=20)
@given(call=public.calls(group=(1, 5), size=(200, 1500), layouts=public.STRIDED, width=st.sampled_from([16, 24])))
def test_memory_in_any_layout(submission, call):
    """Stays inside its tensors, in any layout"""
    assert_memory_clean(submission.decode_attention(*call))
