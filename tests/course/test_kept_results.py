"""Mistakes that only some GPUs or a second call show."""

from pathlib import Path

import pytest

from gradekit.findings import Cause, Check, Outcome
from gradekit.report import record
from tests.graded import graded

pytestmark = pytest.mark.usefixtures("without_mends")

KEPT = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


BUFFERS = {}


def buffer(x):
    key = x.shape, x.dtype
    if key not in BUFFERS:
        BUFFERS[key] = torch.empty_like(x)
    return BUFFERS[key]


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = buffer(x)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return RESULT
"""


def checked(folder: Path, text: str) -> Check:
    """The check of vector_add that is about its result's memory."""
    report = graded("vector_add", text, folder, profile="quick", keyword="inputs_unmodified")
    (check,) = report.checks
    return check


@pytest.mark.parametrize("result", ["out", "out.view(out.shape)"])
def test_a_result_in_a_buffer_that_is_kept_for_its_shape_fails(result: str, tmp_path: Path) -> None:
    check = checked(tmp_path, KEPT.replace("RESULT", result))
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.KEPT_RESULT)


def test_a_result_from_a_ring_that_is_longer_than_a_check_makes_calls_fails(tmp_path: Path) -> None:
    ring = (
        "ring = BUFFERS.setdefault(key, [])\n    ring.append(torch.empty_like(x) if len(ring) < 200 else ring.pop(0))"
    )
    text = KEPT.replace("if key not in BUFFERS:\n        BUFFERS[key] = torch.empty_like(x)", ring)
    check = checked(tmp_path, text.replace("return BUFFERS[key]", "return ring[-1]").replace("RESULT", "out"))
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.KEPT_RESULT)


def test_a_copy_of_what_lies_in_a_kept_buffer_is_a_new_tensor(tmp_path: Path) -> None:
    assert checked(tmp_path, KEPT.replace("RESULT", "out.clone()")).outcome is Outcome.PASSED


ONE_ROW = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, N, sm, sn, om, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK).to(tl.int64)
    x = tl.load(x_ptr + row * sm + n * sn, mask=n < N, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * om + n, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=n < N)


def softmax(x):
    M, N = x.shape
    rows = 1 if M and x.stride(0) == 0 else M
    out = torch.empty((rows, N), dtype=x.dtype, device=x.device)
    if rows:
        kernel[(rows,)](x, out, N, x.stride(0), x.stride(1), out.stride(0), BLOCK=triton.next_power_of_2(N))
    return RESULT
"""


@pytest.mark.parametrize(
    ("result", "cause"), [("out.expand(M, N)", Cause.KEPT_RESULT), ("out.expand(M, N).clone()", None)]
)
def test_an_expanded_view_of_one_row_is_no_new_tensor_and_a_copy_of_it_is(
    result: str, cause: Cause | None, tmp_path: Path
) -> None:
    report = graded("softmax", ONE_ROW.replace("RESULT", result), tmp_path, keyword="inputs_unmodified")
    assert [check.cause for check in report.checks] == [cause]


# --- mistakes of persistent kernels show on a GPU with few multiprocessors, and the report says so --------------------


SUM = """
import torch
import triton
import triton.language as tl

NUM_SM = torch.cuda.get_device_properties(0).multi_processor_count


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = tile * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        RESET
        total += tl.load(x_ptr + offsets, mask=mask, other=0.0) + tl.load(y_ptr + offsets, mask=mask, other=0.0)
        tl.store(out_ptr + offsets, total, mask=mask)


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        kernel[(min(NUM_SM, triton.cdiv(x.numel(), 16)),)](x, y, out, x.numel(), BLOCK=16)
    return out
"""
CAPPED = SUM.replace("for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):", "for tile in range(tl.program_id(0), tl.program_id(0) + 1):")  # fmt: skip
RESET = "total = tl.zeros((BLOCK,), tl.float32)"
WRONG = {"an accumulator that is not reset": SUM.replace("RESET", ""), "a capped grid": CAPPED.replace("RESET", RESET)}
CHECK = "contiguous_float32"


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_persistent_kernel_that_is_right_in_its_first_tile_alone_fails(tmp_path: Path, text: str) -> None:
    report = graded("vector_add", text, tmp_path, keyword=CHECK)
    record.validate(record.to_dict(report))
    (check,) = report.checks
    assert check.outcome is Outcome.FAILED
    assert "On a GPU with 1 multiprocessor" in check.message or "On a GPU with 3 multiprocessors" in check.message


def test_a_persistent_kernel_that_is_right_passes(tmp_path: Path) -> None:
    report = graded("vector_add", SUM.replace("RESET", RESET), tmp_path, keyword=CHECK)
    assert [check.outcome for check in report.checks] == [Outcome.PASSED], report.checks[0].message
