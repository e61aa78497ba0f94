"""How a right kernel rounds on its way to a result: the units in which an error bound is written.

For functions whose errors no single `scale` describes: a bound is then worked out step by step, to the first order,
from what each step may round to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gradekit.judge import tolerance

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
        return (tolerance.larger_by_tf32(value.float()) - value).abs().nan_to_num(0.0)

    def sum(self, size: Tensor, terms: int) -> Tensor:
        """The error of a float32 sum of `terms` values whose absolute values add up to `size`."""
        return tolerance.running_error(size, torch.float32, terms)
