"""The proofs of a submission, for all sizes of its assignment's domain, as a record."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradekit import domain
from gradekit.assignment import Assignment, beside, of_path
from gradekit.prove.prover import ProofBudget
from gradekit.sandbox import Tracer
from gradekit.subject.entry_proofs import proved
from gradekit.subject.subject import Subject
from gradekit.submission import read

SCHEMA = "gradekit/proofs/1"


@dataclass
class ProofReport:
    """The proofs of a submission: one record for each entry, and one for its backward pass where it has one."""

    assignment: str
    path: str
    passes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The answer as JSON holds it."""
        return {"schema": SCHEMA, "assignment": self.assignment, "submission": self.path, "passes": self.passes}

    @property
    def refuted(self) -> bool:
        """Whether anything is wrong within the domain."""
        return any(found["refuted"] for found in self.passes.values())


def prove_submission(path: Path, id: str | None = None, dtypes: int = 1) -> ProofReport:
    """What holds of the submission at `path` for all sizes that its assignment promises.

    Raises:
        AssignmentError, NoSuchSubmission, SubmissionError: there is nothing to prove anything of.
        ValueError: the assignment has no domain.
    """
    assignment = of_path(path, id)
    file = assignment.folder / "domain.toml"
    if not file.is_file():
        raise ValueError(f"{assignment.id} has no domain.toml, which says for which sizes something is to be proved")
    load_kinds(assignment)
    submission = read(path)
    answer = ProofReport(assignment.id, str(path))
    subject = Subject(submission, assignment, lambda: Tracer(submission, lists=domain.lists_in(assignment.folder)))
    try:
        for name, entry in domain.load(file).items():
            answer.passes[name] = proved(subject, entry, ProofBudget(), dtypes=dtypes).as_data()
            if entry.gradients:
                answer.passes[f"{name}, backward"] = proved(
                    subject, entry, ProofBudget(), gradient=True, dtypes=dtypes
                ).as_data()
    finally:
        subject.close()
    return answer


def load_kinds(assignment: Assignment) -> None:
    """Makes the kinds of values known that stand beside an assignment's tests: refutations are run with them."""
    for file in sorted(assignment.folder.glob("*.py")):
        if "@value_kind" in file.read_text(encoding="utf-8"):
            beside(assignment.tests, file.stem)
