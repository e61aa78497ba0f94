"""Tensors without data answer as if they were on a GPU; whatever names a CUDA device makes such tensors."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradekit.compat.torch import default_is_cuda, obeys_default_device
from gradekit.tracer.aten import LITERAL_LIMIT
from gradekit.tracer.errors import ReadsValues
from gradekit.tracer.recorder import Recorder

CUDA = torch.device("cuda", 0)
META = torch.device("meta")
Handler = Callable[..., Any]

READS: dict[Any, str] = {
    torch.Tensor.item: "item()", torch.Tensor.tolist: "tolist()", torch.Tensor.numpy: "numpy()",
    torch.Tensor.cpu: "cpu()", torch.Tensor.is_nonzero: "bool(...) or an if",
    torch.Tensor.__bool__: "bool(...) or an if", torch.Tensor.__int__: "int(...)", torch.Tensor.__float__: "float(...)",
    torch.Tensor.__index__: "Using a tensor as an index or a range", torch.Tensor.__complex__: "complex(...)",
    torch.Tensor.__contains__: "`in`", torch.Tensor.__array__: "Making a numpy array",
    torch.Tensor.equal: "torch.equal", torch.equal: "torch.equal", torch.allclose: "torch.allclose",
    torch.Tensor.allclose: "torch.allclose", torch.is_nonzero: "torch.is_nonzero",
}  # fmt: skip
"""What cannot be answered without values, and how to call it in a sentence."""

FROM_NUMBERS = {torch.tensor, torch.as_tensor, torch.asarray, torch.arange, torch.linspace}
"""Made from numbers that the host has: computed on the CPU, then copied, so that the program holds the numbers."""

SIZED = {torch.arange, torch.linspace}  # of those, the ones whose few arguments can ask for very many numbers


GEOMETRY: tuple[Any, ...] = (
    *(getattr(torch.Tensor, name).__get__ for name in ("shape", "dtype", "ndim", "requires_grad")),
    torch.Tensor.size, torch.Tensor.stride, torch.Tensor.dim, torch.Tensor.numel, torch.Tensor.storage_offset,
    torch.Tensor.is_contiguous, torch.Tensor.element_size,
)  # fmt: skip
"""What torch answers as it is, and host code asks most often."""


class CudaMask(TorchFunctionMode):
    """Answers for tensors without data as CUDA tensors would."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.handlers: dict[Any, Handler] = {
            **{function: function for function in GEOMETRY},
            torch.Tensor.device.__get__: lambda tensor: CUDA if tensor.is_meta else tensor.device,
            torch.Tensor.is_cuda.__get__: lambda tensor: tensor.is_meta,  # type: ignore[attr-defined]
            torch.Tensor.is_meta.__get__: lambda tensor: False,  # type: ignore[attr-defined]
            torch.Tensor.get_device: lambda tensor: 0 if tensor.is_meta else -1,
            torch.Tensor.data_ptr: lambda tensor: recorder.address(tensor) if tensor.is_meta else tensor.data_ptr(),
            torch.Tensor.cuda: lambda tensor, *args, **kwargs: tensor if tensor.is_meta else tensor.to(META),
            torch.Tensor.type: _type,
            torch.Tensor.pin_memory: lambda tensor, *args: tensor,
            torch.Tensor.is_pinned: lambda tensor, *args: False,
            torch.Tensor.__setitem__: _setitem,
            torch.Tensor.__repr__: _repr,
            torch.Tensor.__format__: lambda tensor, spec: _repr(tensor) if tensor.is_meta else format(tensor, spec),
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        handler = self.handlers.get(func)
        if handler is not None:
            return handler(*args, **kwargs)
        if func is torch.device:
            return func(*args, **kwargs)
        if func in READS and any(isinstance(value, torch.Tensor) and value.is_meta for value in args):
            raise ReadsValues(READS[func])
        return _guarded(func, args, kwargs)


def _guarded(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    args, kwargs, on_gpu = lower(func, args, kwargs)
    try:
        if on_gpu and func in FROM_NUMBERS:
            return _from_numbers(func, args, kwargs)
        return func(*args, **kwargs)
    except (RuntimeError, NotImplementedError) as error:
        if re.search(r"\b([mM]eta tensor|data-dependent|The register_meta function)", str(error)):
            name = getattr(func, "__name__", str(func))
            raise ReadsValues(f"`{name}`") from error
        raise


def lower(func: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any], bool]:
    """The same call with "no data" wherever it names a CUDA device, and whether it names one."""
    if not kwargs and func is not torch.Tensor.to and not default_is_cuda() and not _names_device(args):
        return args, kwargs, False  # most calls: what shape it has, how many elements
    lowered = tuple(_lowered(value) for value in args)
    named = {key: META if key == "device" and type(value) is int else _lowered(value) for key, value in kwargs.items()}
    if named.get("pin_memory"):
        named.pop("pin_memory")
    if obeys_default_device(func) and named.get("device") is None and default_is_cuda():
        named["device"] = META
    if func is torch.Tensor.to and len(lowered) > 1 and type(lowered[1]) is int:
        lowered = (lowered[0], META, *lowered[2:])
    return lowered, named, any(value is META for value in (*lowered, *named.values()))


def _names_device(values: Any) -> bool:
    for value in values:  # a loop: this is asked about every call of torch
        if isinstance(value, (str, torch.device)):
            return True
    return False


def _lowered(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("cuda"):
        return META if torch.device(value) else value
    if isinstance(value, torch.device) and value.type in ("cuda", "meta"):
        return META
    return value


def _from_numbers(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    if args and isinstance(args[0], torch.Tensor):
        return func(*args, **kwargs)
    if func in SIZED and _size_of(func, args, kwargs) > LITERAL_LIMIT:
        return func(*args, **kwargs)
    requires_grad = kwargs.pop("requires_grad", False)
    host = func(*args, **(kwargs | {"device": "cpu"}))
    return host.to(META).requires_grad_(requires_grad)


def _size_of(func: Any, args: Any, kwargs: dict[str, Any]) -> float:
    """How many numbers torch.arange or torch.linspace is asked for."""
    if func is torch.linspace:
        return kwargs.get("steps", args[2] if len(args) > 2 else 0)
    start, end, step = (kwargs.get(name) for name in ("start", "end", "step"))
    given = [value for value in args if isinstance(value, (int, float))]
    if len(given) == 1:
        end = given[0] if end is None else end
    elif given:
        start, end, step = (*given, step)[:3]
    return abs(((end or 0) - (start or 0)) / (step or 1))


def _setitem(tensor: torch.Tensor, index: Any, value: Any) -> None:
    """`x[1:] = 0` fills on a GPU; on a tensor without data, torch would make a tensor of the number first."""
    parts = index if isinstance(index, tuple) else (index,)
    plain = all(part is None or part is Ellipsis or type(part) in (int, slice) for part in parts)
    if tensor.is_meta and plain and isinstance(value, (bool, int, float)):
        tensor[index].fill_(value)
    else:
        _guarded(torch.Tensor.__setitem__, (tensor, index, value), {})


def _type(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    if not args and not kwargs:
        return tensor.type().replace("torch.meta", "torch.cuda")
    if isinstance(args[0], str):
        return tensor.type(args[0].replace("torch.cuda", "torch"))
    return tensor.type(*args, **kwargs)


def _repr(tensor: torch.Tensor, **kwargs: Any) -> str:
    if not tensor.is_meta:
        return repr(tensor)
    return f"tensor(..., device='cuda:0', size={tuple(tensor.shape)}, dtype={tensor.dtype})"
