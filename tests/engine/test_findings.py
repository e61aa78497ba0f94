"""Every way to misuse memory is a finding with the line, the program and the element; right kernels have none."""

from dataclasses import replace

import pytest
import torch
import triton
import triton.language as tl
from corpus.case import Case, blocks
from corpus.compile import compiled

from gradekit.engine.budget import Limit, OverBudget, Unsupported
from gradekit.engine.executor import run
from gradekit.engine.host import ForbiddenOp
from gradekit.findings import Cause
from gradekit.inputs.layouts import row_major
from gradekit.program import Allocate, Aten, Copy, Fill, Kernel, Launch, Program, Scalar, Source, View

N = 33
X = torch.arange(N, dtype=torch.float32)


def view(storage, *shape, dtype="float32"):
    return View(storage, dtype, shape, row_major(shape))


def program(kernel, grid, x=X, outputs=1, before=(), fill=None, dtype="float32", size=N, options=None, **constants):
    """kernel(x, *outputs, n, **constants): x is storage 0, the outputs (each of `size` elements) are storages 1.."""
    outs = [view(1 + k, size, dtype=dtype) for k in range(outputs)]
    names = kernel.arg_names
    template = torch.empty(0, dtype=getattr(torch, dtype))
    values = dict(zip(names, [x, *[template] * outputs, x.numel()], strict=False)) | constants
    text = compiled(Case(kernel.fn.__name__, kernel, (1,), values, options=options or {}))
    steps = [Allocate(out.storage, size * template.itemsize) for out in outs]
    steps += [Fill(out, fill) for out in outs if fill is not None]
    width, height, depth = (*grid, 1, 1)[:3]
    own = View(0, str(x.dtype)[6:], tuple(x.shape), x.stride(), x.storage_offset())
    launch = Launch("k", (width, height, depth), (own, *outs, Scalar(x.numel(), "i32")), Source(7))
    return Program((own,), {}, (*steps, *before, launch), tuple(outs), "tensor", {"k": Kernel("k", text)}, __file__)


def findings(program, x=X):
    return {finding.cause: finding for finding in run(program, [x], names=["x"]).findings}


def line_of(kernel, text):
    """The line of this file on which the kernel says `text`."""
    return kernel.starting_line_number + next(k for k, line in enumerate(kernel.raw_src) if text in line)


# --- bounds ----------------------------------------------------------------------------------------------------------


@triton.jit
def no_mask(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + at)
    tl.store(out + at, value)


def test_an_unmasked_load_and_store_past_the_end_are_found_at_their_lines():
    found = findings(program(no_mask, (3,), B=16))
    load, store = found[Cause.OUT_OF_BOUNDS_LOAD], found[Cause.OUT_OF_BOUNDS_STORE]
    assert (load.count, load.elements[0], load.programs[0], load.tensor) == (15, (33,), (2, 0, 0), "x")
    assert (store.count, store.elements[0], store.tensor) == (15, (33,), "the result")
    assert load.line == line_of(no_mask, "tl.load") and store.line == line_of(no_mask, "tl.store")


def test_a_load_out_of_bounds_is_found_although_the_result_is_right():
    masked_store = blocks("masked_store", "tl.store(out + at, tl.load(x + at), mask=at < n)")

    result = run(program(masked_store, (3,), B=16), [X])
    assert torch.equal(result.results[0], X)
    assert [finding.cause for finding in result.findings] == [Cause.OUT_OF_BOUNDS_LOAD]


def test_elements_of_the_storage_beside_the_view_are_out_of_bounds():
    wide = torch.zeros(N, 2)[:, 0]

    ignores_strides = blocks("ignores_strides", "tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)")

    found = findings(program(ignores_strides, (3,), x=wide, B=16), wide)
    assert found[Cause.OUT_OF_BOUNDS_LOAD].count == N // 2


# --- written once, before it is read ---------------------------------------------------------------------------------


forgets_tail = blocks("forgets_tail", "tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n - 3)")


def test_elements_that_nobody_writes_are_named():
    found = findings(program(forgets_tail, (3,), B=16))[Cause.UNWRITTEN_OUTPUT]
    assert (found.count, found.elements[0]) == (3, (30,))


def test_reading_memory_that_nobody_wrote_is_found():
    accumulates_in_place = blocks(
        "accumulates_in_place", "old = tl.load(out + at, mask=at < n)",
        "tl.store(out + at, old + tl.load(x + at, mask=at < n), mask=at < n)",
    )

    assert findings(program(accumulates_in_place, (3,), B=16))[Cause.UNINITIALIZED_READ].count == N
    assert findings(program(accumulates_in_place, (3,), fill=0.0, B=16)) == {}


def test_an_atomic_on_memory_that_nobody_wrote_is_found():
    counts = blocks("counts", "tl.atomic_add(out + at % 4, tl.load(x + at, mask=at < n), mask=at < n)")

    assert Cause.UNINITIALIZED_READ in findings(program(counts, (3,), size=4, B=16))
    clean = run(program(counts, (3,), size=4, fill=0.0, B=16), [X])
    assert clean.findings == [] and clean.results[0].tolist() == [float(X[k::4].sum()) for k in range(4)]


@triton.jit
def counts_twice(x, total, parts, n, B: tl.constexpr):
    tl.atomic_add(total, 1.0)
    tl.atomic_add(parts, 1.0)


@pytest.mark.parametrize(("returned", "said"), [((1, 2), ("result 0 (`total`)", "result 1 (`parts`)")), ((1,), ("the result", "`parts`"))])
def test_a_tensor_that_is_no_input_is_called_by_the_kernel_s_parameter(returned, said):
    whole = program(counts_twice, (1,), outputs=2, size=1, B=16)
    found = run(replace(whole, results=tuple(view(storage, 1) for storage in returned)), [X], names=["x"]).findings
    assert tuple(finding.tensor for finding in found) == said
    assert all(finding.tensor in finding.message for finding in found)


def test_a_copy_of_unwritten_memory_stays_unwritten():
    target, origin = view(1, N), view(5, N)

    @triton.jit
    def nothing(x, out, n, B: tl.constexpr):
        pass

    steps = (Allocate(5, 4 * N), Copy(target, origin))
    assert findings(program(nothing, (1,), before=steps, B=16))[Cause.UNWRITTEN_OUTPUT].count == N


# --- programs that meet ----------------------------------------------------------------------------------------------


@triton.jit
def overlapping(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * (B // 2) + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.program_id(0), mask=at < n)


def test_two_programs_that_write_different_values_conflict():
    assert findings(program(overlapping, (5,), B=16))[Cause.WRITE_CONFLICT].count == 25


def test_two_programs_that_write_the_same_value_do_not():
    @triton.jit
    def same(x, out, n, B: tl.constexpr):
        at = tl.program_id(0) * (B // 2) + tl.arange(0, B)
        tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)

    assert findings(program(same, (5,), B=16)) == {}


def test_lanes_of_one_program_that_write_different_values_conflict():
    @triton.jit
    def folded(x, out, n, B: tl.constexpr):
        at = tl.arange(0, B)
        tl.store(out + at % 8, tl.load(x + at))

    assert Cause.WRITE_CONFLICT in findings(program(folded, (1,), size=8, B=16))


@pytest.mark.parametrize("away", [1, -1])
def test_reading_what_another_program_writes_is_a_race_in_either_order(away):
    @triton.jit
    def neighbour(x, out, n, AWAY: tl.constexpr, B: tl.constexpr):
        at = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)
        other = (at + AWAY * B + n) % n
        tl.store(out + at, tl.load(out + other, mask=at < n) + 1, mask=at < n)

    assert Cause.RACE in findings(program(neighbour, (3,), fill=0.0, AWAY=away, B=16))


@pytest.mark.parametrize("waiting", [0, Limit.WAITING])
def test_a_race_with_a_read_is_found_however_much_was_read_since(waiting, monkeypatch):
    monkeypatch.setattr(Limit, "WAITING", waiting)

    @triton.jit
    def stays_away(x, out, n, B: tl.constexpr):
        at = tl.program_id(0) * B + tl.arange(0, B)
        first = tl.load(out + (at + B) % n)
        total = tl.zeros([B], tl.float32)
        for _ in range(20):
            total += tl.load(out + at)
        tl.store(out + at, first + total, mask=at < B)

    found = findings(program(stays_away, (2,), size=32, x=X[:32], fill=0.0, B=16), X[:32])[Cause.RACE]
    assert (found.count, found.elements[0], found.programs[0]) == (16, (0,), (0, 0, 0))


@pytest.mark.parametrize(("loads_first", "count"), [(True, 32), (False, 16)])
def test_elements_of_two_sizes_race_where_they_overlap(loads_first, count):
    @triton.jit
    def two_sizes(x, out, n, LOADS_FIRST: tl.constexpr, B: tl.constexpr):
        at = tl.program_id(0) * B + tl.arange(0, B)
        pairs = out.to(tl.pointer_type(tl.int64)) + (tl.program_id(0) + 1) % 2 * (B // 2) + tl.arange(0, B // 2)
        if LOADS_FIRST:
            tl.store(out + at, tl.max(tl.load(pairs)).to(tl.float32))
        else:
            tl.store(out + at, at.to(tl.float32))
            tl.store(x + at, tl.max(tl.load(pairs)).to(tl.float32))

    x = X[:32].clone()
    found = findings(program(two_sizes, (2,), size=32, x=x, fill=0.0, LOADS_FIRST=loads_first, B=16), x)[Cause.RACE]
    assert found.count == count


def test_only_lanes_that_change_what_another_lane_writes_conflict():
    @triton.jit
    def odd_ones_differ(x, out, n, B: tl.constexpr):
        at = tl.arange(0, B)
        tl.store(out + at % 8, tl.where(at < 8, 0, at % 2).to(tl.float32))

    found = findings(program(odd_ones_differ, (1,), size=8, B=16))[Cause.WRITE_CONFLICT]
    assert (found.count, found.elements) == (4, ((1,), (3,), (5,), (7,)))


def test_programs_that_take_turns_with_a_lock_do_not_race():
    @triton.jit
    def locked(x, out, lock, n, B: tl.constexpr):
        at = tl.arange(0, B)
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        old = tl.load(out + at)
        tl.store(out + at, old + tl.load(x + tl.program_id(0) * B + at))
        tl.atomic_xchg(lock, 0)

    x = torch.arange(128, dtype=torch.int32)
    result = run(program(locked, (8,), x=x, outputs=2, fill=0, dtype="int32", size=16, B=16), [x])
    assert result.findings == []
    assert torch.equal(result.results[0], x.view(8, 16).sum(0).int())


# --- inputs ----------------------------------------------------------------------------------------------------------


def test_storing_to_an_input_is_found_and_the_caller_s_tensor_stays_as_it_was():
    doubles = blocks(
        "doubles", "tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)",
        "tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)",
    )

    x = X.clone()
    result = run(program(doubles, (3,), B=16), [x], names=["x"])
    assert [finding.cause for finding in result.findings] == [Cause.INPUT_MODIFIED]
    assert result.findings[0].tensor == "x"
    assert torch.equal(x, X) and torch.equal(result.results[0], 2 * X)


def test_filling_an_input_on_the_host_is_found():
    steps = (Fill(view(0, N), 0.0, Source(3)),)
    found = findings(program(forgets_tail, (3,), before=steps, B=16))[Cause.INPUT_MODIFIED]
    assert (found.line, found.count) == (3, N)


# --- assertions, budget, the unknown ---------------------------------------------------------------------------------


def test_a_failing_device_assert_is_a_finding_of_its_program():
    asserts = blocks(
        "asserts", 'tl.device_assert(at < 32, "beyond 32")',
        "tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)",
    )

    found = findings(program(asserts, (3,), options={"debug": True}, B=16))[Cause.DEVICE_ASSERT]
    assert (found.programs, "beyond 32" in found.message) == (((2, 0, 0),), True)


def test_a_huge_allocation_ends_with_the_budget_before_it_is_made():
    with pytest.raises(OverBudget, match="bytes"):
        run(program(forgets_tail, (1,), before=(Allocate(9, 4 * 10**12),), B=16), [X])


def test_inline_assembly_is_unsupported_by_name_and_line():
    @triton.jit
    def assembly(x, out, n, B: tl.constexpr):
        at = tl.arange(0, B)
        value = tl.load(x + at)
        value = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [value], dtype=tl.float32, is_pure=True, pack=1)
        tl.store(out + at, value)

    with pytest.raises(Unsupported) as caught:
        run(program(assembly, (1,), size=16, B=16), [X])
    assert caught.value.op == "tt.elementwise_inline_asm"
    assert caught.value.line == line_of(assembly, "inline_asm")


def test_torch_arithmetic_runs_only_where_it_is_allowed():
    step = Aten("aten::sum", (view(0, N),), {}, (View(1, "float32", (), ()),), Source(5))
    summed = Program((view(0, N),), {}, (Allocate(1, 4), step), (View(1, "float32", (), ()),), "tensor", {})
    with pytest.raises(ForbiddenOp) as caught:
        run(summed, [X])
    assert (caught.value.op, caught.value.line) == ("aten::sum", 5)
    assert run(summed, [X], allow=["aten::sum"]).results[0].item() == X.sum().item()


# --- counts ----------------------------------------------------------------------------------------------------------


def test_bytes_and_launches_are_those_of_active_lanes():
    counters = run(program(no_mask, (2,), x=X[:32].clone(), size=32, B=16), [X[:32].clone()]).counters
    assert (counters.bytes_loaded, counters.bytes_stored, counters.launches) == (128, 128, 1)
    assert counters.bytes_allocated == 128
