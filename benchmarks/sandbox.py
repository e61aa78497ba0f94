"""What confinement costs: `python benchmarks/sandbox.py`, on a warm server, against the same server without any of it.

For each submission: from nothing to a loaded submission and back to nothing. For tracing: calls, every one of a form
that was not traced before, so that its kernel is compiled anew. The two are measured in turn, by the clock and in the
CPU time of all processes, the grader's included: a busy machine changes the first much and the second little.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

from gradekit.program import View
from gradekit.sandbox import Tracer, host

ROUNDS, SUBMISSIONS, CALLS = 5, 40, 100
ALL = ("seccomp", "landlock", "root", "apart", "user")
TEXT = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr, FORM: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + FORM, mask=at < n)

def entry(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128, FORM=x.numel())
    return out
"""


class Seconds(NamedTuple):
    """Of one thing: by the clock (the median), and of computing (the mean)."""

    clock: float
    computing: float


def computing() -> float:
    """The CPU seconds of the tracer's processes, those that have ended included, and of this one."""
    stats = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat:
                stats[int(name)] = stat.read().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
    parents = {pid: int(stat[1]) for pid, stat in stats.items()}
    root = host.server().process.pid
    ticks = sum(sum(map(int, stat[11:15])) for pid, stat in stats.items() if _is_under(pid, root, parents))
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


def _is_under(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid != root and pid in parents:
        pid = parents[pid]
    return pid == root


def timed(actions: list[Callable[[], object]]) -> Seconds:
    """The cost of one of many actions."""
    times, before = [], computing()
    for action in actions:
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return Seconds(statistics.median(times), (computing() - before) / len(actions))


def live() -> None:
    """One submission's life, without any call."""
    with Tracer(SimpleNamespace(text="x = 1\n")) as tracer:
        tracer.load()


def calls() -> Seconds:
    """One call whose kernel is compiled anew."""
    with Tracer(SimpleNamespace(text=TEXT)) as tracer:
        tracer.load()
        forms = [View(0, "float32", (size,), (1,)) for size in range(100, 100 + CALLS)]
        return timed([lambda form=form: tracer.trace("entry", [form]) for form in forms])  # type: ignore[misc]


def measured(*without: str) -> tuple[int, Seconds, Seconds]:
    """The level of isolation, and the cost of each submission and of each call, with a fresh warm server."""
    with host.without(*without):
        level = host.means().level
        timed([live] * SUBMISSIONS)
        return level, timed([live] * SUBMISSIONS), calls()


def main() -> None:
    """Prints medians of ROUNDS paired rounds."""
    confined, bare = [], []
    for _ in range(ROUNDS):
        confined.append(measured())
        bare.append(measured(*ALL))
    print(f"isolation level {confined[0][0]} against level {bare[0][0]}, medians of {ROUNDS} rounds")
    for field in Seconds._fields:
        lives, more = [[1e3 * getattr(pair[1], field) for pair in pairs] for pairs in (confined, bare)]
        traced, speed = [[1e3 * getattr(pair[2], field) for pair in pairs] for pairs in (confined, bare)]
        ratios = [without / with_it for with_it, without in zip(traced, speed, strict=True)]
        print(f"{field:10s} each submission {statistics.median(lives):5.1f} ms ({statistics.median(more):.1f} "
              "without); "
              f"each traced call {statistics.median(traced):4.1f} ms, throughput {statistics.median(ratios):.2f} of "
              "without "
              f"({min(ratios):.2f} to {max(ratios):.2f})")  # fmt: skip


if __name__ == "__main__":
    main()
