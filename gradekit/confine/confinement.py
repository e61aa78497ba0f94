"""How one process is confined: what is in force, which paths it keeps, which user it becomes.

Both kinds of processes that meet hostile data use it: a submission's own (in namespaces of its server, see
`for_submissions`), and those that compile or run kernels. The latter are given text only, but MLIR, LLVM and ptxas were
not written to withstand hostile text, so whoever breaks one of them must find nothing to reach.
"""

from __future__ import annotations

import functools
import os
import resource
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from gradekit.confine import identity, landlock, namespaces, paths, seccomp
from gradekit.confine.landlock import Rules

COMPILER_TASKS = 512
"""Processes and threads of one that compiles or runs kernels: those of CUDA and torch, and several compilers."""


@dataclass(frozen=True)
class Confinement:
    """`means` that the machine offers, and the `rules` on files that they enforce. As root, `user` is the free user
    that the process becomes, `groups` are those it needs for devices, and `keep` is a capability that the user keeps to
    read Python with. `tasks` is how many processes and threads that user had already."""

    means: Means
    rules: Rules
    user: int | None = None
    groups: tuple[int, ...] = ()
    keep: int | None = None
    tasks: int = 0

    def enter(self, folder: str, parent: int, *, tasks: int = COMPILER_TASKS, later: Collection[str] = ()) -> None:
        """Confines this process, which must have one thread, for good; it ends with the process `parent`.

        It may write to `folder`, which is given to its user, and have `tasks` processes and threads, itself included.
        System calls are refused as in `seccomp.install`, those in `later` not yet. Raises OSError where the kernel
        refused something that the machine had offered: the process must not go on.
        """
        lower({resource.RLIMIT_NPROC: self.tasks + tasks})
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


# --- limits that the kernel keeps for a process and all that it starts ------------------------------------------------


def lower(limits: Mapping[int, int]) -> None:
    """Lowers limits (resource.RLIMIT_... to a value) of this process for good; one that is lower stays."""
    for which, value in limits.items():
        _, hard = resource.getrlimit(which)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


# --- what a machine offers to confine a submission with, and what that amounts to: a level from 0 to 3 ----------------


LEVELS = (
    "a process of its own, with limits, a clean environment and no open files but its socket",
    "no privileges, no sockets, no signals to other processes",
    "no view of the filesystem beyond Python and its packages",
    "a network and processes of its own",
)
"""What each level adds to those before it."""

HIGHEST = len(LEVELS) - 1

RECOMMENDED = 2  # the level that a class is graded at: below it, a submission could read what lies beside the grader


@dataclass(frozen=True)
class Means:
    """What is in force for each submission. `seccomp`: system calls are filtered. `user`: it runs as an unprivileged
    user. `landlock`: the kernel's version of Landlock, 0 without. `root`: a root folder of its own.
    `apart`: a network and processes of its own."""

    seccomp: bool = False
    user: bool = False
    landlock: int = 0
    root: bool = False
    apart: bool = False

    @property
    def level(self) -> int:
        """The highest level of LEVELS that is reached with all before it."""
        reached = (self.seccomp and self.user, bool(self.landlock) or self.root, self.apart)
        return reached.index(False) if False in reached else HIGHEST

    def missing(self) -> tuple[str, ...]:
        """What is not in force, each with what would bring it: for whoever runs the machine."""
        said = {
            "system calls are not filtered: the kernel or the machine has no seccomp": self.seccomp,
            "it runs as root: make the Python installation readable for everybody, or use a kernel with "
            "Landlock": self.user,
            "the filesystem is open: use a kernel with Landlock (5.13 or newer)": self.landlock or self.root,
            "no network and processes of its own: allow user namespaces, or give the container "
            "CAP_SYS_ADMIN": self.apart,
        }
        return tuple(sentence for sentence, there in said.items() if not there)

    def as_data(self) -> dict[str, Any]:
        """For the wire."""
        return asdict(self)

    @classmethod
    def of(cls, data: Any) -> Self:
        """From the wire. Raises ValueError where the data describes no means."""
        known = {field.name: type(field.default) for field in fields(cls)}
        if not isinstance(data, dict) or {name: type(value) for name, value in data.items()} != known:
            raise ValueError("no description of means")
        return cls(**data)


# --- what this machine offers to confine a process with, found out by trying it in other processes --------------------


HIGHEST_WITHOUT_NAMESPACES = 2
"""The highest level of a process that compiles or runs kernels, which is no child of the tracer's server."""

SCRATCH_BYTES = 512 << 20
"""What all submissions of one server may keep in files at one time, where the folder is in memory."""

_HIGH, _LOW = identity.HIGH + (1 << 26), identity.LOW + 256
"""Where free user ids for compilers begin: beyond those of submissions."""

Fits = Callable[[int, "int | None"], object]
"""Becomes a user, who keeps a capability or none, and raises OSError where that user could not work."""


def for_compilers(rules: Rules, devices: Collection[str] = (), without: Collection[str] = ()) -> Confinement:
    """The strongest confinement of a process that compiles or runs kernels, with `devices`, `without` those means."""
    version = 0 if "landlock" in without else landlock.version()
    means = Means(seccomp="seccomp" not in without and seccomp.available(), landlock=version)
    groups = tuple({os.stat(device).st_gid for device in devices})
    candidates = (_HIGH + os.getpid() % 1_000_000, _LOW + os.getpid() % 2048)
    fits = lambda user, keep: _list_as(user, groups, keep, _folders(rules), devices)
    return _with_user(Confinement(means, rules, groups=groups), candidates, fits, without)


def for_submissions(scratch: str, rules: Rules, without: Collection[str] = ()) -> Confinement:
    """The strongest confinement of submissions with files in `scratch`; as root, as the first free user of 256."""
    may_leave = (os.geteuid() != 0 or identity.has(identity.SYS_ADMIN)) and namespaces.possible(_apart, lambda: None)
    offered = {"seccomp": seccomp.available(), "landlock": landlock.version(), "apart": may_leave}
    offered = {name: value for name, value in offered.items() if name not in without}
    found = Confinement(Means.of(Means().as_data() | offered), rules)
    if found.means.apart and "root" not in without and namespaces.possible(_apart, enter_root, scratch, rules):
        found = replace(found, means=replace(found.means, root=True))
    candidates = (identity.HIGH + (os.getpid() % 100_000) * 256, identity.LOW)

    def read(user: int, keep: int | None) -> None:
        if found.means.root:
            enter_root(scratch, found.rules)
        _read_as(found.rules, scratch, user, keep)

    return _with_user(found, candidates, functools.partial(_apart, read) if found.means.root else read, without)


def enter_root(scratch: str, rules: Rules) -> None:
    """Gives this process the root folder that submissions see: what `rules` name, and an empty `scratch`."""
    root = os.path.join(scratch, "root")
    os.makedirs(root, exist_ok=True)
    devices = [device for device in paths.DEVICES if os.path.exists(device)]
    namespaces.new_root(root, [*rules.read, *rules.run], devices, scratch, SCRATCH_BYTES)


def free_user(candidates: Collection[int], fits: Fits, landlocked: bool) -> tuple[int, int | None] | None:
    """Of the `candidates` the first that fits, with the capability that it has to keep, as tried in other processes.
    Where Python lies in a folder of root's alone, no other user can read it: behind Landlock, which privileges do not
    pass, the user may keep the one that reads."""
    keeps = (None, *identity.READERS) if landlocked else (None,)
    tries = ((user, keep) for keep in keeps for user in candidates)
    return next((one for one in tries if namespaces.possible(fits, *one)), None)


def _apart(action: Callable[..., object], *arguments: object) -> None:
    """Calls `action` in a process with a network and processes of its own, which then ends."""
    namespaces.leave()
    namespaces.attempted(action, *arguments)


def _with_user(found: Confinement, candidates: Collection[int], fits: Fits, without: Collection[str]) -> Confinement:
    """As root, as the one of the `candidates` that fits; anybody else is no root already."""
    if os.geteuid() != 0:
        return replace(found, means=replace(found.means, user=True), tasks=identity.tasks())
    chosen = free_user(candidates, fits, bool(found.means.landlock))
    if "user" in without or chosen is None:
        return replace(found, tasks=identity.tasks())
    return replace(found, user=chosen[0], keep=chosen[1], means=replace(found.means, user=True))


def _read_as(rules: Rules, scratch: str, user: int, keep: int | None) -> None:
    """That user must be able to import what is not imported yet, and to have files."""
    home = tempfile.mkdtemp(dir=scratch)
    os.chmod(scratch, 0o711)
    os.chown(home, user, user)
    _list_as(user, (), keep, [*_folders(rules), home])


def _folders(rules: Rules) -> list[str]:
    return [path for path in rules.read if os.path.isdir(path)]  # found before: a user who may not look would see none


def _list_as(
    user: int, groups: Collection[int], keep: int | None, folders: Collection[str], devices: Collection[str] = ()
) -> None:
    identity.become(user, groups=groups, keep=keep)
    identity.drop_capabilities(keep)
    for folder in folders:
        os.listdir(folder)
    for device in devices:
        if not os.access(device, os.R_OK | os.W_OK):
            raise PermissionError(device)
