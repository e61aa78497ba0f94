"""Where only a relation of two calls shows a mistake, mended programs are tried on it as the submission was."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradekit.assignment import Assignment
from gradekit.findings import Cause, Outcome
from tests.graded import grade
from tests.plugin.test_relations import DOMAIN, FUNCTION, KERNEL, TESTS

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
