"""A failing check tried on mended programs: the submission with one small edit, traced and run like any submission.

The edited text comes from the student's, so it runs where that ran: in the confined tracer alone. Its verdict is for
the diagnosis; the check has failed before, and earns nothing by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gradekit.causes import SAYS_ALL, Cause
from gradekit.findings import Kind
from gradekit.plugin.check_points import worth
from gradekit.plugin.mend_tries import Failing, MendTries
from gradekit.plugin.screened_mends import screened
from gradekit.repair.unexpected import survived

if TYPE_CHECKING:
    from gradekit.judge.evidence import Diagnosis
    from gradekit.judge.failure import Failure
    from gradekit.plugin.examples import Example, Examples
    from gradekit.plugin.run_state import GradingRun
    from gradekit.repair.search import Mending
    from gradekit.subject.subject import Call

_MENDED = (Kind.CORRECTNESS, Kind.MEMORY, Kind.STRUCTURE)


def mended_diagnosis(
    item: pytest.Item,
    run: GradingRun,
    failed: tuple[BaseException, Call | None],
    examples: tuple[Examples | None, Example | None],
) -> Diagnosis | None:
    """What a mended program shows to be wrong, where the check of `item` `failed` with an error
    in a call; None where nothing does.

    `examples` are the check's, and the one among them that failed.
    """
    from gradekit.judge.failure import Failure
    from gradekit.sandbox import TraceError

    error, call = failed
    if isinstance(error, TraceError) and error.cause is Cause.COMPILATION_ERROR and call is not None:
        refused = Failure(error.cause, error.said, line=error.line)
        return _of_refused(item, run, Failing(refused, call, examples[1]), examples[0])
    if not isinstance(error, Failure) or call is None or not _is_for_mending(item, run):
        return None  # a check that is pending comes here too, and needs none of what is imported below
    from gradekit.repair.loop_bounds import bounds_from_memory
    from gradekit.repair.missing_launch import launch_missing

    assert run.submission is not None
    if error.cause is Cause.BUDGET_EXCEEDED:
        read = bounds_from_memory(run.submission.text, error.line)
        return read or _of_refused(item, run, Failing(error, call, examples[1]), examples[0])
    if not _is_mendable(error, call) or not isinstance(item, pytest.Function):
        return None
    mending, (every, example) = _mending(run), examples
    tries = MendTries(item, run, every, Failing(error, call, example), mending.text)
    launch = launch_missing(mending.text, tries.clues)
    return launch or mending.diagnosis(tries.clues, tries.asked(screened)) or _of_two(mending, tries)


def _mending(run: GradingRun) -> Mending:
    """The mends of a run's submission, and what came of them so far."""
    from gradekit.repair.search import Mending

    assert run.submission is not None
    run.mending = run.mending if run.mending is not None else Mending(run.submission.text, _handout(run))
    return run.mending


def _of_refused(item: pytest.Item, run: GradingRun, failing: Failing, every: Examples | None) -> Diagnosis | None:
    """What is told where a mend lets Triton compile a kernel, or a run come to its end, and makes everything right."""
    if failing.error.line is None or not _is_for_mending(item, run) or not isinstance(item, pytest.Function):
        return None
    mending = _mending(run)
    tries = MendTries(item, run, every, failing, mending.text)
    found = mending.diagnosis(tries.clues, tries.asked(screened))
    return replace(found, cause=failing.error.cause) if found is not None else None


def _of_two(mending: Mending, tries: MendTries) -> Diagnosis | None:
    """What is told where two mends make everything right, and neither alone."""
    from gradekit.repair.search import OtherChecks
    from gradekit.repair.two_mistakes import diagnosis_as_one, diagnosis_of_both, mend_of_both, one_alone

    for half in mending.halves(tries.in_part):
        with survived("The search for a second mistake"):
            after, second = tries.after(half.applied(mending.text)), mending.on_top(half)
            if after is None or second is None:
                continue
            other = second.found(after.clues, after.asked(screened))
            if other is None or after.holds(other) is OtherChecks.NOT:
                continue
            both = other.applied(second.text)
            alone = one_alone(mending.text, second.text, both)
            if alone is None or not tries.is_right(alone):
                clues = tries.clues
                found = diagnosis_as_one(half, clues) if alone is None else diagnosis_of_both(half, other, clues)
                mending.remember(mend_of_both(mending.text, both, half), found)
                return found
    return None


def _handout(run: GradingRun) -> str:
    path = run.request.assignment.handout
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _is_for_mending(item: pytest.Item, run: GradingRun) -> bool:
    options = run.request.options
    return options.trivial is None and run.request.programs is None and worth(item).kind in _MENDED


def _is_mendable(error: Failure, call: Call) -> bool:
    """Whether another program could help: not where a message says all, nor where nothing
    was run but for want of programs."""
    if call.observation is None or error.cause is Cause.NO_KERNEL:
        return error.cause is Cause.NO_KERNEL
    return error.repeat is not None or not error.cause.traits & SAYS_ALL
