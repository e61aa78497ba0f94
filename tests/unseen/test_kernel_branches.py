"""What kernels decide on is worked out in few steps, and which dtypes a kernel treats alike."""

import itertools

import torch

from gradekit.engine.branch_coverage import TRUE
from gradekit.unseen.kernel_branches import KernelBranch, KernelText, Place, dtype_groups, goes

DOUBLED = 50


def test_a_value_is_worked_out_once_however_often_an_unrolled_loop_uses_it() -> None:
    values = ["%n", *(f"%v{turn}" for turn in range(DOUBLED))]
    sums = [f"    {after} = arith.addi {before}, {before} : i64" for before, after in itertools.pairwise(values)]
    lines = [
        "module {", '  tt.func public @k(%n: i64 loc("n"(#loc))) {', *sums,
        f"    %decided = arith.cmpi eq, {values[-1]}, %n : i64", "    tt.return", "  }", "}",
    ]
    text = KernelText("k", "\n".join(lines), "s.py")
    (number,) = [op.number for op in text.ops if op.name == "arith.cmpi"]
    place = Place((1, 1, 1), {name: torch.tensor([0, 3]) for name in text.arguments.values()}, (0, 0, 0), False, False)
    branch = KernelBranch("k", None, "arith.cmpi", 0, TRUE)
    assert goes(text, number, branch, place).tolist() == [True, False]


# --- dtypes that a kernel treats alike, so that one of them is tried for all ------------------------------------------


def text_of(body: str) -> KernelText:
    return KernelText("f", f"module {{\n{body}\n}}\n", "submission.py")


HALF = """  tt.func public @f(%p: !tt.ptr<f16>) attributes {noinline = false} {
    %0 = tt.load %p : !tt.ptr<f16>
    %1 = arith.extf %0 : f16 to f32
    %2 = arith.addf %1, %1 : f32
    %3 = arith.truncf %2 : f32 to f16
    tt.store %p, %3 : !tt.ptr<f16>
    tt.return
  }"""
SINGLE = """  tt.func public @f(%p: !tt.ptr<f32>) attributes {noinline = false} {
    %0 = tt.load %p : !tt.ptr<f32>
    %1 = arith.addf %0, %0 : f32
    tt.store %p, %1 : !tt.ptr<f32>
    tt.return
  }"""


def test_dtypes_that_differ_in_casts_alone_are_one_group() -> None:
    assert set(dtype_groups([text_of(HALF), text_of(SINGLE)]).values()) == {()}


def test_dtypes_with_operations_of_their_own_are_groups_of_their_own() -> None:
    groups = dtype_groups([text_of(HALF), text_of(SINGLE.replace("arith.addf %0, %0 : f32", "math.exp %0 : f32"))])
    assert groups == {("f", (dtype,)): (dtype,) for dtype in ("float16", "float32")}
