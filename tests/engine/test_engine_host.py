"""Steps of the host on the engine's memory: addresses, launches one after another, and runs of some programs alone."""

import torch
import triton
import triton.language as tl
from launching import launched, program, view
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from gradekit.engine.executor import Setup, run, run_setup
from gradekit.engine.observer import Owners
from gradekit.findings import Cause
from gradekit.program import ADDRESS_GAP, Allocate, Aten, Copy, Program, Scalar, Source, View

X = torch.arange(16.0)


def test_a_complex_view_of_real_numbers_is_read_as_torch_reads_it():
    pairs = torch.arange(8.0).view(4, 2)
    given, made = View(0, "complex64", (4,), (1,)), View(1, "complex64", (4,), (1,))
    program = Program(
        (View(0, "float32", (4, 2), (2, 1)),), {}, (Allocate(1, 32), Copy(made, given)), (made,), "tensor", {}
    )
    result = run(program, [pairs])
    assert not result.findings
    assert torch.equal(result.results[0], torch.view_as_complex(pairs))


def summed(tensor, *args, shape=(), **kwargs):
    """torch.sum(tensor, *args, **kwargs), whose result is float32 of that shape."""
    given, made = view(0, tensor), View(9, "float32", shape, tuple([1] * len(shape)))
    step = Aten("aten::sum", (given, *args), kwargs, (made,), Source(3))
    program = Program((given,), {}, (Allocate(9, 64), step), (made,), "tensor", {})
    return run(program, [tensor], allow=["aten::sum"]).results[0]


def test_an_allowed_sum_has_the_dtype_and_dimensions_that_it_was_given():
    halves = torch.full((5000,), 1.0, dtype=torch.bfloat16)
    assert summed(halves, dtype=Scalar("float32", "dtype")).item() == 5000  # no number of bfloat16
    assert torch.equal(summed(X.view(4, 4), (Scalar(1),), shape=(4,)), X.view(4, 4).sum(1))


def test_an_allowed_operation_in_place_works_on_its_first_argument():
    own = View(9, "float32", (16,), (1,))
    step = Aten("aten::div_", (own, Scalar(4)), {}, (own,), Source(3))
    made = Program((view(0, X),), {}, (Allocate(9, 64), Copy(own, view(0, X)), step), (own,), "tensor", {})
    assert torch.equal(run(made, [X], allow=["aten::div_"]).results[0], X / 4)


def test_results_may_be_changed_and_have_gradients_as_tensors_of_nobody_may():
    own, part = View(9, "float32", (16,), (1,)), View(9, "float32", (4,), (1,))
    made = Program((view(0, X),), {}, (Allocate(9, 64), Copy(own, view(0, X))), (own, part, view(0, X)), "tensor", {})
    for result in run(made, [X]).results:
        result.add_(1).requires_grad_().square().sum().backward()
        assert torch.equal(result.grad, 2 * (X[: len(result)] + 1))


def test_an_allowed_operation_that_changes_an_input_or_reads_what_nobody_wrote_is_found():
    given, own = view(0, X), View(9, "float32", (16,), (1,))
    step = Aten("aten::add_", (given, own), {}, (given,), Source(3))
    made = Program((given,), {}, (Allocate(9, 64), step), (given,), "tensor", {})
    found = run(made, [X.clone()], allow=["aten::add_"]).findings
    assert {(f.cause, f.count, f.line) for f in found} == {
        (Cause.UNINITIALIZED_READ, 16, 3),
        (Cause.INPUT_MODIFIED, 16, 3),
    }


def test_a_copy_of_no_elements_from_memory_that_nobody_wrote_is_right():
    source, none = View(8, "float32", (0,), (1,)), View(9, "float32", (0,), (1,))
    steps = (Allocate(8, 64), Allocate(9, 64), Copy(none, source))
    result = run(Program((view(0, X),), {}, steps, (none,), "tensor", {}), [X])
    assert result.results[0].shape == (0,) and not result.findings


# --- launches happen one after another, so waiting for the one before is nothing, in whatever way Triton --------------


@triton.jit
def doubled_after_waiting(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    gdc_wait()
    value = tl.load(x + at)
    gdc_launch_dependents()
    tl.store(out + at, 2 * value)


@triton.jit
def doubled_after_assembly(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(out + at, 2 * tl.load(x + at))


def test_waiting_for_an_earlier_launch_is_nothing():
    x = torch.arange(16.0)
    for kernel in (doubled_after_waiting, doubled_after_assembly):
        result = launched(kernel, (1,), [x], [torch.empty(16)], B=16)
        assert not result.findings
        assert torch.equal(result.results[0], 2 * x)


# --- A number that the host wrote down as an address leads to its storage, and nowhere else ---------------------------


FIRST, SECOND = 5 * ADDRESS_GAP, 9 * ADDRESS_GAP


@triton.jit
def gather_by_table(x, y, table, out, B: tl.constexpr):
    base = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * B + at, tl.load(base + at))


@triton.jit
def copy_from_number(x, out, address, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(address.to(tl.pointer_type(tl.float32)) + at))


Y = X + 100


def test_a_table_of_pointers_leads_to_several_tensors():
    table = torch.tensor([SECOND, FIRST + 16])
    result = launched(gather_by_table, (2,), [X, Y, table], [torch.empty(16)], addresses={0: FIRST, 1: SECOND}, B=8)
    assert not result.findings
    assert torch.equal(result.results[0], torch.cat([Y[:8], X[4:12]]))


def test_an_address_passed_as_a_number_is_a_pointer():
    result = launched(copy_from_number, (1,), [X], [torch.empty(8)], [FIRST + 8], addresses={0: FIRST}, B=8)
    assert torch.equal(result.results[0], X[2:10])


def test_what_lies_beyond_the_tensor_is_out_of_bounds():
    result = launched(copy_from_number, (1,), [X], [torch.empty(8)], [FIRST + 40], addresses={0: FIRST}, B=8)
    found = {finding.cause: finding for finding in result.findings}
    assert found[Cause.OUT_OF_BOUNDS_LOAD].count == 2


def test_an_address_that_no_storage_has_is_out_of_bounds():
    result = launched(copy_from_number, (1,), [X], [torch.empty(8)], [SECOND], addresses={0: FIRST}, B=8)
    assert Cause.OUT_OF_BOUNDS_LOAD in {finding.cause for finding in result.findings}


def test_a_senseless_address_is_not_used():
    for told in (-FIRST, FIRST + 1, 1 << 63, 1 << 90):
        result = launched(copy_from_number, (1,), [X], [torch.empty(8)], [ADDRESS_GAP], addresses={0: told}, B=8)
        assert torch.equal(result.results[0], X[:8])


# --- A run of some programs of a launch alone -------------------------------------------------------------------------


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


def test_programs_that_are_chosen_write_what_they_write_in_a_whole_run_and_no_more():
    x = torch.arange(1.0, 11.0)
    call = program(double_kernel, [3], [x], [torch.empty(10)], [10], BLOCK=4, fill=0)
    owners = Owners()
    alone, whole = run_setup(Setup(call, [x], observer=owners, programs={0: [0, 2]})), run(call, [x])
    written = owners.launches[call.results[0].storage] == 0
    assert written.tolist() == [True] * 4 + [False] * 4 + [True] * 2
    assert torch.equal(alone.results[0][written], whole.results[0][written])
    assert alone.results[0][~written].tolist() == [0] * 4


def test_what_other_programs_would_have_written_is_no_finding():
    x = torch.ones(10)
    call = program(double_kernel, [3], [x], [torch.empty(10)], [10], BLOCK=4)
    assert not run_setup(Setup(call, [x], programs={0: [1]})).findings
