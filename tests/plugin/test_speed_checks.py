"""Checks of speed, of a bonus, and the device that a run may use, as the report and pytest show them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gradekit.assignment import Assignment
from gradekit.checking import exit_code
from gradekit.findings import Cause, Outcome
from gradekit.gpu import baselines, ceilings
from gradekit.gpu.baselines import Baseline
from gradekit.plugin import NoSuchDevice, run_state
from gradekit.subject.device import Device
from tests.beside import beside
from tests.cards import CEILINGS, FakeWorker, device
from tests.graded import by_id, grade
from tests.plugin.samples import RIGHT
from tests.subject.test_speed_trial import FakeClock

Make = Callable[..., Assignment]
Write = Callable[[str], Path]

SPEED = beside(__file__)["speed"]


@pytest.fixture
def on_a_card(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeWorker], Device]:
    """Gives every run a card with this worker; eager torch takes 200 µs, compiled 100."""
    monkeypatch.setattr(baselines, "eager", lambda f, sets, card: Baseline("eager", FakeClock(2e-4)))  # type: ignore[arg-type]
    monkeypatch.setattr(baselines, "compiled", lambda f, sets, card: Baseline("compiled", FakeClock(1e-4)))  # type: ignore[arg-type]
    monkeypatch.setattr(ceilings, "measure", lambda card: CEILINGS)

    def use(worker: FakeWorker) -> Device:
        made = device(worker)
        monkeypatch.setattr(run_state, "device_named", lambda wanted, early: made)
        return made

    return use


# --- without a card ---------------------------------------------------------------------------------------------------


def test_without_a_card_speed_is_pending_with_the_reason(assignment: Make, submitted: Write) -> None:
    report = grade(assignment(SPEED), submitted(RIGHT), device="cpu")
    check = by_id(report)["test_speed"]
    assert (check.outcome, check.earned) == (Outcome.PENDING, 0)
    assert check.message.startswith("Not measured: speed is timed on a GPU, and this run was told not to use one")
    assert (report.score.earned, report.score.possible, report.score.pending) == (0, 10, 10)
    assert report.environment["gpu"] is None
    assert exit_code(report) == 0


def test_what_is_wrong_without_any_card_fails_without_one(assignment: Make, submitted: Write) -> None:
    wrong = RIGHT.replace("return out", "return None")
    check = by_id(grade(assignment(SPEED), submitted(wrong), device="cpu"))["test_speed"]
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.WRONG_TYPE)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a card")
def test_a_card_that_is_not_there_is_wrong_usage(assignment: Make, submitted: Write) -> None:
    with pytest.raises(NoSuchDevice, match="cuda:7"):
        grade(assignment(SPEED), submitted(RIGHT), device="cuda:7")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a card")
def test_pytest_itself_skips_what_could_not_be_measured(
    pytester: pytest.Pytester, assignment: Make, submitted: Write
) -> None:
    result = pytester.runpytest_inprocess(
        str(assignment(SPEED).folder), "--disable-plugin-autoload", "-p", "gradekit.plugin", "--import-mode=importlib",
        "--submission", str(submitted(RIGHT)), "-rs",
    )  # fmt: skip
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*speed is timed on a GPU*"])


# --- with one ---------------------------------------------------------------------------------------------------------

Use = Callable[[FakeWorker], Device]


def test_what_is_fast_enough_passes_and_the_report_has_the_figures(
    assignment: Make, submitted: Write, on_a_card: Use
) -> None:
    worker = FakeWorker(seconds=0.9e-4)
    on_a_card(worker)
    report = grade(assignment(SPEED), submitted(RIGHT))
    assert worker.closed
    check = by_id(report)["test_speed"]
    assert (check.outcome, check.earned, check.message) == (Outcome.PASSED, 10, "")
    speed = check.details["speed"]
    assert speed["ratios"]["eager"]["value"] == pytest.approx(2 / 0.9)
    assert [verdict["verdict"] for verdict in speed["verdicts"]] == ["pass", "pass"]
    assert report.environment["gpu"] == "Test Card" and report.environment["gpu_uuid"] == "GPU-0"


def test_between_the_thresholds_a_part_is_earned(assignment: Make, submitted: Write, on_a_card: Use) -> None:
    on_a_card(FakeWorker(seconds=1e-4 / 0.9))
    check = by_id(grade(assignment(SPEED), submitted(RIGHT)))["test_speed"]
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.TOO_SLOW)
    assert check.earned == pytest.approx(5)
    assert "0.90 times as fast" in check.message


def test_a_bonus_that_is_reached_comes_on_top(assignment: Make, submitted: Write, on_a_card: Use) -> None:
    on_a_card(FakeWorker(seconds=0.4e-4))
    report = grade(assignment(SPEED), submitted(RIGHT))
    assert (report.score.earned, report.score.possible) == (15, 10)
    assert by_id(report)["test_bonus"].bonus


def test_a_bonus_that_is_missed_is_no_failure(assignment: Make, submitted: Write, on_a_card: Use) -> None:
    on_a_card(FakeWorker(seconds=0.9e-4))
    report = grade(assignment(SPEED), submitted(RIGHT))
    check = by_id(report)["test_bonus"]
    assert (check.outcome, check.earned, check.lost) == (Outcome.FAILED, 0, False)
    assert (report.score.earned, report.score.possible) == (10, 10)
    assert exit_code(report) == 0


def test_an_impossible_figure_is_the_graders_fault(assignment: Make, submitted: Write, on_a_card: Use) -> None:
    on_a_card(FakeWorker(seconds=1e-10))
    check = by_id(grade(assignment(SPEED), submitted(RIGHT)))["test_speed"]
    assert check.outcome is Outcome.FAULT and "cannot be true" in check.message


def test_a_trivial_result_is_not_timed(assignment: Make, submitted: Write, on_a_card: Use) -> None:
    worker = FakeWorker()
    on_a_card(worker)
    report = grade(assignment(SPEED), submitted(RIGHT), trivial="zeros")
    assert {check.outcome for check in report.checks} == {Outcome.PENDING}
    assert worker.turns == 0
