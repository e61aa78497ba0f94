"""What exact arithmetic has shown of a call serves a warm grader's next submission that makes the same one."""

from pathlib import Path
from typing import Any

import pytest

from gradekit import reuse
from gradekit.findings import Cause, Check, Outcome
from gradekit.plugin import beside_examples
from tests.graded import graded

ROOT = Path(__file__).parents[2]
RIGHT = (ROOT / "solutions/fused_chain/solution.py").read_text()
UNUSED = RIGHT + "\n\ndef unused():\n    return 1\n"
WRONG = RIGHT.replace("0.044715", "0.0447")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows with each call that is tried in exact arithmetic."""
    seen: list[Any] = []
    before = beside_examples.tried
    monkeypatch.setattr(beside_examples, "tried", lambda call, specs: (seen.append(call), before(call, specs))[1])
    return seen


def checked(text: str, folder: Path) -> Check:
    options = {"profile": "quick", "device": "cpu", "shrink": False, "diagnose": False}
    return graded("fused_chain", text, folder, keyword="every_dtype and bfloat16", **options).checks[-1]


def test_a_call_that_was_right_is_not_tried_again_after_an_edit_elsewhere(calls: list[Any], tmp_path: Path) -> None:
    with reuse.kept():
        first, count = checked(RIGHT, tmp_path), len(calls)
        assert first.outcome is Outcome.PASSED and first.details["exact"]["exact"] > 0 and count > 0
        assert checked(UNUSED, tmp_path).details == first.details
        assert len(calls) == count


def test_another_formula_is_tried_after_a_right_one_and_each_time(calls: list[Any], tmp_path: Path) -> None:
    with reuse.kept():
        checked(RIGHT, tmp_path)
        for _ in range(2):
            before = len(calls)
            assert (checked(WRONG, tmp_path).cause, len(calls) > before) == (Cause.WRONG_FORMULA, True)
