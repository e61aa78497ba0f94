"""What confinement costs: `python benchmarks/sandbox.py`, on a warm server, against the same server without any of it.

For each submission: the time from nothing to a loaded submission and back to nothing. For tracing: calls for each second,
every one of a form that was not traced before, so that its kernel is compiled anew. The two are measured in turn.
"""

from __future__ import annotations

import statistics
import time
from types import SimpleNamespace

from gradekit import sandbox
from gradekit.program import View
from gradekit.sandbox import Tracer

ROUNDS, SUBMISSIONS, CALLS = 5, 20, 40
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


def submission_seconds() -> float:
    """The median over SUBMISSIONS of one submission's life, without any call."""
    times = []
    for _ in range(SUBMISSIONS):
        began = time.perf_counter()
        with Tracer(SimpleNamespace(text="x = 1\n")) as tracer:
            tracer.load()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def call_seconds() -> float:
    """The median over CALLS of one call whose kernel is compiled anew."""
    times = []
    with Tracer(SimpleNamespace(text=TEXT)) as tracer:
        tracer.load()
        for size in range(100, 100 + CALLS):
            began = time.perf_counter()
            tracer.trace("entry", [View(0, "float32", (size,), (1,))])
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def measured(*without: str) -> tuple[float, float]:
    """Seconds for each submission and for each call, with a fresh warm server."""
    sandbox.do_without(*without)
    sandbox.isolation()
    submission_seconds()
    return submission_seconds(), call_seconds()


def main() -> None:
    """Prints medians of ROUNDS paired rounds."""
    confined, bare = [], []
    for _ in range(ROUNDS):
        confined.append(measured())
        level = sandbox.isolation().level
        bare.append(measured(*ALL))
    more = [(a[0] - b[0]) * 1e3 for a, b in zip(confined, bare, strict=True)]
    speed = [b[1] / a[1] for a, b in zip(confined, bare, strict=True)]
    print(f"isolation level {level} against level {sandbox.isolation().level}, medians of {ROUNDS} rounds")
    print(f"each submission   {1e3 * statistics.median(c[0] for c in confined):6.1f} ms, of which confinement "
          f"{statistics.median(more):5.1f} ms ({min(more):.1f} to {max(more):.1f})")  # fmt: skip
    print(f"each traced call  {1e3 * statistics.median(c[1] for c in confined):6.1f} ms; throughput with confinement "
          f"{statistics.median(speed):5.2f} of without ({min(speed):.2f} to {max(speed):.2f})")  # fmt: skip


if __name__ == "__main__":
    main()
