"""Looking on while programs run: what an observer is told of a launch, and which elements an operation touches.

An observer changes nothing. Where a run has none, this costs one comparison for each operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from gradekit.engine.lanes import flat_index, flat_mask
from gradekit.engine.memory import Memory, Storage
from gradekit.engine.ops_memory import locate, located_rows
from gradekit.engine.values import BlockPointer, Pointer, Value
from gradekit.program import ADDRESS_GAP

if TYPE_CHECKING:
    from gradekit.engine.frame import Frame, LaunchContext, Observe
    from gradekit.engine.ttir import Op


class Observer(Protocol):
    """Who looks on while a program runs."""

    def launch(self, context: LaunchContext, memory: Memory) -> Observe | None:
        """A launch begins: what is to be called after its operations, or None for nothing. A run that has to be made
        again, with all accesses examined, begins again with launch 0."""


@dataclass(frozen=True)
class TouchedElements:
    """The elements of `storage` (None: of no storage) that one operation touches: `index` int64 and `active` bool, both
    [programs, lanes], in units of `itemsize` bytes."""

    storage: Storage | None
    index: Tensor
    active: Tensor
    itemsize: int


_VALUE_FIRST = frozenset({"tt.store", "tt.atomic_rmw", "tt.atomic_store"})
"""Operations on pointers whose mask follows after a value."""

_DESCRIBED = ("tt.descriptor_", "tt.experimental_descriptor_")


def touched(frame: Frame, op: Op, memory: Memory) -> TouchedElements | None:
    """What `op` has just touched for the programs of `frame`; None where it touches no memory."""
    mask: Value | None
    if op.name.startswith(_DESCRIBED):
        pointer, mask, tile = _described(frame, op)
    elif op.name in ("tt.load", "tt.store") or op.name.startswith("tt.atomic_"):
        pointer, mask, tile = _pointed(frame, op)
    else:
        return None
    shape = (frame.count, *tile)
    index = flat_index(pointer.offset, shape).view(frame.count, -1)
    active = flat_mask(mask, shape)
    here = torch.ones_like(index, dtype=torch.bool) if active is None else active.view(frame.count, -1)
    if pointer.storage is None:
        return _of_addresses(index, here, pointer.itemsize, memory)
    return TouchedElements(pointer.storage, index, here, pointer.itemsize)


def _pointed(frame: Frame, op: Op) -> tuple[Pointer, Value | None, tuple[int, ...]]:
    pointer: Any = frame.operand(op, 0)
    tile = op.operand_types[1].shape if op.name in _VALUE_FIRST else op.result_types[0].shape
    if isinstance(pointer, BlockPointer):
        found, inside = locate(frame, pointer, pointer.offsets, op.attributes.get("boundaryCheck", ()))
        return found, inside, pointer.block
    place = 2 if op.name in _VALUE_FIRST else 1
    masked = len(op.operands) > place and op.name not in ("tt.atomic_cas", "tt.atomic_poll")
    return pointer, frame.operand(op, place) if masked else None, tile


def _described(frame: Frame, op: Op) -> tuple[Pointer, Value, tuple[int, ...]]:
    block: Any = frame.operand(op, 0)
    if op.name.endswith(("gather", "scatter")):
        width = (op.result_types or op.operand_types[-1:])[0].shape[1]
        rows = frame.full(op, 1)
        pointer, inside = located_rows(frame, block, rows, frame.operand(op, 2), width)
        return pointer, inside, (rows.shape[-1], width)
    first = 1 if op.name.endswith("load") else 2
    offsets = tuple(frame.operand(op, place) for place in range(first, len(op.operands)))
    pointer, inside = locate(frame, block, offsets, range(len(block.block)))
    return pointer, inside, block.block


def _of_addresses(addresses: Tensor, active: Tensor, itemsize: int, memory: Memory) -> TouchedElements:
    """Lanes that have addresses in place of elements: those of the storage in which the first of them lies."""
    gaps = addresses // ADDRESS_GAP
    chosen = gaps[active]
    storage = memory.at_gaps().get(int(chosen[0])) if chosen.numel() else None
    if storage is None:
        return TouchedElements(None, addresses, active, itemsize)
    inside = active & (gaps == storage.address // ADDRESS_GAP)
    return TouchedElements(storage, (addresses - storage.address) // itemsize, inside, itemsize)
