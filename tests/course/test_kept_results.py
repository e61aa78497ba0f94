"""A result belongs to the caller: a buffer that a submission keeps for its results is found, one for scratch is let be."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.findings import Cause, Check, Outcome
from tests.graded import grade

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
    (folder / "submission.py").write_text(text)
    report = grade(get("vector_add"), folder / "submission.py", profile="quick", keyword="inputs_unmodified")
    (check,) = report.checks
    return check


@pytest.mark.parametrize("result", ["out", "out[:]", "out.view(out.shape)"])
def test_a_result_in_a_buffer_that_is_kept_for_its_shape_fails(result: str, tmp_path: Path) -> None:
    check = checked(tmp_path, KEPT.replace("RESULT", result))
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.KEPT_RESULT)


def test_a_copy_of_what_lies_in_a_kept_buffer_is_a_new_tensor(tmp_path: Path) -> None:
    assert checked(tmp_path, KEPT.replace("RESULT", "out.clone()")).outcome is Outcome.PASSED
