"""What the GPU worker's process may still reach. It is confined before it imports torch: before it has a second thread,
a context on the card, or a program.

Triton builds a small C library for each new kind of launch, and starts ptxas for each kernel: so it may run a compiler
and what belongs to it, and read where the system, the driver and Python's packages lie.
"""

import ctypes
import fnmatch
import glob
import os
import re
import shutil
import sysconfig
from collections.abc import Collection, Iterator
from pathlib import Path

from gradekit.confine import paths, seccomp
from gradekit.confine.confinement import Means, for_compilers
from gradekit.confine.landlock import Rules

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/libexec",
           "/usr/local/bin", "/usr/local/lib", "/usr/local/lib64", "/usr/local/libexec")  # fmt: skip
_READ = ("/usr/include", "/usr/local/include", "/usr/share/nvidia", "/etc/ld.so.cache", "/etc/ld.so.conf",
         "/etc/ld.so.conf.d", "/etc/nvidia", "/etc/alternatives")  # fmt: skip
_MACHINE = ("/proc/self", "/proc/driver/nvidia", "/proc/devices", "/proc/cpuinfo", "/proc/meminfo", "/proc/version",
            "/proc/stat", "/proc/sys/vm", "/proc/modules", "/sys/devices", "/sys/bus", "/sys/class", "/sys/module",
            "/sys/kernel/mm")  # fmt: skip
_DEVICES = ("/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvidia-uvm*", "/dev/nvidia-modeset", "/dev/nvidia-caps/*",
            "/dev/dxg", "/dev/nvmap", "/dev/nvhost*")  # fmt: skip
_NEEDED = ("/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg")
_THREADS = ("/proc/self/task",)  # CUDA names its threads by files there, and gives up where it cannot

_SOCKETS = ("socket", "bind", "listen")
"""CUDA makes one Unix socket when it meets the card, which nobody can reach, and gives up where it cannot."""

_TOOLKITS = ("/usr/local/cuda*", "/usr/local/nvidia*")


def enter(folder: Path, device: str, without: Collection[str] = ()) -> Means:
    """Confines this process, and ends it with the thread that started it; `device` is "cpu" or names a card. What is in
    force from now on. Raises OSError where this machine offered something that it then refused."""
    card = devices() if device != "cpu" else []
    needed = [one for pattern in _NEEDED for one in card if fnmatch.fnmatch(one, pattern)]
    confinement = for_compilers(rules(card), needed, without)
    # Landlock's rules are of files as the kernel has them in memory, and it may forget those of /proc that are not open
    os.open("/proc/self/task", os.O_PATH | os.O_CLOEXEC)
    confinement.enter(str(folder), os.getppid(), later=_SOCKETS if card else ())
    return confinement.means


def close(means: Means) -> None:
    """Takes away, once the card is ready, what only meeting it needed. Raises OSError where the kernel refuses."""
    if means.seccomp:
        seccomp.refuse(_SOCKETS)


def rules(card: Collection[str]) -> Rules:
    """What may be read, run and written to, with these devices of a card."""
    toolkits = [path for pattern in _TOOLKITS for path in glob.glob(pattern)] if card else []
    run = [*_SYSTEM, *toolkits, *paths.runnable(), *_compiler()]
    includes = [sysconfig.get_path("include"), sysconfig.get_path("include", "posix_prefix")]
    read = [*paths.readable(), *_package(), *_READ, *_MACHINE, *includes, *_named(), *(_driver() if card else ())]
    return Rules(tuple(_there(read)), tuple(_there(run)), (*paths.DEVICES, *card, *_THREADS))


def devices() -> list[str]:
    """The devices through which cards are reached."""
    return sorted({path for pattern in _DEVICES for path in glob.glob(pattern)})


def _there(paths: Collection[str]) -> Iterator[str]:
    return (path for path in dict.fromkeys(paths) if os.path.exists(path))


def _package() -> list[str]:
    """gradekit itself, which the worker has not imported yet; not the assignments that may be installed with it."""
    package = Path(__file__).parents[1]
    return [str(path) for path in package.iterdir() if path.name != "_assignments"]


def _compiler() -> Iterator[str]:
    """Where the C compiler that Triton would take lives with its own programs, if that is no folder of the system's."""
    for name in filter(None, (os.environ.get("CC"), "clang", "gcc")):
        found = shutil.which(name)
        if found and (prefix := str(Path(found).resolve().parents[1])) not in ("/", "/usr", "/usr/local"):
            yield prefix


def _named() -> Iterator[str]:
    for name in ("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "TRITON_LIBCUDA_PATH"):
        for folder in os.environ.get(name, "").split(os.pathsep):
            if os.path.isabs(folder) and os.path.realpath(folder) != "/":
                yield folder


def _driver() -> set[str]:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return set()
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return {os.path.dirname(path) for path in re.findall(r"/\S*libcuda\.so\S*", maps)}
