"""Kinds of values for factors of a product that meet infinity at an edge of the matrix alone, in some results only."""

from __future__ import annotations

import math

import torch

from gradekit.inputs.value_kinds import make, value_kind


@value_kind("endless_row")
def endless_row(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Positive, but every second element of the last row is infinite."""
    values = make("positive", shape, dtype, generator)
    values[..., -1:, ::2] = math.inf
    return values


@value_kind("endless_column")
def endless_column(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Positive, but every second element of the last column is infinite."""
    values = make("positive", shape, dtype, generator)
    values[..., ::2, -1:] = math.inf
    return values
