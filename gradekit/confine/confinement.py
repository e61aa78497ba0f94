"""How one process is confined: what is in force, which paths it keeps, which user it becomes.

Both kinds of processes that meet hostile data use it: a submission's own (in namespaces of its server, see
`available`), and those that compile or run kernels. The latter are given text only, but MLIR, LLVM and ptxas were not
written to withstand hostile text, so whoever breaks one of them must find nothing to reach.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from gradekit.confine import identity, landlock, namespaces, seccomp
from gradekit.confine.landlock import Rules


@dataclass(frozen=True)
class Confinement:
    """`means` that the machine offers, and the `rules` on files that they enforce.

    As root, `user` is the free user that the process becomes, `groups` are those it needs for devices, and `keep` is a
    capability that the user keeps to read Python with. `tasks` is how many processes and threads that user had already.
    """

    means: Means
    rules: Rules
    user: int | None = None
    groups: tuple[int, ...] = ()
    keep: int | None = None
    tasks: int = 0

    def enter(self, folder: str, parent: int, *, tasks: int, later: Collection[str] = ()) -> None:
        """Confines this process, which must have one thread, for good; it ends with the process `parent`.

        It may write to `folder`, which is given to its user, and have `tasks` processes and threads, itself included.
        System calls are refused as in `seccomp.install`, those in `later` not yet.

        Raises:
            OSError: the kernel refused something that the machine had offered: the process must not go on.
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
    """Lowers limits (resource.RLIMIT_... to its new value) of this process, for good;
    one that is lower already stays."""
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

RECOMMENDED = 2
"""The level that a class is graded at: below it, a submission could read what lies beside the grader."""


@dataclass(frozen=True)
class Means:
    """What is in force for each submission.

    `seccomp`: system calls are filtered. `user`: it runs as an unprivileged user. `landlock`: the kernel's version of
    Landlock, 0 without. `root`: a root folder of its own. `apart`: a network and processes of its own.
    """

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
        """From the wire.

        Raises:
            ValueError: the data describes no means.
        """
        known = {field.name: type(field.default) for field in fields(cls)}
        if not isinstance(data, dict) or {name: type(value) for name, value in data.items()} != known:
            raise ValueError("no description of means")
        return cls(**data)
