"""What every memory of a launch is asked for, and where the asking happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from gradekit.engine.atomics import Update
from gradekit.engine.values import Pointer, Value
from gradekit.observations import Site, Traffic


@dataclass(slots=True)
class AccessSite:
    """Who accesses memory, and where in the kernel: `programs` are the linear ids along the first axis.

    `volatile` says that the kernel asks for what other programs write meanwhile. Of an atomic, `acquires` and
    `releases` say what other programs may build on; `answers`, that the kernel looks at the old value; `narrow`, that
    it is one for its own program alone (scope "cta"); `early`, that it may release before other lanes have stored.
    """

    site: Site
    programs: Tensor
    volatile: bool = False
    acquires: bool = False
    releases: bool = False
    answers: bool = False
    narrow: bool = False
    early: bool = False


class LaunchMemory(Protocol):
    """Memory as the operations of one launch see it. A `shape` is (programs, *tile), `access` an AccessSite where the
    memory `explains` what it sees, and None where it does not."""

    traffic: Traffic
    explains: ClassVar[bool]

    def load(
        self,
        pointer: Pointer,
        mask: Value | None,
        other: Value | None,
        dtype: torch.dtype,
        shape: Sequence[int],
        access: Any,
    ) -> Tensor:
        """The elements at `pointer` over `shape`, lazily broadcast; lanes outside of `mask` give `other`."""
        ...

    def store(self, pointer: Pointer, value: Tensor, mask: Value | None, shape: Sequence[int], access: Any) -> None:
        """Writes `value`, lazily broadcast, at `pointer` over `shape` where `mask` is true."""
        ...

    def atomic(
        self,
        pointer: Pointer,
        change: Update,
        operands: tuple[Tensor, ...],
        mask: Value | None,
        shape: Sequence[int],
        access: Any,
    ) -> Tensor:
        """Applies `change` to the elements at `pointer`, as if lanes came one after another in program order; gives the
        old values, over `shape`."""
        ...

    def barrier(self, programs: Tensor) -> None:
        """All lanes of each of these programs have come here before any goes on."""
        ...

    def finish(self) -> None:
        """Ends the launch: what it wrote can be read by what comes after it."""
        ...
