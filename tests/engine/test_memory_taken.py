"""An operation may compute in memory that nobody needs any more, or where its result is stored: no value changes by it."""

import launching
import torch
import triton
import triton.language as tl

from gradekit.engine import values
from gradekit.findings import Cause


@triton.jit
def shared_kernel(x, out, kept, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < N
    first = tl.exp(tl.load(x + at, mask=inside, other=0.0))
    turned = tl.reshape(first, (BLOCK // 2, 2))
    second = first - 1.0
    tl.store(out + at, second * second, mask=inside)
    tl.store(kept + at, tl.reshape(turned, (BLOCK,)), mask=inside)


@triton.jit
def carried_kernel(x, out, rows, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    last = tl.load(x + at) * 1.0
    total = last * 0.0
    for row in range(rows):
        now = tl.load(x + row * BLOCK + at) * 2.0
        total += now - last
        last = now
    tl.store(out + at, total)


@triton.jit
def in_place_kernel(x, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < N) + 1.0, mask=at < N)


@triton.jit
def overlapping_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at // 2, tl.load(x + at) + 1.0)


def test_a_value_that_another_name_or_view_still_needs_keeps_its_elements():
    x = torch.linspace(-2, 2, 300)
    result = launching.launched(shared_kernel, (3,), [x], [torch.empty(300), torch.empty(300)], [300], BLOCK=128)
    torch.testing.assert_close(result.results[0], (x.exp() - 1) ** 2)
    torch.testing.assert_close(result.results[1], x.exp())


def test_what_a_loop_carries_keeps_its_elements():
    x = torch.linspace(-2, 2, 80).view(5, 16)
    result = launching.launched(carried_kernel, (1,), [x], [torch.empty(16)], [5], BLOCK=16)
    torch.testing.assert_close(result.results[0], x[4] * 2 - x[0])


def test_inputs_keep_theirs_where_a_kernel_adds_to_what_it_loads():
    x = torch.linspace(-2, 2, 100)
    before = x.clone()
    result = launching.launched(in_place_kernel, (2,), [x], (), [100], BLOCK=64)
    assert torch.equal(x, before)
    assert {finding.cause for finding in result.findings} == {Cause.INPUT_MODIFIED}


def test_a_sum_stored_twice_to_one_element_is_a_conflict():
    result = launching.launched(overlapping_kernel, (1,), [torch.linspace(-2, 2, 64)], [torch.empty(32)], BLOCK=64)
    assert Cause.WRITE_CONFLICT in {finding.cause for finding in result.findings}


def test_a_tensor_is_owned_where_one_name_alone_has_it_and_its_memory():
    shape, frame = (4, 8), {"alone": torch.ones(4, 8), "wide": torch.ones(4, 1).expand(4, 8)}
    frame["named"] = frame["twice"] = torch.ones(4, 8)
    frame["based"] = torch.ones(32)
    frame["view"] = frame["based"].view(4, 8)
    assert [name for name in frame if values.owned(frame, name, torch.float32, shape) is not None] == ["alone"]


@triton.jit
def chosen_kernel(x, out, kept, N, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * BLOCK + at)
    within = tl.where(at < N, value, -1.0)
    each = tl.where(at < N, tl.sum(value, 0), value)
    tl.store(out + row * BLOCK + at, within)
    tl.store(kept + row * BLOCK + at, each)


def test_a_choice_by_a_length_takes_each_side_where_it_holds():
    x = torch.linspace(-2, 2, 96).view(3, 32)
    for length in (0, 1, 20, 32, 40):
        result = launching.launched(chosen_kernel, (3,), [x], [x.clone(), x.clone()], [length], BLOCK=32)
        inside = torch.arange(32) < length
        assert torch.equal(result.results[0], torch.where(inside, x, -1.0))
        torch.testing.assert_close(result.results[1], torch.where(inside, x.sum(1, keepdim=True), x))
