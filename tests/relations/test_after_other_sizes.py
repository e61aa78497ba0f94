"""A call that uses memory which a call of another size, or of other values, has left."""

from pathlib import Path

import pytest

from gradekit.causes import Cause
from gradekit.findings import Outcome
from tests.graded import graded

TEXT = """
import torch
import triton
import triton.language as tl

state = []


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, last_ptr, n, BLOCK: tl.constexpr):
    last = tl.load(last_ptr)
    spoil = tl.where((last == 0) | (last == n), 0, SPOIL).to(o_ptr.dtype.element_ty)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0)
        tl.store(o_ptr + i, x + tl.load(y_ptr + i, mask=i < n, other=0) + spoil, mask=i < n)
    tl.store(last_ptr, n)


def add(x, y):
    if not state:
        state.append(torch.zeros((1,), dtype=torch.int32, device=x.device))
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(1,)](x, y, out, state[0], x.numel(), BLOCK=1024)
    return out
"""


@pytest.mark.parametrize("spoil", [0, 1])
def test_what_a_call_of_another_size_leaves_may_not_change_a_result(spoil: int, tmp_path: Path) -> None:
    text = TEXT.replace("SPOIL", str(spoil))
    (check,) = graded("vector_add", text, tmp_path, keyword="test_boundary_sizes", profile="quick").checks
    assert check.outcome is (Outcome.FAILED if spoil else Outcome.PASSED), check.message
    assert not spoil or check.cause is Cause.DEPENDS_ON_EARLIER_CALLS


EMPTIED = """
import torch
import triton
import triton.language as tl

sums = {}


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    own = tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n)
    total = tl.load(sum_ptr + i, mask=i < n) + own
    tl.store(o_ptr + i, total, mask=i < n)
    tl.store(sum_ptr + i, LEFT, mask=i < n)


def add(x, y):
    n = x.numel()
    if n not in sums:
        sums[n] = torch.zeros((n,), dtype=torch.float32, device=x.device)
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 1024),)](x, y, out, sums[n], n, BLOCK=1024)
    return out
"""


@pytest.mark.parametrize("left", ["own - own", "0.0"])
def test_infinity_that_a_call_leaves_in_kept_memory_may_not_change_a_result(left: str, tmp_path: Path) -> None:
    text = EMPTIED.replace("LEFT", left)
    (check,) = graded("vector_add", text, tmp_path, keyword="test_contiguous", profile="quick").checks
    assert check.outcome is (Outcome.PASSED if left == "0.0" else Outcome.FAILED), check.message
    assert left == "0.0" or check.message.startswith("In a second call")
