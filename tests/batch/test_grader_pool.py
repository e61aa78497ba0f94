"""A pool grades so many submissions at a time, each in a grader of its own, and what comes back is a report."""

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gradekit.assignment import Assignment, get
from gradekit.batch import grader
from gradekit.batch import pool as pools
from gradekit.batch.grader import GraderFailed, GradingJob, JobResult
from gradekit.batch.pool import GraderPool, graders
from gradekit.findings import Kind, Outcome, Report, Status
from gradekit.report.record import awaits_gpu, merged, to_dict, validate
from gradekit.request import GradingOptions, GradingRequest
from tests.patience import GUARD
from tests.report.samples import ENVIRONMENT, FAILED, PASSED, PENDING, record


class CountingGraders:
    """Answer after a moment with a record that says the submission's text; remember how many worked at once."""

    made: list["CountingGraders"]

    def __init__(self, card: str = "", *, warms: bool = False, only: bool = False) -> None:
        self.asked: list[GradingJob] = []
        self.is_closed, self.warms, self.only = False, warms, only
        self.busy = self.most = 0
        self._counting = threading.Lock()
        self.made.append(self)

    def _count(self, one: int) -> None:
        with self._counting:
            self.busy += one
            self.most = max(self.most, self.busy)

    def grade(self, job: GradingJob, seconds: float) -> JobResult:
        self._count(1)
        self.asked.append(job)
        time.sleep(0.01)
        self._count(-1)
        if job.bytes == b"dies":
            raise GraderFailed("the grader's process ended")
        report = Report("softmax", Status.REJECTED, {"path": job.name, "sha256": ""}, (), {}, 1.0, job.bytes.decode())
        return JobResult(to_dict(report))

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[CountingGraders]:
    monkeypatch.setattr(CountingGraders, "made", [], raising=False)
    monkeypatch.setattr(pools, "Graders", CountingGraders)
    return CountingGraders.made


@pytest.fixture
def softmax() -> Assignment:
    return get("softmax")


def request(assignment: Assignment, folder: Path, text: str) -> GradingRequest:
    path = folder / f"{text}.py"
    path.write_text(text)
    return GradingRequest(assignment, path, GradingOptions(keyword="test_a"))


def test_reports_come_in_the_order_of_what_was_asked_and_no_more_graders_work_at_once_than_there_are(
    made: list[CountingGraders], softmax: Assignment, tmp_path: Path
) -> None:
    texts = [f"text {number}" for number in range(12)]
    with GraderPool(3) as pool:
        reports = list(pool.map(pool.grade, [request(softmax, tmp_path, text) for text in texts]))
    assert [report.message for report in reports] == texts
    (graders,) = made
    assert graders.is_closed and graders.warms and 1 < graders.most <= 3
    assert {job.options["keyword"] for job in graders.asked} == {"test_a"}


@pytest.mark.parametrize(
    ("jobs", "warms", "only"), [(1, False, True), (2, False, False), (9, False, False), (10, True, False)]
)
def test_a_few_submissions_do_not_pay_for_what_serves_many(
    made: list[CountingGraders], jobs: int, warms: bool, only: bool
) -> None:
    with GraderPool(2, jobs=jobs):
        (graders,) = made
    assert (graders.warms, graders.only) == (warms, only)


def test_a_grader_that_fails_is_idle_again(made: list[CountingGraders], softmax: Assignment, tmp_path: Path) -> None:
    with GraderPool(1) as pool:
        with pytest.raises(GraderFailed, match="ended"):
            pool.grade(request(softmax, tmp_path, "dies"))
        assert pool.grade(request(softmax, tmp_path, "lives")).message == "lives"


@pytest.mark.parametrize(
    ("jobs", "cards", "count"), [(None, [], 5), (2, [], 2), (2, ["GPU-1"], 2), (None, ["GPU-1"], 0)]
)
def test_without_a_gpu_there_is_a_grader_for_each_core_and_with_one_this_process_grades(
    made: list[CountingGraders], monkeypatch: pytest.MonkeyPatch, jobs: int | None, cards: list[str], count: int
) -> None:
    monkeypatch.setattr("gradekit.batch.grader.visible_cards", lambda: cards)
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    with graders(jobs) as (grade, each):
        pool = getattr(grade, "__self__", None)
        assert (len(pool._lanes[GradingJob]) if pool else 0) == count
        assert list(each(abs, [-1, 2])) == [1, 2]
        assert (grade.__module__ == "gradekit.batch.pool") == bool(count)


# --- The stage on a card ----------------------------------------------------------------------------------------------


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
