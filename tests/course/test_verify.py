"""Verifying an assignment tries each claim on a real submission, and believes nothing that was not shown."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import Assignment
from gradekit.course.verify import (
    Claim,
    ClaimResult,
    claims,
    earns_everything,
    earns_no_correctness,
    earns_nothing,
    fails_for,
    left_open,
    nearest_to_budget,
    row,
    summary,
    tried,
    unchanged,
)
from gradekit.findings import Cause, Check, Kind, Outcome, Report, Status
from gradekit.request import TRIVIAL_RESULTS, GradingRequest
from tests.small import laid_out


def check(id: str, outcome: Outcome, **changes: Any) -> Check:
    values = {"kind": Kind.CORRECTNESS, "earned": 10.0 * (outcome is Outcome.PASSED), "possible": 10.0}
    return Check(id=id, title="T", outcome=outcome, **values | changes)


def report(*checks: Check, status: Status = Status.GRADED, message: str = "") -> Report:
    return Report("softmax", status, {"path": "a.py", "sha256": ""}, checks, {}, 1.0, message)


PASSED = check("test_a", Outcome.PASSED)
FAILED = check("test_a", Outcome.FAILED, cause=Cause.NAN, message="NaN at [0].")
PENDING = check("test_speed", Outcome.PENDING, kind=Kind.SPEED)
FAULT = check("test_b", Outcome.FAULT, message="oh")
BROKEN = report(status=Status.FAULT, message="the grader broke")
REJECTED = report(FAILED, status=Status.REJECTED, message="no such function")


def test_what_was_not_measured_is_listed_with_the_reason() -> None:
    pending = replace(PENDING, message="Not measured: no GPU.")
    assert left_open(report(PASSED, pending)) == "10 points are open (test_speed). Not measured: no GPU."
    assert left_open(report(PASSED)) == ""


def test_verifying_says_how_near_a_solution_comes_to_the_budget() -> None:
    near = [check(f"test_{share}", Outcome.PASSED, details={"budget": share / 100}) for share in (2, 7, 3)]
    assert nearest_to_budget(report(PASSED, *near)) == "test_7 takes 7 % of the work that a check may take."
    assert nearest_to_budget(report(PASSED)) == ""


def fails_for_nan(found: Report) -> str:
    return fails_for(found, "test_a", Cause.NAN)


SIX = report(PASSED, *[FAULT] * 5)
OBSERVED = check("test_a", Outcome.FAILED, cause=Cause.OVERFLOW, details={"observed_cause": Cause.NAN})


@pytest.mark.parametrize(("claim", "found", "problem"), [
    (earns_everything, report(PASSED), ""),
    (earns_everything, report(PASSED, PENDING), ""),
    (earns_everything, report(PASSED, check("test_bonus", Outcome.FAILED, bonus=True)), ""),
    (earns_everything, report(PASSED, FAILED), "test_a failed, 0 of 10 (nan): NaN at [0]."),
    (earns_everything, SIX, "test_b fault, 0 of 10: oh; test_b fault, 0 of 10: oh; test_b fault, 0 of 10: oh; and 2 more"),
    (earns_everything, report(PENDING), "no check passed"),
    (earns_everything, report(), "no check passed"),
    (earns_everything, REJECTED, "rejected: no such function"),
    (earns_nothing, report(FAILED, PENDING), ""),
    (earns_nothing, REJECTED, ""),
    (earns_nothing, report(FAILED, PASSED), "test_a passed, 10 of 10"),
    (earns_nothing, report(check("test_a", Outcome.FAILED, earned=2.0)), "test_a failed, 2 of 10"),
    (earns_no_correctness, report(FAILED), ""),
    (earns_no_correctness, report(FAILED, check("test_m", Outcome.PASSED, kind=Kind.MEMORY)), ""),
    (earns_no_correctness, report(PASSED), "test_a passed, 10 of 10"),
    (earns_no_correctness, REJECTED, "rejected: no such function"),
    (fails_for_nan, report(FAILED), ""),
    (fails_for_nan, report(check("test_a[1]", Outcome.PASSED), check("test_a[2]", Outcome.FAILED, cause=Cause.NAN)), ""),
    (fails_for_nan, report(OBSERVED), ""),
    (fails_for_nan, report(PASSED), "test_a passed, 10 of 10"),
    (fails_for_nan, report(check("test_a", Outcome.FAILED, cause=Cause.RACE)), "test_a failed, 0 of 10 (race)"),
    (fails_for_nan, report(check("test_other", Outcome.FAILED, cause=Cause.NAN)), "there is no check test_a"),
    (fails_for_nan, report(check("test_a", Outcome.PENDING)), "test_a pending, 0 of 10"),
    *((claim, report(FAULT), "test_b fault, 0 of 10: oh") for claim in (earns_everything, earns_nothing, earns_no_correctness)),
    *((claim, BROKEN, "fault: the grader broke") for claim in (earns_everything, earns_nothing, fails_for_nan)),
])
def test_the_solution_loses_nothing_the_starter_and_trivial_results_earn_nothing_and_a_mistake_fails_as_it_declares(
    claim: Callable[[Report], str], found: Report, problem: str
) -> None:
    assert claim(found) == problem


# --- a whole assignment -----------------------------------------------------------------------------------------------


@pytest.fixture
def softmax(tmp_path: Path) -> Assignment:
    mistakes = (
        '[edit]\ntitle = "T"\nexpect = "test_a nan"\nedit = "-x = 1"\n[header]\n'
        '[nan]\ntitle = "N"\nexpect = "test_a nan"\nbase = "wrong_nan.py"\n'
    )
    staff = {"solution.py": "x = 1\n", "right_other.py": "y = 2\n", "mistakes.toml": mistakes, "wrong_nan.py": "z = 3\n"}
    return laid_out(tmp_path, "softmax", "softmax", {f"solutions/{name}": text for name, text in staff.items()})


def test_every_claim_is_tried_on_its_own_submission(softmax: Assignment) -> None:
    calls = []

    def grade(request: GradingRequest) -> Report:
        name, options = request.path.name, request.options
        calls.append((name, options.keyword, options.trivial, options.hidden))
        return report(PASSED if name in ("solution.py", "right_other.py") and not options.trivial else FAILED)

    results = [tried(claim) for claim in claims(softmax, grade)]
    assert [(r.claim.subject, r.held) for r in results] == [
        ("solution.py", True),
        ("right_other.py", True),
        ("starter.py", True),
        ("edit", True),
        ("header", False),
        ("nan", True),
        *((trivial, True) for trivial in TRIVIAL_RESULTS),
    ]
    assert calls == [
        ("solution.py", None, None, True),
        ("right_other.py", None, None, True),
        ("starter.py", None, None, True),
        ("edit.py", "test_a", None, True),
        ("nan.py", "test_a", None, True),
        *(("solution.py", None, trivial, True) for trivial in TRIVIAL_RESULTS),
    ]


def test_mistakes_that_cannot_be_read_are_a_claim_that_does_not_hold(softmax: Assignment) -> None:
    assert softmax.solutions is not None
    (softmax.solutions / "mistakes.toml").write_text("[edit\n")
    results = {r.claim.subject: r.problem for r in map(tried, claims(softmax, lambda *_, **__: report(PASSED)))}
    assert "is not valid TOML" in results["mistakes.toml"]


def test_an_assignment_without_a_solution_cannot_be_verified(softmax: Assignment) -> None:
    assert softmax.solutions is not None
    (softmax.solutions / "solution.py").unlink()
    results = list(map(tried, claims(softmax, lambda *_, **__: report(PASSED))))
    assert [r.problem for r in results] == ["there is no solutions/softmax/solution.py"]


def test_a_claim_whose_trial_breaks_does_not_hold() -> None:
    def broken() -> tuple[str, str]:
        raise ValueError("oh")

    result = tried(Claim("solution.py", "earns all", broken))
    assert result.problem == "ValueError: oh"


def nothing() -> tuple[str, str]:
    return "", ""


def test_a_mistake_that_expects_nothing_is_told_what_fails() -> None:
    told = fails_for(report(PASSED, FAILED), "", None)
    assert told == f'it says no expect; what fails: expect = "{FAILED.id} {FAILED.cause}"'
    assert fails_for(report(PASSED), "", None) == "no check fails with it"


def test_what_is_told_to_expect_is_what_the_claim_will_find(softmax: Assignment) -> None:
    """A check may name another cause by itself than beside others, and a claim tries it by itself."""
    (softmax.solutions / "mistakes.toml").write_text('[edit]\ntitle = "T"\nedit = "-x = 1"\n')  # type: ignore[operator]

    def grade(request: GradingRequest) -> Report:
        cause = Cause.RACE if request.options.keyword else Cause.NAN
        return report(check("test_a", Outcome.FAILED, cause=cause))

    (claim,) = [one for one in claims(softmax, grade) if one.subject == "edit"]
    assert tried(claim).problem == 'it says no expect; what fails: expect = "test_a race"'


def test_the_table_shows_what_is_wrong_below_its_row() -> None:
    good = ClaimResult(Claim("solution.py", "earns all", nothing), "", 3.2)
    bad = ClaimResult(Claim("zeros", "earns nothing", nothing), "test_a passed, 10 of 10", 0.5)
    assert row(good, 12) == "  ok      3.2 s  solution.py   earns all"
    assert row(bad, 12) == "  FAIL   0.50 s  zeros         earns nothing\n        test_a passed, 10 of 10"
    assert summary([good, bad], 3.4) == "1 of 2 claims hold; 3.4 s"


def test_the_trivial_results_are_those_that_the_judge_makes() -> None:
    from gradekit.judge import trivial

    assert tuple(trivial.TRIVIAL_RESULTS) == TRIVIAL_RESULTS


def test_a_trivial_result_that_is_right_is_no_problem_and_is_noted() -> None:
    same = check("test_counts[a]", Outcome.PASSED, details={"trivially": "right"})
    assert earns_no_correctness(report(same, FAILED)) == ""
    assert unchanged(report(same, FAILED), "lower_precision") == "lower_precision changes no result of test_counts"
    assert earns_no_correctness(report(same, PASSED)).startswith("test_a passed")
    assert unchanged(report(FAILED), "zeros") == ""


def test_a_trivial_result_that_is_right_everywhere_shows_nothing() -> None:
    same = check("test_counts", Outcome.PASSED, details={"trivially": "right"})
    assert earns_no_correctness(report(same)) == "no check of correctness was given a wrong result"
    assert earns_no_correctness(report(same), may_be_right=True) == ""
