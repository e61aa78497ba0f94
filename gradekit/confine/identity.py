"""Who a process is: its capabilities, its user, and how many tasks that user has."""

import contextlib
import os
import struct
from collections.abc import Iterable

from gradekit.confine import linux

SYS_ADMIN = 21
READERS = (2, 1)
"""CAP_DAC_READ_SEARCH and CAP_DAC_OVERRIDE: either reads, within Landlock, what permissions keep from a user."""

_LAST = 63  # far beyond the last capability that there is
_VERSION_3 = 0x20080522

HIGH, LOW = 0x70000000, 61184
"""Where free user ids are taken: beyond all that distributions hand out, or (in containers whose ids end at 65535)
where systemd takes ids for services that have none."""


def has(capability: int) -> bool:
    """Whether this process has the capability of that number in force."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        words = next(line for line in status if line.startswith("CapEff:")).split()
    return bool(int(words[1], 16) >> capability & 1)


def become(user: int, *, groups: Iterable[int] = (), keep: int | None = None) -> None:
    """This process is `user` (and the group of the same number) from now on, in no other group but `groups`, for good.
    `keep` is a capability that it does not lose by this; `drop_capabilities` is to be told of it too."""
    if keep is not None:
        linux.prctl(linux.PR_SET_KEEPCAPS, 1)
    os.setgroups(list(groups))
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def drop_capabilities(keep: int | None = None) -> None:
    """Nothing that this process does or starts has a privilege any more, not even as root or through a set-uid file.
    `keep` is one capability that stays, for what it starts too. Raises OSError where it has no `keep` to keep."""
    for capability in set(range(_LAST)) - {keep}:
        with contextlib.suppress(OSError):  # no such capability, or not allowed to drop it: then it is not there
            linux.prctl(linux.PR_CAPBSET_DROP, capability)
    with contextlib.suppress(OSError):
        linux.prctl(linux.PR_CAP_AMBIENT, linux.PR_CAP_AMBIENT_CLEAR_ALL)
    kept = 0 if keep is None else 1 << keep
    linux.syscall("capset", struct.pack("=Ii", _VERSION_3, 0), struct.pack("=6I", kept, kept, kept, 0, 0, 0))
    if keep is not None:
        linux.prctl(linux.PR_CAP_AMBIENT, linux.PR_CAP_AMBIENT_RAISE, keep)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)


def close_to_others() -> None:
    """Nobody but root can look into this process any more (/proc/<pid>/mem, environ, fd), not even its own user."""
    with contextlib.suppress(OSError):
        linux.prctl(linux.PR_SET_DUMPABLE, 0)


def tasks() -> int:
    """How many tasks the user of this process has at this moment, threads included."""
    mine, found = os.getuid(), 0
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            found += len(os.listdir(f"/proc/{pid}/task")) if os.stat(f"/proc/{pid}").st_uid == mine else 0
    return found
