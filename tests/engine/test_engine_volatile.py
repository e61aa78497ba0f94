"""A volatile load asks for what other programs write meanwhile: it is no race, and what is read after it neither."""

import pytest
import torch
import triton
import triton.language as tl
from launching import launched

from gradekit.findings import Cause


@triton.jit
def running_sum(x, flags, out, B: tl.constexpr, VOLATILE: tl.constexpr):
    """Each program adds what the programs before it have published, and publishes again: a decoupled look-back."""
    pid = tl.program_id(0)
    own = tl.sum(tl.load(x + pid * B + tl.arange(0, B)), 0)
    tl.store(flags + pid, own + 1)
    total = own
    before = pid - 1
    while before >= 0:
        told = tl.load(flags + before, volatile=VOLATILE)
        while told == 0:
            told = tl.load(flags + before, volatile=VOLATILE)
        total += told - 1
        before -= 1
    tl.store(flags + pid, own + 1)  # again, after others have looked
    tl.store(out + pid, total)


X = torch.arange(32, dtype=torch.int32)


@pytest.mark.parametrize("volatile", [True, False])
def test_looking_back_at_what_earlier_programs_published(volatile):
    outputs = [torch.empty(4, dtype=torch.int32), torch.empty(4, dtype=torch.int32)]
    run = launched(running_sum, (4,), [X], outputs, fill=0, B=8, VOLATILE=volatile)
    assert torch.equal(run.results[1], X.view(4, 8).sum(1).cumsum(0).int())
    assert {finding.cause for finding in run.findings} == (set() if volatile else {Cause.RACE})
