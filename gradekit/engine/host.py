"""Host steps on the engine's memory: fills, copies, and the torch operations that an assignment may allow."""

import functools
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.memory import Memory, Storage, everywhere, first_true, index_of, own, strided
from gradekit.findings import Cause
from gradekit.inputs.layouts import row_major
from gradekit.observations import SHOWN, Incident, Site
from gradekit.program import ITEMSIZE, Aten, Scalar, View

DTYPES = {name: getattr(torch, name) for name in ITEMSIZE}  # torch's dtypes by the names that views have


class ForbiddenOp(Exception):
    """The submission computes with torch's `op` on the host, at `line`, where the assignment does not allow it."""

    def __init__(self, op: str, line: int | None) -> None:
        super().__init__(f"computes with torch ({op})")
        self.op, self.line = op, line


def read(memory: Memory, view: View) -> Tensor:
    """A view's elements: a tensor that shares the storage's memory."""
    flat = memory.storages[view.storage].typed(getattr(torch, view.dtype))
    return strided(flat, view.shape, view.stride, view.offset)


def written(storage: Storage, view: View) -> Tensor | None:
    """Which of a view's elements have been written: bool of its shape; None when all have."""
    cells = _cells(storage, view)
    return None if cells is None else cells.all(-1)


def _cells(storage: Storage, view: View) -> Tensor | None:
    """The part of a storage's map that is about each element of a view: bool [*shape, units of one element], which
    shares the map's memory; None where all of the storage has been written."""
    itemsize = ITEMSIZE[view.dtype]
    units = storage.written_map(itemsize)
    if units is None:
        return None
    ratio = itemsize // storage.unit
    return units.as_strided([*view.shape, ratio], [*(step * ratio for step in view.stride), 1], view.offset * ratio)


def _place(view: View, number: int) -> int:
    """The position in the storage of the element of a view that is at `number` in row-major order."""
    index = index_of(number, view.shape)
    return view.offset + sum(place * step for place, step in zip(index, view.stride, strict=True))


def write(memory: Memory, target: View, value: Tensor | View, line: int | None) -> list[Incident]:
    """target[...] = value, as torch's copy_ does; of a view, what nobody has written stays unwritten in the copy."""
    known = None
    if isinstance(value, View):
        known, value = written(memory.storages[value.storage], value), read(memory, value)
    storage = memory.storages[target.storage]
    modified = storage.is_input and target.numel
    incidents = [_on_host(Cause.INPUT_MODIFIED, storage, target, None, line)] if modified else []
    own(storage)
    read(memory, target).copy_(value)
    if known is None and is_whole(storage, target):
        storage.written = None
    elif target.numel and (cells := _cells(storage, target)) is not None:
        cells.copy_(torch.tensor(True) if known is None else known.expand(target.shape).unsqueeze(-1))
        storage.settle()
    return incidents


def is_whole(storage: Storage, view: View) -> bool:
    """Whether a view has all bytes of its storage, in their order."""
    whole = view.numel * ITEMSIZE[view.dtype] == storage.data.numel()
    return whole and view.offset == 0 and view.stride == row_major(view.shape)


def _on_host(cause: Cause, storage: Storage, view: View, which: Tensor | None, line: int | None) -> Incident:
    """An incident that concerns the elements of a view where `which` holds (None: all), and no program."""
    numbers = range(min(SHOWN, view.numel)) if which is None else first_true(which, SHOWN).tolist()
    shown, itemsize = [_place(view, number) for number in numbers], ITEMSIZE[view.dtype]
    count = view.numel if which is None else int(which.count_nonzero())
    programs, capacity = [0] * len(shown), storage.count(itemsize)
    return Incident(cause, Site(line), storage.id, itemsize, shown, programs, count, capacity=capacity)


# --- operations that an assignment may allow --------------------------------------------------------------------------

_COMPUTE: dict[str, Callable[..., Tensor]] = {
    f"aten::{name}": getattr(torch, name)
    for name in (
        "sum", "mean", "cumsum", "add", "sub", "mul", "div", "neg", "clamp", "clamp_min", "clamp_max", "maximum",
        "minimum",
    )
}  # fmt: skip
"""Everything that can be allowed: names from outside are looked up here and nowhere else. "aten::add_" is "aten::add"
whose output is its first argument."""
_KEYWORDS = ("dim", "keepdim", "alpha", "min", "max", "dtype", "rounding_mode")


def compute(memory: Memory, step: Aten, allow: Collection[str]) -> list[Incident]:
    """Runs one allowed operation; raises ForbiddenOp for any other."""
    line = step.source.line if step.source else None
    result = operation(step, allow, lambda view: read(memory, view))()
    incidents = [i for value in step.args if isinstance(value, View) for i in _uninitialized(memory, value, line)]
    return incidents + write(memory, step.outputs[0], result, line)


def operation(step: Aten, allow: Collection[str], tensor: Callable[[View], Tensor]) -> Callable[..., Tensor]:
    """What `step` computes, to be called, with `out=` where the result has a place already; `tensor` gives the tensors
    of views, on any device. Raises ForbiddenOp where the operation is not among those of `allow`."""
    function = _COMPUTE.get(step.op.removesuffix("_"))
    if step.op not in allow or function is None or len(step.outputs) != 1:
        raise ForbiddenOp(step.op, step.source.line if step.source else None)
    kwargs = {name: _value(value, tensor) for name, value in step.kwargs.items() if name in _KEYWORDS}
    return functools.partial(function, *(_value(value, tensor) for value in step.args), **kwargs)


def _value(value: Any, tensor: Callable[[View], Tensor]) -> Any:
    if isinstance(value, View):
        return tensor(value)
    if isinstance(value, Scalar):
        return DTYPES.get(str(value.value)) if value.dtype == "dtype" else value.value
    return [_value(item, tensor) for item in value] if isinstance(value, tuple) else value


def _uninitialized(memory: Memory, view: View, line: int | None) -> list[Incident]:
    """What an operation reads of a tensor that nothing has written."""
    storage = memory.storages[view.storage]
    seen = written(storage, view)
    if seen is None or everywhere(seen):
        return []
    return [_on_host(Cause.UNINITIALIZED_READ, storage, view, ~seen, line)]
