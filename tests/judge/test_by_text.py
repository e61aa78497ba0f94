"""What a kernel's text says that cannot be meant: the line and what was meant, or nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.causes import Cause
from gradekit.judge import Failure
from gradekit.judge.by_text import never_used, same_steps, same_twice
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Evidence
from gradekit.judge.reference import Reference, Worked

FAILURE = Failure(Cause.UNWRITTEN_OUTPUT, "nothing is written")


IDLE = """
@triton.jit
def kernel(p, q, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(p + i)
    total = x * 0
    for k in range(n):
        total += tl.load(p + i)
    one = x * 2 + n
    two = x * 2 + n
    tl.store(q + i, one + two + total)
"""


def of_wrong_values(text: str) -> Evidence:
    wanted = torch.ones(2)
    worked = Worked(
        wanted.double(), wanted, torch.zeros(2, dtype=torch.float64), (), lambda *args: wanted, lambda others: wanted
    )
    comparison = Comparison(torch.zeros(2), Reference(lambda: [worked], 0, None))
    program: Any = SimpleNamespace(kernels={"k": SimpleNamespace(name="kernel")})
    return Evidence(Failure(Cause.WRONG_VALUES, "", comparison=comparison), program=program, text=text)


@pytest.mark.parametrize(
    ("rule", "wrong", "said", "line"),
    [
        (same_steps, "", "the loop in line 7 loads the same: no address goes by `k`", 8),
        (same_twice, "", "Lines 9 and 10 compute the same, and call it `one` and `two`", 10),
        (never_used, "q + i, one + total", "Nothing in kernel uses `two`, which line 10 computes", 10),
    ],
)
def test_what_a_text_shows_of_a_wrong_result_is_told(rule: Any, wrong: str, said: str, line: int) -> None:
    text = IDLE.replace("q + i, one + two + total", wrong) if wrong else IDLE
    found = rule(of_wrong_values(text))
    assert found is not None and said in found.sentence and found.line == line
    mended = {
        same_steps: ("total += tl.load(p + i)", "total += tl.load(p + i + k)"),
        same_twice: ("two = x * 2", "two = x * 3"),
    }
    assert rule(of_wrong_values(IDLE.replace(*mended[rule]) if rule in mended else IDLE)) is None
    assert rule(Evidence(FAILURE, text=text)) is None


def test_what_is_added_to_two_names_is_no_copied_line() -> None:
    assert (
        same_twice(of_wrong_values(IDLE.replace("one = x * 2", "one += x * 2").replace("two = x * 2", "two += x * 2")))
        is None
    )
