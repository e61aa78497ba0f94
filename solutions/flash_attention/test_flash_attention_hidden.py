"""What staff check of attention beyond the public tests: wider heads, longer rows, any scale, all at once."""

import pytest
from hypothesis import given, settings

from gradekit import assert_close, assert_growth, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)

LONGER = {"B": 1, "H": 1, "S": [260, 512, 600], "D": [64, 128]}
AROUND = {"B": 1, "H": [1, 2], "S": public.AROUND_TILES, "D": [16, 32]}
REMAINING = ("contiguous", "sliced_rows", "every_second", "stepped", "permuted")


@points(8)
@settings(max_examples=1)
@given(call=public.drawn(sizes=LONGER, kinds=["normal"], how={"at_most": 1 << 17}))
def test_longer_rows(submission, call):
    """Is right for hundreds of rows and wide heads"""
    assert_close(submission.attention(*call), public.expected(*call))


@points(9)
@pytest.mark.parametrize("number", [0, 1, 2], ids=["q", "k", "v"])
@settings(max_examples=2)
@given(
    call=public.drawn(
        dtypes=["float16", "float32"], sizes=AROUND, kinds=["normal"], layouts=REMAINING, upstream=["normal"]
    )
)
def test_gradients_around_a_tile(submission, number, call):
    """Gives gradients around the size of a tile, in any layout"""
    found = public.gradient(submission, call, number)
    assert_close(found, public.expected_gradient(number, *call))


@points(3)
@settings(max_examples=2)
@given(
    call=calls(
        public.ATTENTION,
        sizes={"B": [1, 2], "H": [1, 2], "S": [1, 33, 80], "D": [16, 64]},
        layouts=public.PLAIN,
        values=public.alike("normal"),
        others={"sm_scale": [1.0, 0.01, 7.5, "1 / D"]},
        upstream=["normal"],
    )
)
def test_any_scale(submission, call):
    """Takes any scale that is promised: large and small"""
    assert_close(submission.attention(*call[:5]), public.expected(*call[:5]))
    assert_close(public.gradient(submission, call, 1), public.expected_gradient(1, *call))


# The logarithm of a row's sum far below 0, where every score is; a long row whose weights are nearly alike; what is
# too small for float16 (which would round the weights' gradients to 0 in every right kernel, so it is left out).
MAGNITUDES = [("positive", "below_zero", "normal"), ("normal", "normal", "faint"), ("normal", "normal", "positive")]


@points(2)
@settings(max_examples=1)
@given(
    call=calls(
        public.ATTENTION,
        dtypes=["float32", "bfloat16"],
        sizes={"B": 1, "H": 1, "S": [33, 600], "D": 128},
        layouts=public.PLAIN,
        values={"q k v": MAGNITUDES},
        others={"causal": [False], "sm_scale": [1.0, 0.01]},
        upstream=["positive", "faint"],
        how={"at_most": 1 << 17},
    )
)
def test_gradients_of_any_magnitude(submission, call):
    """Gives gradients where scores, values or their gradients are far from 1"""
    *inputs, grad = call
    found = submission.attention.gradient(*inputs, upstream=grad, wanted=(0, 1, 2))
    assert_close(found, public.expected_gradients(*call))


@points(4, kind="structure")
@settings(max_examples=1)
@given(call=public.long([1500, 2000]))
def test_memory_grows_with_the_rows_alone(submission, call):
    """Allocates in proportion to S, at larger S too"""
    gradient = public.gradient(submission, call, 0)
    assert_close(gradient, public.expected_gradient(0, *call))
    assert_growth(public.ATTENTION, submission.attention, *call[:5], upstream=call[5], wanted=(0,))


@points(4, kind="memory")
@settings(max_examples=2)
@given(
    call=public.drawn(
        sizes={"B": 1, "H": [1, 2], "S": [100, 256, 300], "D": [16, 32]}, kinds=["normal"], upstream=["normal"]
    )
)
def test_memory_of_longer_rows(submission, call):
    """Stays inside its tensors, over several tiles"""
    assert_memory_clean(submission.attention(*call[:5]))
    assert_memory_clean(public.gradient(submission, call, 0))
