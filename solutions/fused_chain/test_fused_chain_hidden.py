"""What staff check of fused_chain beyond the public tests: tall and wide matrices, everything at once, one tensor twice."""

from dataclasses import replace

from hypothesis import given

from gradekit import assert_allocates, assert_close, assert_launches, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)

WIDE = {"M": [1, 6], "N": [4095, 4096, 4097, 10_000]}
TALL = {"M": [1000, 3000, 65_535], "N": [1, 3, 9]}  # also as many rows as the second dimension of a grid may count
ROOM = {"at_most": 1 << 18}


@points(8)
@given(call=calls(public.FUSED, sizes=WIDE, layouts=public.PLAIN, values=["normal"], how=ROOM))
def test_wide_rows(submission, call):
    """Is right for rows of thousands of columns"""
    assert_close(submission.fused_chain(*call), public.expected(*call))


@points(8)
@given(call=calls(public.FUSED, sizes=TALL, layouts=public.PLAIN, values=["normal"], how=ROOM))
def test_tall_matrices(submission, call):
    """Is right for thousands of short rows: each element meets the bias of its own column"""
    assert_close(submission.fused_chain(*call), public.expected(*call))
    x, *others = call
    columns_apart = replace(x, stride=(x.shape[1], x.numel))  # rows are as far apart as in a contiguous tensor
    assert_close(submission.fused_chain(columns_apart, *others), public.expected(columns_apart, *others))


@points(8)
@given(call=calls(public.FUSED, sizes={"M": (1, 60), "N": (1, 300)}, how={"aliases": public.FUSED.aliases}))
def test_everything_at_once(submission, call):
    """Dtypes, layouts and kinds of values all at once, in one launch"""
    result = submission.fused_chain(*call)
    assert_close(result, public.expected(*call))
    assert_launches(result, at_most=1)
    assert_allocates(result, only_the_result=True)


@points(6)
@given(call=calls(public.FUSED, sizes={"M": [1, 2, 30], "N": [1, 33, 200]}, values=["normal", "mixed"]))
def test_one_tensor_twice(submission, call):
    """Takes x as the residual too"""
    x, bias, _ = call
    result = submission.fused_chain(x, bias, x)
    assert_close(result, public.expected(x, bias, x))
    assert_memory_clean(result)
