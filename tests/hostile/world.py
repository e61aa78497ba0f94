"""What a submission must not touch, and how it is seen that it did: files, sockets, processes, and the grader itself."""

import itertools
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import gradekit
from gradekit.judge import compare
from tests.patience import eventually

ROOT = Path(__file__).parents[2]
TOKEN = "the-secret-that-nobody-may-read"
_VICTIM = "import time; memory = '{token}'\nwhile True: time.sleep(0.05)"


class World:
    """Canaries in a folder that everybody may write to, sockets that listen, and a victim process of the same user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret, self.canary = folder / "secret.txt", folder / "canary.txt"
        self.secret.write_text(TOKEN)
        self.canary.write_text("untouched")
        self.sockets = {"port": _tcp(), "udp": _udp(), "port6": _tcp("::1")}
        self.sockets |= {"unix": _unix(str(folder / "s")), "abstract": _unix(_abstract())}
        self.listing = self._files()
        self.victim = subprocess.Popen(
            [sys.executable, "-S", "-c", _VICTIM.format(token=TOKEN)], env={"SECRET": TOKEN}, start_new_session=True
        )
        self.normal = self._victim()
        self.compare = vars(compare).copy()
        self.host = socket.gethostname()
        self.count = 0
        for path in (folder, self.secret, self.canary):
            path.chmod(0o777 if path.is_dir() else 0o666)
        self.listing = self._files()

    def names(self) -> dict[str, Any]:
        """What a submission is told of this world, with a marker that is new each time."""
        self.count += 1
        self.earlier = frozenset(os.listdir("/proc"))
        self.marker = f"gk{os.getpid()}-{self.count}"
        addresses = {name: one.getsockname() for name, one in self.sockets.items()}
        return {
            "folder": str(self.folder), "secret": str(self.secret), "canary": str(self.canary), "token": TOKEN,
            "port": addresses["port"][1], "port6": addresses["port6"][1], "udp": addresses["udp"][1], "unix": addresses["unix"],
            "abstract": addresses["abstract"], "free": free_port(), "victim": self.victim.pid, "grader": os.getpid(),
            "marker": self.marker, "home": str(Path.home()), "package": str(Path(gradekit.__file__).parent),
            "solution": str(ROOT / "solutions" / "vector_add" / "solution.py"),
        }  # fmt: skip

    def wounds(self, said: str) -> Iterator[str]:
        """What is not as it was; `said` is everything that the submission got the grader to hear."""
        if TOKEN in said or "def add_kernel" in said:
            yield f"it read a secret: {said[:300]}"
        if self._files() != self.listing:
            yield f"it changed files: {self._files()}"
        yield from self._strewn()
        yield from (f"something came to the socket {name}" for name, one in self.sockets.items() if _is_reached(one))
        if self._victim() != self.normal:
            yield f"it changed another process: {self._victim()}"
        if vars(compare).keys() != self.compare.keys() or socket.gethostname() != self.host:
            yield "it changed the grader"
        if not eventually(lambda: not named(self.marker, self.earlier)):
            yield f"a process of its survived: {named(self.marker, self.earlier)}"

    def _files(self) -> dict[str, tuple[int, bytes]]:
        return {
            path.name: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in self.folder.iterdir()
        }

    def _strewn(self) -> Iterator[str]:
        import torch

        packages = Path(torch.__file__).parents[1]
        places = [Path("/tmp", self.marker), Path("/dev/shm", self.marker), Path.home() / f".{self.marker}"]
        places += [Path.home() / ".triton" / self.marker, packages / "spoilt_by_gradekit_test.pth"]
        places += [packages / "torch" / "spoilt_by_gradekit_test.py"]
        places += [Path(gradekit.__file__).parent / "judge" / "__pycache__" / "spoilt.pyc"]
        for path in places:
            if os.path.lexists(path):
                path.rmdir() if path.is_dir() else path.unlink()
                yield f"it left {path}"

    def _victim(self) -> Any:
        pid = self.victim.pid
        alive = self.victim.poll() is None and ") T " not in read(f"/proc/{pid}/stat")
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE) if alive else ()
        return alive, limits, alive and os.getpriority(os.PRIO_PROCESS, pid), alive and len(os.sched_getaffinity(pid))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.victim.send_signal(signal.SIGKILL)
        self.victim.wait()
        for one in self.sockets.values():
            one.close()


def _tcp(address: str = "127.0.0.1") -> socket.socket:
    family = socket.AF_INET6 if ":" in address and socket.has_ipv6 else socket.AF_INET
    one = socket.create_server((address if family == socket.AF_INET6 else "127.0.0.1", 0), family=family)
    one.setblocking(False)
    return one


def _udp() -> socket.socket:
    one = socket.socket(type=socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 0))
    one.setblocking(False)
    return one


def _unix(address: str) -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.bind(address)
    one.listen()
    one.setblocking(False)
    return one


_WORLDS = itertools.count()


def _abstract() -> str:
    return f"\0gradekit-{os.getpid()}-{next(_WORLDS)}"  # tests of two modules may have a world each at one time


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def _is_reached(one: socket.socket) -> bool:
    try:
        if one.type == socket.SOCK_DGRAM:
            one.recv(1)
        else:
            one.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def opened(folder: Path) -> Path:
    """A temporary folder of pytest's that every user may enter, so that permissions alone keep nobody out."""
    for one in (folder, *folder.parents):
        if one == folder or one.name.startswith(("pytest-", "popen-")):
            one.chmod(0o755)
    return folder


# --- processes --------------------------------------------------------------------------------------------------------


def named(word: str, earlier: frozenset[str] = frozenset()) -> list[str]:
    """The processes that call themselves `word`, or have it on their command line; this one apart, and those that ran
    `earlier`."""
    return [
        pid
        for pid in processes(earlier)
        if read(f"/proc/{pid}/comm").strip() == word
        or (word in read(f"/proc/{pid}/cmdline") and int(pid) != os.getpid())
    ]


def commanded(word: str) -> list[str]:
    """The processes on whose command line `word` stands; this one apart."""
    return [pid for pid in processes() if word in read(f"/proc/{pid}/cmdline") and int(pid) != os.getpid()]


def processes(earlier: frozenset[str] = frozenset()) -> list[str]:
    """The ids of all processes that live, but for those that ran `earlier`."""
    found = [name for name in os.listdir("/proc") if name.isdecimal() and name not in earlier]
    return [name for name in found if ") Z " not in read(f"/proc/{name}/stat")]


def read(path: str) -> str:
    """A file of /proc, or nothing where the process has gone."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
