"""What evaluated host code may call: a closed list of torch, triton and Python, with limits on what it may make. It may
ask for anything, and this is the process of the grader."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import cdiv, next_power_of_2
from gradekit.engine.budget import Meter
from gradekit.engine.memory import POISON, view_bytes
from gradekit.interpreter import Limit
from gradekit.interpreter.tile_values import NotWalked
from gradekit.interpreter.walk import Names


def bounded(value: Any) -> Any:
    """A number that is not too long, a list that is not too long, or anything else."""
    if isinstance(value, int) and value.bit_length() > Limit.BITS:
        raise NotWalked("a number that is too long")
    _counted(value, Limit.ITEMS)
    if isinstance(value, Tensor) and value.numel() > Limit.HOST_ELEMENTS:
        raise NotWalked("a tensor that is too large")
    return value


def _counted(value: Any, most: int) -> int:
    """The items of a list, with those of the lists in it; nothing else has any."""
    if not isinstance(value, (str, list, tuple, dict)):
        return 0
    count = len(value) + 1
    for one in () if isinstance(value, str) else value.values() if isinstance(value, dict) else value:
        if count > most:
            break
        count += _counted(one, most - count)
    if count > most + 1:
        raise NotWalked("a list that is too long")
    return count


def items(value: Any) -> list[Any]:
    """What a loop, or a star, goes over."""
    if isinstance(value, Tensor) and value.dim() and len(value) > Limit.ITEMS:
        raise NotWalked("a loop of too many steps")
    return list(bounded(list(value)))


def computed(function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any], meter: Meter) -> Any:
    """What a function of torch, or an operator, gives; its elements are counted before they are made."""
    if "out" in given:
        raise NotWalked("a result that is written to what is there")
    meter.spend(0, _stretched([*args, *given.values()]))
    return bounded(function(*args, **given))


def _stretched(values: Iterable[Any]) -> int:
    """The elements that tensors among `values` make together where each is stretched to the others' shape."""
    shapes = [one.shape for value in values for one in (value if isinstance(value, (tuple, list)) else [value])
              if isinstance(one, Tensor)]  # fmt: skip
    # not torch.broadcast_shapes, which imports sympy; where shapes do not fit, torch will say so
    axes = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    together = math.prod(max((size for size in sizes if size != 1), default=1) for sizes in axes)
    size = max([together, *(math.prod(shape) for shape in shapes)], default=1)
    if size > Limit.HOST_ELEMENTS:
        raise NotWalked("a tensor that is too large")
    return size


def without_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python, for everything but tensors: it would go over their elements one by one."""

    def called(*args: Any, **given: Any) -> Any:
        if any(isinstance(one, Tensor) for one in (*args, *given.values())):
            raise NotWalked("a tensor where numbers belong")
        return function(*args, **given)

    return called


# --- what host code may call, and which attributes it may ask for -----------------------------------------------------


@dataclass(frozen=True)
class Dotted:
    """Something of a module, by its full name."""

    path: str


@dataclass(frozen=True, eq=False)
class HostDescriptor:
    """A tensor descriptor over `base`, as triton.tools has it."""

    base: Tensor
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"


DEVICE = torch.device("cuda", 0)  # that all tensors are on


def _unset(found: Tensor) -> Tensor:
    view_bytes(found).fill_(POISON)
    return found


def _maker(function: Callable[..., Tensor], is_unset: bool = False) -> Callable[..., Tensor]:
    """A function that makes a tensor on the one device that there is: no larger, nor its storage, than the product of
    all whole numbers that it is given (sizes, strides, the bounds of a range)."""

    def made_here(*args: Any, **given: Any) -> Tensor:
        given = {name: value for name, value in given.items() if name not in ("device", "pin_memory", "requires_grad")}
        flat = [n for one in (*args, *given.values()) for n in (one if isinstance(one, (tuple, list)) else [one])]
        if math.prod(max(size, 1) for size in flat if isinstance(size, int)) > Limit.HOST_ELEMENTS:
            raise NotWalked("a tensor that is too large")
        if "out" in given:
            raise NotWalked("a result that is written to what is there")
        found = function(*args, **given)
        return _unset(found) if is_unset else found

    return made_here


def _arange(*args: Any, **given: Any) -> Tensor:
    if any(isinstance(one, float) for one in (*args, *given.values())):
        raise NotWalked("a range of fractions")
    return torch.arange(*args, **given)


def _itself(x: Any, *_: Any, **__: Any) -> Any:
    return x


def _bounded_range(*bounds: int) -> range:
    found = range(*bounds)
    if len(found) > Limit.ITEMS:
        raise NotWalked("a loop of too many steps")
    return found


def _descriptor_of(tensor: Tensor, block_shape: Sequence[int], *padding: str) -> HostDescriptor:
    return HostDescriptor(tensor, tensor.shape, tensor.stride(), block_shape, *padding)


_KINDS: dict[str, Any] = {
    "int": int, "float": float, "bool": bool, "tuple": (tuple, list), "list": list, "str": str, "torch.Tensor": Tensor,
}  # fmt: skip

_DESCRIPTOR = "triton.tools.tensor_descriptor.TensorDescriptor"

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torch.empty": _maker(torch.empty, True), "torch.empty_like": _maker(torch.empty_like, True),
    "torch.empty_strided": _maker(torch.empty_strided, True), "torch.zeros": _maker(torch.zeros),
    "torch.zeros_like": _maker(torch.zeros_like), "torch.ones": _maker(torch.ones), "torch.full": _maker(torch.full),
    "torch.ones_like": _maker(torch.ones_like), "torch.full_like": _maker(torch.full_like),
    "torch.tensor": _maker(torch.tensor), "torch.arange": _maker(_arange),
    **{
        f"torch.{name}": getattr(torch, name)
        for name in ("sum", "mean", "sqrt", "rsqrt", "clamp", "div", "mul", "add", "sub", "maximum", "minimum", "where",
                     "reshape", "transpose", "broadcast_to", "broadcast_tensors", "movedim", "permute", "flatten",
                     "squeeze", "unsqueeze", "is_tensor", "numel", "promote_types")
    },
    "triton.cdiv": cdiv, "triton.next_power_of_2": next_power_of_2, "triton.language.constexpr": _itself,
    "torch.library.wrap_triton": _itself, "torch.Size": tuple,
    **{
        f"math.{name}": getattr(math, name)
        for name in ("sqrt", "log2", "ceil", "floor", "log", "exp", "prod", "isqrt", "gcd")
    },
    **{
        function.__name__: without_tensors(function)
        for function in (min, max, int, float, bool, sum, tuple, list, zip, reversed, enumerate, any, all, sorted, dict)
    },
    _DESCRIPTOR: HostDescriptor, f"{_DESCRIPTOR}.from_tensor": _descriptor_of,
    "len": len, "abs": abs, "round": lambda x: round(x), "range": _bounded_range,
}  # fmt: skip
"""By their full names."""

METHODS = frozenset([
    "stride", "size", "dim", "numel", "contiguous", "view", "reshape", "flatten", "transpose", "t", "permute",
    "expand", "expand_as", "view_as", "unsqueeze", "squeeze", "sum", "mean", "clamp", "clamp_min", "clamp_max",
    "amax", "amin", "to", "float", "half", "bfloat16", "double", "long", "int", "bool", "type_as", "is_contiguous",
    "zero_", "fill_", "copy_", "detach", "clone", "element_size", "sqrt", "rsqrt", "reciprocal", "div", "mul",
    "add", "sub", "neg", "abs", "narrow", "select", "movedim", "swapaxes", "unbind", "chunk", "split", "unflatten",
    "storage_offset", "is_floating_point", "ndimension", "requires_grad_", "mul_", "div_", "add_", "sum_to_size",
    "type", "nelement", "broadcast_to", "cumsum", "prod", "max", "min",
])  # fmt: skip
"""Of a tensor."""

MAKERS = {f"new_{name}": f"torch.{name}" for name in ("empty", "zeros", "ones", "full")}
"""Methods that make another tensor, of the same dtype, by what makes one."""

SPLITTING = {"unbind", "chunk", "split"}  # methods that give many tensors

ATTRIBUTES = frozenset({"shape", "dtype", "ndim", "T", "mT", "requires_grad", "nbytes", "itemsize"})
"""Of a tensor, or of a dtype."""


def of_dotted(path: str) -> Any:
    """What a full name stands for: a dtype, a memory format, a number, or itself."""
    module, _, name = path.rpartition(".")
    found = getattr(torch, name, None) if module in ("torch", "triton.language") else None
    if isinstance(found, (torch.dtype, torch.memory_format)):
        return found
    if module == "math" and isinstance(number := getattr(math, name, None), float):
        return number
    return Dotted(path)


def is_instance(value: Any, of: Any) -> bool:
    """isinstance, for the types that host code asks for."""
    return isinstance(value, tuple(_KINDS[one.path] for one in (of if isinstance(of, tuple) else (of,))))


# --- values that are no numbers or tensors: functions, kernels, and what autograd knows -------------------------------


@dataclass(frozen=True, eq=False)
class HostFunction:
    """A function, method or lambda of the source, with the names around it; `of` is what a method is called on."""

    node: ast.FunctionDef | ast.Lambda
    around: Names
    of: tuple[HostObject, ...] = ()


@dataclass(frozen=True, eq=False)
class HostClass:
    """A class of the source, with the names in it; `fields` are what a dataclass or a NamedTuple is made of."""

    names: Names
    fields: ast.arguments


@dataclass(frozen=True, eq=False)
class HostObject:
    """An object with its attributes, and its class; None for what a forward pass leaves for its backward pass."""

    names: Names
    made_by: HostClass | None = None


@dataclass(frozen=True)
class Launcher:
    """A kernel by its name, with a grid once it has one."""

    kernel: str
    grid: Any = None


@dataclass(frozen=True, eq=False)
class Differentiable:
    """A torch.autograd.Function of the source, or an operator that autograd was registered for."""

    forward: HostFunction
    backward: HostFunction | None = None
    setup: HostFunction | None = None
    takes_context: bool = False


def imported(node: ast.Import | ast.ImportFrom) -> Names:
    """The names that an import gives, with what they stand for."""
    if isinstance(node, ast.Import):
        paths = [(one.asname, one.name if one.asname else one.name.partition(".")[0]) for one in node.names]
        pairs = [(name or path, path) for name, path in paths]
    else:
        pairs = [(one.asname or one.name, f"{node.module}.{one.name}") for one in node.names]
    return {name: of_dotted(path) for name, path in pairs}
