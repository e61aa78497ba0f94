"""torch operations on tensors without data become steps of the program.

Views need no step: they are geometry on a storage. Allocation, fills and copies have steps of their own; everything
else is recorded by name, to be judged by others. Operations on the CPU alone run for real and leave no trace: their
values can reach the GPU only by a copy, which is recorded as the numbers themselves.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradekit.compat import torch_import
from gradekit.compat.torch import DisableTorchFunction, DispatchMode, by_parts, custom_operator, schema
from gradekit.program import Aten, Copy, Fill, Literal, Scalar, View
from gradekit.tracer.errors import ReadsValues, quoted
from gradekit.tracer.recorder import Recorder, dtype_name

LITERAL_LIMIT = 1 << 16  # the most elements that the host may write out itself and send to the GPU

ALLOCATIONS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
FILLS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "zero_", "zero"), lambda *args, **kwargs: 0),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), lambda *args, **kwargs: 1),
    "full": lambda size, value, **kwargs: value, "full_like": lambda tensor, value, **kwargs: value,
    "new_full": lambda tensor, size, value, **kwargs: value,
    **dict.fromkeys(("fill_", "fill"), lambda tensor, value: value), "scalar_tensor": lambda value, **kwargs: value,
}  # fmt: skip
COPIES = {"clone", "_to_copy", "contiguous", "lift_fresh_copy", "_reshape_copy", "_copy_from", "copy"}
READS = {"_local_scalar_dense": "item()", "equal": "torch.equal", "is_nonzero": "bool()", "nonzero": "nonzero()"}


class StepRecorder(DispatchMode):
    """Runs every operation and records what it does to storages on the GPU."""

    def __init__(self, recorder: Recorder, around: Callable[[], Any]) -> None:
        super().__init__()
        self.recorder = recorder
        self.around = around  # opens the mask, which is off where torch calls back into an operator's own code

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        custom = custom_operator(func)
        if custom is not None:
            with self.around(), self:
                return custom(*args, **kwargs)
        with DisableTorchFunction():
            with self:
                composed = by_parts(func, args, kwargs)
            return self._dispatch(func, args, kwargs) if composed is NotImplemented else composed

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = schema(func).name
        tensors = tensors_in((args, kwargs))
        on_gpu = [tensor for tensor in tensors if tensor.is_meta]
        if on_gpu and len(on_gpu) < len(tensors):
            _same_device(name, tensors)
        _refuse_reading(name, on_gpu, kwargs)
        try:
            out = func(*args, **kwargs)
        except NotImplementedError:  # not in C++
            torch_import.in_python()
            out = func(*args, **kwargs)
        if on_gpu or any(tensor.is_meta for tensor in tensors_in(out)):
            self._record(func, name.removeprefix("aten::"), args, kwargs, out)
        return out

    def _record(self, func: Any, name: str, args: Any, kwargs: Any, out: Any) -> None:
        written = _written(func, args, kwargs)
        fresh = [tensor for tensor in tensors_in(out) if tensor.is_meta and not self.recorder.knows(tensor)]
        targets = [self.recorder.view(tensor) for tensor in dict.fromkeys([*written, *fresh])]  # numbers new storages
        if not targets or name in ALLOCATIONS:
            return
        if name in FILLS and len(targets) == 1:
            self._fill(targets[0], FILLS[name](*args, **kwargs))
        elif name == "copy_" or name in COPIES:
            self._copy(targets[0], args[1] if name in ("copy_", "copy") else args[0])
        else:
            self._compute(func, args, kwargs, targets)

    def _fill(self, target: View, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            if value.is_meta:
                self.recorder.add(Copy(target, self.recorder.view(value), self.recorder.source()))
                return
            value = value.item()
        self.recorder.add(Fill(target, value, self.recorder.source()))

    def _copy(self, target: View, origin: torch.Tensor) -> None:
        source = self.recorder.source()
        if origin.is_meta:
            self.recorder.add(Copy(target, self.recorder.view(origin), source))
        elif target.numel <= LITERAL_LIMIT:
            values = origin.expand(target.shape).to(getattr(torch, target.dtype)).flatten().tolist()
            self.recorder.add(Literal(target, tuple(values), source))
        else:
            raise RuntimeError(
                f"copies {target.numel} numbers from the host to the GPU; at most {LITERAL_LIMIT} can be"
            )

    def _compute(self, func: Any, args: Any, kwargs: Any, targets: Sequence[View]) -> None:
        named = {key: self._argument(value) for key, value in kwargs.items() if _matters(value)}
        positional = tuple(self._argument(value) for value in args)
        self.recorder.add(Aten(schema(func).name, positional, named, tuple(targets), self.recorder.source()))

    def _argument(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.recorder.view(value) if value.is_meta else _host_tensor(value)
        if isinstance(value, (list, tuple)):
            return tuple(self._argument(item) for item in value)
        if isinstance(value, torch.dtype):
            return Scalar(dtype_name(value), "dtype")
        if value is None or isinstance(value, (bool, int, float, str)):
            return Scalar(value)
        return Scalar(str(value), type(value).__name__)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors anywhere in nested lists, tuples and dicts."""
    found: list[torch.Tensor] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[torch.Tensor]) -> None:
    if isinstance(value, (tuple, list)):
        for item in value:
            if type(item) is not int:  # sizes, which are most of what operators are given
                _collect(item, found)
    elif isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, dict):
        _collect(list(value.values()), found)


def _written(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    arguments = schema(func).arguments
    if not schema(func).is_mutable:
        return []
    values = [*zip(arguments, args, strict=False)]
    values += [(argument, kwargs[argument.name]) for argument in arguments if argument.name in kwargs]
    writes = [value for argument, value in values if argument.alias_info and argument.alias_info.is_write]
    return [tensor for tensor in tensors_in(writes) if tensor.is_meta]


def _matters(value: Any) -> bool:
    return value is not None and not isinstance(
        value, (torch.device, torch.layout, torch.memory_format, torch.Generator)
    )


def _host_tensor(value: torch.Tensor) -> Any:
    return Scalar(value.item()) if value.dim() == 0 else tuple(Scalar(item) for item in value.flatten().tolist())


def _refuse_reading(name: str, on_gpu: Sequence[torch.Tensor], kwargs: dict[str, Any]) -> None:
    if not on_gpu:
        return
    short = name.removeprefix("aten::")
    if short in READS:
        raise ReadsValues(READS[short])
    device = kwargs.get("device")
    if short == "_to_copy" and isinstance(device, torch.device) and device.type == "cpu":
        raise ReadsValues("Copying a tensor to the CPU")


def _same_device(name: str, tensors: Sequence[torch.Tensor]) -> None:
    """Fails as CUDA does where an operation mixes devices (a copy, or a single number from the CPU, is fine)."""
    short = name.removeprefix("aten::")
    if short == "copy_":
        if not tensors[0].is_meta:
            raise ReadsValues("Copying a tensor to the CPU")
        return
    if any(not tensor.is_meta and math.prod(tensor.shape) != 1 for tensor in tensors):
        raise RuntimeError(
            quoted("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!")
        )
