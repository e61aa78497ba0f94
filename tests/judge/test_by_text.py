"""What a kernel's text says that cannot be meant: the line and what was meant, or nothing."""

from __future__ import annotations

import pytest

from gradekit.causes import Cause
from gradekit.judge import Failure, diagnose
from gradekit.judge.by_text import unparenthesized_masks
from gradekit.judge.evidence import Evidence

KERNEL = "@triton.jit\ndef kernel(p, M, N, K):\n    m = {}\n    tl.store(p, m)\n"
FAILURE = Failure(Cause.UNWRITTEN_OUTPUT, "nothing is written")


@pytest.mark.parametrize(
    ("mask", "compared", "meant"),
    [
        ("r[:, None] < M & c[None, :] < N", "M & c[None, :]", "(r[:, None] < M) & (c[None, :] < N)"),
        ("a < M & b >= 0 & c < K", "M & b", "(a < M) & (b >= 0) & (c < K)"),
        ("0 <= a & a < M", "a & a", "(0 <= a) & (a < M)"),
    ],
)
def test_comparisons_without_parentheses_are_shown_as_they_were_meant(mask: str, compared: str, meant: str) -> None:
    found = diagnose(FAILURE, text=KERNEL.format(mask))
    assert found is not None and found.line == 3 and found.cause is FAILURE.cause
    assert f"`{compared}`" in found.sentence and found.hint.endswith(meant)


@pytest.mark.parametrize(
    "text",
    [
        KERNEL.format("(a < M) & (b < N)"),
        KERNEL.format("0 <= a < M"),
        KERNEL.format("a & 1 == b"),  # the & is not between two comparisons
        KERNEL.format("a < M & 15"),
        KERNEL.format("a is M & b < N"),
        "def host(M, N, a, b):\n    return a < M & b < N\n",
        "def f(:",
        "",
    ],
)
def test_nothing_is_said_of_other_comparisons(text: str) -> None:
    assert unparenthesized_masks(Evidence(FAILURE, text=text)) is None
