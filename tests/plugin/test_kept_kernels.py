"""A compiled kernel that is kept for other calls is named as that, whichever kind of check it fails."""

from pathlib import Path

import pytest

from gradekit.assignment import discover
from gradekit.findings import Cause, Outcome
from tests.graded import grade

pytestmark = pytest.mark.usefixtures("warm")

KEEPS = """
import torch
import triton
import triton.language as tl

PROCESSORS = torch.cuda.get_device_properties(0).multi_processor_count
READY = {}


@triton.jit
def softmax_kernel(x_ptr, out_ptr, row_stride, column_stride, rows, columns, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        start = x_ptr + row.to(tl.int64) * row_stride
        x = tl.load(start + lanes * column_stride, mask=lanes < columns, other=-float("inf")).to(tl.float32)
        weights = tl.exp(x - tl.max(x, 0))
        tl.store(out_ptr + row.to(tl.int64) * columns + lanes, weights / tl.sum(weights, 0), mask=lanes < columns)


def softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    given = (x, out, x.stride(0), x.stride(1), x.shape[0], x.shape[1])
    if (block, x.dtype) not in READY:
        READY[block, x.dtype] = softmax_kernel.warmup(*given, BLOCK=block, grid=(1,))
    READY[block, x.dtype][(min(x.shape[0], 4 * PROCESSORS), 1, 1)](*given, block)
    return out
"""


def test_an_example_a_relation_and_the_memory_of_all_calls_name_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text(KEEPS)
    report = grade(discover()["softmax"], tmp_path / "submission.py", profile="quick")
    failed = {check.id: check for check in report.checks if check.outcome is Outcome.FAILED}
    assert set(failed) == {"test_wide_rows", "test_any_stride_and_offset", "test_extreme_values", "test_memory"}
    for check in failed.values():
        assert check.cause is Cause.DEPENDS_ON_EARLIER_CALLS, check.id
        assert "As the first call of a new process, this very call is right" in check.message
        assert check.source is not None and "READY[block, x.dtype] =" in check.source.text
