"""A volatile load asks for what other programs write meanwhile: it is no race, and what is read after it neither."""

import pytest
import torch
import triton
import triton.language as tl
from launching import launched

from gradekit.engine.conditions import Conditions, Order
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


@triton.jit
def maximum_of_all(x, top, out, B: tl.constexpr, AWAITS: tl.constexpr):
    """The first program works out what the others read: with AWAITS they wait for it."""
    i = tl.arange(0, B)
    if tl.program_id(0) == 0:
        tl.store(top, tl.max(tl.load(x + i), 0))
    else:
        told = tl.load(top, volatile=True)
        if AWAITS:
            while told == 0:
                told = tl.load(top, volatile=True)
        tl.store(out + tl.program_id(0) - 1, told)


X = torch.arange(32, dtype=torch.int32)


@pytest.mark.parametrize("volatile", [True, False])
def test_looking_back_at_what_earlier_programs_published(volatile):
    outputs = [torch.empty(4, dtype=torch.int32), torch.empty(4, dtype=torch.int32)]
    run = launched(running_sum, (4,), [X], outputs, fill=0, B=8, VOLATILE=volatile)
    assert torch.equal(run.results[1], X.view(4, 8).sum(1).cumsum(0).int())
    assert {finding.cause for finding in run.findings} == (set() if volatile else {Cause.RACE})


@pytest.mark.parametrize("order", Order)
def test_looking_back_is_right_in_each_order(order):
    outputs = [torch.empty(4, dtype=torch.int32), torch.empty(4, dtype=torch.int32)]
    run = launched(running_sum, (4,), [X], outputs, fill=0, conditions=Conditions(order), B=8, VOLATILE=True)
    assert torch.equal(run.results[1], X.view(4, 8).sum(1).cumsum(0).int()) and not run.findings


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize(("programs", "awaits"), [(4, True), (300, True), (4, False)])
def test_a_volatile_load_that_awaits_nothing_is_right_in_one_order_alone(order, programs, awaits):
    outputs = [torch.empty(1, dtype=torch.int32), torch.empty(programs - 1, dtype=torch.int32)]
    run = launched(maximum_of_all, (programs,), [X], outputs, fill=0, conditions=Conditions(order), B=32, AWAITS=awaits)
    assert (run.results[1] == 31).all().item() is (awaits or order is Order.ASCENDING)
