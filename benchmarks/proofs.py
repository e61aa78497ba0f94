"""What is proved of the right submissions: claims by assignment, of the forward and the backward pass.

    python benchmarks/proofs.py [--open] [--large] [ASSIGNMENT | FILE ...]

Under the budget of a check, or with --large that of `gradekit prove`. --open lists each claim that is not proved. Seconds
are CPU time of the grader's process alone, for both passes of one submission: tracing is the submission's.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gradekit import domain
from gradekit.assignment import Assignment, discover
from gradekit.course.mistakes import bases
from gradekit.prove.prover import CHECK, ProofBudget, Proofs
from gradekit.sandbox import Tracer
from gradekit.subject.entry_proofs import load_kinds, proved
from gradekit.subject.subject import Subject
from gradekit.submission import read
from tests import right

ROOT = Path(__file__).parent.parent


@dataclass
class Row:
    """The claims about an assignment's submissions, and the seconds that each submission took."""

    verdicts: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    unseen: int = 0


def submissions(assignment: Assignment) -> list[Path]:
    """All right submissions of an assignment."""
    assert assignment.solutions is not None
    styles = right.files(assignment.id, (".py", ".ipynb"))
    return [assignment.solutions / "solution.py", *bases(assignment), *styles]


def passes(assignment: Assignment, path: Path, budget: ProofBudget) -> Iterator[tuple[str, Proofs]]:
    """The proofs of each entry's forward and backward pass."""
    load_kinds(assignment)
    submission = read(path)
    subject = Subject(submission, assignment, lambda: Tracer(submission))
    try:
        for name, entry in domain.load(assignment.folder / "domain.toml").items():
            yield name, proved(subject, entry, budget)
            if entry.gradients:
                yield f"{name}, backward", proved(subject, entry, budget, gradient=True)
    finally:
        subject.close()


def survey(assignment: Assignment, paths: list[Path], budget: ProofBudget, list_open: bool) -> Row:
    """The row of an assignment; prints what is not proved where that is asked for."""
    row = Row()
    for path in paths:
        start = time.process_time()
        for name, found in passes(assignment, path, budget):
            row.verdicts.update(found.counts)
            row.unseen += found.unseen is not None
            if list_open:
                _list(path, name, found)
        row.seconds.append(time.process_time() - start)
    return row


def _list(path: Path, name: str, found: Proofs) -> None:
    print(f"{path.parent.name}/{path.name} {name}: {found.counts} paths {found.paths} steps {found.steps}")
    for claim in (verdict.as_data() for verdict in found.verdicts if verdict.verdict != "proved"):
        print("   ", claim)
    for gap in found.gaps:
        print("    gap:", gap)


def main() -> None:
    """Prints the table."""
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    wanted = [a for a in sys.argv[1:] if not a.startswith("--")]
    budget = ProofBudget() if "--large" in options else CHECK
    print("| assignment | submissions | proved | refuted | open | proved, % | with ways not followed | CPU s, median | most |")
    print("|---|---|---|---|---|---|---|---|---|")
    for id, assignment in discover(ROOT / "assignments").items():
        files = [Path(a).resolve() for a in wanted if Path(a).is_file() and Path(a).resolve().parent.name == id]
        if assignment.is_quiz or (wanted and id not in wanted and not files):
            continue
        row = survey(assignment, files or submissions(assignment), budget, "--open" in options)
        total = sum(row.verdicts.values())
        middle = sorted(row.seconds)[len(row.seconds) // 2]
        print(f"| {id} | {len(row.seconds)} | {row.verdicts['proved']} | {row.verdicts['refuted']} | {row.verdicts['open']} | "
              f"{100 * row.verdicts['proved'] / max(total, 1):.1f} | {row.unseen} | {middle:.2f} | {max(row.seconds):.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
