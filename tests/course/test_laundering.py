"""Nobody earns points for a result that torch, or somebody else's kernel, has computed."""

from pathlib import Path

import pytest

from gradekit.findings import Cause, Kind, Outcome
from tests.graded import graded

pytestmark = pytest.mark.usefixtures("without_mends")

EMPTY = """
import torch
import triton
import triton.language as tl


@triton.jit
def touch(x_ptr, out_ptr):
    tl.load(x_ptr)


"""
BORROWED = (
    EMPTY
    + '''
import pathlib, sys
KERNEL = """
import triton
import triton.language as tl

@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)
"""
pathlib.Path("library.py").write_text(KERNEL)
sys.path.insert(0, ".")
from library import add_kernel


@triton.jit
def own(x, y, out, n, BLOCK: tl.constexpr):
    add_kernel(x, y, out, n, BLOCK)


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        touch[(1,)](x, out)
        KERNEL_OF[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out
'''
)
LOSS = (
    EMPTY
    + """
def giou_loss(pred, target, *rest):
    ONE = torch.ones((), device=pred.device)
    touch[(1,)](pred, ONE)
    both = torch.stack([pred.float(), target.float()])
    inter = torch.clamp(pred.float(), min=target.float())
    return (inter.sum() / both.sum()).to(pred.dtype)
"""
)


@pytest.mark.parametrize(
    "kernel", ["add_kernel", "own"], ids=["launched itself", "called by a kernel of the submission"]
)
def test_a_kernel_of_another_file_earns_nothing(tmp_path: Path, kernel: str) -> None:
    report = graded("vector_add", BORROWED.replace("KERNEL_OF", kernel), tmp_path, profile="quick", keyword="contiguous_float32")
    (check,) = report.checks
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.NO_KERNEL), check.message
    assert "library.py" in check.message


def test_a_loss_of_allowed_operations_earns_nothing(tmp_path: Path) -> None:
    report = graded("giou_loss", LOSS, tmp_path, profile="quick", kind="correctness")
    correct = [check for check in report.checks if check.kind is Kind.CORRECTNESS]
    assert correct and {check.outcome for check in correct} == {Outcome.FAILED}
    assert Cause.FORBIDDEN_OP in {check.cause for check in correct}
