"""What is proved of a submission that is a text."""

from pathlib import Path

from gradekit.assignment import Assignment
from gradekit.domain import EntryDomain
from gradekit.prove.prover import CHECK, ProofBudget, Proofs
from gradekit.sandbox import Tracer
from gradekit.subject.entry_proofs import proved
from gradekit.subject.subject import Subject
from gradekit.submission import read


def decided(folder: Path, text: str, assignment: Assignment, entry: EntryDomain, budget: ProofBudget = CHECK) -> Proofs:
    """What is proved of a text that is written to `folder`: of its calls, and of its gradients' where the calls leave nothing to blame."""
    (file := folder / "submission.py").write_text(text)
    submission = read(file)
    subject = Subject(submission, assignment, lambda: Tracer(submission))
    try:
        forward = proved(subject, entry, budget)
        return forward if forward.failures or not entry.gradients else proved(subject, entry, budget, gradient=True)
    finally:
        subject.close()
