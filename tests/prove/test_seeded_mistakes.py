"""Each mistake that an assignment keeps and that harms memory is refuted for all sizes, with sizes at which the engine sees it."""

from pathlib import Path

import pytest

from gradekit import domain
from gradekit.assignment import Assignment, discover
from gradekit.causes import Cause
from gradekit.course.mistakes import all_of, mistake
from gradekit.prove.prover import Proofs
from gradekit.subject.entry_proofs import load_kinds
from tests.prove.deciding import decided

ASSIGNMENTS = discover(Path(__file__).parents[2] / "assignments")
IN_MEMORY = {Cause.OUT_OF_BOUNDS_LOAD, Cause.OUT_OF_BOUNDS_STORE, Cause.UNWRITTEN_OUTPUT, Cause.RACE, Cause.WRITE_CONFLICT}

MISSED = {
    ("spmm", "skips_empty_rows"): "whether a row is written depends on what the row pointers hold",
    ("spmm", "elements_collide"): "which rows collide depends on what the row pointers hold",
}
"""What stays open, and why: the examples of the checks find these."""

SEEDED = [
    (id, found.name)
    for id, assignment in ASSIGNMENTS.items()
    for found in ([] if assignment.is_quiz else all_of(assignment))
    if found.cause in IN_MEMORY
]


def test_there_are_mistakes_and_those_that_are_missed_among_them() -> None:
    assert len(SEEDED) >= 20
    assert set(SEEDED) >= MISSED.keys()


@pytest.mark.sample(4)
@pytest.mark.parametrize(("assignment", "name"), [case for case in SEEDED if case not in MISSED])
def test_a_seeded_mistake_is_refuted_with_sizes(assignment: str, name: str, tmp_path: Path) -> None:
    found = _proved(ASSIGNMENTS[assignment], name, tmp_path)
    assert found.failures, found.as_data()
    refuted = [verdict for verdict in found.verdicts if verdict.verdict == "refuted"]
    assert all(verdict.sizes and verdict.finding for verdict in refuted)
    assert found.failures[0].message.startswith("For ")
    assert not found.faults


def _proved(assignment: Assignment, name: str, folder: Path) -> Proofs:
    load_kinds(assignment)
    (entry,) = domain.load(assignment.folder / "domain.toml").values()
    return decided(folder, mistake(assignment, name).text, assignment, entry)
