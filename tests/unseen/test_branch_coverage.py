"""What is noted of comparisons, minima and clamps: on which side of a kernel's limits values have lain."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.engine import Op
from gradekit.engine.branch_coverage import CLAMP, FALSE, TRUE, watched
from gradekit.engine.ttir import Type


def ways_of(name: str, *operands: list[float], **attributes: Any) -> int:
    """What is noted of one operation on these operands."""
    types = tuple(Type("f32", (len(one),)) for one in operands)
    result = Type("i1" if name == "arith.cmpf" else "f32", (len(operands[0]),))
    names = tuple(f"%{place}" for place in range(len(operands)))
    op = Op(name, names, ("%r",), types, (result,), attributes, number=3)
    tensors = [torch.tensor(one) for one in operands]
    context = SimpleNamespace(ways={}, launch=0)
    frame: Any = SimpleNamespace(
        context=context, tensor=lambda op, place: tensors[place], operand=lambda op, place: tensors[place],
    )
    watched(op, lambda frame: tensors[0] > tensors[1])(frame)
    return int(context.ways.get((0, 3), 0))


@pytest.mark.parametrize("more", [{"predicate": "ogt"}, {}])
def test_a_lane_that_is_nan_says_nothing_of_a_limit(more: dict[str, str]) -> None:
    name = "arith.cmpf" if more else "arith.minnumf"
    beyond, within = (TRUE, FALSE) if more else (FALSE, TRUE)
    assert ways_of(name, [1.0, float("nan")], [9.0, 9.0], **more) == within
    assert ways_of(name, [10.0, float("nan")], [9.0, 9.0], **more) == beyond
    assert ways_of(name, [float("nan")], [9.0], **more) == 0


def test_of_a_clamp_is_noted_on_which_side_values_lay() -> None:
    assert ways_of(CLAMP, [0.0], [-1.0], [1.0]) == 0
    assert ways_of(CLAMP, [-2.0], [-1.0], [1.0]) == TRUE
    assert ways_of(CLAMP, [2.0, -2.0], [-1.0, -1.0], [1.0, 1.0]) == TRUE | FALSE
