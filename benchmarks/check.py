"""What `gradekit check` of a right submission costs on the CPU: wall time and CPU time beside a bare `import torch,
triton`, examples, and peak memory.

    python benchmarks/check.py [--repeats N] [--record FILE] [--warm] [ASSIGNMENT ...]

The two are run in turn, so that both meet the same machine. CPU seconds are those of all processes, and the figure to
compare on a machine that others use too. Memory is the largest sum over the grader's whole process tree of proportional
set sizes (shared pages counted once), sampled every 50 ms in a run of its own: looking takes a third of a check's time.

With --warm, the README's table: in bare imports, a first check, one of the same file again, and one after an edit of
every kernel, by a server that each repetition starts anew.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from where import edited

ROOT = Path(__file__).parent.parent
BARE = [sys.executable, "-W", "ignore", "-c", "import torch, triton"]
PR_SET_CHILD_SUBREAPER = 36
ASSIGNMENTS = tuple(sorted(path.parent.name for path in ROOT.glob("solutions/*/solution.py")))


@dataclass(frozen=True)
class Cost:
    """Of a command: seconds by the clock, and CPU seconds of all its processes."""

    wall: float
    cpu: float


def check(assignment: str, record: str) -> list[str]:
    """The command of a full default check of the assignment's solution, which writes its `record`."""
    solution = ROOT / "solutions" / assignment / "solution.py"
    command = [sys.executable, "-m", "gradekit", "check", str(solution), "-a", assignment, "--no-server"]
    return [*command, "--device", "cpu", "--json", record]


def timed(command: list[str]) -> Cost:
    """What a command costs."""
    start, before = time.perf_counter(), cpu_seconds()
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)  # what outlives the command for a moment is this process's child then
    return Cost(time.perf_counter() - start, cpu_seconds() - before)


def peak(command: list[str]) -> int:
    """The most memory in bytes that all processes of a command have at a time."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        most = max(most, sum(map(proportional, tree(process.pid))))
        time.sleep(0.05)
    assert process.returncode == 0, f"{command} ended with {process.returncode}"
    return most


def cpu_seconds() -> float:
    """Of all processes that this one has started, and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def examples(record: Path) -> int:
    """How many the checks of a record have run."""
    return sum(one["details"].get("examples", 0) for one in json.loads(record.read_text())["checks"])


def tree(pid: int) -> list[int]:
    """A process and all its descendants, as far as they still live."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        found += [member for child in children for member in tree(int(child))]
    return found


def proportional(pid: int) -> int:
    """Proportional set size in bytes; 0 for a process that has gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def measured(assignment: str, repeats: int) -> dict[str, list[float]]:
    """Raw samples: of the check, and of the bare import before each."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        command = check(assignment, str(record))
        pairs, most = [(timed(BARE), timed(command)) for _ in range(repeats)], peak(command)
        ran = examples(record)
    return {
        "bare seconds": [bare.wall for bare, _ in pairs],
        "bare CPU seconds": [bare.cpu for bare, _ in pairs],
        "check seconds": [ours.wall for _, ours in pairs],
        "check CPU seconds": [ours.cpu for _, ours in pairs],
        "check bytes": [float(most)],
        "examples": [float(ran)],
    }


def warm(assignment: str, repeats: int) -> str:
    """A row of the README's table: medians of the ratios to the bare import before each repetition."""
    samples = []
    solution = ROOT / "solutions" / assignment / "solution.py"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "submission.py"
        command = [sys.executable, "-m", "gradekit", "check", str(file), "-a", assignment, "--server", "--device", "cpu"]
        os.environ.update(XDG_RUNTIME_DIR=folder, XDG_CACHE_HOME=folder)
        for _ in range(repeats):
            bare = clock(BARE)
            texts = [solution.read_text(), solution.read_text(), edited(solution.read_text())]
            samples.append([(file.write_text(text), clock(command))[1] / bare for text in texts])
            subprocess.run([sys.executable, "-m", "gradekit", "server", "stop"], stdout=subprocess.DEVNULL, check=True)
    return f"| {assignment} | " + " | ".join(f"{statistics.median(one):.1f}" for one in zip(*samples, strict=True)) + " |"


def clock(command: list[str]) -> float:
    """Seconds until a command has ended, whatever it leaves behind."""
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


HEAD = (
    "| check of | bare import s | check s | check / bare | bare CPU s | check CPU s | examples | peak MiB |\n"
    "|---|---|---|---|---|---|---|---|"
)


def row(assignment: str, samples: dict[str, list[float]]) -> str:
    """A row of a Markdown table: medians, with the median of the ratios pair by pair."""
    names = ("bare seconds", "check seconds", "bare CPU seconds", "check CPU seconds")
    bare, ours, bare_cpu, cpu = (statistics.median(samples[name]) for name in names)
    pairs = zip(samples["bare seconds"], samples["check seconds"], strict=True)
    ratio = statistics.median(b / a for a, b in pairs)
    ran, peak = samples["examples"][0], max(samples["check bytes"]) / 2**20
    times = f"{bare:.2f} | {ours:.2f} | {ratio:.2f} | {bare_cpu:.2f} | {cpu:.2f}"
    return f"| {assignment} | {times} | {ran:.0f} | {peak:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="What a default check of a right submission costs.")
    parser.add_argument("assignments", nargs="*", default=ASSIGNMENTS, metavar="ASSIGNMENT")
    parser.add_argument("--repeats", type=int, default=5, help="how often each is measured (5)")
    parser.add_argument("--record", type=Path, help="write the raw samples to this file")
    parser.add_argument("--warm", action="store_true", help="print the README's table: first, again, after an edit")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    compileall.compile_dir(ROOT / "gradekit", quiet=1)  # as an installed package is
    if options.warm:
        print("| | first check | the same file again | after an edit of its code |\n|---|---|---|---|")
        for assignment in options.assignments:
            print(warm(assignment, options.repeats), flush=True)
        return
    print(HEAD)
    found = {}
    for assignment in options.assignments:
        found[assignment] = measured(assignment, options.repeats)
        print(row(assignment, found[assignment]), flush=True)
    if options.record:
        options.record.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
