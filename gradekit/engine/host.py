"""Host steps on the engine's memory: fills, copies, and the torch operations that an assignment may allow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.memory import Memory, Storage, everywhere, own
from gradekit.findings import Cause
from gradekit.observations import SHOWN, Incident, Site
from gradekit.program import ITEMSIZE, Aten, Scalar, View

DTYPES = {name: getattr(torch, name) for name in ITEMSIZE}
"""torch's dtypes by the names that views have."""


class ForbiddenOp(Exception):
    """The submission computes with torch's `op` on the host, at `line`, where the assignment does not allow it."""

    def __init__(self, op: str, line: int | None) -> None:
        super().__init__(f"computes with torch ({op})")
        self.op, self.line = op, line


def read(memory: Memory, view: View) -> Tensor:
    """A view's elements: a tensor that shares the storage's memory."""
    flat = memory.storages[view.storage].typed(getattr(torch, view.dtype))
    return flat.as_strided(view.shape, view.stride, flat.storage_offset() + view.offset)


def written(storage: Storage, view: View) -> Tensor | None:
    """Which of a view's elements have been written: bool of its shape; None when all have."""
    itemsize = ITEMSIZE[view.dtype]
    if storage.written_map(itemsize) is None:
        return None
    positions = _positions(view)
    if not len(positions):
        return torch.ones(view.shape, dtype=torch.bool)
    units = storage.units(positions, itemsize)
    assert storage.written is not None
    return storage.written[units].view(len(positions), -1).all(1).view(view.shape)


def _positions(view: View) -> Tensor:
    positions = torch.tensor([view.offset])
    for size, step in zip(view.shape, view.stride, strict=True):
        positions = (positions[:, None] + torch.arange(size) * step).reshape(-1)
    return positions


def write(memory: Memory, target: View, value: Tensor, line: int | None, known: Tensor | None = None) -> list[Incident]:
    """target[...] = value, as torch's copy_ does; `known` says which of the values have been written (None: all)."""
    storage, itemsize = memory.storages[target.storage], ITEMSIZE[target.dtype]
    modified = storage.is_input and target.numel
    incidents = [_on_host(Cause.INPUT_MODIFIED, storage, target, _positions(target), line)] if modified else []
    own(storage)
    read(memory, target).copy_(value)
    if storage.written_map(itemsize) is not None and target.numel:
        units = storage.units(_positions(target), itemsize)
        assert storage.written is not None
        if known is None:
            storage.written[units] = True
        else:
            storage.written[units] = known.expand(target.shape).reshape(-1).repeat_interleave(itemsize // storage.unit)
        storage.settle()
    return incidents


def write_values(memory: Memory, target: View, origin: View, line: int | None) -> list[Incident]:
    """target[...] = origin: what nobody had written stays unwritten in the copy."""
    known = written(memory.storages[origin.storage], origin)
    return write(memory, target, read(memory, origin), line, known)


def _on_host(cause: Cause, storage: Storage, view: View, positions: Tensor, line: int | None) -> Incident:
    """An incident that concerns elements of a view, at `positions` of its storage, and no program."""
    shown, itemsize = positions[:SHOWN].tolist(), ITEMSIZE[view.dtype]
    programs, capacity = [0] * len(shown), storage.count(itemsize)
    return Incident(cause, Site(line), storage.id, itemsize, shown, programs, len(positions), capacity=capacity)


# --- operations that an assignment may allow -------------------------------------------------------------------------

_COMPUTE: dict[str, Callable[..., Tensor]] = {
    "aten::sum": torch.sum, "aten::mean": torch.mean, "aten::cumsum": torch.cumsum,
    "aten::add": torch.add, "aten::sub": torch.sub, "aten::mul": torch.mul, "aten::div": torch.div,
    "aten::neg": torch.neg, "aten::clamp": torch.clamp, "aten::clamp_min": torch.clamp_min,
    "aten::clamp_max": torch.clamp_max, "aten::maximum": torch.maximum, "aten::minimum": torch.minimum,
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
    of views, on any device.

    Raises:
        ForbiddenOp: the operation is not among those of `allow`.
    """
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
    return [_on_host(Cause.UNINITIALIZED_READ, storage, view, _positions(view)[~seen.reshape(-1)], line)]
