"""Reports and a class for the tests of the pages: every kind of picture, with figures that were made up."""

import json
from dataclasses import replace
from typing import Any

from gradekit.batch import course_pages, gradebook
from gradekit.batch.gradebook import Line
from gradekit.batch.policy import Course, Policy
from gradekit.findings import Cause, Kind, Outcome, SourceLine
from gradekit.report import page
from tests.browser import sample
from tests.report.samples import FAILED, FAULT, PASSED, PENDING, record

SOURCE = "\n".join(json.loads(sample.FILE.read_text())["source"])

TILES = {
    "shape": [20, 20], "grid": [2, 2, 1], "rows": 20, "columns": 20, "shared": [{"index": [3, 4], "programs": [[0, 0, 0], [0, 1, 0]]}],
    "owners": [[0, 16], [2, 4]] * 16 + [[1, 16], [-1, 4]] * 4, "wrong": [[0, 320], [1, 80]],
}  # fmt: skip

FINDINGS = [
    {"cause": "out-of-bounds-load", "tensor": "x", "line": 15, "kernel": "k", "launch": 0, "count": 3, "size": 33,
     "elements": [[33], [34], [35]], "programs": [[0, 0, 0]] * 3},
]  # fmt: skip

PROOFS = {
    "softmax": {"proved": 1, "refuted": 1, "open": 1, "assumptions": [], "claims": [
        {"claim": "in-bounds", "subject": "load from x", "verdict": "proved", "line": 15},
        {"claim": "covered", "subject": "the result", "verdict": "refuted", "line": 19, "sizes": {"M": 3, "N": 5}, "finding": "1 of 15 elements is never written"},
        {"claim": "no-race", "subject": "store to c", "verdict": "open", "why": "it depends on data"}]},
}  # fmt: skip

COVERAGE = {"strength": 2, "rows": 18, "of": 18, "drawn": 4, "factors": {"dtype": {"float32": 9, "float16": 9}, "size N": {"1": 6, "33": 12}}}


def speed(size: int, student: float, eager: float, compiled: float) -> dict[str, Any]:
    """Timings of a made-up card."""
    ratios = {"eager": eager / student, "compiled": compiled / student}
    return {
        "card": "a made-up card", "size": f"[{size}, 4096] float32", "notes": [], "configuration": "", "configurations": {},
        "microseconds": {"student": student, "eager": eager, "compiled": compiled}, "rounds": 9, "discarded": 0,
        "ratios": {side: {"value": v, "low": v * 0.93, "high": v * 1.06} for side, v in ratios.items()},
        "verdicts": [{"side": "eager", "at_least": 1.2, "some_from": None, "verdict": "pass", "share": 1.0}],
        "roofline": {"bytes_least": size * 32768, "bytes_moved": size * 32768, "flops": size * 4096, "binds": "memory",
                     "bytes_per_second": size * 32768 / student * 1e6, "flops_per_second": 1e12, "of_bytes": 0.7, "of_flops": None,
                     "most_bytes_per_second": 3.3e12, "most_flops_per_second": None},
    }  # fmt: skip


WORDS = "The result is a new [M, N] tensor of the same dtype"
"""Of the handout of softmax."""


def full_record() -> dict[str, Any]:
    """One check of every kind and outcome, with all that a page can draw."""
    line = SourceLine(15, SOURCE.split("\n")[14])
    wrong = {"tiles": TILES, "wrong": 80, "total": 400, "first": {"index": [16, 0]}, "coverage": COVERAGE, "handout": WORDS}
    example = {**(FAILED.counterexample or {}), "call": "softmax(x)"}
    failed = replace(FAILED, source=line, details=wrong, counterexample=example)
    memory = replace(
        FAILED, id="test_memory", title="Stays inside its tensors", kind=Kind.MEMORY, cause=Cause.OUT_OF_BOUNDS_LOAD,
        source=SourceLine(16, SOURCE.split("\n")[15]), details={"findings": FINDINGS, "proofs": PROOFS},
    )  # fmt: skip
    timed = [
        replace(PENDING, id=f"test_speed[{size}]", title=f"Is fast on {size} rows", outcome=Outcome.PASSED, earned=10, possible=10,
                message="", details={"speed": speed(size, size / 90 + 4, size / 60 + 6, size / 80 + 5)})
        for size in (512, 2048, 8192)
    ]  # fmt: skip
    same = replace(failed, id="test_strides", title="Agrees with torch.softmax on any stride", possible=10)
    return record(PASSED, failed, same, memory, *timed, PENDING, FAULT, notes=("Left out of the notebook: cell 3.",))


def report_page() -> str:
    """A student's report."""
    hand_in = [("student", "Ada Lovelace"), ("attempt", "2 of 3"), ("handed in", "1 day late"), ("penalty", "10 %"), ("in the grade book", "90 of 110")]
    found = full_record()
    before = {**found, "score": {**found["score"], "earned": 75.0}, "checks": [dict(check) for check in found["checks"]]}
    before["checks"][0] |= {"outcome": "failed", "earned": 0}  # passes now
    before["checks"][3] |= {"outcome": "passed", "earned": 30}  # fails now
    before["checks"][1] |= {"source": {"line": 3, "text": "another line"}}  # fails for another reason
    links = {"handout": "README.md", "steps": "steps.html", "causes": "../messages.html"}
    return page.render(found, SOURCE, hand_in, before=before, links=links)


def class_lines(count: int) -> list[Line]:
    """A class of `count` students: most of them graded, others rejected, late, missing or not graded."""
    lines = []
    for number in range(count):
        name = f"Student {number} Example"
        common = {"student": f"s{number:04}", "assignment": "softmax", "name": name, "possible": 100.0, "attempts": 1 + number % 3}
        kind = number % 20
        if kind == 17:
            lines.append(Line(status="missing", **common | {"attempts": 0}))
        elif kind == 18:
            lines.append(Line(status="fault", digest=f"d{number}", note="The grader broke down.", **common))
        elif kind == 19:
            lines.append(Line(status="rejected", digest=f"d{number}", note="Python cannot read line 2", **common))
        else:
            points, penalty = float((number * 37) % 101), 10.0 * (kind == 3)
            lines.append(Line(status="graded", digest=f"d{number % 40}", points=points, penalty=penalty, **common))
    return lines


def class_records(count: int) -> dict[str, Any]:
    """By student, the records of such a class: graded ones have a few in common."""
    known = {f"d{number}": full_record() for number in range(min(count, 40))}
    return {line.student: known[line.digest] for line in class_lines(count) if line.digest in known}


def course_pages_of(count: int = 30) -> dict[str, str]:
    """A course's page, a student's, and a board of speeds."""
    lines = {id: [replace(line, assignment=id) for line in class_lines(count)] for id in ("softmax", "matmul")}
    course = Course("Kernels", {"matmul": Policy(weight=2, excused=("s0001",))}, drop_lowest=1)
    rows = gradebook.course_rows(lines, course)
    speeds = {"Is fast, 4096": [course_pages.Speed("ada", 2.0, 1.9, 2.1), course_pages.Speed("bob", 1.95, 1.9, 2.0)]}
    return {
        "course": course_pages.course_page(course, lines, rows), "student": course_pages.student_page(course, rows[0]),
        "leaderboard": course_pages.board("softmax", speeds, {"ada": "Queen", "bob": "King"}),
    }  # fmt: skip


def dashboard_page(count: int = 60) -> str:
    """A class's page."""
    return course_pages.class_page("softmax", class_lines(count), class_records(count))
