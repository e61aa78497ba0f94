"""Landlock: a process gives up every path but those that it names, and with newer kernels TCP and signals to others."""

import contextlib
import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from gradekit.confine.linux import syscall

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_READ = READ_FILE | READ_DIR
_ALL = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_SINCE_5 = (1 << 16) - 1
_TCP, _SCOPES = 3, 3  # bind and connect; abstract sockets and signals
_VERSION = 1  # asks for the version in place of a ruleset


@dataclass(frozen=True)
class Rules:
    """What stays allowed beneath each path: to `read`, to `run` (and read), to `write` (everything but devices)."""

    read: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    write: tuple[str, ...] = ()


def version() -> int:
    """The kernel's version of Landlock; 0 where there is none."""
    try:
        return syscall("landlock_create_ruleset", None, 0, _VERSION)
    except OSError:
        return 0


def restrict(rules: Rules) -> None:
    """Leaves this process, for good, only what `rules` allow. Needs no_new_privs; OSError without Landlock."""
    newest = version()
    handled = _ALL.get(newest, _SINCE_5)
    fields = [handled] + [_TCP] * (newest >= 4) + [_SCOPES] * (newest >= 6)
    ruleset = syscall("landlock_create_ruleset", struct.pack(f"={len(fields)}Q", *fields), 8 * len(fields), 0)
    try:
        _allow(ruleset, rules.read, _READ & handled)
        _allow(ruleset, rules.run, (_READ | EXECUTE) & handled)
        _allow(ruleset, rules.write, handled & ~EXECUTE)
        syscall("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, paths: Iterable[str], access: int) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError, PermissionError):  # what cannot be opened need not be allowed
            _allow_one(ruleset, path, access)


def _allow_one(ruleset: int, path: str, access: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            access &= _OF_FILES
        syscall("landlock_add_rule", ruleset, 1, struct.pack("=Qi", access, handle), 0)
    finally:
        os.close(handle)
