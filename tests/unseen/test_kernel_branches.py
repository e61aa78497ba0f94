"""What kernels decide on is worked out in steps that do not multiply with each use of a value."""

import itertools

import torch

from gradekit.engine.branch_coverage import TRUE
from gradekit.unseen.kernel_branches import KernelBranch, KernelText, Place, goes

DOUBLED = 50


def test_a_value_is_worked_out_once_however_often_an_unrolled_loop_uses_it() -> None:
    values = ["%n", *(f"%v{turn}" for turn in range(DOUBLED))]
    sums = [f"    {after} = arith.addi {before}, {before} : i64" for before, after in itertools.pairwise(values)]
    lines = [
        "module {",
        '  tt.func public @k(%n: i64 loc("n"(#loc))) {',
        *sums,
        f"    %decided = arith.cmpi eq, {values[-1]}, %n : i64",
        "    tt.return",
        "  }",
        "}",
    ]
    text = KernelText("k", "\n".join(lines), "s.py")
    (number,) = [op.number for op in text.ops if op.name == "arith.cmpi"]
    place = Place((1, 1, 1), {name: torch.tensor([0, 3]) for name in text.arguments.values()}, (0, 0, 0), False, False)
    branch = KernelBranch("k", None, "arith.cmpi", 0, TRUE)
    assert goes(text, number, branch, place).tolist() == [True, False]
