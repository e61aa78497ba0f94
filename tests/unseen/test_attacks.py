"""A submission that recognizes its examples, and is right only there or wrong only elsewhere, fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.findings import Outcome
from tests.graded import grade
from tests.unseen.attacks import ATTACKS, QUICK, Attack

pytestmark = pytest.mark.usefixtures("without_mends")


@pytest.mark.parametrize(
    "attack",
    [pytest.param(one, id=f"{one.assignment}: {one.condition}", marks=[] if n in QUICK else [pytest.mark.slow])
     for n, one in enumerate(ATTACKS)],
)  # fmt: skip
def test_what_a_submission_alone_makes_special_is_tried(attack: Attack, tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text(attack.text)
    checks = grade(get(attack.assignment), tmp_path / "submission.py", keyword=attack.check).checks
    assert {check.outcome for check in checks} & {Outcome.FAILED} and not [
        c for c in checks if c.outcome is Outcome.FAULT
    ]
