"""A run of some programs of a launch alone: what they wrote, and nothing else, is there to be compared."""

import torch
import triton
import triton.language as tl
from launching import program

from gradekit.engine import Budget, Owners, run, run_chosen


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


def test_programs_that_are_chosen_write_what_they_write_in_a_whole_run_and_no_more():
    x = torch.arange(1.0, 11.0)
    call = program(double_kernel, [3], [x], [torch.empty(10)], [10], BLOCK=4, fill=0)
    owners = Owners()
    alone, whole = run_chosen({0: [0, 2]}, call, [x], 0, (), Budget(), owners), run(call, [x])
    written = owners.written(call.results[0], 0)
    assert written.tolist() == [True] * 4 + [False] * 4 + [True] * 2
    assert torch.equal(alone.results[0][written], whole.results[0][written])
    assert alone.results[0][~written].tolist() == [0] * 4


def test_what_other_programs_would_have_written_is_no_finding():
    x = torch.ones(10)
    call = program(double_kernel, [3], [x], [torch.empty(10)], [10], BLOCK=4)
    assert not run_chosen({0: [1]}, call, [x], 0, (), Budget()).findings
    assert not Owners().written(call.results[0], 0).any()
