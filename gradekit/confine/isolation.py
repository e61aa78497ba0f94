"""What a machine offers to confine a submission with, and what that amounts to: a level from 0 to 3."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

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
