"""How far a right result may lie from the exact one: bounds from the arithmetic, never a bare atol.

All bounds are float64 tensors in the units of the result, one for each element. The multiples were chosen by
measuring right algorithms in several orders and precisions (tests/judge/test_tolerance_study.py): those stay inside
by a factor of three or more, and a result rounded through the next lower precision falls outside.

    allowance = ULPS * ulp(result)                  the result is rounded; exp and division are approximate on a GPU
              + OWN * |torch's own result - exact|  what torch itself cannot do better
              + RUNNING * eps * scale               rounding on the way, where intermediate values are larger
              + what the inputs lose in TF32        where the tensor cores may round them

A result of 16 bits whose steps are promised to be float32 has what float32 is allowed for the same values, and one
rounding, which is half an ulp: a second rounding on the way does not fit beside it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

ULPS = {torch.float32: 16.0, torch.float64: 64.0}
"""The floor in units of the last place of the result, for dtypes in which intermediate values are computed too. A GPU's
exp is off by 2 ulp, its division by 2, a product by 1/2 and a tree of sums by a few: 5 in all, times three."""
ULPS_NARROW = 1.5  # the floor for float16, bfloat16 and narrower, where each step may round: half an ulp, times three
ROUNDED_ONCE = 0.5  # what rounding to nearest moves a value by at most, in ulp
OWN = 2.0  # the multiple of torch's own error at the element; a lucky torch is why the floor stands beside it
RUNNING = 4.0  # the multiple of eps * scale; for sums of n terms it grows with sqrt(n), as rounding errors do
TF32 = 2.0  # the multiple of what truncating the inputs to TF32 can change, which is itself an upper bound


_EXPONENT = 0x7FF << 52  # the bits of a float64 that hold its exponent


_PIECE = 1 << 16
"""Elements whose float64 and some temporaries a core's cache holds."""


def in_pieces(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """What `function`, which treats each element by itself, makes of tensors of one shape (float64): of millions of
    elements in a third of the time, and without temporaries as large as these."""
    small = tensors[0].numel() <= _PIECE or tensors[0].is_cuda  # a card's cache is another matter
    if small or not all(tensor.is_contiguous() for tensor in tensors):
        return function(*tensors)
    made = torch.empty_like(tensors[0], dtype=torch.float64)
    for whole, *parts in zip(*(tensor.view(-1).split(_PIECE) for tensor in (made, *tensors)), strict=True):
        whole.copy_(function(*parts))
    return made


def ulp(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The distance between neighbours of `dtype` at each element of `exact` (float64; NaN and inf count as 0)."""
    info = torch.finfo(dtype)
    size = exact.abs().double()
    size.nan_to_num_(0.0, 0.0, 0.0).clamp_(info.tiny, info.max)  # in place: there may be millions
    exponents = size.view(torch.int64).bitwise_and_(_EXPONENT)  # leaves the power of two: a third of frexp's time
    return exponents.view(torch.float64).mul_(info.eps)


def floor(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The allowance that every right kernel needs, however well-conditioned the function is."""
    flushed = torch.finfo(torch.float32).tiny  # a GPU may take float32 subnormals for zero
    return ulp(exact, dtype).mul_(ULPS.get(dtype, ULPS_NARROW)).add_(flushed)


def rounded_once(exact: torch.Tensor, off: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What a float32 result within `off` of the exact one may lose when it is rounded to the narrower `dtype`. Beyond a
    power of two steps are larger, but what lies beyond it by less is rounded to it."""
    size = exact.abs().nan_to_num_(0.0, 0.0, 0.0)
    most = size + off
    largest = ulp(most, dtype)
    beyond = most.sub_(largest, alpha=1 / torch.finfo(dtype).eps)  # in place, and exact: eps is a power of two
    more = torch.minimum(largest.mul_(ROUNDED_ONCE), beyond, out=beyond)
    return torch.maximum(ulp(size, dtype).mul_(ROUNDED_ONCE), more, out=more)


def own_error(exact: torch.Tensor, native: torch.Tensor) -> torch.Tensor:
    """Torch's own error where both results are finite, else 0."""
    return (native.double() - exact).abs_().nan_to_num_(0.0, 0.0, 0.0).mul_(OWN)


def running_error(scale: torch.Tensor, steps: torch.dtype, terms: int) -> torch.Tensor:
    """Rounding errors on the way, each at most eps(`steps`) times `scale`, added up over `terms` of them."""
    growth = 1 + math.sqrt(terms) if torch.finfo(steps).bits >= 32 else 1.0
    return scale.double().abs().nan_to_num_(0.0, 0.0, 0.0).mul_(RUNNING * growth * torch.finfo(steps).eps)


def larger_by_tf32(value: Any) -> Any:
    """A float32 tensor in float64, each element larger by what it loses when TF32 drops its last 13 bits."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    if value.dtype != torch.float32:
        return value.double()
    kept = (value.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32).double()
    return value.double() + (value.double() - kept).nan_to_num(0.0, 0.0, 0.0)


def widening(larger_scale: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """What the inputs' truncation can change: the growth of `scale` when each input is larger by what it loses.

    Inputs that TF32 holds exactly (the profiles "integers" and "grid") widen nothing: there, a float32 matmul is
    judged as strictly as any.
    """
    return TF32 * (larger_scale.double() - scale.double()).abs().nan_to_num(0.0, 0.0, 0.0)


Precision = Literal["ieee", "tf32"]


@dataclass(frozen=True)
class Rounding:
    """A right kernel for inputs of `dtype`: sums in float32, and tensor cores that
    read `dtype`, or TF32 for float32."""

    dtype: torch.dtype
    precision: Precision = "tf32"

    @property
    def is_tf32(self) -> bool:
        """Whether a factor of a product may lose its last bits on the way into the tensor core."""
        return self.dtype == torch.float32 and self.precision == "tf32"

    @property
    def operand(self) -> float:
        """The relative error of a value that becomes a factor of a product: twice what rounding to nearest makes."""
        return 2.0**-10 if self.is_tf32 else torch.finfo(self.dtype).eps

    @property
    def cut(self) -> float:
        """By what share a product may come out smaller because tensor cores drop the last bits of a factor: also where
        16 bits are multiplied as float32."""
        return 2.0**-10 if self.precision == "tf32" else 0.0

    def factor(self, value: Tensor) -> Tensor:
        """The error of `value` (float64) when it becomes a factor of a product, underflow included."""
        return self.operand * value.abs() + torch.finfo(self.dtype).smallest_normal * torch.finfo(self.dtype).eps

    def lost(self, value: Tensor) -> Tensor:
        """What tensor cores drop of an input (float64, exact in `dtype`): nothing unless they read TF32."""
        if not self.is_tf32:
            return torch.zeros_like(value)
        return (larger_by_tf32(value.float()) - value).abs().nan_to_num(0.0)

    def sum(self, size: Tensor, terms: int) -> Tensor:
        """The error of a float32 sum of `terms` values whose absolute values add up to `size`."""
        return running_error(size, torch.float32, terms)
