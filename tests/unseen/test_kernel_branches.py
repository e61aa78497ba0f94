"""What kernels decide on, by dtypes, limits and constants that are sizes, is worked out in few steps and tried each way."""

import ast
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.engine.branch_coverage import CLAMP, FALSE, TRUE, WHOLE, watched
from gradekit.engine.ttir import Op, Type
from gradekit.engine.values import Affine
from gradekit.findings import Check, Outcome
from gradekit.unseen.kernel_branches import KernelBranch, KernelText, Place, dtype_groups, edges, goes, off_line
from gradekit.unseen.search import constant_ways
from tests.graded import graded
from tests.unseen.submissions import vector_add

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


def test_the_last_turn_of_a_while_loop_does_not_follow_from_sizes() -> None:
    text = text_of("""  tt.func public @f(%p: !tt.ptr<f32>, %n: i32 loc("n"(#loc))) {
    %none = arith.constant 0 : i32
    %tile = arith.constant 8 : i32
    %end = scf.while (%left = %n) : (i32) -> i32 {
      %more = arith.cmpi sgt, %left, %none : i32
      scf.condition(%more) %left : i32
    } do {
    ^bb0(%now: i32):
      %is_whole = arith.cmpi sge, %now, %tile : i32
      %x = tt.load %p, %is_whole : !tt.ptr<f32>
      %next = arith.subi %now, %tile : i32
      scf.yield %next : i32
    }
    tt.return
  }""")
    (number,) = [op.number for op in text.ops if op.name == "tt.load"]
    first, last = (Place((1, 1, 1), {"n": torch.tensor([7, 9])}, (0, 0, 0), False, turn) for turn in (False, True))
    branch = KernelBranch("f", None, "tt.load", 0, WHOLE)
    assert goes(text, number, branch, first).tolist() == [False, True]
    assert goes(text, number, branch, last) is None


def test_lengths_at_which_a_program_begins_to_have_work_are_on_both_sides_of_its_beginning() -> None:
    text = text_of("""  tt.func public @f(%p: !tt.ptr<i32>, %tile: i32 loc("tile"(#loc))) {
    %program = tt.get_program_id x : i32
    %begin = arith.muli %program, %tile : i32
    %length = tt.load %p : !tt.ptr<i32>
    %works = arith.cmpi slt, %begin, %length : i32
    %sizes = arith.cmpi slt, %begin, %tile : i32
    tt.return
  }""")
    loaded, of_sizes = [op.number for op in text.ops if op.name == "arith.cmpi"]
    place = Place((4, 1, 1), {"tile": torch.tensor([64])}, (3, 0, 0), loaded={"i32": torch.arange(1, 257)})
    assert edges(text, loaded, place, torch.arange(1, 257)) == [192, 192, 193, 193]
    assert edges(text, of_sizes, place, torch.arange(1, 257)) == []


def test_lengths_between_two_loaded_numbers_at_which_a_comparison_changes_are_on_both_sides_of_it() -> None:
    text = text_of("""  tt.func public @f(%p: !tt.ptr<i32>, %step: i32 loc("step"(#loc))) {
    %limit = arith.constant 777 : i32
    %program = tt.get_program_id x : i32
    %at = arith.muli %program, %step : i32
    %next = arith.addi %at, %step : i32
    %first = tt.addptr %p, %at : !tt.ptr<i32>, i32
    %second = tt.addptr %p, %next : !tt.ptr<i32>, i32
    %begin = tt.load %first : !tt.ptr<i32>
    %end = tt.load %second : !tt.ptr<i32>
    %length = arith.subi %end, %begin : i32
    %equal = arith.cmpi eq, %length, %limit : i32
    %there = tt.addptr %p, %begin : !tt.ptr<i32>, i32
    %other = tt.load %there : !tt.ptr<i32>
    %unknown = arith.cmpi eq, %other, %limit : i32
    tt.return
  }""")
    of_lengths, of_others = [op.number for op in text.ops if op.name == "arith.cmpi"]
    loaded = {"i32": torch.arange(2049)}
    place = Place((9, 1, 1), {"step": torch.tensor([2])}, (3, 0, 0), loaded=loaded, apart=2)
    assert edges(text, of_lengths, place, loaded["i32"]) == [776, 777, 776, 777, 777, 778, 777, 778]
    assert edges(text, of_others, place, loaded["i32"]) == []


# --- dtypes that a kernel treats alike, so that one of them is tried for all ------------------------------------------


RECIPROCAL = """  tt.func public @f(%p: !tt.ptr<i32>, %part: f32 loc("part"(#loc))) {
    %0 = tt.get_program_id y : i32
    %1 = arith.sitofp %0 : i32 to f32
    %2 = arith.mulf %1, %part : f32
    %3 = arith.fptosi %2 : f32 to i32 loc("submission.py":3:1)
    tt.store %p, %3 : !tt.ptr<i32>
    tt.return
  }"""


def test_the_sizes_at_which_rounding_makes_another_whole_number_of_a_float_follow_from_the_kernel() -> None:
    text = text_of(RECIPROCAL)
    found = [size for size in range(1, 64) if off_line(text, (1, 2 * size, 1), {"part": 1 / size}) == 3]
    assert found == [41, 47, 55, 61]
    in_float32 = torch.tensor(1.0) / torch.tensor(found)  # as a card computes it
    assert ((torch.tensor(found) * in_float32).int() == 0).all()


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


# --- Limits -----------------------------------------------------------------------------------------------------------


def ways_of(name: str, *operands: list[float] | Affine | int, **attributes: Any) -> int:
    """What is noted of one operation on these operands."""
    types = tuple(Type("f32", (2,)) for _ in operands)
    result = Type("i1" if name == "arith.cmpf" else "f32", (2,))
    names = tuple(f"%{place}" for place in range(len(operands)))
    op = Op(name, names, ("%r",), types, (result,), attributes, number=3)
    tensors: list[Any] = [torch.tensor(one) if isinstance(one, list) else one for one in operands]
    context = SimpleNamespace(ways={}, launch=0)
    frame: Any = SimpleNamespace(
        context=context,
        tensor=lambda op, place: tensors[place],
        operand=lambda op, place: tensors[place],
    )
    watched(op, lambda frame: 0)(frame)
    return int(context.ways.get((0, 3), 0))


@pytest.mark.parametrize("more", [{"predicate": "ogt"}, {}])
def test_a_lane_that_is_nan_says_nothing_of_a_limit(more: dict[str, str]) -> None:
    name = "arith.cmpf" if more else "arith.minnumf"
    beyond, within = (TRUE, FALSE) if more else (FALSE, TRUE)
    assert ways_of(name, [1.0, float("nan")], [9.0, 9.0], **more) == within
    assert ways_of(name, [10.0, float("nan")], [9.0, 9.0], **more) == beyond
    assert ways_of(name, [float("nan")], [9.0], **more) == 0


def test_numbers_that_rise_along_programs_are_less_and_more_than_a_limit() -> None:
    rising = Affine(0, (64,), 0, 128)
    assert ways_of("arith.minsi", rising, 100) == ways_of("arith.minsi", 100, rising) == TRUE | FALSE
    assert (ways_of("arith.minsi", rising, 500), ways_of("arith.minsi", 500, rising)) == (TRUE, FALSE)


def test_of_a_clamp_is_noted_on_which_side_values_lay() -> None:
    assert ways_of(CLAMP, [0.0], [-1.0], [1.0]) == 0
    assert ways_of(CLAMP, [-2.0], [-1.0], [1.0]) == TRUE
    assert ways_of(CLAMP, [2.0, -2.0], [-1.0, -1.0], [1.0, 1.0]) == TRUE | FALSE


# --- Wants ------------------------------------------------------------------------------------------------------------


def checked(folder: Path, kernel: str) -> Check:
    """A check of vector_add whose kernel is given its length as a constant."""
    text = vector_add(kernel=kernel).replace("n, BLOCK: tl.constexpr", "n, N: tl.constexpr, BLOCK: tl.constexpr")
    (check,) = graded(
        "vector_add",
        text.replace("out, n, BLOCK=256", "out, n, N=n, BLOCK=256"),
        folder,
        keyword="contiguous_float32",
        shrink=False,
        diagnose=False,
    ).checks
    return check


@pytest.mark.parametrize("test", ["N % 251 == 250", "N > 6007"])
def test_a_size_that_the_compiler_decides_by_is_found(test: str, tmp_path: Path) -> None:
    check = checked(tmp_path, f"if {test}:\n    o = o + 1.0")
    assert check.outcome is Outcome.FAILED and check.counterexample is not None
    assert f"`{test}` is True" in check.counterexample["origin"]


def test_where_a_tensor_may_hold_special_numbers_no_further_call_fails_by_the_grader(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "solutions/spmm/solution.py").read_text(encoding="utf-8")
    (check,) = graded("spmm", text, tmp_path, keyword="boundary_sizes", shrink=False, device="cpu").checks
    assert check.outcome is Outcome.PASSED and "grader failed" not in f"{check.details['coverage']['branches']}"


def test_a_way_that_no_size_goes_is_named(tmp_path: Path) -> None:
    check = checked(tmp_path, "if N > 1073741824:\n    o = o + 1.0")
    named = [what for one in check.details["coverage"]["branches"]["decisions"] for what in one["unseen"]]
    assert check.outcome is Outcome.PASSED and "`N > 1073741824` is True" in named


def test_what_is_no_comparison_of_constants_alone_is_none() -> None:
    text = "@triton.jit\ndef k(x, n, N: tl.constexpr):\n    if N > n or N in (3, 4) or N ** 99999999 == 7 or N == 7:\n        pass\n"
    assert {one.text for one in constant_ways(ast.parse(text))} == {"N == 7"}


WRAPPED = "x = tl.load(x_ptr + (tl.program_id(0) {}) * BLOCK + tl.arange(0, BLOCK), mask=m, other=0)\no = x + y"


@pytest.mark.sample(1)
@pytest.mark.parametrize("wrapped", ["% 1500", "& 2047"])
def test_an_index_that_is_taken_modulo_a_number_reaches_it(wrapped: str, tmp_path: Path) -> None:
    (check,) = graded(
        "vector_add",
        vector_add(kernel=WRAPPED.format(wrapped)),
        tmp_path,
        keyword="contiguous_float32",
        shrink=False,
        diagnose=False,
    ).checks
    assert check.outcome is Outcome.FAILED and check.counterexample is not None
    assert check.counterexample["origin"].startswith("N is ")
