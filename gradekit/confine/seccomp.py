"""seccomp: the system calls that a confined process may not make, as a program for the kernel's filter.

What is refused reaches outside of the process: sockets, signals to others, reading other processes' memory, mounts,
namespaces, keys, kernel modules, new sessions and process groups (so that one signal ends all that it started). The
rest is allowed, up to the newest call that this was written for.
"""

import ctypes
import errno
import platform
import struct
from collections.abc import Collection, Sequence

from gradekit.confine import linux
from gradekit.confine.linux import number

REFUSED = [name for group in linux.CALLS["refused"].values() for name in group]
ABSENT = [name for group in linux.CALLS["absent"].values() for name in group]
"""Answered as if the kernel did not know them."""

_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_CLONE_PARENT = 0x8000
_OWNERS = (8, 10, 15)  # fcntl: F_SETOWN, F_SETSIG, F_SETOWN_EX send signals to whom they please
_TERMINALS = (0x5412, 0x541C, 0x8901, 0x8902)  # ioctl: TIOCSTI types into a terminal; FIOSETOWN and SIOCSPGRP as above
_PRCTLS = (linux.PR_SET_PDEATHSIG, linux.PR_SET_CHILD_SUBREAPER)

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_SET_MODE_FILTER, _ALL_THREADS, _NO_MITIGATION = 1, 1, 4
_X32 = 0x40000000


def available() -> bool:
    """Whether the kernel filters system calls, and their numbers are known for this machine."""
    try:
        linux.syscall("seccomp", 2, 0, struct.pack("=I", _ERRNO))  # is this action available?
    except OSError:
        return False
    return platform.machine() in _ARCHITECTURES


def install(pid: int, *, later: Collection[str] = ()) -> None:
    """Filters the calls of this process, whose id is `pid`, and of all that it starts. Needs no_new_privs. Calls that
    are to be refused `later`, by `refuse`, are left alone. Raises OSError where the kernel refuses."""
    _add(program(pid, later=later), _NO_MITIGATION)


def refuse(names: Collection[str]) -> None:
    """Refuses these calls to all threads of this process, too. Raises OSError where the kernel refuses."""
    refused = [_refuse(name, errno.EPERM) for name in names]
    _add(b"".join([_head(), *refused, _instruction(_RETURN, _ALLOW)]), _NO_MITIGATION | _ALL_THREADS)


def _add(code: bytes, flags: int) -> None:
    instructions = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("@HP", len(code) // 8, ctypes.addressof(instructions))
    if thread := linux.syscall("seccomp", _SET_MODE_FILTER, flags, described):
        raise OSError(errno.EINVAL, f"thread {thread} could not be given the filter")


def program(pid: int, *, later: Collection[str] = ()) -> bytes:
    """The filter, 8 bytes for each instruction."""
    own = (pid, 0)
    only = {"kill": (0, (*own, -pid)), "tgkill": (0, (pid,)), "prlimit64": (0, own), "setpriority": (1, own)}
    only |= {f"sched_set{what}": (0, own) for what in ("affinity", "scheduler", "attr", "param")}
    never = {"fcntl": (1, _OWNERS), "ioctl": (1, _TERMINALS), "prctl": (0, _PRCTLS)}
    parts = [_head()]
    parts += [_refuse(name, errno.ENOSYS) for name in ABSENT]
    parts += [_refuse(name, errno.EPERM) for name in REFUSED if name not in later]
    parts += [_where(name, place, _EQUAL, values, allowed=True) for name, (place, values) in only.items()]
    parts += [_where(name, place, _EQUAL, values, allowed=False) for name, (place, values) in never.items()]
    parts += [_where("clone", 0, _ANY_BIT, [_NAMESPACES | _CLONE_PARENT], allowed=False), _instruction(_RETURN, _ALLOW)]
    return b"".join(parts)


def _head() -> bytes:
    """Another machine's calls (32-bit ones included) end the process; calls that nobody has judged do not exist."""
    steps = [
        (_LOAD, _ARCHITECTURE_AT), (_EQUAL, _ARCHITECTURES[platform.machine()], 1, 0), (_RETURN, _KILL),
        (_LOAD, _NUMBER_AT), (_AT_LEAST, _X32, 0, 1), (_RETURN, _KILL),
        (_AT_LEAST, linux.NEWEST + 1, 0, 1), (_RETURN, _ERRNO | errno.ENOSYS),
    ]  # fmt: skip
    return b"".join(_instruction(*step) for step in steps)


def _refuse(name: str, error: int) -> bytes:
    return _about(name, [_instruction(_RETURN, _ERRNO | error)])


def _where(name: str, place: int, comparison: int, values: Sequence[int], *, allowed: bool) -> bytes:
    """The call is `allowed`, or else refused, where its argument at `place` compares so with one of the values, and
    only there. Of the argument its low half counts: all that are looked at are C ints or flags below 2**32."""
    checks = [_instruction(comparison, value & 0xFFFFFFFF, len(values) - i, 0) for i, value in enumerate(values)]
    ends = [_instruction(_RETURN, _ALLOW), _instruction(_RETURN, _ERRNO | errno.EPERM)]
    return _about(name, [_instruction(_LOAD, _ARGUMENTS_AT + 8 * place), *checks, *(ends[::-1] if allowed else ends)])


def _about(name: str, then: list[bytes]) -> bytes:
    code = number(name)
    return b"" if code is None else _instruction(_EQUAL, code, 0, len(then)) + b"".join(then)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
