"""Folders for temporary files that one process alone uses: made, locked while in use, and removed when it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import Self

_SETTLED_SECONDS = 60.0
"""How old an unlocked folder must be before it counts as abandoned: a new one may not be locked yet."""


class PrivateFolder:
    """A new folder that only this user may enter; as root, one that can be given to other users.

    It is locked for as long as this process lives, and removed by `remove`, at the end of a `with`, when nobody
    holds this object any more, or when the interpreter ends. Folders of the same prefix that killed processes
    have left behind are removed first.
    """

    def __init__(self, prefix: str) -> None:
        made = tempfile.mkdtemp(prefix=prefix, dir=_parent())
        self.path = Path(made)
        self._finalizer = weakref.finalize(self, _remove, made, _lock(made), os.getpid())
        for other in self.path.parent.glob(f"{prefix}*"):
            with contextlib.suppress(OSError):
                if time.time() - other.stat().st_mtime > _SETTLED_SECONDS:
                    _remove(str(other), _lock(str(other)), os.getpid())

    def remove(self) -> None:
        """Removes the folder and what is in it; the second time, nothing."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def remove(folder: str) -> None:
    """Removes a folder, whatever permissions its contents were given."""
    for path, names, _ in os.walk(folder):  # from the top, so that each folder is open before its turn comes
        for name in names:
            inner = os.path.join(path, name)
            with contextlib.suppress(OSError):
                if not os.path.islink(inner):
                    os.chmod(inner, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: str, lock: int, owner: int) -> None:
    """Removes a folder and then unlocks it, in the process that locked it: a fork of that process leaves it alone."""
    if os.getpid() == owner:
        remove(folder)
        os.close(lock)


def _parent() -> str | None:
    """Where temporary files go; as root, a place that other users can get to, since submissions run as one of them."""
    if os.geteuid():
        return tempfile.gettempdir()
    return next((folder for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp") if _is_open(Path(folder))), None)


def _is_open(folder: Path) -> bool:
    real = folder.resolve()
    return real.is_dir() and all(part.stat().st_mode & 0o001 for part in (real, *real.parents))


def _lock(folder: str) -> int:
    """A descriptor of the folder, which is locked for as long as it is open.

    Raises:
        OSError: another process has it locked.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
