"""What this machine offers to confine a process with, found out by trying it in other processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection
from dataclasses import replace

from gradekit.confine import identity, landlock, namespaces, paths, seccomp
from gradekit.confine.confinement import Confinement, Means
from gradekit.confine.landlock import Rules

HIGHEST_WITHOUT_NAMESPACES = 2
"""The highest level that a process can reach which is no child of the tracer's server:
one that compiles or runs kernels."""

SCRATCH_BYTES = 512 << 20
"""What all submissions of one server may keep in files at one time, where the folder is in memory."""

_HIGH, _LOW = identity.HIGH + (1 << 26), identity.LOW + 256
"""Where free user ids for compilers begin: beyond those of submissions."""

Fits = Callable[[int, "int | None"], object]
"""Becomes a user, who keeps a capability or none, and raises OSError where that user could not work."""


def for_compilers(rules: Rules, devices: Collection[str] = (), without: Collection[str] = ()) -> Confinement:
    """The strongest confinement of a process that compiles or runs kernels, with these devices, and `without` those
    means (names of fields of Means)."""
    version = 0 if "landlock" in without else landlock.version()
    means = Means(seccomp="seccomp" not in without and seccomp.available(), user=True, landlock=version)
    if os.geteuid() != 0:
        return Confinement(means, rules, tasks=identity.tasks())
    groups = tuple({os.stat(device).st_gid for device in devices})
    candidates = (_HIGH + os.getpid() % 1_000_000, _LOW + os.getpid() % 2048)
    chosen = free_user(candidates, lambda user, keep: _works_as(user, groups, keep, rules, devices), bool(version))
    if "user" in without or chosen is None:
        return Confinement(replace(means, user=False), rules, tasks=identity.tasks())
    return Confinement(means, rules, chosen[0], groups, chosen[1])


def for_submissions(scratch: str, rules: Rules, without: Collection[str] = ()) -> Confinement:
    """The strongest confinement of submissions whose files lie in `scratch`, `without` those means. As root, its user
    is the first of 256 that are free."""
    offered = {"seccomp": seccomp.available(), "landlock": landlock.version(), "apart": _may_leave()}
    offered = {name: value for name, value in offered.items() if name not in without}
    found = Confinement(Means.of(Means().as_data() | offered), rules)
    if found.means.apart and "root" not in without and namespaces.possible(_apart, enter_root, scratch, rules):
        found = replace(found, means=replace(found.means, root=True))
    return _with_user(found, scratch, without)


def enter_root(scratch: str, rules: Rules) -> None:
    """Gives this process the root folder that submissions see: what `rules` name, and an empty `scratch`."""
    root = os.path.join(scratch, "root")
    os.makedirs(root, exist_ok=True)
    devices = [device for device in paths.DEVICES if os.path.exists(device)]
    namespaces.new_root(root, [*rules.read, *rules.run], devices, scratch, SCRATCH_BYTES)


def free_user(candidates: Collection[int], fits: Fits, landlocked: bool) -> tuple[int, int | None] | None:
    """Of the `candidates` the first that fits, with the capability that it has to keep, as tried in other processes.

    Where Python lies in a folder of root's alone, no other user can read it: behind Landlock, which privileges do not
    pass, the user may keep the one that reads.
    """
    keeps = (None, *identity.READERS) if landlocked else (None,)
    tries = ((user, keep) for keep in keeps for user in candidates)
    return next((one for one in tries if namespaces.possible(fits, *one)), None)


def _may_leave() -> bool:
    if os.geteuid() == 0 and not identity.has(identity.SYS_ADMIN):
        return False
    return namespaces.possible(_apart, lambda: None)


def _apart(action: Callable[..., object], *arguments: object) -> None:
    """Calls `action` in a process with a network and processes of its own, which then ends."""
    namespaces.leave()
    namespaces.attempted(action, *arguments)


def _with_user(found: Confinement, scratch: str, without: Collection[str]) -> Confinement:
    if os.geteuid() != 0:
        return replace(found, means=replace(found.means, user=True), tasks=identity.tasks())
    candidates = (identity.HIGH + (os.getpid() % 100_000) * 256, identity.LOW)
    attempt = _read_in_root_as if found.means.root else _read_as
    chosen = free_user(candidates, lambda *user: attempt(found.rules, scratch, *user), bool(found.means.landlock))
    if "user" in without or chosen is None:
        return replace(found, tasks=identity.tasks())
    return replace(found, user=chosen[0], keep=chosen[1], means=replace(found.means, user=True))


def _read_in_root_as(rules: Rules, scratch: str, user: int, keep: int | None) -> None:
    _apart(_enter_and_read, rules, scratch, user, keep)


def _enter_and_read(rules: Rules, scratch: str, user: int, keep: int | None) -> None:
    enter_root(scratch, rules)
    _read_as(rules, scratch, user, keep)


def _read_as(rules: Rules, scratch: str, user: int, keep: int | None) -> None:
    """That user must be able to import what is not imported yet, and to have files."""
    home = tempfile.mkdtemp(dir=scratch)
    os.chmod(scratch, 0o711)
    os.chown(home, user, user)
    _list_as(user, (), keep, [*_folders(rules), home])


def _works_as(user: int, groups: Collection[int], keep: int | None, rules: Rules, devices: Collection[str]) -> None:
    _list_as(user, groups, keep, _folders(rules))
    for device in devices:
        if not os.access(device, os.R_OK | os.W_OK):
            raise PermissionError(device)


def _folders(rules: Rules) -> list[str]:
    return [path for path in rules.read if os.path.isdir(path)]  # found before: a user who may not look would see none


def _list_as(user: int, groups: Collection[int], keep: int | None, folders: Collection[str]) -> None:
    identity.become(user, groups=groups, keep=keep)
    identity.drop_capabilities(keep)
    for folder in folders:
        os.listdir(folder)
