"""What a counterexample's Python says is right, where values were compared and where they were not."""

from pathlib import Path

import pytest

from tests.graded import record_of

NO_MASK = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i, mask=i < n), mask=i < n)

def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out
"""


@pytest.mark.parametrize(("old", "new"), [("", ""), ("tl.load(x + i)", "2 * tl.load(x + i, mask=i < n)")])
def test_the_tests_own_function_says_what_is_right_for_values_as_for_memory(old: str, new: str, tmp_path: Path) -> None:
    record = record_of("vector_add", NO_MASK.replace(old, new) if old else NO_MASK, tmp_path, stop=True)
    failed = next(check for check in record["checks"] if check["outcome"] == "failed")
    assert failed["counterexample"]["reference"] == "test_vector_add.expected(x, y).rounded"
