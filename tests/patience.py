"""For tests that wait, or that say how much work something is: none of them is decided
by how fast or busy a machine is."""

import resource
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

GUARD = 240.0
"""Seconds after which a test waits no longer, though what it waits for takes a few of them: a guard against hanging."""


def eventually(happens: Callable[[], object]) -> bool:
    """Whether it happens at all."""
    deadline = time.monotonic() + GUARD
    while not happens():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def peak_kilobytes() -> int:
    """The most memory that this process has had: other tests may have run in it before."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def steps(act: Callable[[], object]) -> int:
    """How many lines of Python `act` runs: a measure of its work that is the same on all machines."""
    count = 0

    def counted(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
