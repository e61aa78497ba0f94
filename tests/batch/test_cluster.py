"""Across processes that may all die: the same grade book as on one machine, and programs alone where a card is."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.batch.clusters import (
    BROKEN,
    KINDS,
    RAISES,
    WRONG,
    Cluster,
    alive,
    assignments,
    book,
    grading,
    hand_in,
    histories,
    running,
    wait_for,
)
from tests.patience import GUARD, eventually
from tests.zygote import python_path

pytest.importorskip("distributed")

COUNT = len(KINDS)


def finished(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=GUARD)
    assert process.returncode == 0, said
    return said


@pytest.fixture
def mark() -> Iterator[str]:
    """Tells the processes of a test, of which none may be left."""
    found = uuid.uuid4().hex
    yield found
    assert eventually(lambda: not alive(found)), alive(found)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    assignments(tmp_path)
    hand_in(tmp_path / "in", COUNT)
    return tmp_path


def points(number: int, measured: bool) -> tuple[float, float, str]:
    """Points, pending ones and status of the submission of that number: see KINDS."""
    kind = number % len(KINDS)
    if KINDS[kind] is BROKEN:
        return 0, 0, "rejected"
    if KINDS[kind] is RAISES:
        return 0, 0, "graded"
    if KINDS[kind] is WRONG:
        return 0, 0 if measured else 40, "graded"
    return 100, 0 if measured else 40, "graded"  # what is not measured counts as the rest does


def expected(measured: bool, count: int = COUNT) -> dict[str, tuple[float, float, str]]:
    return {f"s{number:04d}": points(number, measured) for number in range(count)}


def found(root: Path) -> dict[str, tuple[float, float, str]]:
    return {s: (float(li["points"]), float(li["pending"]), li["status"]) for s, li in book(root).items()}


@pytest.mark.slow  # tests/lms/test_pool.py shows the same for one submission
def test_speed_is_measured_where_a_card_is_from_programs_alone(root: Path, mark: str) -> None:
    finished(grading(root, mark))
    assert found(root) == expected(measured=False)
    with running(root, mark, ("--graders", "0", "--stand-in")) as cluster:
        said = finished(grading(root, mark, "--cluster", cluster.address))
    assert found(root) == expected(measured=True)
    assert "0 submissions to grade" in said and ", on CPU emulation] s0000  100 / 100" in said
    report = json.loads((root / "out/double/feedback/s0000/report.json").read_text())
    assert report["environment"]["gpu"] == "CPU emulation"
    assert report["checks"][1]["details"]["speed"]["card"] == "CPU emulation"
    machines = [[result.key.machine for result in each] for each in histories(root).values()]
    assert ["cpu", "CPU emulation"] in machines


@pytest.mark.slow
def test_workers_the_scheduler_and_the_coordinator_may_die(root: Path, mark: str) -> None:
    machines = [("--graders", "1", "--no-cards"), ("--graders", "1", "--stand-in")]
    hand_in(root / "in", 2 * COUNT)
    with running(root, mark, *machines) as cluster:
        first = grading(root, mark, "--cluster", cluster.address)
        wait_for("[2/", first)
        assert cluster.kill_worker(0)
        wait_for("[3/", first)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        second = grading(root, mark, "--cluster", cluster.address)
        wait_for("[1/", second)
        assert cluster.scheduler is not None
        cluster.scheduler.kill()
        cluster.scheduler.wait()
        time.sleep(1)
        cluster.start()
        finished(second)
        for _ in range(3):  # a card that was away is asked at the next time
            if found(root) != expected(measured=True, count=2 * COUNT):
                finished(grading(root, mark, "--cluster", cluster.address))
    assert found(root) == expected(measured=True, count=2 * COUNT)
    assert {sum(r.key.machine == "cpu" for r in results) for results in histories(root).values()} == {1}


@pytest.mark.slow
def test_a_cluster_speaks_tls_with_the_certificates_of_the_configuration(root: Path, mark: str) -> None:
    from gradekit.batch.pool import ClusterPool

    key, certificate = root / "key.pem", root / "cert.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=class",
         "-keyout", str(key), "-out", str(certificate)], capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("there is no openssl here")
    names = {"CA_FILE": certificate, **{f"{role}__{part}": file for role in ("SCHEDULER", "WORKER", "CLIENT")
             for part, file in (("KEY", key), ("CERT", certificate))}}  # fmt: skip
    told = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(file) for name, file in names.items()}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, value)
        cluster = Cluster(root, mark, protocol="tls")
        cluster.start()
        cluster.lend("--graders", "1", "--no-cards")
        try:
            finished(grading(root, mark, "--cluster", cluster.address))
        finally:
            cluster.stop()
    assert found(root) == expected(measured=False)
    assert ClusterPool(cluster.address).address.startswith("tls://")


def test_a_job_for_a_card_has_nothing_of_the_submission() -> None:
    from dataclasses import fields

    from gradekit.batch.grader import SpeedJob

    assert [field.name for field in fields(SpeedJob)] == ["assignment", "release", "options", "name", "programs"]


def test_a_scheduler_that_does_not_answer_is_a_sentence(root: Path) -> None:
    from gradekit.batch.pool import ClusterLost, ClusterPool

    with pytest.raises(ClusterLost, match="cannot be reached"):
        ClusterPool("tcp://127.0.0.1:1", patience=1).has_gpus()


def test_the_coordinator_needs_nothing_heavy() -> None:
    code = "import sys, gradekit.batch.class_folder; print(*{'torch', 'triton', 'distributed'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": python_path()}, capture_output=True, text=True,
        timeout=GUARD, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == ""
