"""Loops that run several times for many rows alone are made to, with each kind of values that a check has."""

from pathlib import Path

from gradekit.findings import Outcome
from gradekit.unseen.kernel_branches import KernelText, dtype_groups
from tests.graded import graded

PERSISTENT = '''
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, cols, sx0, sx1, BLOCK: tl.constexpr):
    top = -float("inf")
    for row in range(tl.program_id(0), rows, 132):
        BEGIN
        offs = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row.to(tl.int64) * sx0 + offs * sx1, mask=offs < cols, other=-float("inf")).to(tl.float32)
        top = tl.maximum(top, tl.max(x, 0))
        e = tl.exp(x - top)
        y = e / tl.sum(e, 0)
        tl.store(y_ptr + row.to(tl.int64) * cols + offs, y.to(y_ptr.dtype.element_ty), mask=offs < cols)


def softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if y.numel():
        softmax_kernel[(132,)](x, y, *x.shape, *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
'''


def outcomes(folder: Path, begin: str, keyword: str) -> list[tuple[Outcome, str]]:
    """The outcome of each check, and where its counterexample came from."""
    checks = graded("softmax", PERSISTENT.replace("BEGIN", begin), folder, keyword=keyword, device="cpu", shrink=False, diagnose=False).checks
    return [(check.outcome, (check.counterexample or {}).get("origin", "")) for check in checks]


def test_what_a_program_keeps_of_its_first_row_is_noticed_at_its_second(tmp_path: Path) -> None:
    """The maximum is not begun anew: only rows of very different magnitudes show it, and only more than 132 of them."""
    (found,) = outcomes(tmp_path, "pass", "extreme_values")
    assert found == (Outcome.FAILED, "so that in line 10 a loop runs several times")


def test_a_program_that_begins_each_row_anew_passes(tmp_path: Path) -> None:
    assert outcomes(tmp_path, 'top = -float("inf")', "extreme_values") == [(Outcome.PASSED, "")]


def test_a_kernel_that_asks_for_a_dtype_is_sent_round_its_loop_with_that_dtype(tmp_path: Path) -> None:
    begin = 'if x_ptr.dtype.element_ty != tl.float16:\n            top = -float("inf")'
    (found,) = outcomes(tmp_path, begin, "extreme_values")
    assert found == (Outcome.FAILED, "so that in line 10 a loop runs several times")


TAKING_TURNS = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, sx0, sx1, ROWS: tl.constexpr, HEIGHT: tl.constexpr, BLOCK: tl.constexpr):
    top = tl.full((HEIGHT, 1), -float("inf"), tl.float32)
    for first in range(0, ROWS, HEIGHT):
        row, col = first + tl.arange(0, HEIGHT)[:, None], tl.arange(0, BLOCK)[None, :]
        inside = (row < ROWS) & (col < cols)
        x = tl.load(x_ptr + row.to(tl.int64) * sx0 + col * sx1, mask=inside, other=-float("inf")).to(tl.float32)
        top = tl.maximum(top, tl.max(x, 1, keep_dims=True))
        e = tl.exp(x - top)
        y = e / tl.sum(e, 1, keep_dims=True)
        tl.store(y_ptr + row.to(tl.int64) * cols + col, y.to(y_ptr.dtype.element_ty), mask=inside)


def softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if y.numel():
        rows, cols = x.shape
        softmax_kernel[(1,)](x, y, cols, *x.stride(), rows, 128, triton.next_power_of_2(cols))
    return y
"""


def test_a_loop_whose_end_the_compiler_knows_is_sent_round_with_each_kind_of_values(tmp_path: Path) -> None:
    """The maximum of the 128 rows before is kept for those after them."""
    (found,) = graded("softmax", TAKING_TURNS, tmp_path, keyword="extreme_values", device="cpu", shrink=False, diagnose=False).checks
    assert found.outcome is Outcome.FAILED and found.counterexample is not None
    assert "`ROWS > HEIGHT` is True" in found.counterexample["origin"]


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
