"""The corpora of beginner's mistakes fit their right submissions, and reports are held against them rightly."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tests.repair.corpora import BeginnersMistake, Tutored, Verdict, assignments, corpus


@pytest.mark.parametrize("id", assignments())
def test_every_mistake_is_another_submission_in_python(id: str) -> None:
    mistakes = list(corpus(id))
    assert len({ast.dump(ast.parse(mistake.text)) for mistake in mistakes}) == len(mistakes) > 0


def check(message: str, line: int | None, **details: Any) -> dict[str, Any]:
    source = {"line": line, "text": "x"} if line else None
    return {"outcome": "failed", "message": message, "hint": "", "source": source, "details": details}


MISTAKE = BeginnersMistake("softmax", "m", "Forgets a.", "a = 1\nb = 2\n", ("above|below", "mask"), ("b = ",), False)


@pytest.mark.parametrize(
    ("checks", "verdict", "line"),
    [
        ([check("Line 2 has a MASK from below.", 2, observed_cause="nan")], Verdict.NAMED, True),
        ([check("The mask is below.", 1, observed_cause="nan")], Verdict.NAMED, False),
        ([check("Look above.", 2, observed_cause="nan")], Verdict.WRONG, True),
        ([check("3 elements are wrong.", 1)], Verdict.SILENT, False),
        ([check("At shape [2], float32: 1 of 2 is wrong, above the mask at [0]: got 1, expected 2.", 2)], Verdict.SILENT, True),
        ([], Verdict.PASSES, False),
        ([check("Every element is 2 times what it must be.", 1, observed_cause="x")], Verdict.SYMPTOM, False),
        ([check("3 elements are wrong.", 2), check("The mask from above.", None)], Verdict.NAMED, False),
    ],
)
def test_a_report_names_a_cause_by_all_of_its_words_and_points_at_its_line(
    checks: list[dict[str, Any]], verdict: Verdict, line: bool
) -> None:
    tutored = Tutored.of(MISTAKE, {"checks": checks, "cause": None})
    assert (tutored.verdict, tutored.line) == (verdict, line)
