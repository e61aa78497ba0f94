"""Every committed starter is what its solution holds: `gradekit release ID` writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import Assignment, discover
from gradekit.course.release import stale

ASSIGNMENTS = discover(Path(__file__).parents[2] / "assignments")


@pytest.mark.parametrize("assignment", ASSIGNMENTS.values(), ids=lambda assignment: assignment.id)
def test_the_starter_is_what_the_solution_holds(assignment: Assignment) -> None:
    assert stale(assignment) == ""
