"""The paths that a confined Python process needs: its library, its packages, the system's libraries, a few devices."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu")  # torch asks which instructions there are
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")


def readable(own: Collection[str] = ()) -> list[str]:
    """What Python may still import or load; of gradekit itself only the parts `own`,
    files or folders of its package."""
    package = str(Path(__file__).parents[1])
    prefixes = {os.path.join(prefix, "lib") for prefix in (sys.prefix, sys.base_prefix) if prefix != "/usr"}
    roots = [*prefixes, *filter(_is_of_packages, sys.path), *_SYSTEM, *_MACHINE]
    found = {part for root in roots if os.path.exists(root) for part in _around(os.path.abspath(root), package)}
    return sorted({*_outermost(found), *(os.path.join(package, name) for name in own)})


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


def _outermost(paths: set[str]) -> set[str]:
    """The paths that lie in none of the others."""
    return {path for path in paths if not any(str(parent) in paths for parent in Path(path).parents)}
