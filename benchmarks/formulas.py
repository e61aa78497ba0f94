"""What the proofs of values say of right submissions, of mistakes and of mutants, for one small call of each assignment.

    python benchmarks/formulas.py [--mutants N] [--json FILE] [ASSIGNMENT ...]

Prints a table; with `--json`, each verdict. Mutants are of the solution, at most N, those of constants, functions and
operators first. A wrong submission that is proved equal is one whose edit changes no value at that call.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, of_path
from gradekit.course.mistakes import all_of
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.failure import Failure
from gradekit.mutation.mutants import mutants, spread
from gradekit.sandbox import TraceError, Tracer
from gradekit.subject.subject import Subject
from gradekit.subject.value_trial import ValueTrial
from gradekit.submission import Submission, read
from tests import right

ROOT = Path(__file__).parent.parent
TELLING = ("constant changed", "other function", "operation changed", "one side of where", "sum overwritten")


def spec(*shape: int, seed: int = 1, kind: str = "normal", dtype: str = "float32") -> Input:
    """A contiguous input."""
    return Input(dtype, shape, row_major(shape), 0, kind, seed)


CALLS: dict[str, tuple[str, Callable[[], tuple[Any, ...]]]] = {
    "vector_add": ("add", lambda: (spec(37), spec(37, seed=2))),
    "fused_chain": ("fused_chain", lambda: (spec(3, 5), spec(5, seed=2), spec(3, 5, seed=3))),
    "custom_op": ("bias_gelu", lambda: (spec(3, 5), spec(5, seed=2))),
    "dropout": ("dropout", lambda: (spec(5, 7, kind="positive"), 0.3, 1234)),
    "giou_loss": ("giou_loss", lambda: (spec(1, 3, 4, kind="boxes"), spec(1, 3, 4, kind="boxes", seed=2))),
    "layer_norm": ("layer_norm", lambda: (spec(2, 5), spec(5, seed=2), spec(5, seed=3))),
    "softmax": ("softmax", lambda: (spec(2, 5),)),
}


def verdict(assignment: Assignment, submission: Submission, tests: Any) -> tuple[str, str, float]:
    """The verdict on one submission, why it is open, and the processor's milliseconds of the proof.

    What fails before a proof is begun is "failed": its usual examples tell it apart.
    """
    entry, make = CALLS[assignment.id]
    args = make()  # its kinds of values are known once the tests are
    subject = Subject(submission, assignment, lambda: Tracer(submission))
    try:
        seen = subject.call(entry, args)
        extra = (tests.mask_of(seen, args[0]),) if assignment.id == "dropout" else ()
        asked = tests.expected(*extra, *args).asked
        began = time.process_time()
        try:
            found = ValueTrial(subject, subject.calls[-1], asked).verdict()
        except Failure as failure:
            found = failure.facts["values"]
        return found["verdict"], found.get("why", ""), 1000 * (time.process_time() - began)
    except (Failure, TraceError) as error:
        return "failed", str(error)[:80], 0.0
    except Exception as error:  # noqa: BLE001 - a survey shows what went wrong, and goes on
        return "fault", f"{type(error).__name__}: {error}"[:120], 0.0
    finally:
        subject.close()


def of_text(name: str, text: str) -> Submission:
    """A submission that stands in no file."""
    return Submission(f"{name}.py", text, hashlib.sha256(text.encode()).hexdigest())


def submissions(assignment: Assignment, most: int) -> Iterator[tuple[str, str, Submission]]:
    """What the table is about: its kind, its name, and the submission."""
    solutions = ROOT / "solutions" / assignment.id
    own = [*sorted(solutions.glob("right_*.py")), solutions / "solution.py"]
    for file in [*right.files(assignment.id, (".py", ".ipynb")), *own]:
        yield "right", file.name, read(file)
    for mistake in all_of(assignment):
        yield "mistake", mistake.name, of_text(mistake.name, mistake.text)
    solution = (solutions / "solution.py").read_text(encoding="utf-8")
    found = [m for m in mutants(solution) if m.operator.name in TELLING]
    for mutant in spread(found, most):
        yield "mutant", str(mutant), of_text("mutant", mutant.text)


def tests_of(assignment: Assignment) -> Any:
    """The assignment's tests as a module."""
    made = importlib.util.spec_from_file_location(
        f"tests_of_{assignment.id}", next(assignment.folder.glob("test_*.py"))
    )
    assert made is not None and made.loader is not None
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


def survey(id: str, most: int, show: Callable[..., None]) -> list[dict[str, Any]]:
    """The verdicts on everything of one assignment."""
    assignment = of_path(ROOT / "solutions" / id / "solution.py", id)
    tests, found = tests_of(assignment), []
    for kind, name, submission in submissions(assignment, most):
        said, why, cost = verdict(assignment, submission, tests)
        found.append({"assignment": id, "kind": kind, "name": name, "verdict": said, "why": why, "ms": round(cost)})
        show(f"{id} {kind} {name}: {said} {why}")
    return found


def table(found: Sequence[dict[str, Any]]) -> str:
    """The counts as a table in Markdown."""
    lines = ["| assignment | | proved | refuted | open | failed at once | ms |", "|---|---|---|---|---|---|---|"]
    for id in dict.fromkeys(each["assignment"] for each in found):
        for kind in ("right", "mistake", "mutant"):
            mine = [each for each in found if each["assignment"] == id and each["kind"] == kind]
            counts = Counter(each["verdict"] for each in mine)
            times = [each["ms"] for each in mine if each["verdict"] != "failed"] or [0]
            cells = [counts["proved"], counts["refuted"], counts["open"] + counts["fault"], counts["failed"]]
            lines.append(f"| {id} | {kind} | {' | '.join(map(str, cells))} | {min(times)} to {max(times)} |")
    return "\n".join(lines)


def main() -> None:
    """Surveys the assignments that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("assignments", nargs="*", default=list(CALLS))
    parser.add_argument("--mutants", type=int, default=40)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = [
        each
        for id in options.assignments
        for each in survey(id, options.mutants, lambda s: print(s, file=sys.stderr, flush=True))
    ]
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
