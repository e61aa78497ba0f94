"""What a kernel does with sums, maxima and products beyond those of all examples is tried, mostly in exact arithmetic."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch

from gradekit.engine import Op
from gradekit.engine.branch_coverage import CLAMP, FALSE, TRUE, watched
from gradekit.engine.ttir import Type
from gradekit.findings import Outcome
from tests.graded import graded
from tests.unseen.attacks import SOLUTIONS


class Capped(NamedTuple):
    """A solution with `line` behind one of its own, and the check that has to fail."""

    assignment: str
    check: str
    behind: str
    line: str


SUM = "        denominator = tl.sum(numerator, axis=1)[:, None]\n"
PRODUCT = "        b_ptrs += BLOCK_K * b_stride_k\n"
HIGHER = "        higher = tl.maximum(peak, tl.max(scores, axis=1))\n"
PEAK = "        higher = tl.maximum(peak, tl.max(scores, axis=1) * scale)\n"
CAPPED = [
    Capped("softmax", "wide_rows", SUM, "        denominator = tl.where(denominator > 3000.0, 3000.0, denominator)\n"),
    Capped("matmul", "contiguous_float32", PRODUCT, "    accumulator = tl.clamp(accumulator, -5000.0, 5000.0)\n"),
    Capped("matmul", "contiguous_float32", PRODUCT,
           "    accumulator = tl.where(tl.sum(accumulator) > 3000000.0, accumulator * 1.1, accumulator)\n"),
    Capped("decode_attention", "float32", HIGHER, "        higher = tl.maximum(higher, -100.0)\n"),
    Capped("flash_attention", "every_key", PEAK, "        higher = tl.maximum(higher, -100.0)\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    "one", [pytest.param(one, marks=[pytest.mark.slow] if n else []) for n, one in enumerate(CAPPED)]
)
def test_what_a_kernel_limits_beyond_all_examples_is_gone_beyond(one: Capped, tmp_path: Path) -> None:
    text = (SOLUTIONS / one.assignment / "solution.py").read_text(encoding="utf-8")
    assert text.count(one.behind) == 1
    checks = graded(one.assignment, text.replace(one.behind, one.behind + one.line), tmp_path, keyword=one.check, shrink=False).checks
    assert Outcome.FAILED in {check.outcome for check in checks}


def ways_of(name: str, *operands: list[float], **attributes: Any) -> int:
    """What is noted of one operation on these operands."""
    types = tuple(Type("f32", (len(one),)) for one in operands)
    result = Type("i1" if name == "arith.cmpf" else "f32", (len(operands[0]),))
    names = tuple(f"%{place}" for place in range(len(operands)))
    op = Op(name, names, ("%r",), types, (result,), attributes, number=3)
    tensors = [torch.tensor(one) for one in operands]
    context = SimpleNamespace(ways={}, launch=0)
    frame: Any = SimpleNamespace(
        context=context,
        tensor=lambda op, place: tensors[place],
        operand=lambda op, place: tensors[place],
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
