"""From answers to a report: one check for each question.

A student sees feedback on the choice that was made, and nothing about the others: feedback teaches, and is no key.
Where the key is not on this machine, the answer is recorded, and pending.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment
from gradekit.findings import Cause, Check, Kind, Outcome, Report, Status
from gradekit.quiz import answers as answering
from gradekit.quiz.questions import Key, Question, load
from gradekit.submission import NoSuchSubmission, SubmissionError
from gradekit.versions import environment


def grade(assignment: Assignment, path: Path, *, hidden: bool = False) -> Report:
    """The report on the answers at `path`; with `hidden`, details for the staff say what a rubric looks for. Raises
    NoSuchSubmission where there is nothing, and AssignmentError where the questions or their key are wrong."""
    began = time.monotonic()
    questions = load(assignment)
    try:
        given = answering.read(path)
    except NoSuchSubmission:
        raise
    except SubmissionError as error:
        return _rejected(assignment, path, questions, error)
    checks = [_check(question, given.given.get(question.id, ""), hidden) for question in questions]
    notes = tuple(answering.unknown(given.given, questions))
    took = time.monotonic() - began
    return _report(assignment, Status.GRADED, given.facts(), checks, notes=notes, seconds=took)


def _rejected(assignment: Assignment, path: Path, questions: list[Question], error: SubmissionError) -> Report:
    checks = [_made(q, Outcome.FAILED, 0, error.message, error.cause) for q in questions]
    facts, why = {"path": str(path), "sha256": "", "cells": []}, {"message": error.message, "cause": error.cause}
    return _report(assignment, Status.REJECTED, facts, checks, source=error.source, seconds=0.0, **why)


def _report(
    assignment: Assignment, status: Status, submission: dict[str, Any], checks: list[Check], **more: Any
) -> Report:
    return Report(
        assignment.id, status, submission, tuple(checks), environment=environment(), seed=assignment.seed, **more
    )


def _check(question: Question, answer: str, hidden: bool) -> Check:
    if not answer:
        return _made(question, Outcome.FAILED, 0, "Not answered yet.", Cause.NO_ANSWER)
    return _chosen(question, answer) if question.choices else _written(question, answer, hidden)


def _chosen(question: Question, answer: str) -> Check:
    letter = answering.letter(question, answer)
    if letter is None:
        message = f"The answer is one of {', '.join(question.choices)}, and not {answer[:40]!r}."
        return _made(question, Outcome.FAILED, 0, message, Cause.NO_ANSWER)
    details = {"answer": answering.digest(answer), "choice": letter}
    said = f"{letter}: {question.choices[letter]}"
    if question.key is None:
        return _made(question, Outcome.PENDING, 0, f"Recorded: {said}", details=details)
    message = f"{said}\n{question.key.feedback[letter]}"
    if letter == question.key.right:
        return _made(question, Outcome.PASSED, question.points, message, details=details)
    return _made(question, Outcome.FAILED, 0, message, Cause.WRONG_ANSWER, details)


def _written(question: Question, answer: str, hidden: bool) -> Check:
    key = question.key or Key()
    details: dict[str, Any] = {"answer": answering.digest(answer)}
    for certain in key.certain:
        if answering.words(answer) in map(answering.words, certain["answers"]):
            is_full, feedback = certain["points"] == question.points, " ".join(certain["feedback"].split())
            outcome, cause = (Outcome.PASSED, None) if is_full else (Outcome.FAILED, Cause.WRONG_ANSWER)
            return _made(question, outcome, float(certain["points"]), feedback, cause, details)
    if hidden and key.rubric:
        details |= {"text": answer, "rubric": [_suggestion(c, answer) for c in key.rubric], "model": key.model}
    count = len(answer.split())
    message = f"Recorded ({count} word{'s' * (count != 1)}). A person marks this answer."
    return _made(question, Outcome.PENDING, 0, message, details=details)


def _suggestion(part: Mapping[str, Any], answer: str) -> dict[str, Any]:
    """Where the person who marks may look first: which of the words of a rubric's part the answer has."""
    found = [word for word in part["words"] if word.lower() in answer.lower()]
    return {"points": float(part["points"]), "says": part["says"], "found": found}


def _made(
    question: Question, outcome: Outcome, earned: float, message: str, cause: Cause | None = None,
    details: dict[str, Any] | None = None,
) -> Check:  # fmt: skip
    return Check(
        question.id, question.title, Kind.QUIZ, outcome, earned, question.points, message, cause, details=details or {}
    )


def selected(report: Report, keyword: str, none: Callable[[str, list[str]], Exception]) -> Report:
    """The report with the checks that `keyword` names ("grid or mask"). Raises what `none` makes, where none is."""
    wanted = [word.strip() for word in keyword.split(" or ")]
    checks = tuple(check for check in report.checks if any(word in check.id for word in wanted))
    if not checks:
        raise none(keyword, [check.id for check in report.checks])
    return replace(report, checks=checks)
