"""From the store to the grade book: results, people's marks and the course's policy become one line for each student.

Pure functions of what the store gave; a person's mark wins over the machine's points.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradekit.batch.gradebook import Line
from gradekit.batch.intake import HandIn
from gradekit.batch.policy import Attempt, CountedAttempt, Policy, chosen_attempt
from gradekit.batch.roster import Student
from gradekit.batch.store import StoredMark
from gradekit.marks import applied
from gradekit.report import record

Marks = Mapping[tuple[str, str], StoredMark]
Records = Mapping[str, Mapping[str, Any]]
"""Report records by the submission's digest."""


def marked(found: Mapping[str, Any], student: str, marks: Marks) -> dict[str, Any]:
    """The record `found` with what people decided for `student` in place of what the machine says."""
    given = {check: kept.mark for (whose, check), kept in marks.items() if whose == student}
    return record.to_dict(applied(record.from_dict(found), given)) if given else dict(found)


def lines(
    assignment: str,
    hand_ins: Iterable[tuple[HandIn, str]],
    records: Records,
    marks: Marks,
    policy: Policy,
    roster: Iterable[Student] = (),
) -> list[Line]:
    """The grade book's lines, by student: those who handed in, and those on the class list who did not."""
    by_student: dict[str, list[tuple[HandIn, str]]] = defaultdict(list)
    for hand_in, digest in hand_ins:
        by_student[hand_in.student].append((hand_in, digest))
    found = [_line(assignment, student, given, records, marks, policy) for student, given in by_student.items()]
    absent = [
        Line(student.student, assignment, "missing", name=student.name, email=student.email)
        for student in roster
        if student.student not in by_student
    ]
    most = max((line.possible for line in found), default=0.0)
    return sorted((_worth(line, most) for line in found + absent), key=lambda line: line.student)


def _worth(line: Line, most: float) -> Line:
    """With what the assignment is worth, also where nothing could be read and no check was tried."""
    return replace(line, possible=most) if line.status == "rejected" and not line.possible else line


def _line(
    assignment: str,
    student: str,
    given: Sequence[tuple[HandIn, str]],
    records: Records,
    marks: Marks,
    policy: Policy,
) -> Line:
    """A student's line: the attempt that counts; where none has a result, the last attempt's fault."""
    newest = given[-1][0]
    line = Line(student, assignment, "fault", name=newest.name, email=newest.email, attempts=len(given))
    chosen = chosen_attempt([a for a in (_attempt(h, d, records, student, marks) for h, d in given) if a], policy, student)
    if chosen is None:
        return replace(line, submitted=newest.submitted, note="not graded yet, or the grader failed")
    return _counted(line, chosen, records[chosen.attempt.key])


def _attempt(hand_in: HandIn, digest: str, records: Records, student: str, marks: Marks) -> Attempt | None:
    found = records.get(digest)
    if found is None or found["status"] == "fault":
        return None
    score = marked(found, student, marks)["score"]
    return Attempt(score["earned"], score["possible"], score["pending"], hand_in.submitted, digest)


def _counted(line: Line, mark: CountedAttempt, found: Mapping[str, Any]) -> Line:
    attempt = mark.attempt
    return replace(
        line, status=found["status"], points=mark.points, possible=attempt.possible, pending=attempt.pending,
        penalty=mark.penalty, submitted=attempt.submitted, note=mark.why or found["message"], digest=attempt.key,
    )  # fmt: skip
