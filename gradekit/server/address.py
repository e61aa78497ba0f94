"""Where a user's resident templates listen, and which of them suits: one for each installation.

The name of a socket is made from all that importing depends on: Python and its flags, the folders that modules come
from and what is installed there, gradekit's own files, those variables of the environment that torch, Triton and
Python read, and the limits of processes, which none can raise again. Where one of them changes, another template is
started, and the old one ends when it has been idle for long enough.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import resource
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1]

READ_EARLY = (
    "PYTHON", "TORCH", "PYTORCH", "TRITON", "OMP_", "MKL_", "KMP_", "ATEN_", "CUDA", "LD_", "HYPOTHESIS", "MALLOC_"
)  # fmt: skip
"""How the names of variables begin that may be read while modules are imported."""

LIMITS = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_STACK")

LONGEST = 100  # bytes of a socket's path: Linux takes 107


class NoFolder(OSError):
    """There is no folder that only this user may enter."""


def _place() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    parent = Path(runtime) if runtime and os.path.isdir(runtime) else Path(tempfile.gettempdir())
    return parent / f"gradekit-{os.getuid()}"


def folder() -> Path:
    """The folder of this user's sockets. Raises NoFolder where there is none that this user alone may enter."""
    found = _place()
    try:
        found.mkdir(mode=0o700, exist_ok=True)
        seen = found.lstat()
    except OSError as error:
        raise NoFolder(str(error)) from None
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o077:
        raise NoFolder(f"{found} is not a folder of this user alone")
    if len(str(found)) > LONGEST - len("/0123456789abcdef.sock"):
        raise NoFolder(f"{found} is too long a path for a socket")
    return found


def search_path() -> list[str]:
    """Where modules come from, without the current folder or the script's."""
    path = sys.path if sys.flags.safe_path else sys.path[1:]
    return [os.path.abspath(part) for part in path]


def installation() -> str:
    """A name for all that importing depends on."""
    early = {name: value for name, value in os.environ.items() if name.startswith(READ_EARLY)}
    path = search_path()
    installed = [_installed(part) for part in path if part.endswith("-packages")]
    flags = str(sys.flags).replace(f"safe_path={sys.flags.safe_path}", "")  # which `search_path` makes up for
    facts = [sys.executable, sys.version, flags, sys.warnoptions, path, installed, limits()]
    own = [[str(file), *_changed(str(file))] for file in sorted(PACKAGE.rglob("*.py"))]
    return hashlib.sha256(json.dumps([facts, own, sorted(early.items())]).encode()).hexdigest()[:16]


def _installed(folder: str) -> list[tuple[object, ...]]:
    """What stands in a folder of packages, and when each distribution changed; not the folder's own time, which the
    first import that writes bytecode changes."""
    with contextlib.suppress(OSError):
        names = sorted(name for name in os.listdir(folder) if name != "__pycache__")
        return [(name, *(_changed(f"{folder}/{name}") if name.endswith(".dist-info") else ())) for name in names]
    return []


def limits() -> dict[str, tuple[int, int]]:
    """What this process, and all that it starts, may use."""
    return {name: resource.getrlimit(getattr(resource, name)) for name in LIMITS}


def _changed(path: str) -> tuple[int, ...]:
    with contextlib.suppress(OSError):
        seen = os.stat(path)
        return seen.st_mtime_ns, seen.st_size if stat.S_ISREG(seen.st_mode) else 0
    return ()


def listening(path: Path) -> socket.socket:
    """A socket that listens at `path`, in the place of any that did before."""
    sock, own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET), path.with_suffix(f".{os.getpid()}")
    sock.bind(str(own))
    sock.listen(64)
    own.rename(path)
    return sock


def connection(path: Path) -> socket.socket:
    """A connection to the socket at `path`. Raises OSError: PermissionError where another user listens."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        sock.connect(str(path))
        listener(sock)
    except OSError:
        sock.close()
        raise
    return sock


def connections() -> Iterator[tuple[Path, socket.socket]]:
    """The sockets on which a process of this user listens, and a connection to each."""
    with contextlib.suppress(NoFolder):
        for path in sorted(folder().glob("*.sock")):
            with contextlib.suppress(OSError):
                yield path, connection(path)


def listener(sock: socket.socket) -> int:
    """The id of the process that listens. Raises PermissionError where it is another user's."""
    pid, user, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if user != os.getuid():
        raise PermissionError("another user listens")
    return pid


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Inside, no other process has the lock at `path`."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def note(event: str, **facts: object) -> None:
    """Writes down what has happened, for whoever wonders why a check took long: the newest 64 KiB or more are kept.
    Where there is no folder, no server was asked for, and nothing is written."""
    with contextlib.suppress(OSError):
        if not _place().exists():
            return
        path = log()
        if path.exists() and path.stat().st_size > 1 << 16:
            path.replace(path.with_suffix(".old"))
        with path.open("a", encoding="utf-8") as file:
            told = [f"{name}={fact}" for name, fact in facts.items()]
            print(f"{time.time():.3f}", os.getpid(), event, *told, file=file)


def log() -> Path:
    """Where `note` writes. Raises NoFolder where there is no folder of this user's."""
    return folder() / "server.log"
