"""A pool of warm graders gives each of them one submission at a time, and what comes back is a report."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from gradekit.assignment import Assignment, get
from gradekit.batch import pool as pools
from gradekit.batch.grader import GraderFailed, GradingJob, JobResult
from gradekit.batch.pool import GraderPool, graders
from gradekit.findings import Report, Status
from gradekit.report import record
from gradekit.request import GradingOptions, GradingRequest


class CountingGrader:
    """Answers after a moment with a record that says the submission's text; remembers whether two asked at once."""

    made: list[CountingGrader]

    def __init__(self, card: str = "") -> None:
        self.asked: list[GradingJob] = []
        self.is_closed = self.was_shared = False
        self._busy = threading.Lock()
        self.made.append(self)

    def grade(self, job: GradingJob, seconds: float) -> JobResult:
        self.was_shared |= not self._busy.acquire(blocking=False)
        self.asked.append(job)
        time.sleep(0.01)
        self._busy.release()
        if job.bytes == b"dies":
            raise GraderFailed("the grader's process ended")
        report = Report("softmax", Status.REJECTED, {"path": job.name, "sha256": ""}, (), {}, 1.0, job.bytes.decode())
        return JobResult(record.to_dict(report))

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[CountingGrader]:
    monkeypatch.setattr(CountingGrader, "made", [], raising=False)
    monkeypatch.setattr(pools, "Grader", CountingGrader)
    return CountingGrader.made


@pytest.fixture
def softmax() -> Assignment:
    return get("softmax")


def request(assignment: Assignment, folder: Path, text: str) -> GradingRequest:
    path = folder / f"{text}.py"
    path.write_text(text)
    return GradingRequest(assignment, path, GradingOptions(keyword="test_a"))


def test_reports_come_in_the_order_of_what_was_asked_and_no_grader_works_for_two(
    made: list[CountingGrader], softmax: Assignment, tmp_path: Path
) -> None:
    texts = [f"text {number}" for number in range(12)]
    with GraderPool(3) as pool:
        reports = list(pool.map(pool.grade, [request(softmax, tmp_path, text) for text in texts]))
    assert [report.message for report in reports] == texts
    assert len(made) == 3 and all(one.asked and one.is_closed and not one.was_shared for one in made)
    assert {job.options["keyword"] for one in made for job in one.asked} == {"test_a"}


def test_a_grader_that_fails_is_idle_again(made: list[CountingGrader], softmax: Assignment, tmp_path: Path) -> None:
    with GraderPool(1) as pool:
        with pytest.raises(GraderFailed, match="ended"):
            pool.grade(request(softmax, tmp_path, "dies"))
        assert pool.grade(request(softmax, tmp_path, "lives")).message == "lives"


@pytest.mark.parametrize(
    ("jobs", "cards", "count"), [(None, [], 5), (2, [], 2), (2, ["GPU-1"], 2), (None, ["GPU-1"], 0)]
)
def test_without_a_gpu_there_is_a_grader_for_each_core_and_with_one_this_process_grades(
    made: list[CountingGrader], monkeypatch: pytest.MonkeyPatch, jobs: int | None, cards: list[str], count: int
) -> None:
    monkeypatch.setattr("gradekit.batch.pool.visible_cards", lambda: cards)
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    with graders(jobs) as (grade, each):
        assert len(made) == count
        assert list(each(abs, [-1, 2])) == [1, 2]
        assert (grade.__module__ == "gradekit.batch.pool") == bool(count)
