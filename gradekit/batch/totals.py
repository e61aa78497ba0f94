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
from gradekit.report.grade import grade

Marks = Mapping[tuple[str, str], StoredMark]
Records = Mapping[str, Mapping[str, Any]]
"""Report records by the submission's digest."""


def marked(found: Mapping[str, Any], student: str, marks: Marks, possible: float = 0.0) -> dict[str, Any]:
    """The record `found` with what people decided for `student` in place of what the machine says; `possible` are the
    points of the assignment, for a submission that was marked as a whole."""
    given = {check: kept.mark for (whose, check), kept in marks.items() if whose == student}
    return record.to_dict(applied(record.from_dict(found), given, possible)) if given else dict(found)


def possible_points(records: Records) -> float:
    """What the assignment is worth, as far as any record says."""
    return max((found["score"]["possible"] for found in records.values()), default=0.0)


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
    possible = possible_points(records)
    own = {student: _records_of(student, given, records, marks, possible) for student, given in by_student.items()}
    found = [_line(assignment, student, given, own[student], policy) for student, given in by_student.items()]
    absent = [
        Line(student.student, assignment, "missing", name=student.name, email=student.email)
        for student in roster
        if student.student not in by_student
    ]
    worth = policy.scale or possible
    return sorted((_worth(line, worth) for line in found + absent), key=lambda line: line.student)


def _records_of(
    student: str, given: Sequence[tuple[HandIn, str]], records: Records, marks: Marks, possible: float
) -> Records:
    """The records of a student's hand-ins, with what people decided."""
    return {digest: marked(records[digest], student, marks, possible) for _, digest in given if digest in records}


def _worth(line: Line, most: float) -> Line:
    """With what the assignment is worth, also where nothing could be read and no check was tried."""
    return replace(line, possible=most) if line.status == "rejected" and not line.possible else line


def _line(
    assignment: str,
    student: str,
    given: Sequence[tuple[HandIn, str]],
    records: Records,
    policy: Policy,
) -> Line:
    """A student's line: the attempt that counts; where none has a result, the last attempt's fault."""
    newest = given[-1][0]
    line = Line(student, assignment, "fault", name=newest.name, email=newest.email, attempts=len(given))
    tried = [a for a in (_attempt(h, records.get(d), d, policy) for h, d in given) if a]
    chosen = chosen_attempt([a for a in tried if not a.is_open] or tried, policy, student)
    if chosen is None:
        return replace(line, submitted=newest.submitted, note="not graded yet, or the grader failed")
    return _counted(line, chosen, records[chosen.attempt.key])


def _attempt(hand_in: HandIn, found: Mapping[str, Any] | None, digest: str, policy: Policy) -> Attempt | None:
    if found is None or found["status"] == "fault":
        return None
    worth = grade(found, policy.pending)
    when = (hand_in.submitted, digest, hand_in.late)
    return Attempt(worth.points, worth.possible, worth.pending, *when, is_open=worth.is_open)


def _counted(line: Line, mark: CountedAttempt, found: Mapping[str, Any]) -> Line:
    attempt = mark.attempt
    return replace(
        line, status="pending" if attempt.is_open else found["status"],
        points=mark.points, possible=attempt.possible, pending=attempt.pending,
        penalty=mark.penalty, submitted=attempt.submitted, note=mark.why or found["message"], digest=attempt.key,
    )  # fmt: skip
