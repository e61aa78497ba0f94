"""What `gradekit check` of a right submission costs: wall time beside a bare `import torch, triton`, and peak memory.

    python benchmarks/check.py [--record FILE] [ASSIGNMENT ...]

The two are run in turn, so that both meet the same machine. Memory is the largest sum over the grader's whole process
tree of proportional set sizes (shared pages counted once), sampled every 50 ms.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
BARE = [sys.executable, "-W", "ignore", "-c", "import torch, triton"]
REPEATS = 5
ASSIGNMENTS = ("vector_add", "fused_chain", "softmax", "matmul")


def check(assignment: str) -> list[str]:
    """The command of a full default check of the assignment's solution."""
    solution = ROOT / "solutions" / assignment / "solution.py"
    return [sys.executable, "-m", "gradekit.cli", "check", str(solution), "-a", assignment]


def timed(command: list[str]) -> tuple[float, int]:
    """Wall seconds of a command, and the peak of its process tree in bytes."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(proportional, tree(process.pid))))
        time.sleep(0.05)
    assert process.returncode == 0, f"{command} ended with {process.returncode}"
    return time.perf_counter() - start, peak


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


def measured(assignments: list[str]) -> dict[str, dict[str, list[float]]]:
    """Raw samples for each assignment: seconds of the check and of the bare import beside it, and bytes."""
    found = {}
    for assignment in assignments:
        pairs = [(timed(BARE), timed(check(assignment))) for _ in range(REPEATS)]
        found[assignment] = {
            "bare seconds": [bare[0] for bare, _ in pairs],
            "check seconds": [ours[0] for _, ours in pairs],
            "check bytes": [float(ours[1]) for _, ours in pairs],
        }
    return found


def table(found: dict[str, dict[str, list[float]]]) -> str:
    """A Markdown table of medians, with the median of the ratios pair by pair."""
    rows = ["| check of | bare import s | check s | check / bare | peak MiB |", "|---|---|---|---|---|"]
    for assignment, samples in found.items():
        bare, ours = samples["bare seconds"], samples["check seconds"]
        ratio = statistics.median(b / a for a, b in zip(bare, ours, strict=True))
        peak = max(samples["check bytes"]) / 2**20
        rows.append(
            f"| {assignment} | {statistics.median(bare):.2f} | {statistics.median(ours):.2f} | {ratio:.2f} | "
            f"{peak:.0f} |"
        )
    return "\n".join(rows)


def main() -> None:
    arguments = sys.argv[1:]
    record = arguments.pop(arguments.index("--record") + 1) if "--record" in arguments else None
    found = measured([name for name in arguments if name != "--record"] or list(ASSIGNMENTS))
    print(table(found))
    if record:
        Path(record).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
