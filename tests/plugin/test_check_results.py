"""From exceptions to outcomes: what is the student's, what is pending, what is the grader's own fault."""

import pytest

from gradekit.engine.executor import ForbiddenOp, OverBudget, Unsupported
from gradekit.findings import Cause, Outcome
from gradekit.judge.failure import Failure
from gradekit.plugin.check_results import CheckVerdict, verdict_of
from gradekit.plugin.run_state import Rejection
from gradekit.sandbox import TraceError


def test_a_failure_keeps_its_cause_line_and_facts() -> None:
    verdict = verdict_of(Failure(Cause.NAN, "NaN where there is none", line=4, facts={"wrong": 1}))
    assert verdict == CheckVerdict(Outcome.FAILED, "NaN where there is none", Cause.NAN, 4, details={"wrong": 1})


def test_an_error_of_the_students_host_code_is_theirs() -> None:
    verdict = verdict_of(TraceError(Cause.READS_VALUES, "needs values", 7, "Traceback"))
    assert verdict == CheckVerdict(Outcome.FAILED, "needs values", Cause.READS_VALUES, 7, details={"detail": "Traceback"})


def test_what_the_engine_does_not_know_is_pending_by_name() -> None:
    verdict = verdict_of(Unsupported("tt.elementwise_inline_asm", 9))
    assert (verdict.outcome, verdict.line) == (Outcome.PENDING, 9)
    assert "tt.elementwise_inline_asm" in verdict.message


def test_computing_with_torch_names_the_operation() -> None:
    verdict = verdict_of(ForbiddenOp("aten::add", 3))
    assert (verdict.outcome, verdict.cause, verdict.line) == (Outcome.FAILED, Cause.FORBIDDEN_OP, 3)
    assert "aten::add" in verdict.message


def test_running_over_the_budget_is_the_submissions() -> None:
    verdict = verdict_of(OverBudget("work", 30, 5))
    assert (verdict.outcome, verdict.cause, verdict.line) == (Outcome.FAILED, Cause.BUDGET_EXCEEDED, 5)


def test_a_rejection_keeps_its_cause() -> None:
    verdict = verdict_of(Rejection(Cause.SYNTAX_ERROR, "line 1"))
    assert (verdict.outcome, verdict.cause, verdict.message) == (Outcome.FAILED, Cause.SYNTAX_ERROR, "line 1")


def test_an_assertion_shows_its_message_without_pytests_comparison() -> None:
    assert verdict_of(AssertionError("two launches\nassert 2 == 1")).message == "two launches"
    assert verdict_of(AssertionError()).message == "The assertion failed."


def test_pytest_fail_is_a_failure_and_skip_is_pending() -> None:
    assert verdict_of(pytest.fail.Exception("no")).outcome is Outcome.FAILED
    assert verdict_of(pytest.skip.Exception("later")) == CheckVerdict(Outcome.PENDING, "later")


@pytest.mark.parametrize("error", [ZeroDivisionError("1 / 0"), KeyError("x"), RuntimeError("torch broke")])
def test_anything_else_is_the_graders_own_fault(error: Exception) -> None:
    verdict = verdict_of(error)
    assert verdict.outcome is Outcome.FAULT and verdict.cause is None
    assert type(error).__name__ in verdict.details["traceback"]
