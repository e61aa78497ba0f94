"""A submission that recognizes its examples, and is right only there or wrong only elsewhere, fails, or the decision is
named for a person to look at.

Host code that decides by what a traced size does not remember (text, a table, a float) is not searched for inputs.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

from gradekit.findings import Check, Outcome
from gradekit.report.rests_on import rests_on
from tests.graded import graded
from tests.unseen.attacks import ATTACKS, Attack


def named_lines(checks: Iterable[Check]) -> set[int]:
    """The lines that checks name as decided by what nothing follows, or by what no input has shown."""
    found = rests_on([{"outcome": check.outcome, "details": check.details} for check in checks])
    return {one["line"] for kind in ("unfollowed", "unseen") for one in found.get(kind, ())}


@pytest.mark.sample(1)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: f"{one.assignment}: {one.condition}")
def test_what_a_submission_alone_makes_special_is_tried_or_named(attack: Attack, tmp_path: Path) -> None:
    checks = graded(attack.assignment, attack.text, tmp_path, keyword=attack.check, shrink=False, diagnose=False).checks
    assert not [check for check in checks if check.outcome is Outcome.FAULT]
    if attack.named:
        lines = [number for number, line in enumerate(attack.text.split("\n"), 1) if attack.condition in line]
        assert named_lines(checks).intersection(lines)
    else:
        assert Outcome.FAILED in {check.outcome for check in checks}
