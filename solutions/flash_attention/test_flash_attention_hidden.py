"""What staff check of attention beyond the public tests: wider heads, longer rows, any scale, all at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import LAYOUTS, assert_allocates, assert_close, assert_memory_clean, points, public_tests

public = public_tests(__file__)


@points(8)
@settings(max_examples=12)
@given(call=public.calls(batch=(1, 1), heads=(1, 1), size=(260, 600), widths=(64, 128)))
def test_longer_rows(submission, call):
    """Is right for hundreds of rows and wide heads"""
    assert_close(submission.attention(*call), public.expected(*call))


AROUND = public.AROUND_TILES.flatmap(
    lambda size: public.backward_calls(
        dtypes=["float16", "float32"], size=(size, size), batch=(1, 1), layouts=LAYOUTS, profiles=["normal", "grid"]
    )
)


@points(9)
@pytest.mark.parametrize("number", [0, 1, 2], ids=["q", "k", "v"])
@settings(max_examples=20)
@given(inputs=AROUND)
def test_gradients_around_a_tile(submission, number, inputs):
    """Gives gradients around the size of a tile, in any layout"""
    call, grad = inputs
    found = public.gradient(submission, call, grad, number)
    assert_close(found, public.expected_gradient(number, *call, grad))


@points(5)
@settings(max_examples=20)
@given(inputs=public.backward_calls(size=(1, 80)), scale=st.sampled_from([1.0, 0.01, -0.3]))
def test_any_scale(submission, inputs, scale):
    """Takes any scale: large, small, negative"""
    call, grad = (*inputs[0][:-1], scale), inputs[1]
    assert_close(submission.attention(*call), public.expected(*call))
    assert_close(public.gradient(submission, call, grad, 1), public.expected_gradient(1, *call, grad))


@points(4, kind="structure")
@settings(max_examples=3)
@given(inputs=public.backward_calls(**public.LONG | {"size": (1500, 2000)}))
def test_memory_grows_with_the_rows_alone(submission, inputs):
    """Allocates in proportion to S, at larger S too"""
    call, grad = inputs
    gradient = public.gradient(submission, call, grad, 0)
    assert_close(gradient, public.expected_gradient(0, *call, grad))
    assert_allocates(gradient, only_the_result=False, at_most_bytes=public.room(call, 14))


@points(4, kind="memory")
@settings(max_examples=15)
@given(inputs=public.backward_calls(size=(100, 300), batch=(1, 1), widths=(16, 32)))
def test_memory_of_longer_rows(submission, inputs):
    """Stays inside its tensors, over several tiles"""
    call, grad = inputs
    assert_memory_clean(submission.attention(*call))
    assert_memory_clean(public.gradient(submission, call, grad, 0))
