"""A class of small submissions on a local Dask cluster, with workers and the coordinator killed on the way.

    python benchmarks/class.py --count 1000 --machines 3 --every 20 --coordinator 3

Half are right, a quarter wrong, the others broken or raise. The grade book at the end is compared with what each kind
earns; each submission must have exactly one result. Runs on any machine: no GPU is used.
"""

from __future__ import annotations

import argparse
import csv
import json
import signal
import subprocess
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

from gradekit.batch.store import Store
from gradekit.versions import environment as versions
from tests.batch.clusters import KINDS, RAISES, RIGHT, WRONG, Cluster, assignments, grading, hand_in, running


def expected(number: int) -> tuple[str, str]:
    """Points and status of a submission."""
    kind = KINDS[number % len(KINDS)]
    points = {RIGHT: "60", WRONG: "0", RAISES: "0"}.get(kind, "0")
    return points, "graded" if kind in (RIGHT, WRONG, RAISES) else "rejected"


def disturbed(process: subprocess.Popen[str], cluster: Cluster, every: float, until: float) -> int:
    """Kill a worker every so many seconds, while the grading runs; how many were killed."""
    killed, log = 0, (cluster.root / "said").open("a")
    with log:
        while process.poll() is None and time.monotonic() < until:
            try:
                said, _ = process.communicate(timeout=every)
                log.write(said)
            except subprocess.TimeoutExpired:
                killed += cluster.kill_worker(killed % len(cluster.machines))
    return killed


def main() -> None:
    """Print how long it took, what was killed, and what differs from what it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--machines", type=int, default=3, help="processes that lend themselves, with a grader each")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two kills of a worker")
    parser.add_argument("--coordinator", type=int, default=3, help="how often the coordinator is killed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gradekit-class-") as scratch:
        root = Path(scratch)
        assignments(root)
        hand_in(root / "in", given.count)
        mark, began, killed, stopped = uuid.uuid4().hex, time.monotonic(), 0, 0
        with running(root, mark, *[("--graders", "1", "--no-cards")] * given.machines) as cluster:
            for _ in range(given.coordinator):
                first = grading(root, mark, "--cluster", cluster.address)
                killed += disturbed(first, cluster, given.every, time.monotonic() + 2.5 * given.every)
                stopped += first.poll() is None
                first.send_signal(signal.SIGKILL)
                first.communicate()
            last = grading(root, mark, "--cluster", cluster.address)
            killed += disturbed(last, cluster, given.every, time.monotonic() + 36_000)
        print(json.dumps(summary(root, given.count) | {
            "workers_killed": killed, "coordinators_killed": stopped, "machines": given.machines,
            "seconds": round(time.monotonic() - began), "exit_code": last.returncode,
        } | versions()))  # fmt: skip


def summary(root: Path, count: int) -> dict[str, object]:
    """How many were graded, how often, and how many are not as they should be."""
    with (root / "out/gradebook.csv").open(encoding="utf-8", newline="") as stream:
        book = {line["student"]: (line["points"], line["status"]) for line in csv.DictReader(stream)}
    store = Store(f"sqlite:///{root / 'out/class.db'}")
    results = Counter(len(store.history("double", digest)) for _, digest in store.hand_ins("double"))
    wrong = [f"s{n:04d}" for n in range(count) if book.get(f"s{n:04d}") != expected(n)]
    return {"submissions": len(book), "results_each": dict(results), "other_than_expected": wrong[:10]}


if __name__ == "__main__":
    main()
