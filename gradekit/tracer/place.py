"""Where submissions run: which paths they may see here, and by which means everything else is kept from them."""

from __future__ import annotations

import glob
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gradekit.confine import identity, landlock, namespaces, seccomp, workshop
from gradekit.confine.landlock import Rules
from gradekit.confine.level import Means

SCRATCH_BYTES = 512 << 20
"""What all submissions of one server may keep in files at one time, where the folder is in memory."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu")  # torch asks which instructions there are
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
_OWN = ("__init__.py", "program.py", "wire.py", "compat", "tracer", "confine")


@dataclass(frozen=True)
class Place:
    """`means` in force for submissions whose files lie in `scratch`; `user` is the first of 256 free user ids, as root.

    `keep` is a capability that these users keep, where root alone may read Python and Landlock shows nothing else;
    `tasks` is how many the server's user had when it started.
    """

    scratch: str
    means: Means
    rules: Rules
    user: int | None = None
    keep: int | None = None
    tasks: int = 0


def choose(scratch: str, without: Collection[str] = ()) -> Place:
    """The strongest means that this machine offers, but for those `without` which it is to do (names of Means)."""
    rules = Rules(read=tuple(readable()), run=tuple(runnable()), write=DEVICES)
    place = Place(scratch, Means(), rules, tasks=identity.tasks())
    place = _add(place, without, "seccomp", seccomp.available())
    place = _add(place, without, "landlock", landlock.version())
    place = _add(place, without, "apart", _may_leave(place))
    place = _add(place, without, "root", place.means.apart and namespaces.possible(_apart, enter_root, place))
    return _with_user(place, without)


def _add(place: Place, without: Collection[str], name: str, found: bool | int) -> Place:
    if name in without:
        return place
    return replace(place, means=Means.of(place.means.as_data() | {name: found}))


# --- by trying --------------------------------------------------------------------------------------------------------


def as_user() -> bool:
    """Whether namespaces are to be made as an ordinary user."""
    return os.geteuid() != 0


def _may_leave(place: Place) -> bool:
    if not as_user() and not identity.has(identity.SYS_ADMIN):
        return False
    return namespaces.possible(_apart, lambda: None)


def _apart(action: Callable[..., object], *arguments: object) -> None:
    """Calls `action` in a process with a network and processes of its own, which then ends."""
    namespaces.leave(as_user=as_user())
    namespaces.attempted(action, *arguments)


def enter_root(place: Place) -> None:
    """Gives this process the root folder that submissions see."""
    root = os.path.join(place.scratch, "root")
    os.makedirs(root, exist_ok=True)
    paths = [*place.rules.read, *place.rules.run]
    devices = [device for device in DEVICES if os.path.exists(device)]
    namespaces.new_root(root, paths, devices, place.scratch, SCRATCH_BYTES)


def _with_user(place: Place, without: Collection[str]) -> Place:
    if os.geteuid() != 0:
        return replace(place, means=replace(place.means, user=True))
    candidates = (identity.HIGH + (os.getpid() % 100_000) * 256, identity.LOW)
    found = workshop.free_user(candidates, lambda *one: _try_user(place, *one), bool(place.means.landlock))
    if "user" in without or found is None:
        return replace(place, means=replace(place.means, user=False))
    return replace(place, user=found[0], keep=found[1], means=replace(place.means, user=True))


def _try_user(place: Place, user: int, keep: int | None) -> None:
    """That user must be able to import what is not imported yet."""
    if place.means.root:
        _apart(_read_in_root_as, place, user, keep)
    else:
        _read_as(place, user, keep)


def _read_in_root_as(place: Place, user: int, keep: int | None) -> None:
    enter_root(place)
    _read_as(place, user, keep)


def _read_as(place: Place, user: int, keep: int | None) -> None:
    folders = [path for path in place.rules.read if os.path.isdir(path)]
    home = tempfile.mkdtemp(dir=place.scratch)
    os.chmod(place.scratch, 0o711)
    os.chown(home, user, user)
    identity.become(user, keep=keep)
    identity.drop_capabilities(keep)
    for folder in (*folders, home):
        os.listdir(folder)


# --- paths ------------------------------------------------------------------------------------------------------------


def readable() -> list[str]:
    """What Python may still import or load: its library, its packages, the system's libraries, of gradekit the tracer."""
    package = str(Path(__file__).parents[1])
    own = [os.path.join(package, name) for name in _OWN]
    prefixes = {os.path.join(prefix, "lib") for prefix in (sys.prefix, sys.base_prefix) if prefix != "/usr"}
    places = [*prefixes, *filter(_is_of_packages, sys.path), *_SYSTEM, *_MACHINE]
    found = {part for place in places if os.path.exists(place) for part in _around(os.path.abspath(place), package)}
    return sorted({*_outermost(found), *own})


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


def runnable() -> list[str]:
    """Programs that Triton itself starts, and the loader that they need."""
    tools = [found for entry in sys.path for found in glob.glob(f"{glob.escape(entry)}/triton/backends/*/bin")]
    return sorted({*tools, *(os.path.realpath(loader) for loader in _LOADERS if os.path.exists(loader))})
