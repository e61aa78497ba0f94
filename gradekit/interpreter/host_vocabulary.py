"""What evaluated host code may call, and which attributes it may ask for: a closed list of torch, triton and Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import cdiv, next_power_of_2
from gradekit.engine.memory import POISON
from gradekit.interpreter.host_limits import MOST_ITEMS, made, without_tensors
from gradekit.interpreter.tile_values import NotWalked


@dataclass(frozen=True)
class Dotted:
    """Something of a module, by its full name."""

    path: str


@dataclass(frozen=True)
class OneDevice:
    """The device that all tensors are on."""

    type: str = "cuda"
    index: int = 0


DEVICE = OneDevice()


def bytes_of(tensor: Tensor) -> Tensor:
    """The bytes of a tensor's whole storage, which share its memory: uint8, 1-D."""
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())


def _unset(found: Tensor) -> Tensor:
    bytes_of(found).fill_(POISON)
    return found


def _maker(function: Callable[..., Tensor], is_unset: bool = False) -> Callable[..., Tensor]:
    """A function that makes a tensor, of a bounded size, on the one device that there is."""

    def made_here(*args: Any, **given: Any) -> Tensor:
        given = {name: value for name, value in given.items() if name not in ("device", "pin_memory", "requires_grad")}
        found = made(function, args, given)
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
    if len(found) > MOST_ITEMS:
        raise NotWalked("a loop of too many steps")
    return found


_KINDS = {"int": int, "float": float, "bool": bool, "tuple": (tuple, list), "list": list, "str": str}

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

SPLITTING = {"unbind", "chunk", "split"}
"""Methods that give many tensors."""

IN_PLACE = {"zero_", "fill_", "copy_", "mul_", "div_", "add_"}

ATTRIBUTES = frozenset({"shape", "dtype", "ndim", "T", "mT", "requires_grad", "nbytes", "itemsize"})
"""Of a tensor, or of a dtype."""


def of_dotted(path: str) -> Any:
    """What a full name stands for: a dtype, a number, or itself."""
    module, _, name = path.rpartition(".")
    if module in ("torch", "triton.language") and isinstance(found := getattr(torch, name, None), torch.dtype):
        return found
    if module == "math" and isinstance(number := getattr(math, name, None), float):
        return number
    return Dotted(path)


def is_instance(value: Any, of: Any) -> bool:
    """isinstance, for the types that host code asks for."""
    names = [one.path for one in (of if isinstance(of, tuple) else (of,)) if isinstance(one, Dotted)]
    kinds = [_KINDS.get(name) or (Tensor if name == "torch.Tensor" else None) for name in names]
    if not kinds or None in kinds:
        raise NotWalked("a type that is not known")
    return any(isinstance(value, kind) for kind in kinds)  # type: ignore[arg-type]
