"""What a card found takes the place of what was pending, and of nothing else; a card is used by one at a time."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gradekit.batch import grader
from gradekit.findings import Kind, Outcome, Status
from gradekit.report.record import awaits_gpu, merged, validate
from tests.patience import GUARD
from tests.report.samples import ENVIRONMENT, FAILED, PASSED, PENDING, record

SPEED = replace(PENDING, kind=Kind.SPEED)
FAST = replace(SPEED, outcome=Outcome.PASSED, earned=30, message="")
H200 = {"environment": ENVIRONMENT | {"gpu": "NVIDIA H200", "gpu_uuid": "GPU-1", "driver": "580"}}


def test_a_pending_speed_check_wants_a_card_and_other_pending_ones_do_not() -> None:
    assert awaits_gpu(record(PASSED, SPEED))
    assert not awaits_gpu(record(PASSED, replace(PENDING, kind=Kind.MEMORY)))
    assert not awaits_gpu(record(PASSED, FAST))


def test_what_the_card_measured_takes_the_place_of_what_was_pending() -> None:
    found = merged(record(PASSED, FAILED, SPEED), record(FAST, **H200))
    validate(found)
    assert [check["outcome"] for check in found["checks"]] == ["passed", "failed", "passed"]
    assert found["score"] == {"earned": 70, "possible": 100, "pending": 0}
    assert (found["environment"]["gpu"], found["environment"]["gpu_uuid"]) == ("NVIDIA H200", "GPU-1")


def test_it_changes_no_check_that_was_decided_before() -> None:
    base = record(replace(FAST, outcome=Outcome.FAILED, earned=0), environment=ENVIRONMENT)
    assert merged(base, record(FAST, **H200))["score"]["earned"] == 0


def test_a_fault_on_the_card_leaves_the_check_pending() -> None:
    broken = replace(SPEED, outcome=Outcome.FAULT, message="oh")
    assert merged(record(SPEED), record(broken, **H200))["checks"][0]["message"] == PENDING.message
    base = record(SPEED)
    assert merged(base, record(status=Status.FAULT, message="no tests")) == base


def test_to_merge_twice_is_to_merge_once() -> None:
    once = merged(record(PASSED, SPEED), record(FAST, **H200))
    assert merged(once, record(FAST, **H200))["checks"] == once["checks"]


@pytest.mark.parametrize(
    ("visible", "wanted"),
    [(None, ["GPU-a-1", "GPU-b-2"]), ("1", ["GPU-b-2"]), ("GPU-a-1", ["GPU-a-1"]), ("", []), ("7", [])],
)
def test_cards_are_those_that_may_be_used(visible: str | None, wanted: list[str]) -> None:
    assert grader.selected("0, GPU-a-1\n1, GPU-b-2\n", visible) == wanted


def test_what_the_tool_says_of_a_missing_driver_is_no_card() -> None:
    assert grader.selected("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", None) == []


def test_a_card_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    code = (
        "import sys, time; from gradekit.batch.grader import exclusive_use\n"
        "with exclusive_use('GPU-test-of-lanes'):\n"
        "    began = time.monotonic(); time.sleep(0.5); print(began, time.monotonic())"
    )
    root = Path(__file__).parents[2]
    both = [
        subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    spans = sorted(tuple(map(float, process.communicate(timeout=GUARD)[0].split())) for process in both)
    assert spans[0][1] <= spans[1][0]
