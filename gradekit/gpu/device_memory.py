"""Where the storages of a program lie on the device: their bytes, the addresses of their elements, and red zones.

Worker side. With red zones, every storage has bytes before and after it that nobody may write; they are compared after
each launch. They and memory that nobody has written hold NaN in every floating-point format of 16 bits or more, so that
what is read from there shows in the result. Each storage has other NaNs, so that copies of red zones show too.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.memory import POISON
from gradekit.program import ADDRESS_GAP, ITEMSIZE, ProgramError, View

ZONE = 1 << 18  # bytes of a red zone; a multiple of any alignment that Triton assumes

_PATTERNS = 8

Address = Callable[[int, Tensor], int]  # gives the address of a storage: by its number, and its bytes


@dataclass(frozen=True)
class RedZoneWrite:
    """So many bytes of the red zone on one `side` of `storage` changed, the nearest at this distance (0: next)."""

    storage: int
    side: str
    nbytes: int
    distance: int


@dataclass(frozen=True)
class GuardedStorage:
    """A storage between two red zones; `whole` has them."""

    whole: Tensor
    nbytes: int
    number: int

    @property
    def data(self) -> Tensor:
        """The storage itself."""
        return self.whole[ZONE : ZONE + self.nbytes]

    def zones(self) -> Iterator[tuple[str, Tensor, Tensor]]:
        """The side, the bytes and the pattern of the zone before and of the one after."""
        known, odd = _pattern(self.number % _PATTERNS, self.whole.device), self.nbytes % 2
        yield "before", self.whole[:ZONE], known[:ZONE]
        yield "after", self.whole[ZONE + self.nbytes :], known[odd : odd + ZONE]

    def mend(self) -> None:
        """Makes both zones what they were."""
        for _, zone, known in self.zones():
            zone.copy_(known)


@functools.cache
def _pattern(number: int, device: torch.device) -> Tensor:
    """A NaN of its own for each number, over and over; uint8."""
    return torch.full((ZONE // 2 + 2,), -1 - number, dtype=torch.int16, device=device).view(torch.uint8)


class DeviceMemory:
    """The storages of one run by number; `made` are those that it allocates, unless it is careful. `told` are addresses
    as the host of the program knows them (see Program.addresses), `address` gives the real ones."""

    def __init__(self, device: torch.device, told: Mapping[int, int], address: Address, *, careful: bool) -> None:
        self.device, self.careful = device, careful
        self.storages: dict[int, Tensor] = {}
        self.made: list[Tensor] = []
        self._numbers = {value // ADDRESS_GAP: number for number, value in told.items()}
        self._address = address
        self._guarded: dict[int, GuardedStorage] = {}

    # --- storages ----------------------------------------------------------------------------------------------------

    def put(self, number: int, data: Tensor) -> None:
        """Storage `number` is `data` (uint8 [nbytes], on the device); between red zones it is a copy."""
        if self.careful:
            self._fence(number, data.numel())
            self.storages[number].copy_(data)
        else:
            self.storages[number] = data

    def allocate(self, number: int, nbytes: int) -> None:
        """A new storage, filled with poison where the run is careful."""
        if nbytes < 0:
            raise ProgramError(f"storage {number} of {nbytes} bytes")
        if self.careful:
            self._fence(number, nbytes)
            self.storages[number].fill_(POISON)
        else:
            self.take(number, torch.empty(nbytes, dtype=torch.uint8, device=self.device))

    def take(self, number: int, data: Tensor) -> None:
        """Storage `number`, which the program allocates, is `data` (uint8 [nbytes]), whatever lies in it."""
        self.storages[number] = data
        self.made.append(data)

    def _fence(self, number: int, nbytes: int) -> None:
        whole = torch.empty(ZONE + nbytes + ZONE, dtype=torch.uint8, device=self.device)
        self._guarded[number] = guarded = GuardedStorage(whole, nbytes, number)
        guarded.mend()
        self.storages[number] = guarded.data

    def red_zone_writes(self) -> list[RedZoneWrite]:
        """The red zones that have changed; they are mended, so that each store is told once."""
        masks = [(g, side, zone != known) for g in self._guarded.values() for side, zone, known in g.zones()]
        if not masks:
            return []
        counts = torch.stack([mask.sum() for _, _, mask in masks]).tolist()
        found = [_red_zone_write(g, side, mask, n) for (g, side, mask), n in zip(masks, counts, strict=True) if n]
        for write in found:
            self._guarded[write.storage].mend()
        return found

    # --- what lies in them -------------------------------------------------------------------------------------------

    def view(self, view: View) -> Tensor:
        """The elements of a view, sharing memory. Raises ProgramError where it does not lie within its storage."""
        data, itemsize = self._data(view), ITEMSIZE[view.dtype]
        if not _within(view, data.numel() // itemsize):
            raise ProgramError(f"{view} does not lie within its storage of {data.numel()} bytes")
        first = data.storage_offset() // itemsize + view.offset
        empty = torch.empty(0, dtype=getattr(torch, view.dtype), device=self.device)
        return empty.set_(data.untyped_storage(), first, view.shape, view.stride)

    def address(self, view: View) -> int:
        """The address of a view's first element; what lies at it may be outside of the storage."""
        return self._address(view.storage, self._data(view)) + view.offset * ITEMSIZE[view.dtype]

    def relocated(self, value: Any) -> Any:
        """`value`, where it is an address that the host was told the real one."""
        number = self._numbers.get(value // ADDRESS_GAP) if type(value) is int and value >= ADDRESS_GAP else None
        if number is None or number not in self.storages:
            return value
        return self._address(number, self.storages[number]) + value % ADDRESS_GAP

    def _data(self, view: View) -> Tensor:
        if view.storage not in self.storages:
            raise ProgramError(f"no storage {view.storage} at this step")
        return self.storages[view.storage]


def _red_zone_write(guarded: GuardedStorage, side: str, mask: Tensor, count: int) -> RedZoneWrite:
    places = mask.nonzero()
    distance = ZONE - 1 - int(places[-1]) if side == "before" else int(places[0])
    return RedZoneWrite(guarded.number, side, count, distance)


def _within(view: View, elements: int) -> bool:
    if len(view.shape) != len(view.stride) or min((view.offset, *view.shape, *view.stride)) < 0:
        return False
    return view.numel == 0 or view.reach <= elements
