"""The paths that a confined Python process needs: its library, its packages, the system's libraries, a few devices."""

import contextlib
import fcntl
import glob
import os
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Collection, Iterator
from pathlib import Path

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu")  # torch asks which instructions there are
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")


def readable(own: Collection[str] = ()) -> list[str]:
    """What Python may still import or load; of gradekit itself only the parts `own` of its package."""
    package = str(Path(__file__).parents[1])
    prefixes = {os.path.join(prefix, "lib") for prefix in (sys.prefix, sys.base_prefix) if prefix != "/usr"}
    roots = [*prefixes, *filter(_is_of_packages, sys.path), *_SYSTEM, *_MACHINE]
    found = {part for root in roots if os.path.exists(root) for part in _around(os.path.abspath(root), package)}
    outermost = {path for path in found if not any(str(parent) in found for parent in Path(path).parents)}
    return sorted({*outermost, *(os.path.join(package, name) for name in own)})


def settle_in(folder: str) -> None:
    """Makes `folder` the place of this process, of its temporary files and of Triton's cache."""
    os.chdir(folder)
    os.environ |= {"HOME": folder, "TMPDIR": folder, "TRITON_CACHE_DIR": os.path.join(folder, "triton")}
    tempfile.tempdir = folder


def runnable() -> list[str]:
    """Programs that Triton itself starts, and the loader that they need."""
    tools = [found for entry in sys.path for found in glob.glob(f"{glob.escape(entry)}/triton/backends/*/bin")]
    return sorted({*tools, *(os.path.realpath(loader) for loader in _LOADERS if os.path.exists(loader))})


def _is_of_packages(entry: str) -> bool:
    """Not the folder of a checkout, where solutions and hidden tests may lie beside gradekit itself."""
    is_checkout = os.path.isdir(os.path.join(entry, "gradekit")) and not os.path.isdir(os.path.join(entry, "torch"))
    return bool(entry) and not is_checkout


def _around(folder: str, hole: str) -> Iterator[str]:
    """Paths that cover `folder` but for what is in `hole`."""
    if folder != hole and not hole.startswith(folder.rstrip("/") + "/"):
        yield folder
    elif folder != hole:
        for name in os.listdir(folder):
            yield from _around(os.path.join(folder, name), hole)


# --- folders ----------------------------------------------------------------------------------------------------------


_SETTLED_SECONDS = 60.0
"""How old an unlocked folder must be before it counts as abandoned: a new one may not be locked yet."""


class PrivateFolder(contextlib.AbstractContextManager["PrivateFolder"]):
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
    """A descriptor of the folder, locked while it is open. Raises OSError where another process has it locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
