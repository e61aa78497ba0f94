"""Shuts in a process that compiles what strangers wrote: it starts compilers and may hold a card, and needs nothing else.

What such a process is given is text, but MLIR, LLVM and ptxas were not written to withstand hostile text, so whoever
breaks one of them must find an empty room. Unlike a submission's process it is no child of the tracer, and so without
namespaces of its own: sockets and signals are refused by seccomp, files by Landlock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from gradekit.confine import identity, landlock, namespaces, seccomp
from gradekit.confine.landlock import Rules
from gradekit.confine.level import Means

HIGHEST = 2
"""The highest level that such a process can reach."""

TASKS = 512
"""Processes and threads of one such process: CUDA and torch have threads, and several kernels are compiled at one time."""

_SETTLED_SECONDS = 60.0
"""How old a folder is before it counts as left: a new one may not be held yet."""

_HIGH, _LOW = identity.HIGH + (1 << 26), identity.LOW + 256
"""Where its free user ids begin: beyond those of submissions."""

Fits = Callable[[int, "int | None"], object]
"""Becomes a user, who keeps a capability or none, and raises OSError where that user could not work."""


@dataclass(frozen=True)
class Workshop:
    """`means` that a place offers, and the `rules` that they enforce; as root also the free `user` that the process
    becomes, the `groups` that it needs for devices, and a capability that the user keeps to read Python with. The user
    may have so many `tasks`, others of theirs included."""

    means: Means
    rules: Rules
    user: int | None = None
    groups: tuple[int, ...] = ()
    keep: int | None = None
    tasks: int = TASKS

    def enter(self, folder: str, parent: int, later: Collection[str] = ()) -> None:
        """This process, which has one thread, is shut in from now on, and ends with its `parent`; `folder`, which belongs
        to its user, is what it may write to. System calls are refused as in `seccomp.install`.

        Raises:
            OSError: something that the place had offered was refused.
        """
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        tasks = self.tasks if hard == resource.RLIM_INFINITY else min(self.tasks, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (tasks, tasks))
        if self.user is not None:
            os.chown(folder, self.user, self.user)
            identity.become(self.user, groups=self.groups, keep=self.keep)
        if self.means.seccomp or self.means.landlock:
            identity.drop_capabilities(self.keep)
        namespaces.die_with_parent(parent)  # after the user has changed: that would clear it
        if self.means.landlock:
            landlock.restrict(replace(self.rules, write=(*self.rules.write, folder)))
        if self.means.seccomp:
            seccomp.install(os.getpid(), later=later)


_held: dict[str, int] = {}
"""The folders of this process, each with a descriptor that holds a lock on it."""


def private_folder(prefix: str) -> str:
    """A new folder for temporary files that only this user may enter; as root, one that it can be given to others.

    What processes that were killed have left of this kind is removed: nobody holds it any more.
    """
    folders = (tempfile.gettempdir(), "/tmp", "/var/tmp")
    parent = next((folder for folder in folders if os.geteuid() or _is_open(Path(folder))), None)
    made = tempfile.mkdtemp(prefix=prefix, dir=parent)
    _held[made] = _hold(made)
    for left in Path(made).parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _SETTLED_SECONDS:
                _held[str(left)] = _hold(str(left))
                remove(str(left))
    return made


def remove(folder: str) -> None:
    """Removes a folder that `private_folder` made."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder in _held:
        os.close(_held.pop(folder))


def _hold(folder: str) -> int:
    """A descriptor of the folder, which is locked for as long as it is open; OSError where another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_open(folder: Path) -> bool:
    real = folder.resolve()
    return real.is_dir() and all(part.stat().st_mode & 0o001 for part in (real, *real.parents))


def found(rules: Rules, devices: Collection[str] = (), without: Collection[str] = ()) -> Workshop:
    """The strongest means that this place offers, but for those `without` which it is to do (names of Means)."""
    version = 0 if "landlock" in without else landlock.version()
    means = Means(seccomp="seccomp" not in without and seccomp.available(), user=True, landlock=version)
    if os.geteuid() != 0:
        return Workshop(means, rules, tasks=identity.tasks() + TASKS)
    groups = tuple({os.stat(device).st_gid for device in devices})
    candidates = (_HIGH + os.getpid() % 1_000_000, _LOW + os.getpid() % 2048)
    chosen = free_user(candidates, lambda user, keep: _works_as(user, groups, keep, rules, devices), bool(version))
    if "user" in without or chosen is None:
        return Workshop(replace(means, user=False), rules)
    return Workshop(means, rules, chosen[0], groups, chosen[1])


def free_user(candidates: Collection[int], fits: Fits, landlocked: bool) -> tuple[int, int | None] | None:
    """Of the `candidates` the first that fits, with the capability that it has to keep, as tried in other processes.

    Where Python lies in a folder of root's alone, no other user can read it: behind Landlock, which privileges do not
    pass, the user may keep the one that reads.
    """
    keeps = (None, *identity.READERS) if landlocked else (None,)
    tries = ((user, keep) for keep in keeps for user in candidates)
    return next((one for one in tries if namespaces.possible(fits, *one)), None)


def _works_as(user: int, groups: Collection[int], keep: int | None, rules: Rules, devices: Collection[str]) -> None:
    folders = [path for path in rules.read if os.path.isdir(path)]  # a user who may not look there would see none
    identity.become(user, groups=groups, keep=keep)
    identity.drop_capabilities(keep)
    for folder in folders:
        os.listdir(folder)
    for device in devices:
        if not os.access(device, os.R_OK | os.W_OK):
            raise PermissionError(device)
