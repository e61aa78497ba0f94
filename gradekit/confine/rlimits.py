"""Limits that the kernel keeps for a process and all that it starts."""

from __future__ import annotations

import resource
from collections.abc import Mapping


def lower(limits: Mapping[int, int]) -> None:
    """Lowers limits (resource.RLIMIT_... to its new value) of this process, for good;
    one that is lower already stays."""
    for which, value in limits.items():
        _, hard = resource.getrlimit(which)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))
