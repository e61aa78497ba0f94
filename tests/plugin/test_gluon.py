"""A kernel in another language of Triton's is not known here: its checks are pending by its name, and never lost."""

from __future__ import annotations

from pathlib import Path

from gradekit.assignment import get
from gradekit.findings import Outcome
from tests.graded import grade

GLUON = """
import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def add_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = i < n
    gl.store(o_ptr + i, gl.load(x_ptr + i, mask=mask) + gl.load(y_ptr + i, mask=mask), mask=mask)


def add(x, y):
    a, b = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        add_kernel[(triton.cdiv(out.numel(), 128),)](a, b, out, out.numel(), BLOCK=128, num_warps=4)
    return out
"""


def test_a_gluon_kernel_is_pending_by_name_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "submission.py"
    path.write_text(GLUON)
    report = grade(get("vector_add"), path, profile="quick", device="cpu", keyword="contiguous or memory")
    assert {check.outcome for check in report.checks} == {Outcome.PENDING}
    assert all("Gluon" in check.message for check in report.checks) and report.score.pending > 0
