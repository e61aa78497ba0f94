"""What a server does before it forks, so that no child needs to: imports, caches, one kernel through the compiler."""

from __future__ import annotations

import functools
import gc
import os
import time
from collections.abc import Iterator

import triton
import triton.language as tl

from gradekit.compat.torch import keep_dynamo_out
from gradekit.compat.triton import ASTSource, lower, parse_once, watch_jit_functions
from gradekit.tracer import child

__all__ = ["child", "pace", "threads", "warm_up", "while_idle"]


@triton.jit
def _kernel(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n)
    tl.store(x + offsets, value - tl.max(tl.exp(value), 0), mask=offsets < n)


@functools.cache
def warm_up() -> None:
    """Everything that every submission needs; done once, for all forks of a process that has done it."""
    keep_dynamo_out()
    watch_jit_functions()
    parse_once()
    lower(_source(), {})
    freeze()


def _source() -> ASTSource:
    return ASTSource(_kernel, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 16})


REFERENCE_SECONDS = 0.006
"""What `_kernel` takes through the compiler on the machine that the time limits were chosen on."""

SLOWEST = 8.0


def pace() -> float:
    """How much slower than that machine this one is, from 1 to SLOWEST: the best of a few tries, in CPU seconds."""
    return min(max(min(_lowering_seconds() for _ in range(3)) / REFERENCE_SECONDS, 1.0), SLOWEST)


def _lowering_seconds() -> float:
    began = time.thread_time()
    lower(_source(), {})
    return time.thread_time() - began


def while_idle() -> Iterator[None]:
    """What only some submissions need, one piece at a time: torch asks sympy to add two tensors without data."""
    import sympy  # type: ignore[import-untyped]  # noqa: F401

    freeze()
    yield


def freeze() -> None:
    """Keeps the collector away from what exists now, so that collecting in a child does not copy those pages."""
    gc.collect()
    gc.freeze()


def threads() -> int:
    """How many threads this process has; a fork keeps one alone."""
    return len(os.listdir("/proc/self/task"))
