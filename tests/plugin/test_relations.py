"""What a domain says of results that belong together is tried by every check of correctness; nothing may be kept between calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import Assignment
from gradekit.findings import Cause, Outcome
from tests.beside import beside
from tests.graded import grade
from tests.texts import ending

CASES = beside(__file__)

pytestmark = pytest.mark.usefixtures("warm")

DOMAIN = """
[double]
arguments = ["x"]
result = { shape = ["M", "N"], dtype = "T" }
relations = { alone = ["M"], permuted = ["M", "N"], linear = ["x"] }
gradients = ["x"]
dtypes.T = ["float32"]
sizes.M = { most = 5000, drawn = 60 }
sizes.N = { most = 5000, drawn = 60 }
tensors.x = { shape = ["M", "N"], dtype = "T", values = ["normal"], layouts = ["contiguous"] }
"""
TESTS = CASES["tests"]
KERNEL = CASES["kernel"]
FUNCTION = """

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return forward(x)

    @staticmethod
    def backward(ctx, dy):
        return launch(dy.contiguous(), torch.empty_like(dy, memory_format=torch.contiguous_format))


def double(x):
    return Double.apply(x)
"""
KEPT = CASES["kept"]
TWICE = "def forward(x):\n    return launch(x, torch.empty_like(x))"
"""Nothing is kept: what every one of these would be."""
RIGHT = {
    "nothing": TWICE,
    "a number of programs": "@functools.lru_cache\ndef blocks(n):\n    return n\n" + TWICE.replace("return", "blocks(x.numel())\n    return"),
    "scratch": (
        "KEPT = {}\ndef forward(x):\n    scratch = KEPT.setdefault(x.shape, torch.empty_like(x))\n    launch(x, scratch, 1.0)\n"
        "    return launch(scratch, torch.empty_like(x))"
    ),
}  # fmt: skip
SQUARES = CASES["squares"]
PRODUCT = """

@triton.jit
def products(x_ptr, y_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * y * factor, mask=i < n)
""" + ending(
    "x, y, factor=1.0", "torch.empty_like(x)", "products[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), factor, BLOCK=64)", "product",
)


@pytest.fixture
def report(assignment: Callable[..., Assignment], submitted: Callable[[str], Path]) -> Callable[..., Any]:
    """Grades a text by tests of a function, all or those whose names match `keyword`."""

    def graded(
        text: str, keyword: str | None = None, *, what: str = "x * 2", slope: str = "dy * 2", domain: str = DOMAIN
    ) -> Any:
        made = assignment(TESTS.replace("WHAT", what).replace("SLOPE", slope))
        (made.folder / "domain.toml").write_text(domain)
        return grade(made, submitted(text), keyword=keyword)

    return graded


def failed(report: Any) -> dict[str, Cause]:
    return {check.id: check.cause for check in report.checks if check.outcome is not Outcome.PASSED}


@pytest.mark.parametrize("name", RIGHT)
def test_what_does_no_harm_may_be_kept(name: str, report: Callable[..., Any]) -> None:
    found = report(KERNEL + RIGHT[name] + FUNCTION, "test_values or test_gradient")
    assert [(check.id, check.message) for check in found.checks if check.outcome is not Outcome.PASSED] == []
    details = {check.id: check.details.get("relations") for check in found.checks}
    related = ["alone M", "permuted M", "permuted N", "linear x", "independent"]
    assert details["test_values"] == [*related, "called: no gradients", "called: inference"]
    ways = ["called: backward twice", "called: views", "called: results", "called: a scaled loss"]
    assert details["test_gradient"] == ["independent", *ways]


OTHERWISE = {
    "a copy of the input": Cause.UNINITIALIZED_READ,  # what an earlier call has left there is no value that may be read
    "the third call of a shape": Cause.DEPENDS_ON_EARLIER_CALLS,
    "after other sizes": Cause.DEPENDS_ON_EARLIER_CALLS,
}


def test_a_call_that_is_right_alone_is_told_that_an_earlier_one_matters(report: Callable[..., Any]) -> None:
    (check,) = report(KERNEL + KEPT["after other sizes"] + FUNCTION, "test_values").checks
    assert check.cause == Cause.DEPENDS_ON_EARLIER_CALLS
    assert "As the first call of a new process, this very call is right" in check.message
    assert check.source is not None and "FIRST.append" in check.source.text


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_between_calls_loses_points(name: str, report: Callable[..., Any]) -> None:
    causes = set(failed(report(KERNEL + KEPT[name] + FUNCTION)).values())
    assert OTHERWISE.get(name, Cause.KEPT_RESULT) in causes


@pytest.mark.parametrize(("which", "fails"), [("x", False), ('LAST["x"]', True), ("LAST[dy.shape]", True)])
def test_state_of_a_forward_pass_that_is_kept_for_the_backward_pass_is_found(
    which: str, fails: bool, report: Callable[..., Any]
) -> None:
    text = KERNEL + PRODUCT + SQUARES.replace("WHICH", which)
    found = report(text, "test_gradient", what="x * x", slope="dy * x * 2", domain=NOT_LINEAR)
    assert failed(found) == ({"test_gradient": Cause.DEPENDS_ON_EARLIER_CALLS} if fails else {})


NOT_LINEAR = DOMAIN.replace(', linear = ["x"]', "")


def test_a_backward_pass_that_a_scaled_loss_takes_beyond_its_numbers_is_found(report: Callable[..., Any]) -> None:
    clipped = KERNEL.replace("x * factor,", "tl.minimum(tl.maximum(x * factor, -65504.0), 65504.0),")
    (check,) = report(clipped + TWICE + FUNCTION, "test_gradient").checks
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.OVERFLOW)
    assert check.message.startswith("With a gradient of the result that is 131,072 times as large")


@pytest.mark.parametrize(("relations", "what", "host", "told"), [
    ('linear = ["x"]', "x * x", "product(x, x)", "With x doubled, the result must be doubled: "),
    ('shifted = ["x"]', "x * 2", "launch(x, torch.empty_like(x))", "With 64 added to rows of x"),
])
def test_a_relation_that_does_not_hold_is_told_in_its_words(
    relations: str, what: str, host: str, told: str, report: Callable[..., Any]
) -> None:
    domain = DOMAIN.replace('alone = ["M"], permuted = ["M", "N"], linear = ["x"]', relations)
    text = KERNEL + PRODUCT + f"\n\ndef forward(x):\n    return {host}\n" + FUNCTION
    (check,) = report(text, "test_values", what=what, domain=domain.replace('["normal"]', '["integers"]')).checks
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.BROKEN_RELATION)
    assert check.message.startswith(told)
    assert check.counterexample["inputs"][0]["profile"] == "integers"


SHORT = """
def forward(x):
    n = x.numel()
    width = n - 60 // n * 5
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 64),)](x, out, width, 2.0, BLOCK=64)
    return out
"""
"""Leaves out the last elements of up to three rows of 20: the checks draw six and seven, a relation takes fewer."""


@pytest.mark.usefixtures("usual_mends")
@pytest.mark.parametrize("passed", ["width", "n"])
def test_a_mistake_that_only_a_relation_shows_is_named(
    passed: str, assignment: Callable[..., Assignment], submitted: Callable[[str], Path]
) -> None:
    """Mended programs are tried on it as the submission was"""
    tests = TESTS.replace("WHAT", "x * 2").replace("SLOPE", "dy * 2").replace('"M": [1, 6, 7], "N": [1, 20]', '"M": [6, 7], "N": [20]')
    made = assignment(tests)
    (made.folder / "domain.toml").write_text(DOMAIN)
    report = grade(made, submitted(KERNEL + SHORT.replace("out, width", f"out, {passed}") + FUNCTION), profile="quick")
    values = next(check for check in report.checks if check.id == "test_values")
    if passed == "n":
        assert values.outcome is Outcome.PASSED
        return
    assert values.cause is Cause.BROKEN_RELATION
    assert "The launch passes width for n of kernel in line 23, where n belongs." in values.message
    assert values.source is not None and "out, width" in values.source.text
