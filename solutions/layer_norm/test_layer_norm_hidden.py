"""What staff check of layer_norm beyond the public tests: rows of models, all at once, gradients of long columns."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import FLOATS, LAYOUTS, assert_close, assert_memory_clean, points, public_tests

public = public_tests(__file__)

WIDTHS = st.sampled_from([768, 1280, 4096, 5120, 12_288])
EVERY = (public.X, public.WEIGHT, public.BIAS)


@points(8)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=15)
@given(call=WIDTHS.flatmap(lambda cols: public.calls(dtypes=["float32"], rows=(1, 5), cols=cols)))
def test_widths_of_models(submission, dtype, call):
    """Both passes are right for the widths of real models"""
    *inputs, upstream = (replace(tensor, dtype=dtype) for tensor in call)
    assert_close(submission.layer_norm(*inputs), public.expected(*inputs))
    found = submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=EVERY)
    assert_close(found, public.expected_gradients(*inputs, upstream))


@points(8)
@settings(max_examples=15)
@given(call=public.calls(rows=(500, 3000), cols=(1, 20)))
def test_many_rows(submission, call):
    """The gradients of weight and bias are right for thousands of rows"""
    *inputs, upstream = call
    found = submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=EVERY)
    assert_close(found, public.expected_gradients(*call))


@points(8)
@given(call=public.calls(rows=(1, 50), cols=(1, 150), layouts=LAYOUTS, profiles=["normal", "shifted", "mixed"]))
def test_everything_at_once(submission, call):
    """Dtypes, layouts and kinds of values all at once, in both passes"""
    *inputs, upstream = call
    assert_close(submission.layer_norm(*inputs), public.expected(*inputs))
    found = submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=EVERY)
    assert_close(found, public.expected_gradients(*call))


@points(6, kind="memory")
@settings(max_examples=15)
@given(call=public.calls(rows=(100, 700), cols=(1, 30), layouts=LAYOUTS))
def test_memory_of_many_rows(submission, call):
    """Nobody writes to one place, however many rows there are"""
    *inputs, upstream = call
    assert_memory_clean(submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=EVERY))
