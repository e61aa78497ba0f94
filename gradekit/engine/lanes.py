"""What a launch's memory is asked for, and the active lanes of one access: the element and the program of each."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from gradekit.engine.atomics import Update
from gradekit.engine.masks import Box
from gradekit.engine.memory import Storage, everywhere
from gradekit.engine.values import Affine, Integer, Pointer, Value, dense
from gradekit.observations import Site, Traffic

Shape = Sequence[int]


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


@dataclass(slots=True)
class Access:
    """Elements at `pointer` over `shape` (programs, *tile) where `mask` holds; no `site` where nothing is explained."""

    pointer: Pointer
    mask: Value | None
    shape: tuple[int, ...]
    site: Any = None

    def is_at_the_place_of(self, other: Access) -> bool:
        """Whether the active lanes and their elements are known to be the same, of whichever tensors."""
        a, b = self.pointer.offset, other.pointer.offset
        if isinstance(a, Affine) and isinstance(b, Affine) and isinstance(a.base, int) and isinstance(b.base, int):
            same = (a.base, a.steps) == (b.base, b.steps)
        else:
            same = a is b
        return same and self.mask is other.mask and self.shape == other.shape


class LaunchMemory:
    """Memory as one launch's operations see it; `site` is an AccessSite, where it `explains` what it sees."""

    traffic: Traffic
    explains: ClassVar[bool]
    _last: tuple[Value | None, Shape, Box] | None = None

    def box(self, mask: Value | None, shape: Shape) -> Box:
        """The active lanes of a mask: most kernels have one for all their accesses."""
        known = self._last
        if known is None or known[0] is not mask or known[1] != shape:
            known = self._last = mask, shape, Box(mask, shape)
        return known[2]

    def load(self, access: Access, other: Value | None, dtype: torch.dtype) -> Tensor:
        """The elements, lazily broadcast; lanes outside of the mask give `other`."""
        raise NotImplementedError

    def store(self, access: Access, value: Any) -> None:
        """Writes `value`, lazily broadcast."""
        raise NotImplementedError

    def atomic(self, access: Access, change: Update, operands: tuple[Tensor, ...]) -> Tensor:
        """Applies `change` to the elements, lane by lane in program order; gives the old values, over its shape."""
        raise NotImplementedError

    def barrier(self, programs: Tensor) -> None:
        """All lanes of these programs are here before any goes on: nothing to do, where none reads what is written."""

    def finish(self) -> None:
        """Ends the launch: what it wrote can be read by what comes after it."""


@dataclass
class Lanes:
    """The active lanes of one access to one storage (None: to no storage), 1-D: the positions of their elements, and
    where they are in the tiles.

    The tensors may be shared with other accesses: never write to them.
    """

    access: AccessSite
    storage: Storage | None
    itemsize: int
    width: int  # lanes of the tile of one program
    index: Tensor
    where: Tensor

    def keep(self, which: Tensor) -> Lanes:
        """Those where `which` (bool) holds."""
        if everywhere(which):
            return self
        kept = which.nonzero().view(-1)
        index, where = self.index.index_select(0, kept), self.where.index_select(0, kept)
        return Lanes(self.access, self.storage, self.itemsize, self.width, index, where)

    def taken(self, flat: Tensor) -> Tensor:
        """What `flat` has for every lane of the tiles, for these."""
        return flat if flat.numel() == self.where.numel() else flat.index_select(0, self.where)

    def put(self, flat: Tensor, value: Tensor) -> None:
        """Writes to `flat`, which has an element for every lane of the tiles, at these."""
        if flat.numel() == self.where.numel():
            flat.copy_(value)
        else:
            flat.index_copy_(0, self.where, value)

    def of(self, map: Tensor) -> Tensor:
        """What `map` has for their units."""
        return map.index_select(0, self.units)

    @property
    def program(self) -> int | None:
        """The program of all of them, where one runs alone."""
        return int(self.access.programs) if self.access.programs.numel() == 1 else None

    @property
    def own(self) -> Tensor | int:
        """The program of each unit, or the one of all."""
        alone = self.program
        return self.by_unit(self.programs) if alone is None else alone

    @property
    def units(self) -> Tensor:
        """The units of the storage that they touch, which are never larger than an element."""
        assert self.storage is not None
        return self.storage.units(self.index, self.itemsize)

    def by_unit(self, value: Tensor) -> Tensor:
        """What holds for each lane, for each of its units."""
        assert self.storage is not None
        ratio = self.itemsize // self.storage.unit
        return value if ratio <= 1 else value.repeat_interleave(ratio)

    @property
    def touched(self) -> tuple[Tensor, Tensor]:
        """The units, and the program of each."""
        return self.units, self.by_unit(self.programs)

    def of_units(self, which: Tensor) -> Tensor:
        """Which lanes have one of the units where `which` holds."""
        return which if which.numel() == self.index.numel() else which.view(self.index.numel(), -1).any(1)

    @functools.cached_property
    def programs(self) -> Tensor:
        """The program of each lane."""
        return self.taken(self.access.programs.view(-1, 1).expand(-1, self.width).reshape(-1))

    @property
    def positions(self) -> Tensor:
        """Which lane of its program's tile each is: a number that no lane of a tile of another power of two has."""
        return self.where % self.width + self.width

    def programs_at(self, positions: Tensor) -> list[int]:
        """The programs of a few lanes."""
        return self.access.programs[self.where[positions].div(self.width, rounding_mode="floor")].tolist()


def flat_index(offset: Integer, shape: Shape) -> Tensor:
    """`offset` for every lane of `shape`, int64, 1-D."""
    return dense(offset, torch.int64, shape).expand(list(shape)).reshape(-1)


def flat_mask(mask: Value | None, shape: Shape) -> Tensor | None:
    """`mask` for every lane of `shape`, bool, 1-D; None where all are active."""
    return None if mask is None or mask is True else dense(mask, torch.bool, shape).expand(list(shape)).reshape(-1)
