"""What staff check of custom_op beyond the public tests: shapes of models, large values, other models around it."""

import pytest
from hypothesis import given, settings

from gradekit import FLOATS, assert_close, assert_compiles, assert_opcheck, calls, normal, points, public_tests

public = public_tests(__file__)

WIDTHS = {"...": [1, 3], "N": [768, 1280, 3072, 4096]}
KINDS = ["mixed", "tiny", "subnormal", "normal", "integers", "positive"]
PAIRS = [*zip(KINDS, KINDS, strict=True), *zip(KINDS, KINDS[::-1], strict=True), ("special", "special")]
TOGETHER = {"x bias": PAIRS}  # the sum may be tiny
BOTH = (public.X, public.BIAS)


@points(8)
@settings(max_examples=2)
@given(
    call=calls(
        public.BIAS_GELU, sizes=WIDTHS, layouts=public.PLAIN, values=["normal"], upstream=["normal"], how={"ranks": [2]}
    )
)
def test_widths_of_models(submission, call):
    """Both passes are right for the widths of real models"""
    *inputs, upstream = call
    assert_close(submission.bias_gelu(*inputs), public.expected(*inputs))
    found = submission.bias_gelu.gradient(*inputs, upstream=upstream, wanted=BOTH)
    assert_close(found, public.expected_gradients(*call))


@points(8)
@given(call=calls(public.BIAS_GELU, sizes={"...": (1, 10), "N": (1, 100)}, values=TOGETHER, upstream=["normal"]))
def test_everything_at_once(submission, call):
    """Dtypes, layouts and kinds of values all at once, in both passes"""
    *inputs, upstream = call
    assert_close(submission.bias_gelu(*inputs), public.expected(*inputs))
    found = submission.bias_gelu.gradient(*inputs, upstream=upstream, wanted=BOTH)
    assert_close(found, public.expected_gradients(*call))


@points(7, kind="structure")
@pytest.mark.parametrize("dtype", FLOATS)
def test_in_models_of_every_dtype(submission, dtype):
    """Models of every dtype compile to one graph"""
    assert_compiles(submission.bias_gelu.inspected(normal((2, 9), dtype), normal((9,), dtype), wanted=(0, 1)))


@points(7, kind="structure")
@pytest.mark.parametrize("check", public.OPCHECKS)
def test_opcheck_of_a_large_model(submission, check):
    """Passes torch's own checks of operators for other shapes and dtypes"""
    seen = submission.bias_gelu.inspected(normal((4, 128, 768), "bfloat16"), normal((768,), "bfloat16"), wanted=(0, 1))
    assert_opcheck(seen, check)
