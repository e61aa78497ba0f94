"""Linux system calls by name, through ctypes; an error is an OSError."""

import ctypes
import json
import os
import platform
from pathlib import Path
from typing import Any

Calls = dict[str, dict[str, list[int]]]

CALLS: dict[str, Calls] = json.loads(Path(__file__).with_name("syscalls.json").read_text(encoding="ascii"))
"""The calls that a confined process is refused, those that are absent to it, and others that gradekit knows, each in
groups: the numbers of each [x86-64, aarch64] by name; -1 where the machine has no such call."""

NUMBERS = {name: numbers for calls in CALLS.values() for group in calls.values() for name, numbers in group.items()}

NEWEST = 462
"""The highest number that this table was made with: a kernel may know calls after it, which nobody has judged."""

MACHINES = {"x86_64": 0, "aarch64": 1}

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 4, 24, 38, 36
PR_SET_KEEPCAPS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_CLEAR_ALL = 8, 47, 2, 4

_libc = ctypes.CDLL(None, use_errno=True)


def number(name: str) -> int | None:
    """The number of a call on this machine; None where it has none, or the machine is not one of MACHINES."""
    column = MACHINES.get(platform.machine())
    if column is None or NUMBERS[name][column] < 0:
        return None
    return NUMBERS[name][column]


def syscall(name: str, *arguments: Any) -> int:
    """The result of a system call; integers go as longs, bytes and None as pointers. Raises OSError where it fails."""
    code = number(name)
    if code is None:
        raise OSError(38, f"{name} is not known on {platform.machine()}")
    passed = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(code), *passed)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return int(result)


def prctl(option: int, *arguments: int) -> int:
    """`prctl(2)` with up to four arguments."""
    return syscall("prctl", option, *arguments, *[0] * (4 - len(arguments)))


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """`mount(2)`."""
    syscall("mount", _path(source), _path(target), _path(kind), flags, _path(data or None))


def _path(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)
