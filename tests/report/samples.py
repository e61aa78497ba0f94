"""Reports for the tests of this folder, one of each kind."""

from typing import Any

from gradekit.findings import Cause, Check, Kind, Outcome, Report, SourceLine, Status
from gradekit.report.record import to_dict

PASSED = Check("test_small", "Agrees with torch.softmax on small matrices", Kind.CORRECTNESS, Outcome.PASSED, 40, 40)
FAILED = Check(
    id="test_matches_torch",
    title="Agrees with torch.softmax on any shape, dtype and stride",
    kind=Kind.CORRECTNESS,
    outcome=Outcome.FAILED,
    earned=0,
    possible=30,
    message="At shape [1, 33], float32: 1 of 33 elements is wrong, first at [0, 32].",
    cause=Cause.MISSING_MASK,
    source=SourceLine(14, "    x = tl.load(x_ptr + offs)"),
    counterexample={
        "inputs": [
            {"name": "x", "shape": [1, 33], "stride": [66, 2], "offset": 0, "dtype": "float32", "profile": "normal"},
            {"name": "scale", "value": 0.5},
        ],
        "replay": "gradekit check submission.py -a softmax -k test_matches_torch --seed 7",
    },
)
PENDING = Check(
    "test_speed", "Is at least as fast as torch.compile", Kind.SPEED, Outcome.PENDING, 0, 30,
    "Speed is measured on a GPU, and this machine has none.",
)  # fmt: skip
FAULT = Check(
    "test_odd", "Something odd", Kind.MEMORY, Outcome.FAULT, 0, 10,
    "The grader failed here, not the submission: ValueError: oh",
)  # fmt: skip
ENVIRONMENT = {"gradekit": "0.1.0", "python": "3.12.1", "torch": "2.13.0", "triton": "3.9.0", "gpu": None}


def report(*checks: Check, **changes: Any) -> Report:
    values: dict[str, Any] = {
        "assignment": "softmax", "status": Status.GRADED, "checks": checks, "environment": ENVIRONMENT, "seconds": 3.21,
        "submission": {"path": "submission.py", "sha256": "ab" * 32, "cells": []}, "seed": 7,
    }  # fmt: skip
    return Report(**values | changes)


def record(*checks: Check, **changes: Any) -> dict[str, Any]:
    return to_dict(report(*checks, **changes))


REJECTED: dict[str, Any] = {
    "status": Status.REJECTED, "message": "Python cannot read line 2 of submission.py: expected ':'",
    "cause": Cause.SYNTAX_ERROR, "source": SourceLine(2, "def f(x)"),
}
