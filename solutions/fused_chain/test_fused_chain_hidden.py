"""What staff check of fused_chain beyond the public tests: tall and wide matrices, everything at once, one tensor twice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import (
    FLOATS,
    LAYOUTS,
    assert_allocates,
    assert_close,
    assert_launches,
    assert_memory_clean,
    matrices,
    points,
    public_tests,
    shaped,
)

public = public_tests(__file__)

WIDE = st.sampled_from([4095, 4096, 4097, 10_000])


@points(8)
@settings(max_examples=15)
@given(inputs=WIDE.flatmap(lambda cols: public.chains(rows=(1, 6), cols=cols)))
def test_wide_rows(submission, inputs):
    """Is right for rows of thousands of columns"""
    assert_close(submission.fused_chain(*inputs), public.expected(*inputs))


@points(8)
@settings(max_examples=15)
@given(inputs=public.chains(rows=(1000, 3000), cols=(1, 9)))
def test_tall_matrices(submission, inputs):
    """Is right for thousands of short rows: each element meets the bias of its own column"""
    assert_close(submission.fused_chain(*inputs), public.expected(*inputs))


@points(8)
@given(inputs=public.chains(layouts=LAYOUTS, rows=(1, 60), cols=(1, 300)))
def test_everything_at_once(submission, inputs):
    """Dtypes, layouts and kinds of values all at once, in one launch"""
    result = submission.fused_chain(*inputs)
    assert_close(result, public.expected(*inputs))
    assert_launches(result, at_most=1)
    assert_allocates(result, only_the_result=True)


@st.composite
def twice(draw):
    """x, which is the residual too, and a bias."""
    x = draw(matrices(dtypes=FLOATS, rows=(1, 30), cols=(1, 200), profiles=public.PROFILES))
    return x, draw(shaped(x.shape[1:], dtypes=[x.dtype], profiles=public.PROFILES))


@points(6)
@given(inputs=twice())
def test_one_tensor_twice(submission, inputs):
    """Takes x as the residual too"""
    x, bias = inputs
    result = submission.fused_chain(x, bias, x)
    assert_close(result, public.expected(x, bias, x))
    assert_memory_clean(result)
