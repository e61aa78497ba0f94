"""Kinds of values for factors of a product that meet infinity and NaN at an edge of the matrix alone, in some results only."""

from __future__ import annotations

import math

import torch

from gradekit.inputs.value_kinds import make, value_kind


@value_kind("endless_row")
def endless_row(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Positive, but every fourth element of the last row is infinite, and every fourth NaN."""
    values = make("positive", shape, dtype, generator)
    values[..., -1:, ::4], values[..., -1:, 2::4] = math.inf, math.nan
    return values


@value_kind("endless_column")
def endless_column(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Positive, but every fourth element of the last column is infinite, and every fourth NaN."""
    values = make("positive", shape, dtype, generator)
    values[..., ::4, -1:], values[..., 2::4, -1:] = math.inf, math.nan
    return values
