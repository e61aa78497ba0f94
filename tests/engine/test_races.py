"""Programs are ordered by atomics on one address and by nothing else; lanes of a program by barriers and by nothing else."""

import pytest
import torch
import triton
import triton.language as tl
from launching import launched, sum_under_a_lock

from gradekit.engine.budget import Limit
from gradekit.engine.conditions import Conditions, Order
from gradekit.findings import Cause

X = torch.arange(1, 9, dtype=torch.int32)
TOTAL = [torch.empty(1, dtype=torch.int32)]
LOCKED = [torch.empty(1, dtype=torch.int32), torch.empty(8, dtype=torch.int32)]


def causes(result):
    return {finding.cause for finding in result.findings}


@triton.jit
def sum_under_locks_of_their_own(x, total, lock):
    value = tl.load(x + tl.program_id(0))
    while tl.atomic_cas(lock + tl.program_id(0), 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + value)
    tl.debug_barrier()
    tl.atomic_xchg(lock + tl.program_id(0), 0)


@triton.jit
def sum_beside_a_lock_that_never_locks(x, total, lock):
    value = tl.load(x + tl.program_id(0))
    while tl.atomic_cas(lock, 0, 0) == 1:
        pass
    tl.store(total, tl.load(total) + value)
    tl.debug_barrier()
    tl.atomic_cas(lock, 0, 0)


@triton.jit
def sum_after_an_atomic(x, total, lock):
    value = tl.load(x + tl.program_id(0))
    tl.atomic_add(lock, 1)
    tl.store(total, tl.load(total) + value)
    tl.atomic_add(lock, 1)


@triton.jit
def sum_under_a_relaxed_lock(x, total, lock):
    value = tl.load(x + tl.program_id(0))
    while tl.atomic_cas(lock, 0, 1, sem="relaxed") == 1:
        pass
    tl.store(total, tl.load(total) + value)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="relaxed")


@pytest.mark.parametrize("order", Order)
def test_a_lock_orders_what_is_done_while_it_is_held(order):
    result = launched(sum_under_a_lock, (8,), [X], LOCKED, fill=0, conditions=Conditions(order))
    assert result.results[0].item() == 36
    assert not result.findings


@pytest.mark.parametrize(
    "kernel", [sum_under_locks_of_their_own, sum_after_an_atomic, sum_under_a_relaxed_lock], ids=lambda k: k.fn.__name__
)
def test_a_decoy_atomic_does_not_hide_a_race(kernel):
    assert Cause.RACE in causes(launched(kernel, (8,), [X], LOCKED, fill=0))


def test_a_lock_that_never_locks_is_found_out_when_programs_take_turns():
    shuffled = Conditions(Order.SHUFFLED)
    result = launched(sum_beside_a_lock_that_never_locks, (8,), [X], LOCKED, fill=0, conditions=shuffled)
    assert Cause.RACE in causes(result)


@triton.jit
def sum_of_large_tiles_beside_a_counter(x, total, counter, B: tl.constexpr):
    value = tl.sum(tl.load(x + tl.arange(0, B) % 8), 0)
    seen = tl.atomic_add(counter, 1)
    tl.store(total, tl.load(total) + value + seen * 0)
    tl.atomic_add(counter, 1)


def test_tiles_that_fill_a_chunk_alone_do_not_hide_a_race():
    assert Cause.RACE in causes(launched(sum_of_large_tiles_beside_a_counter, (4,), [X], LOCKED, fill=0, B=1 << 19))


@triton.jit
def last_one_sums(x, out, parts, counter, B: tl.constexpr, LOOKS: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(parts + pid, tl.load(x + pid))
    tl.debug_barrier()
    arrived = tl.atomic_add(counter, 1)
    if LOOKS:
        if arrived == B - 1:
            tl.store(out, tl.sum(tl.load(parts + tl.arange(0, B)), 0))
    else:
        if pid == B - 1:
            tl.store(out, tl.sum(tl.load(parts + tl.arange(0, B)), 0))


@pytest.mark.parametrize("looks", [True, False])
def test_whoever_arrives_last_may_read_what_all_have_written(looks):
    outputs = [torch.empty(1, dtype=torch.int32), torch.empty(8, dtype=torch.int32), torch.empty(1, dtype=torch.int32)]
    result = launched(last_one_sums, (8,), [X], outputs, fill=0, B=8, LOOKS=looks)
    assert result.results[0].item() == 36
    assert (Cause.RACE in causes(result)) is not looks


def test_a_plain_load_of_what_others_add_to_is_a_race():
    @triton.jit
    def peeks(x, total):
        tl.atomic_add(total, tl.load(x + tl.program_id(0)))
        if tl.program_id(0) == 7:
            tl.store(total, tl.load(total) + 1)

    assert Cause.RACE in causes(launched(peeks, (8,), [X], TOTAL, fill=0))


# --- orders ----------------------------------------------------------------------------------------------------------


@triton.jit
def first_come(x, out, counter):
    place = tl.atomic_add(counter, 1)
    tl.store(out + place, tl.load(x + tl.program_id(0)))


def test_programs_run_in_other_orders_where_that_is_asked_for():
    outputs = [torch.empty(8, dtype=torch.int32), torch.empty(1, dtype=torch.int32)]
    seen = {
        order: launched(first_come, (8,), [X], outputs, fill=0, conditions=Conditions(order)).results[0].tolist()
        for order in Order
    }
    assert seen[Order.ASCENDING] == X.tolist()
    assert seen[Order.REVERSED] == X.tolist()[::-1]
    assert sorted(seen[Order.SHUFFLED]) == X.tolist() != seen[Order.SHUFFLED]


def test_a_program_may_wait_for_a_later_one():
    @triton.jit
    def waits(x, out, flag):
        if tl.program_id(0) == 0:
            while tl.atomic_add(flag, 0) == 0:
                pass
            tl.store(out, tl.load(x))
        else:
            tl.atomic_xchg(flag, 1)

    result = launched(waits, (2,), [X], LOCKED, fill=0)
    assert result.results[0][0].item() == 1
    assert not result.findings


# --- lanes of one program --------------------------------------------------------------------------------------------


@triton.jit
def reverses_through_memory(x, out, buffer, B: tl.constexpr, BARRIER: tl.constexpr):
    lane = tl.arange(0, B)
    tl.store(buffer + lane, tl.load(x + lane))
    if BARRIER:
        tl.debug_barrier()
    tl.store(out + lane, tl.load(buffer + B - 1 - lane))


@pytest.mark.parametrize("barrier", [True, False])
def test_a_load_of_what_another_lane_stored_needs_a_barrier(barrier):
    outputs = [torch.empty(8, dtype=torch.int32)] * 2
    result = launched(reverses_through_memory, (1,), [X], outputs, B=8, BARRIER=barrier)
    assert result.results[0].tolist() == X.tolist()[::-1]
    assert causes(result) == (set() if barrier else {Cause.MISSING_BARRIER})


def test_a_lane_may_load_what_it_stored_itself():
    @triton.jit
    def twice(x, out, buffer, B: tl.constexpr):
        lane = tl.arange(0, B)
        tl.store(buffer + lane, tl.load(x + lane))
        tl.store(out + lane, tl.load(buffer + lane))

    assert not launched(twice, (1,), [X], [torch.empty(8, dtype=torch.int32)] * 2, B=8).findings


def test_a_row_whose_end_runs_into_the_next_is_found_although_the_next_overwrites_it():
    @triton.jit
    def rows(x, out, B: tl.constexpr):
        lane = tl.arange(0, B)
        for row in range(2):
            tl.store(out + 4 * row + lane, tl.load(x + lane) + row, mask=4 * row + lane < 8)

    result = launched(rows, (1,), [X], [torch.empty(8, dtype=torch.int32)], B=8)
    assert causes(result) == {Cause.MISSING_BARRIER}


@triton.jit
def sum_by_narrow_atomics(x, total, SPREAD: tl.constexpr):
    tl.atomic_add(total + tl.program_id(0) * SPREAD, tl.load(x + tl.program_id(0)), sem="relaxed", scope="cta")


@pytest.mark.parametrize("order", [Order.ASCENDING, Order.REVERSED])
def test_an_atomic_of_a_program_alone_keeps_no_other_apart(order):
    """Scope "cta": two programs that add to one element lose updates; to elements of their own, they may"""
    result = launched(sum_by_narrow_atomics, (8,), [X], TOTAL, fill=0, conditions=Conditions(order), SPREAD=0)
    assert causes(result) == {Cause.RACE} and "by an atomic of scope 'cta'" in result.findings[0].message
    result = launched(sum_by_narrow_atomics, (8,), [X], [torch.empty(8, dtype=torch.int32)], fill=0, SPREAD=1)
    assert result.findings == [] and torch.equal(result.results[0], X)


@triton.jit
def sum_by_atomics_of_two_scopes(x, total):
    if tl.program_id(0) == 0:
        tl.atomic_add(total, tl.load(x), scope="cta")
    else:
        tl.atomic_add(total, tl.load(x + tl.program_id(0)))


@pytest.mark.parametrize("order", [Order.ASCENDING, Order.REVERSED])
def test_one_narrow_atomic_among_others_is_a_race(order):
    result = launched(sum_by_atomics_of_two_scopes, (8,), [X], TOTAL, fill=0, conditions=Conditions(order))
    assert causes(result) == {Cause.RACE}


@triton.jit
def tile_under_a_lock(x, total, lock, B: tl.constexpr, BARRIER: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i) + tl.program_id(0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + i, tl.load(total + i) + value)
    if BARRIER:
        tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_one_sums_tiles(x, out, parts, counter, B: tl.constexpr, BARRIER: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(parts + tl.program_id(0) * B + i, tl.load(x + i))
    if BARRIER:
        tl.debug_barrier()
    if tl.atomic_add(counter, 1) == tl.num_programs(0) - 1:
        value = tl.zeros((B,), tl.int32)
        for k in range(tl.num_programs(0)):
            value += tl.load(parts + k * B + i)
        tl.store(out + i, value)


TILES = [torch.empty(8, dtype=torch.int32), torch.empty(1, dtype=torch.int32)]
LAST_OF_TILES = [
    torch.empty(8, dtype=torch.int32), torch.empty(32, dtype=torch.int32), torch.empty(1, dtype=torch.int32),
]


@pytest.mark.parametrize(("kernel", "outputs"), [(tile_under_a_lock, TILES), (last_one_sums_tiles, LAST_OF_TILES)])
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("barrier", [True, False])
def test_an_atomic_that_does_not_wait_for_other_lanes_needs_a_barrier_before_it(kernel, outputs, waits, barrier):
    options = {} if waits else {"atomics_wait": False}
    result = launched(kernel, (4,), [X], outputs, fill=0, options=options, B=8, BARRIER=barrier)
    assert causes(result) == (set() if waits or barrier else {Cause.MISSING_BARRIER})
    assert all("no tl.debug_barrier() stands before it" in finding.message for finding in result.findings)


# --- what programs do before they can meet is evaluated for all of them together, also where they wait ----------------


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
    results(Limit.IN_TURNS + 9, Conditions())


# --- A volatile load asks for what other programs write meanwhile -----------------------------------------------------


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


NUMBERS = torch.arange(32, dtype=torch.int32)


@pytest.mark.parametrize("volatile", [True, False])
def test_looking_back_at_what_earlier_programs_published(volatile):
    outputs = [torch.empty(4, dtype=torch.int32), torch.empty(4, dtype=torch.int32)]
    run = launched(running_sum, (4,), [NUMBERS], outputs, fill=0, B=8, VOLATILE=volatile)
    assert torch.equal(run.results[1], NUMBERS.view(4, 8).sum(1).cumsum(0).int())
    assert {finding.cause for finding in run.findings} == (set() if volatile else {Cause.RACE})


@pytest.mark.parametrize("order", Order)
def test_looking_back_is_right_in_each_order(order):
    outputs = [torch.empty(4, dtype=torch.int32), torch.empty(4, dtype=torch.int32)]
    run = launched(running_sum, (4,), [NUMBERS], outputs, fill=0, conditions=Conditions(order), B=8, VOLATILE=True)
    assert torch.equal(run.results[1], NUMBERS.view(4, 8).sum(1).cumsum(0).int()) and not run.findings


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize(("programs", "awaits"), [(4, True), (300, True), (4, False)])
def test_a_volatile_load_that_awaits_nothing_is_right_in_one_order_alone(order, programs, awaits):
    outputs = [torch.empty(1, dtype=torch.int32), torch.empty(programs - 1, dtype=torch.int32)]
    run = launched(maximum_of_all, (programs,), [NUMBERS], outputs, fill=0, conditions=Conditions(order), B=32, AWAITS=awaits)
    assert (run.results[1] == 31).all().item() is (awaits or order is Order.ASCENDING)
