"""What a run may use is counted in work and bytes, before it is used; values live no longer than they are needed."""

import weakref
from dataclasses import replace

import pytest
import torch
import triton
import triton.language as tl
from launching import program

from gradekit.engine import control, history
from gradekit.engine.budget import Budget, Limit, OverBudget
from gradekit.engine.executor import run
from gradekit.engine.host import write, written
from gradekit.engine.kernel_facts import facts, last_uses, parsed
from gradekit.engine.memory import Memory, Storage
from gradekit.findings import Cause
from gradekit.program import Allocate, Fill, View

X = torch.arange(16, dtype=torch.float32)


@triton.jit
def steps_of_a_tile(x, out, B: tl.constexpr, STEPS: tl.constexpr):
    at = tl.arange(0, B)
    value = tl.load(x + at % 16)
    for _ in tl.static_range(STEPS):
        value = tl.exp(value) + 1
    tl.store(out + at, value)


@triton.jit
def tiles_that_all_live(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    a = tl.load(x + at % 16)
    b = tl.exp(a)
    c = tl.sin(b)
    d = tl.cos(c)
    tl.store(out + at, a + b + c + d)


def made(kernel, **constants):
    return program(kernel, (1,), [X], [torch.empty(constants["B"])], **constants)


def peak(made):
    return facts(made.kernels["k"].unaligned).peak


def test_a_chain_of_tiles_takes_no_more_memory_for_being_longer():
    short, long = (peak(made(steps_of_a_tile, B=1024, STEPS=steps)) for steps in (4, 40))
    assert short == long


def test_a_value_is_dropped_after_its_last_use_and_not_before():
    (block,) = parsed(made(tiles_that_all_live, B=16).kernels["k"].unaligned).entry.body.blocks
    dead = last_uses(block, ())
    for at, names in enumerate(dead):
        later = {name for op in block.ops[at + 1 :] for name in op.operands}
        assert later.isdisjoint(names)
    assert {name for names in dead for name in names} == {name for op in block.ops for name in op.results}


def test_more_tiles_than_the_budget_has_bytes_are_refused_before_they_are_made():
    with pytest.raises(OverBudget, match="bytes"):
        run(made(tiles_that_all_live, B=1024), [X], budget=Budget(bytes=8192))


def test_a_result_that_is_expanded_to_gibibytes_is_not_made():
    asked = made(tiles_that_all_live, B=16)
    (result,) = asked.results
    assert isinstance(result, View)
    with pytest.raises(OverBudget, match="bytes"):
        run(replace(asked, results=(replace(result, shape=(1 << 28, 16), stride=(0, 1)),)), [X])


def test_work_is_the_same_each_time_and_grows_with_the_elements():
    few, many = (run(made(steps_of_a_tile, B=size, STEPS=4), [X]).counters.work for size in (16, 1 << 16))
    assert few == run(made(steps_of_a_tile, B=16, STEPS=4), [X]).counters.work
    assert many > few + 10 * (1 << 16)


def test_a_call_that_allocates_too_much_in_all_is_refused_before_anything_is_made(monkeypatch):
    asked = made(tiles_that_all_live, B=16)
    asked = replace(asked, steps=(*asked.steps, Allocate(7, 1 << 27), Allocate(8, 1 << 27)))
    monkeypatch.setattr(Memory, "allocate", lambda *_: pytest.fail("it was made"))
    with pytest.raises(OverBudget, match="bytes"):
        run(asked, [X])


@triton.jit
def races_in_a_buffer(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(out + at) + tl.load(x + at % 16))


def test_who_was_where_in_a_large_buffer_is_not_written_down_beyond_the_budget():
    asked = program(races_in_a_buffer, (2,), [X], [torch.zeros(1 << 20)], B=64)
    asked = replace(asked, steps=(asked.steps[0], Fill(asked.results[0], 0.0), *asked.steps[1:]))
    assert run(asked, [X], budget=Budget(bytes=64 << 20)).findings
    with pytest.raises(OverBudget, match="bytes"):
        run(asked, [X], budget=Budget(bytes=10 << 20))


@pytest.mark.parametrize("stride", [1, 2], ids=["all of it", "every second element"])
def test_a_fill_makes_no_list_of_positions(stride, monkeypatch):
    memory, size = Memory(), 1 << 22
    memory.allocate(0, size)
    view = View(0, "uint8", (size // stride,), (stride,), 0)
    monkeypatch.setattr(Storage, "units", lambda *_: pytest.fail("a position takes eight times the memory of a byte"))
    write(memory, view, torch.tensor(1), None)
    assert written(memory.storages[0], view) is None or bool(written(memory.storages[0], view).all())
    assert stride == 1 or not written(memory.storages[0], replace(view, offset=1)).any()


@triton.jit
def walks_over_a_buffer(x, out, n, B: tl.constexpr):
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        tl.store(out + at, tl.load(out + at) + tl.load(x + at % 16))


def test_accesses_do_not_wait_without_end_to_be_written_down(monkeypatch):
    monkeypatch.setattr(Limit, "WAITING", 1000)
    monkeypatch.setattr(Limit, "WAITING_OF_LARGE", 1000)
    most = []
    wait = history.AccessHistory._wait
    monkeypatch.setattr(
        history.AccessHistory, "_wait", lambda self, lanes: (wait(self, lanes), most.append(self.waiting))
    )
    asked = program(walks_over_a_buffer, (1,), [X], [torch.zeros(1 << 14)], [1 << 14], fill=0, B=512)
    assert not run(asked, [X]).findings
    assert 0 < max(most) <= 1000


@pytest.mark.parametrize("fill", [None, 0], ids=["in the first run", "in the careful one"])
def test_a_run_that_is_stopped_keeps_no_memory_alive(fill):
    asked = program(walks_over_a_buffer, (1,), [X], [torch.zeros(1 << 12)], [1 << 12], fill=fill, B=512)
    alive = []
    allocate = Memory.allocate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "allocate", lambda *args: (made := allocate(*args), alive.append(weakref.ref(made)))[0])
        with pytest.raises(OverBudget) as stopped:
            run(asked, [X], budget=Budget(work=200_000))
    assert alive and [storage() for storage in alive] == [None] * len(alive)
    assert stopped.value.resource == "work"


@triton.jit
def adds_up_to(x, bound, out, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    for start in range(0, tl.load(bound + tl.program_id(0)), B):
        total += tl.load(x + (start + tl.arange(0, B)) % 16)
    tl.store(out + tl.arange(0, B), total)


@pytest.mark.parametrize("programs", [1, 3])
def test_a_loop_that_is_sure_to_exceed_the_budget_is_stopped_after_its_first_turn(monkeypatch, programs):
    turns = []
    region = control.run_region
    monkeypatch.setattr(control, "run_region", lambda *args: turns.append(args) or region(*args))
    ends = torch.tensor([1 << 30, 16, 0][:programs], dtype=torch.int32)
    asked = program(adds_up_to, (programs,), [X, ends], [torch.empty(16)], B=16)
    with pytest.raises(OverBudget, match="work") as stopped:
        run(asked, [X, ends], budget=Budget(work=50_000_000))
    assert len(turns) <= 4 and stopped.value.line is not None  # the body and one turn, at most twice


@triton.jit
def counts_to_what_it_loads(bound, out):
    n = tl.load(bound + 16)
    done = 0
    while done < n:
        done += 1
    tl.store(out, done)


def test_a_run_that_went_out_of_bounds_ends_with_a_part_of_the_budget_and_says_where():
    asked = program(counts_to_what_it_loads, (1,), [torch.zeros(17, dtype=torch.int32)[:16]], [torch.empty(1)])
    with pytest.raises(OverBudget, match="work") as stopped:
        run(asked, [torch.full([17], 1 << 30, dtype=torch.int32)[:16]], budget=Budget(work=50_000_000))
    assert stopped.value.limit < 25_000_000
    assert [found.cause for found in stopped.value.findings] == [Cause.OUT_OF_BOUNDS_LOAD]


def test_a_loop_whose_turns_are_within_the_budget_ends():
    ends = torch.tensor([1 << 10], dtype=torch.int32)
    asked = program(adds_up_to, (1,), [X, ends], [torch.empty(16)], B=16)
    assert run(asked, [X, ends], budget=Budget(work=50_000_000)).results
