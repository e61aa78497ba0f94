"""What programs do before they can meet is evaluated for all of them together, also where they wait for each other."""

import pytest
import torch
import triton
import triton.language as tl
from launching import launched

from gradekit.engine.conditions import Conditions, Order
from gradekit.engine.launch import MOST


@triton.jit
def counted_behind_a_lock(x, out, lock, total, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + at)
    for _ in tl.static_range(60):
        value = value * 2 - tl.abs(value)
    tl.store(out + at, value)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + tl.program_id(0) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def results(programs: int, conditions: Conditions):
    x = torch.arange(float(programs * 16)) + 1
    made = [torch.empty(programs * 16), torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)]
    result = launched(counted_behind_a_lock, (programs,), [x], made, fill=0, B=16, conditions=conditions)
    assert not result.findings
    assert torch.equal(result.results[0], x)
    assert result.results[2].item() == programs * (programs + 1) // 2
    return result


@pytest.mark.parametrize("order", Order)
def test_programs_that_wait_for_each_other_share_what_comes_before(order: Order):
    few, many = (results(programs, Conditions(order)).counters.work for programs in (2, 32))
    assert many < 8 * few


def test_more_programs_than_take_turns_go_on_one_after_another():
    results(MOST + 9, Conditions())
