"""A container without a card sends programs to a pool of machines that have some, and waits no longer than it may."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from gradekit.batch import grader
from gradekit.batch.grader import GradingJob, JobResult
from gradekit.lms import autograde as module
from gradekit.lms.autograde import timed
from gradekit.lms.platforms import PLATFORMS
from tests import zygote
from tests.batch.clusters import RIGHT, assignments, environment, running
from tests.report.samples import FAILED, PENDING, record

pytest.importorskip("distributed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    assignments(tmp_path)
    (tmp_path / "autograder/submission").mkdir(parents=True)
    (tmp_path / "autograder/submission/submission.py").write_text(RIGHT)
    return tmp_path


def read(root: Path) -> dict[str, Any]:
    """What Gradescope reads once the container has ended."""
    return dict(json.loads((root / "autograder/results/results.json").read_text()))


def results(root: Path, address: str) -> dict[str, Any]:
    """What it reads of a container with half an hour."""
    words = ["autograde", "gradescope", "double", "--root", str(root), "--seconds", "1800"]
    variables = environment(root, uuid.uuid4().hex) | {"GRADEKIT_CLUSTER": address}
    done = zygote.ran(["-m", "gradekit", *words], folder=root, environment=variables)
    assert done.returncode == 0, done.stderr
    return read(root)


CARDS = {"a card of this machine": (), "a stand-in": ("--stand-in",)}


@pytest.mark.sample(3, of="containers")
@pytest.mark.parametrize("card", CARDS)
def test_a_pool_with_a_card_measures_what_the_container_cannot(root: Path, card: str) -> None:
    if not CARDS[card] and not grader.visible_cards():
        pytest.skip("there is no GPU here")
    with running(root, uuid.uuid4().hex, ("--graders", "0", *CARDS[card])) as cluster:
        found = results(root, cluster.address)
    assert found["score"] == 100
    assert [test["status"] for test in found["tests"]] == ["passed", "passed"]
    assert found["leaderboard"][0]["name"] == "Speed over torch.compile"


@pytest.mark.slow
def test_a_pool_that_is_away_leaves_speed_pending_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for as long as the container has left, which is half a second here"""
    variables = environment(root, uuid.uuid4().hex) | {module.CLUSTER: "tcp://127.0.0.1:1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    left: list[float] = []

    def timed_in_half_a_second(graded: JobResult, asked: GradingJob, address: str, seconds: float) -> dict[str, Any]:
        left.append(seconds)
        return timed(graded, asked, address, 0.5)

    monkeypatch.setattr(module, "timed", timed_in_half_a_second)
    module.autograde(PLATFORMS["gradescope"], "double", root=root, seconds=1800)
    assert left and 0 < left[0] < 1800 - module.MARGIN
    found = read(root)
    assert found["score"] == 100  # what is not measured counts as the rest does
    assert "status" not in found["tests"][1] and found["tests"][1]["name"].startswith("pending")
    assert "the machines with a GPU did not measure it" in found["output"]


def test_waiting_ends_in_time() -> None:
    waiting = JobResult(record(FAILED, PENDING), programs="x")
    found = timed(waiting, GradingJob("softmax", "", {}, "s.py", ""), "tcp://127.0.0.1:1", 0.5)
    assert found["score"] == waiting.record["score"]
    assert "cannot be reached" in found["notes"][-1]
