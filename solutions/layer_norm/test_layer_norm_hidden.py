"""What staff check of layer_norm beyond the public tests: rows of models, all at once, gradients of long columns."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from gradekit import FLOATS, assert_close, assert_growth, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)

WIDTHS = {"M": [1, 5], "N": [768, 1280, 4096, 5120, 12_288]}
MANY = {"M": [500, 3000], "N": [1, 16, 50]}
KINDS = {
    "x": ["normal", "shifted", "mixed", "integers"],
    "weight bias": [*public.PARAMETERS["weight bias"], ("integers", "ones")],
}
EVERY = (public.X, public.WEIGHT, public.BIAS)


def drawn(sizes, values=public.NORMAL, **more):
    return calls(public.LAYER_NORM, sizes=sizes, values=values, upstream=["normal"], **more)


@points(8)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=2)
@given(call=drawn(WIDTHS, {**public.NORMAL, "x": ["outliers", "spike", "normal"]}, dtypes=["float32"], layouts=public.PLAIN))
def test_widths_of_models(submission, dtype, call):
    """Both passes are right for the widths of real models"""
    *inputs, upstream = (replace(tensor, dtype=dtype) for tensor in call)
    assert_close(submission.layer_norm(*inputs), public.expected(*inputs))
    found = submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=EVERY)
    assert_close(found, public.expected_gradients(*inputs, upstream))


@points(8)
@settings(max_examples=2)
@given(call=drawn(MANY, layouts=public.PLAIN, how={"at_most": 1 << 18}))
def test_many_rows(submission, call):
    """The gradients of weight and bias are right for thousands of rows"""
    *inputs, upstream = call
    found = submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=EVERY)
    assert_close(found, public.expected_gradients(*call))


@points(8)
@given(call=drawn({"M": (1, 50), "N": (1, 150)}, KINDS))
def test_everything_at_once(submission, call):
    """Dtypes, layouts and kinds of values all at once, in both passes"""
    *inputs, upstream = call
    assert_close(submission.layer_norm(*inputs), public.expected(*inputs))
    found = submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=EVERY)
    assert_close(found, public.expected_gradients(*call))


@points(6, kind="memory")
@settings(max_examples=2)
@given(call=drawn({"M": [100, 700], "N": [1, 16, 30]}, layouts=["contiguous", "transposed", "expanded"]))
def test_memory_of_many_rows(submission, call):
    """Nobody writes to one place, however many rows there are, and memory and traffic grow as they do"""
    *inputs, upstream = call
    assert_memory_clean(submission.layer_norm.gradient(*inputs, upstream=upstream, wanted=EVERY))
    assert_growth(public.LAYER_NORM, submission.layer_norm, *inputs, upstream=upstream, wanted=EVERY)
