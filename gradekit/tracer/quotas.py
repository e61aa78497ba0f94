"""Nobody takes more than a share of the machine: what a submission has in memory and in files, over all its processes.

The kernel limits each process and each file; how many there are multiplies that. Here they are added up, a few times
each second, and whoever is over is ended. The supervisor, which sees every process, adds up memory; the server, which
has made the folders, adds up files, where they are not in memory anyway.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

PULSE_SECONDS = 0.25

MEMORY_BYTES = 1 << 30
"""Of all processes of one submission: with the grader, a check stays below 2 GiB."""

FILE_BYTES, FILES = 512 << 20, 20_000
"""Of all files of one submission, and how many they may be."""


@dataclass(frozen=True)
class Process:
    """One process of a submission: its `session`, and the bytes that it has of its `own`, which no file holds."""

    pid: int
    session: int
    own: int


def greedy(server: int, most: int = MEMORY_BYTES) -> list[Process]:
    """The processes of submissions that have more memory than `most` bytes together,
    beyond what the `server` gave them.

    A submission is a session: a process that it starts cannot leave it.
    """
    given = _own(server)
    sums, members = defaultdict[int, int](int), defaultdict[int, list[Process]](list)
    for process in _below(server):
        sums[process.session] += max(process.own - given, 0)
        members[process.session].append(process)
    return [process for session, total in sums.items() if total > most for process in members[session]]


def end(process: Process) -> None:
    """Kills a process, if its number still means the same one."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(process.pid)
        try:
            if _session(process.pid) == process.session:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def enforce(server: int) -> None:
    """Ends the processes of submissions that have too much memory."""
    for process in greedy(server):
        end(process)


def _below(pid: int) -> Iterator[Process]:
    """All that a process has started, and what that has started."""
    for child in _children(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            yield Process(child, _session(child), _own(child))
        yield from _below(child)


def _children(pid: int) -> Iterator[int]:
    """Those that any of its threads has started."""
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                yield from map(int, file.read().split())


def _session(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[3])


def _own(pid: int) -> int:
    with open(f"/proc/{pid}/status", "rb") as file:
        lines = [line.split() for line in file if line.startswith((b"RssAnon:", b"RssShmem:", b"VmSwap:"))]
    return sum(int(line[1]) << 10 for line in lines)


def too_much(folder: str, most: int = FILE_BYTES, most_files: int = FILES) -> bool:
    """Whether there is more in `folder` than `most` bytes on the disk, or than `most_files` files and folders; or a
    folder that nobody may look into."""
    size, count = 0, 0
    unreadable: list[OSError] = []
    for path, folders, files in os.walk(folder, onerror=unreadable.append):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                size += os.lstat(os.path.join(path, name)).st_blocks * 512
            count += 1
            if size > most or count > most_files:
                return True
    return any(isinstance(error, PermissionError) for error in unreadable)
