"""Tensors made like others have the strides that torch gives them."""

from __future__ import annotations

import itertools

import torch

from gradekit.tracer.aten import is_dense, like

GEOMETRIES = [
    *((shape, strides) for shape in [(2, 3), (1, 3), (3, 1), (2, 2)] for strides in itertools.product([0, 1, 2, 3, 6, 7], repeat=2)),
    *(((2, 3, 4), strides) for strides in itertools.permutations([12, 4, 1, 0, 24], 3)),
    *(((2, 1, 4), strides) for strides in itertools.permutations([12, 4, 1, 5], 3)),
    ((), ()),
    ((5,), (3,)),
    ((0, 3), (3, 1)),
]  # fmt: skip


def test_the_strides_are_torchs() -> None:
    """Dense, sliced, expanded, transposed and degenerate tensors"""
    memory = torch.empty(200)
    torchs = {geometry: torch.empty_like(memory.as_strided(*geometry)).stride() for geometry in GEOMETRIES}
    assert {geometry: like(*geometry) for geometry in GEOMETRIES} == torchs


def test_gaps_and_overlaps_are_not_dense() -> None:
    """A slice has gaps, an expanded tensor overlaps"""
    assert is_dense((4, 6), (1, 4)) and not is_dense((4, 3), (6, 1)) and not is_dense((4, 3), (0, 1))
