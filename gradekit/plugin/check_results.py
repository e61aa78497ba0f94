"""From what happened in pytest to the report record: the outcome of a check, its message, its counterexample.

Decides nothing about right and wrong: the type of an exception decides (see check_verdict.py).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.credit import rounded
from gradekit.findings import Cause, Check, Outcome, Report, SourceLine, Status
from gradekit.plugin import check_points
from gradekit.plugin.check_evidence import CheckEvidence
from gradekit.plugin.check_verdict import CheckVerdict, verdict_of
from gradekit.plugin.counterexample import counterexample, names
from gradekit.plugin.run_state import GradingRun
from gradekit.versions import environment

if TYPE_CHECKING:
    from gradekit.judge.evidence import Diagnosis
    from gradekit.subject.subject import Call


def check_of(item: pytest.Item, run: GradingRun, error: BaseException | None, evidence: CheckEvidence) -> Check:
    """The check of `item`, which ended with `error` (None: it passed)."""
    error = evidence.repeated or error
    verdict = _passed(evidence) if error is None else verdict_of(error)
    if verdict.outcome is Outcome.FAILED and evidence.diagnosis is not None:
        verdict = _diagnosed(verdict, evidence.diagnosis)
    if verdict.outcome is Outcome.FAILED and verdict.line is None and verdict.source is None:
        verdict = replace(verdict, line=_blamed(run, verdict, evidence))
    possible = run.possible.get(item.nodeid, 0.0)
    return Check(
        id=item.name,
        title=check_points.title(item),
        kind=check_points.worth(item).kind,
        outcome=verdict.outcome,
        earned=_earned(verdict, error, evidence, possible),
        possible=possible,
        message=verdict.message,
        cause=verdict.cause,
        source=verdict.source or _source(run, verdict.line),
        counterexample=_counterexample(item, run, verdict, error, evidence),
        details=_whose(item) | _trivial(run) | evidence.details | verdict.details,
        bonus=check_points.worth(item).bonus,
    )


def _whose(item: pytest.Item) -> dict[str, Any]:
    """A check of the staff's tests says so: it is shown to students when the course's policy says."""
    return {"hidden": True} if item.path.stem.endswith("_hidden") else {}


def _trivial(run: GradingRun) -> dict[str, Any]:
    """Of trivial results, whether all were the right ones: such a check cannot fail for them."""
    return {"trivially": "right"} if run.trivial is not None and run.trivial.all_right() else {}


def unrun(item: pytest.Item, run: GradingRun) -> Check:
    """The check of an `item` that was not run because the run broke off: a fault, which costs no points."""
    message = "This check was not run, because the grading run broke off."
    possible = run.possible.get(item.nodeid, 0.0)
    worth = check_points.worth(item)
    return Check(
        item.name, check_points.title(item), worth.kind, Outcome.FAULT, 0.0, possible, message, bonus=worth.bonus,
        details=_whose(item),
    )  # fmt: skip


def report_of(run: GradingRun) -> Report:
    """The record of the whole run."""
    status = Status.FAULT if run.faults else Status.REJECTED if run.rejection else Status.GRADED
    rejection = run.rejection if status is Status.REJECTED else None
    return Report(
        assignment=run.request.assignment.id,
        status=status,
        submission=_facts(run),
        checks=tuple(run.checks),
        environment=environment() | run.card(),
        seconds=round(time.monotonic() - run.began, 3),
        message=rejection.message if rejection else " ".join(run.faults),
        cause=rejection.cause if rejection else None,
        source=rejection.source if rejection else None,
        notes=tuple(run.notes),
        seed=run.request.seed,
    )


def _facts(run: GradingRun) -> dict[str, Any]:
    if run.submission is None:
        return {"path": str(run.request.path), "sha256": ""}
    return run.submission.facts()


# --- outcomes and points ---------------------------------------------------------------------------------------------


def _passed(evidence: CheckEvidence) -> CheckVerdict:
    if evidence.award.fraction == 1:
        return CheckVerdict(Outcome.PASSED)
    cause = Cause(evidence.award.cause) if evidence.award.cause else None
    return CheckVerdict(Outcome.FAILED, evidence.award.why, cause)


def _earned(verdict: CheckVerdict, error: BaseException | None, evidence: CheckEvidence, possible: float) -> float:
    if error is not None:
        return 0.0
    return rounded(possible * evidence.award.fraction) if verdict.outcome is Outcome.FAILED else possible


# --- what the student reads ------------------------------------------------------------------------------------------


def diagnosis(error: BaseException, evidence: CheckEvidence, run: GradingRun) -> Diagnosis | None:
    """What is wrong with the submission where a check ended with `error`; None where the evidence is not clear.

    May run further examples: call it while the check is open.
    """
    from gradekit.inputs.spec import Input
    from gradekit.judge.by_gradient import refused_gradient
    from gradekit.judge.by_operator import operator_mistake
    from gradekit.judge.by_special import special_origin
    from gradekit.judge.diagnose import diagnose
    from gradekit.judge.failure import Failure
    from gradekit.plugin.exact_runs import measured_rounding
    from gradekit.sandbox import TraceError

    call = evidence.call
    if call is None or run.submission is None:
        return None
    text = run.submission.text
    no_kernel = getattr(error, "cause", None) is Cause.NO_KERNEL
    if (call.observation is None or no_kernel) and isinstance(error, (Failure, TraceError)):
        if error.cause is not Cause.EXCEPTION and not no_kernel:
            return None
        refused = refused_gradient(text, call.entry, str(error), error.cause)
        return refused or operator_mistake(text, call.entry, error.cause)
    if not isinstance(error, Failure) or call.observation is None:
        return None
    if run.subject is not None and (rounding := measured_rounding(run.subject, call.observation, error)):
        return rounding
    inputs = _named(call, run)
    tensors = [arg.tensor() if isinstance(arg, Input) else arg for arg in inputs if hasattr(arg, "stride")]
    return diagnose(error, call.observation, inputs, text) or special_origin(
        call.observation.program, tensors, error.comparison, run.request.assignment.allow
    )


def _diagnosed(verdict: CheckVerdict, diagnosis: Diagnosis) -> CheckVerdict:
    """The verdict with the diagnosis's sentence and cause."""
    end = "" if not verdict.message or verdict.message.endswith((".", "!", "?", ":")) else "."
    message = f"{verdict.message}{end} {diagnosis.sentence}".strip()
    details = verdict.details | {"observed_cause": verdict.cause} | ({"hint": diagnosis.hint} if diagnosis.hint else {})
    line = diagnosis.line or verdict.line
    return replace(verdict, message=message, cause=diagnosis.cause, line=line, details=details)


def _named(call: Call, run: GradingRun) -> list[Any]:
    """The call's arguments, each spec under the name that the student gave it."""
    named = zip(call.args, names(call, run), strict=True)
    return [arg.named(name) if hasattr(arg, "named") else arg for arg, name in named]


def _blamed(run: GradingRun, verdict: CheckVerdict, evidence: CheckEvidence) -> int | None:
    from gradekit.plugin.blamed_lines import blamed_line

    if run.submission is None or run.rejection or not run.request.options.diagnose:
        return None
    return blamed_line(verdict, evidence, run.submission.text)


def _source(run: GradingRun, line: int | None) -> SourceLine | None:
    return run.submission.line(line) if run.submission and line else None


def _counterexample(
    item: pytest.Item, run: GradingRun, verdict: CheckVerdict, error: BaseException | None, evidence: CheckEvidence
) -> dict[str, Any] | None:
    if verdict.outcome is not Outcome.FAILED or run.rejection:
        return None
    return counterexample(item, run, error, evidence)
