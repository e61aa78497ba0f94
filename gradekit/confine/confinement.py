"""How one process is confined: what is in force, which paths it keeps, which user it becomes.

Both kinds of processes that meet hostile data use it: a submission's own (in namespaces of its server, see
`available`), and those that compile or run kernels. The latter are given text only, but MLIR, LLVM and ptxas were not
written to withstand hostile text, so whoever breaks one of them must find nothing to reach.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Collection
from dataclasses import dataclass, replace

from gradekit.confine import identity, landlock, namespaces, rlimits, seccomp
from gradekit.confine.isolation import Means
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
        rlimits.lower({resource.RLIMIT_NPROC: self.tasks + tasks})
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
