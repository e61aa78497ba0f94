"""Marks that a person gave: they win over what a machine says. A class's marks (`gradekit mark`) are kept in its store;
what a mark does to a report is said here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from gradekit.assignment import UsageError
from gradekit.findings import Check, Kind, Outcome, Report, Status
from gradekit.schemas import nearest

TOTAL = "total"
"""In place of a check's id: all points of a submission that was rejected, or that the grader failed to grade."""


LINE = "line:"  # in place of a check's id, with a number: a comment at this line of the submission


@dataclass(frozen=True)
class Mark:
    """What a person gave a check: `points` (None: a comment alone), `by` whom, with a `comment`; for one
    `answer` alone, if it names it. When it was `made`, where it is kept."""

    points: float | None = None
    by: str = ""
    comment: str = ""
    answer: str = ""
    made: datetime | None = field(default=None, compare=False)

    @property
    def person(self) -> str:
        """Who gave it."""
        return self.by or "a person"


def checked(report: Report, marks: Mapping[str, Mark]) -> None:
    """See that every mark can be given. Raises UsageError where there is no such check, or it is worth less."""
    known = {check.id: check for check in report.checks}
    for id, mark in marks.items():
        if id.startswith(LINE):
            if mark.points is not None or not id.removeprefix(LINE).isdigit():
                raise UsageError(f"{id}: a line has a number, and a comment without points")
            continue
        if id == TOTAL and id not in known:
            _fits_total(report, mark)
            continue
        if report.status is not Status.GRADED and mark.points is not None:
            state = "rejected" if report.status is Status.REJECTED else "not graded"
            raise UsageError(f"this submission was {state}: mark it as a whole, with {TOTAL} in place of {id}")
        if id not in known:
            raise UsageError(f"there is no check {id} to be marked; {nearest(id, known)}")
        if not 0 <= (mark.points or 0) <= known[id].possible:
            raise UsageError(f"{id} is worth 0 to {known[id].possible:g} points, and not {mark.points}")


def _fits_total(report: Report, mark: Mark) -> None:
    if report.status is Status.GRADED:
        ids = ", ".join(check.id for check in report.checks)
        raise UsageError(f"this submission was graded: mark its checks, which are {ids}")
    if mark.points is None:
        raise UsageError("a mark for the whole submission has points")


def applied(report: Report, marks: Mapping[str, Mark], possible: float = 0.0) -> Report:
    """The report with each mark in place of what stood there; a mark for another answer waits for its person again.

    No check earns more than it is worth, and marks for checks that are not there are left out: a later release may
    have changed both (see `checked`). A mark for TOTAL counts where the submission was rejected or not graded; it is of
    `possible` points.
    """
    report = replace(report, notes=(*report.notes, *_comments(report, marks)))
    total = marks.get(TOTAL)
    if total is not None and total.points is not None and report.status is not Status.GRADED:
        return _by_hand(report, total, total.points, possible or report.score.possible)
    checks = tuple(_marked(check, marks[check.id]) if check.id in marks else check for check in report.checks)
    return replace(report, checks=checks)


def _comments(report: Report, marks: Mapping[str, Mark]) -> Iterator[str]:
    """Comments at lines, of this very submission; an empty one has been taken back."""
    own = {int(id.removeprefix(LINE)): mark for id, mark in marks.items() if id.startswith(LINE)}
    for line, mark in sorted(own.items()):
        if mark.comment and mark.answer in ("", report.submission.get("sha256")):
            yield f"Line {line}: {mark.comment} (comment by {mark.person})"


def _by_hand(report: Report, mark: Mark, points: float, possible: float) -> Report:
    """The report on a submission that a person marked as a whole; why the machine could not is a note in it."""
    possible = max(points, possible)
    outcome = Outcome.PASSED if points == possible else Outcome.FAILED
    message = f"{mark.comment} (marked by {mark.person})".strip()
    check = Check(
        TOTAL, "The whole submission, marked by a person", Kind.CORRECTNESS, outcome, points, possible, message,
        details={"marked_by": mark.person, "points_by": mark.person},
    )  # fmt: skip
    notes = tuple(filter(None, (*report.notes, report.message)))
    return replace(report, status=Status.GRADED, checks=(check,), message="", cause=None, source=None, notes=notes)


def _marked(check: Check, mark: Mark) -> Check:
    details = {**check.details, "marked_by": mark.person}
    if mark.points is None:
        message = "\n".join(filter(None, (check.message, f"{mark.comment} (comment by {mark.person})")))
        return replace(check, message=message, details=details)
    if mark.answer and mark.answer != check.details.get("answer"):
        words = f"This answer is another one than {mark.person} marked: it is to be looked at again."
        return replace(check, outcome=Outcome.PENDING, earned=0.0, message=words, cause=None)
    earned = min(float(mark.points), check.possible)
    return replace(
        check, outcome=Outcome.PASSED if earned == check.possible else Outcome.FAILED, earned=earned,
        message=f"{mark.comment} (marked by {mark.person})".strip(), cause=None, source=None, counterexample=None,
        details=details | {"points_by": mark.person},
    )  # fmt: skip
