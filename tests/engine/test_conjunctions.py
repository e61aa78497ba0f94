"""Masks that are kept as factors have the shape that torch would give all together."""

from __future__ import annotations

import pytest
import torch

from gradekit.engine.ops_arith import _broadcast
from tests import zygote


@pytest.mark.parametrize(
    "shapes", [[(4, 1, 8)], [(1, 16, 1), (5, 1, 8)], [(8,), (4, 1, 1)], [(1, 1), (1, 1)], [(3, 1), (1, 7), (3, 7)]]
)
def test_factors_broadcast_as_in_torch(shapes: list[tuple[int, ...]]) -> None:
    assert _broadcast(shapes) == tuple(torch.broadcast_shapes(*shapes))


def test_the_engine_does_not_import_sympy_for_masks() -> None:
    code = "import sys; from gradekit.engine.ops_arith import _broadcast; _broadcast([(1, 2), (3, 1)]);"
    code += "sys.exit('sympy' in sys.modules)"
    assert zygote.ran(["-c", code]).returncode == 0
