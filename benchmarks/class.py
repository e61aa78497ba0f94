"""A class graded twice: on this machine in peace, and on a local Dask cluster whose parts are killed all the while.

    python benchmarks/class.py --count 1000 --machines 6 --graders 2 --quiet 12 --every 20 --coordinator 3

The submissions are variants of vector_add: right ones in a dozen styles, wrong ones, broken ones, and hostile ones that
end the process, flood it, or take its time and memory. Both grade books must be the same, byte for byte, and every
submission must have one result. No GPU is used.
"""

from __future__ import annotations

import argparse
import csv
import json
import signal
import tempfile
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

from gradekit.assignment import get
from gradekit.batch.store import Store
from gradekit.course.mistakes import all_of, bases
from gradekit.versions import environment as versions
from tests import right
from tests.batch.clusters import ROOT, Cluster, alive, grading, running

ID = "vector_add"
ENTRY = "\n\ndef add(x, y):\n    return x\n"

BROKEN = (
    "def add(x, y:\n",
    "import torhc\n\ndef add(x, y):\n    return x\n",
    "def plus(x, y):\n    return x\n",
    "def add(x, y):\n    raise ValueError('to be done')\n",
    "\0\1\2 this is no Python",
)
HOSTILE = (
    "import os\nos._exit(0)\n",
    "import os, signal\nos.kill(0, signal.SIGKILL)\n",
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: os._exit(0)\n",
    "x = [bytearray(1 << 26) for _ in range(1000)]\n",
    "while True: print('x' * 100000)\n",
    (
        "import os, time\nfor name in os.listdir('/proc/self/fd'):\n    try: os.write(int(name), b'forged' * 1000)\n"
        "    except OSError: pass\n"
    ),
    "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()\n",
    "while True: pass\n",
)
EVERY_KIND = {"right": 9, "wrong": 7, "broken": 2, "hostile": 2}
"""Of twenty submissions."""


def sources() -> dict[str, list[str]]:
    """The texts of each kind."""
    files = [ROOT / "solutions" / ID / "solution.py", *bases(get(ID)), *right.files(ID)]
    return {
        "right": [file.read_text() for file in files],
        "wrong": [mistake.text for mistake in all_of(get(ID))],
        "broken": [text + ("" if "\0" in text else ENTRY * ("add" not in text)) for text in BROKEN],
        "hostile": [text + ENTRY for text in HOSTILE],
    }


def hand_in(folder: Path, count: int) -> Counter[str]:
    """So many submissions, each another one; how many of each kind."""
    texts, kinds = sources(), [kind for kind, share in EVERY_KIND.items() for _ in range(share)]
    made: Counter[str] = Counter()
    for number in range(count):
        kind = kinds[number * 7 % len(kinds)]
        text = texts[kind][made[kind] % len(texts[kind])]
        made[kind] += 1
        (folder / f"s{number:04d}").mkdir(parents=True)
        (folder / f"s{number:04d}/submission.py").write_text(f"{text}\n# student {number}\n")
    return made


def desk(root: Path, hand_ins: Path) -> Path:
    """A folder to grade in, with what processes need beside it."""
    root.mkdir()
    (root / "in").symlink_to(hand_ins)
    for name in ("assignments", "solutions"):
        (root / name).symlink_to(ROOT / name)
    return root


class Run:
    """A `gradekit grade` whose lines are counted as they come, and kept with the seconds since it began."""

    def __init__(self, root: Path, mark: str, profile: str, *options: str) -> None:
        self.process = grading(root, mark, *options, id=ID, profile=profile)
        self.graded, self.began, self.seconds = 0, time.monotonic(), 0.0
        self._log = (root / "said").open("a")
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self._log as log:
            for line in self.process.stdout:
                self.graded += line.startswith("[")
                log.write(f"{time.monotonic() - self.began:6.1f} {line}")
                log.flush()
        self.seconds = time.monotonic() - self.began

    @property
    def running(self) -> bool:
        return self._reader.is_alive()

    def kill(self) -> None:
        """As a machine that loses power would."""
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def end(self) -> int:
        """Its exit code, once it has ended."""
        self._reader.join()
        return self.process.wait()


def disturbed(run: Run, cluster: Cluster, every: float, until: int, killed: int) -> int:
    """Kill a worker every so many seconds, until so many are graded; how many were killed, with those before."""
    next_kill = time.monotonic() + every
    while run.running and run.graded < until:
        time.sleep(0.2)
        if time.monotonic() >= next_kill:
            next_kill += every
            killed += cluster.kill_worker(killed % len(cluster.machines))
    return killed


def hard(root: Path, given: argparse.Namespace) -> dict[str, object]:
    """Grade on a cluster of which something dies all the while; what was killed, and how long it took."""
    mark, began, killed, stopped = uuid.uuid4().hex, time.monotonic(), 0, 0
    each = given.count // (given.coordinator + 1)
    machines = [("--graders", str(given.graders), "--no-cards")] * given.machines
    with running(root, mark, *machines) as cluster:
        for _ in range(given.coordinator):
            run = Run(root, mark, given.profile, "--cluster", cluster.address)
            killed = disturbed(run, cluster, given.every, each, killed)
            stopped += run.running
            run.kill()
        last = Run(root, mark, given.profile, "--cluster", cluster.address)
        killed = disturbed(last, cluster, given.every, given.count + 1, killed)
        code = last.end()
    return {
        "seconds": round(time.monotonic() - began), "exit_code": code, "workers_killed": killed,
        "coordinators_killed": stopped, "left_behind": left_behind(root, mark),
    }  # fmt: skip


def left_behind(root: Path, mark: str) -> list[str]:
    """Processes of a run that is over, and files that it left in its scratch folder."""
    deadline, found = time.monotonic() + 20, ["?"]
    while found and time.monotonic() < deadline:
        time.sleep(0.5)
        found = [pid for pid in map(str, alive(mark))] + [
            p.name for p in (root / "scratch").iterdir() if p.name != "dask-scratch-space"
        ]
    return found[:10]


def book(root: Path) -> dict[str, dict[str, str]]:
    with (root / "out/gradebook.csv").open(encoding="utf-8", newline="") as stream:
        return {line["student"]: line for line in csv.DictReader(stream)}


def results(root: Path) -> dict[int, int]:
    """How many submissions have how many results."""
    store = Store(f"sqlite:///{root / 'out/class.db'}")
    return dict(Counter(len(store.history(ID, one.digest)) for one in store.hand_ins(ID)))


def compared(quiet: Path, loud: Path) -> dict[str, object]:
    """Whether both grade books are the same, and what differs."""
    one, other = book(quiet), book(loud)
    differing = [(one.get(s), other.get(s)) for s in sorted(one.keys() | other.keys()) if one.get(s) != other.get(s)]
    same = (quiet / "out/gradebook.csv").read_bytes() == (loud / "out/gradebook.csv").read_bytes()
    return {
        "grade_books_are_the_same": same, "lines": len(other), "differing": len(differing), "first": differing[:4],
        "status": dict(Counter(line["status"] for line in other.values())),
        "results_each": results(loud), "results_each_in_peace": results(quiet),
    }  # fmt: skip


def main() -> None:
    """Print how long both took, what was killed, and what differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--profile", default="default")
    parser.add_argument("--machines", type=int, default=3, help="processes that lend themselves to the cluster")
    parser.add_argument("--graders", type=int, default=1, help="graders of each")
    parser.add_argument("--quiet", type=int, default=1, help="graders of the run in peace, which goes on beside it")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two kills of a worker")
    parser.add_argument("--coordinator", type=int, default=3, help="how often the coordinator is killed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gradekit-class-") as scratch:
        Path(scratch).chmod(0o711)
        kinds = hand_in(Path(scratch) / "in", given.count)
        quiet, loud = (desk(Path(scratch) / name, Path(scratch) / "in") for name in ("quiet", "loud"))
        peace = Run(quiet, uuid.uuid4().hex, given.profile, "--workers", str(given.quiet))
        found = hard(loud, given)
        peace.end()
        told = {"quiet_seconds": round(peace.seconds), "kinds": kinds, **vars(given), **versions()}
        print(json.dumps(found | compared(quiet, loud) | told, indent=1))


if __name__ == "__main__":
    main()
