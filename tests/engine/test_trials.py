"""What a card leaves open is tried in more than one way; what is promised to the compiler is checked."""

from dataclasses import replace

import pytest
import torch
import triton
import triton.language as tl
from corpus.case import blocks
from launching import launched, program

from gradekit.engine.executor import run
from gradekit.engine.promises import misaligned_arguments
from gradekit.engine.trials import FIRST_CALL, SECOND_CALL, run_with_trials
from gradekit.findings import Cause
from gradekit.program import Choice, Fill, Kernel, Program, View

X = torch.arange(1, 14, dtype=torch.float32)


def tried(made, inputs, option=0):
    again = lambda conditions: run(made, inputs, conditions=conditions, option=option)
    return run_with_trials(made, again, earlier=lambda: inputs)


def causes(result):
    return [finding.cause for finding in result.findings]


# --- lanes that a mask leaves undefined ------------------------------------------------------------------------------


@triton.jit
def product(x, out, n, B: tl.constexpr, OTHER: tl.constexpr):
    at = tl.arange(0, B)
    if OTHER:
        value = tl.load(x + at, mask=at < n, other=0.0)
    else:
        value = tl.load(x + at, mask=at < n)
    tl.store(out, tl.sum(value * value, 0))


@triton.jit
def chosen_afterwards(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    value = tl.load(x + at, mask=at < n)
    tl.store(out, tl.sum(tl.where(at < n, value, 0.0), 0))


@triton.jit
def elementwise(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def gathered(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    place = tl.load(x + at, mask=at < n).to(tl.int32) % 13
    tl.store(out + at, tl.load(x + place, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def of_a_tile(x, out, n, B: tl.constexpr):
    at, row = tl.arange(0, B)[None, :], tl.arange(0, 2)[:, None]
    column = tl.load(x + at, mask=at < n)
    tl.store(out + at + row, column + row, mask=(at < n) & (row < 1))


@triton.jit
def times_zero(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    value = tl.load(x + at, mask=at < n)
    tl.store(out, tl.sum(value * tl.load(x + at, mask=at < n, other=0.0), 0))


@triton.jit
def another_mask(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n - 1) * 2, mask=at < n)


def test_a_sum_over_lanes_that_the_mask_left_out_is_found_at_the_load():
    made = program(product, (1,), [X], [torch.empty(1)], [13], B=16, OTHER=False)
    result = tried(made, [X])
    assert causes(result) == [Cause.UNDEFINED_LANES]
    assert result.results[0].item() == X.square().sum()  # right, with the zeros that happen to be there
    line = next(k for k, text in enumerate(product.raw_src) if "at < n)" in text and "other" not in text)
    assert result.findings[0].line == product.starting_line_number + line


@triton.jit
def of_two_loads(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    one = tl.load(x + at, mask=at < n)
    two = tl.load(x + n - 1 - at, mask=at < n)
    tl.store(out, tl.sum(one * two, 0))


def test_where_lanes_of_two_loads_matter_together_both_lines_are_said():
    made = program(of_two_loads, (1,), [X], [torch.empty(1)], [13], B=16)
    (finding,) = tried(made, [X]).findings
    first = of_two_loads.starting_line_number + next(
        k for k, text in enumerate(of_two_loads.raw_src) if "one =" in text
    )
    assert finding.line == first and f"the masks of lines {first} and {first + 1} left out" in finding.message


@pytest.mark.parametrize(
    ("kernel", "constants"),
    [(product, {"OTHER": True}), (chosen_afterwards, {}), (elementwise, {}), (gathered, {}), (of_a_tile, {})],
    ids=["other", "where", "same mask", "gather", "tile"],
)
def test_lanes_that_are_left_out_without_effect_are_nothing(kernel, constants):
    made = program(kernel, (1,), [X], [torch.empty(13)], [13], fill=0, B=16, **constants)
    assert not tried(made, [X]).findings


def test_lanes_that_are_gathered_from_beyond_a_tile_hold_anything():
    @triton.jit
    def next_ones(x, out, B: tl.constexpr):
        at = tl.arange(0, B)
        tl.store(out + at, tl.gather(tl.load(x + at), at + 1, 0))

    (result,) = run(program(next_ones, (1,), [X], [torch.empty(8)], B=8), [X]).results
    assert torch.equal(result[:-1], X[1:8]) and result[-1] > 1e12


@pytest.mark.parametrize("kernel", [times_zero, another_mask])
def test_lanes_beside_a_factor_of_zero_and_those_of_another_mask_are_found(kernel):
    made = program(kernel, (1,), [X], [torch.empty(13)], [13], fill=0, B=16)
    assert causes(tried(made, [X])) == [Cause.UNDEFINED_LANES]


@pytest.mark.parametrize("kernel", [elementwise, gathered, of_a_tile])
def test_a_kernel_that_leaves_undefined_lanes_out_again_is_not_run_twice(kernel):
    made = program(kernel, (1,), [X], [torch.empty(13)], [13], fill=0, B=16)
    conditions = []
    run_with_trials(made, lambda c: conditions.append(c) or run(made, [X], conditions=c))
    assert len(conditions) == 1


# --- orders and the autotuner ----------------------------------------------------------------------------------------


def test_what_the_order_of_programs_decides_is_a_variant():
    @triton.jit
    def first_come(x, out, counter):
        place = tl.atomic_add(counter, 1)
        tl.store(out + place, tl.load(x + tl.program_id(0)))

    made = program(first_come, (13,), [X], [torch.empty(13), torch.empty(1, dtype=torch.int32)], fill=0)
    variants = tried(made, [X]).variants
    assert [v.circumstance for v in variants] == [
        "With the programs in reverse order", "With the programs in another order",
    ]
    assert variants[0].results[0].tolist() == X.tolist()[::-1]


adds_in_place = blocks(
    "adds_in_place", "tl.store(out + at, tl.load(out + at, mask=at < n) + tl.load(x + at, mask=at < n), mask=at < n)",
)


writes = blocks("writes", "tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)")


def tuned(kernel):
    """The kernel's launch in two configurations."""
    made = [program(kernel, (16 // b,), [X], [torch.empty(13)], [13], fill=0, B=b) for b in (8, 16)]
    *before, first = made[0].steps
    second = made[1].steps[-1]
    kernels = {"k": made[0].kernels["k"], "k2": made[1].kernels["k"]}
    choice = Choice(((first,), (second.__class__("k2", second.grid, second.args),)), ("B=8", "B=16"))
    return Program(made[0].inputs, {}, (*before, choice), made[0].results, "tuple", kernels, made[0].path)


def test_a_kernel_that_adds_in_place_is_run_as_the_autotuner_would():
    (variant,) = tried(tuned(adds_in_place), [X]).variants
    assert variant.circumstance == FIRST_CALL
    assert torch.equal(variant.results[0], 3 * X)


def test_a_kernel_that_only_writes_may_be_tuned():
    result = tried(tuned(writes), [X])
    assert not result.variants
    assert not result.findings


sums_of_blocks = blocks(
    "sums_of_blocks", "tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < n, other=0.0)))",
)


def test_what_a_configuration_of_more_programs_has_left_is_seen_beside_what_one_of_fewer_stores():
    (variant,) = tried(tuned(sums_of_blocks), [X], option=1).variants
    assert variant.circumstance == FIRST_CALL
    assert variant.results[0][:3].tolist() == [X.sum(), X[8:].sum(), 0]
    assert not tried(tuned(sums_of_blocks), [X], option=0).variants


adds_by_atomics = blocks("adds_by_atomics", "tl.atomic_add(out + at, tl.load(x + at, mask=at < n), mask=at < n)")


def test_atomics_that_nobody_resets_are_run_as_the_autotuner_would():
    variant = tried(tuned(adds_by_atomics), [X]).variants[-1]
    assert variant.circumstance == FIRST_CALL
    assert torch.equal(variant.results[0], 3 * X)


def test_a_first_call_that_is_recorded_with_the_tuners_hooks_is_not_made_without_them():
    made = tuned(adds_by_atomics)
    *before, choice = made.steps
    first_call = tuple(step for option in choice.options for step in (before[-1], *option))
    choice = replace(choice, options=(*choice.options, first_call), labels=(*choice.labels, FIRST_CALL), tuning=2)
    assert isinstance(before[-1], Fill)
    assert not tried(replace(made, steps=(*before, choice)), [X]).variants


@triton.jit
def first_exchanges(x, out):
    pid = tl.program_id(0)
    value = tl.load(x + pid)
    if pid == 0:
        tl.atomic_xchg(out, value)
    else:
        tl.atomic_add(out, value)


@triton.jit
def largest_of_sums(x, out):
    pid = tl.program_id(0)
    value = tl.load(x + pid)
    if pid % 2 == 0:
        tl.atomic_max(out, value)
    else:
        tl.atomic_add(out, value)


@pytest.mark.parametrize("kernel", [first_exchanges, largest_of_sums])
def test_what_atomics_of_several_kinds_leave_is_tried_program_by_program(kernel):
    values = torch.arange(1, 14, dtype=torch.int32)
    found = tried(program(kernel, (13,), [values], [torch.empty(1, dtype=torch.int32)], fill=0), [values])
    assert any(variant.results[0] != found.results[0] for variant in found.variants)


# --- memory that is kept from call to call ---------------------------------------------------------------------------


def kept(kernel, steps):
    """The kernel's launch on a result of which the first so many steps, of two, were made before the call."""
    return replace(program(kernel, (2,), [X], [torch.empty(13)], [13], fill=0, B=8), kept=steps)


@pytest.mark.parametrize("kernel", [adds_in_place, adds_by_atomics])
def test_what_a_call_adds_to_kept_memory_is_found_there_by_the_next(kernel):
    variant = tried(kept(kernel, 2), [X]).variants[-1]
    assert variant.circumstance == SECOND_CALL
    assert torch.equal(variant.results[0], 2 * X)


@pytest.mark.parametrize(("kernel", "steps"), [(writes, 2), (adds_in_place, 1), (adds_in_place, 0)])
def test_kept_memory_that_each_call_writes_first_is_let_be(kernel, steps):
    assert not tried(kept(kernel, steps), [X]).variants


@triton.jit
def stores_what_is_positive(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, value, mask=(i < n) & (value > 0))


def test_kept_memory_has_what_a_call_with_other_values_has_left():
    made, x = kept(stores_what_is_positive, 2), X.clone()
    x[3:] = -1.0
    once = lambda conditions: run(made, [x], conditions=conditions)
    (variant,) = run_with_trials(made, once, earlier=lambda: [torch.full_like(x, 7.0)]).variants
    assert variant.circumstance == SECOND_CALL
    assert variant.results[0].tolist() == [*x[:3].tolist(), *[7.0] * 10]


@triton.jit
def told_by_program_0(x, flag, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    if tl.program_id(0) == 0:
        tl.store(flag + 1, n)
        tl.atomic_xchg(flag, 1)
    else:
        while tl.atomic_add(flag, 0) == 0:
            pass
    tl.store(out + at, tl.load(x + at, mask=at < tl.load(flag + 1)), mask=at < n)


@pytest.mark.parametrize(("steps", "found"), [(2, [Cause.RACE]), (0, [])])
def test_a_flag_that_is_kept_orders_nothing_in_a_second_call(steps, found):
    made = program(told_by_program_0, (2,), [X], [torch.zeros(2, dtype=torch.int32), torch.empty(13)], [13], B=8)
    allocated, result, launch = made.steps
    cleared = Fill(View(1, "int32", (2,), (1,), 0), 0)
    made = replace(made, steps=(allocated, cleared, result, launch), kept=steps)
    assert list(dict.fromkeys(causes(tried(made, [X])))) == found


# --- promises --------------------------------------------------------------------------------------------------------


@triton.jit
def promising(x, out, n, s, B: tl.constexpr, WHAT: tl.constexpr):
    lane = tl.arange(0, B)
    at = lane + 0
    if WHAT == "stride":
        s = tl.multiple_of(s * 2, 4)
    if WHAT == "assume":
        tl.assume(n > 20)
    if WHAT == "contiguous":
        at = tl.max_contiguous(lane * 2 % n, B)
    if WHAT == "start":
        at = tl.max_contiguous(tl.multiple_of(lane + s, 4), B)
    if WHAT == "wraps":
        at = tl.max_contiguous(tl.multiple_of((lane + 8) % n, 8), B)
    if WHAT == "wraps often":
        at = tl.max_contiguous(tl.multiple_of(lane % (n - 8), 8), B)
    if WHAT == "backwards":
        at = tl.max_contiguous(B - 1 - lane, B)
    if WHAT == "holds":
        at = tl.max_contiguous(tl.multiple_of(lane + 8 * (n - 13), 8), B)
    if WHAT == "constant":
        at = tl.max_constancy(lane // 4, 8)
    if WHAT == "constant pairs":
        at = tl.max_constancy(lane // 4 * 2, 4)
    if WHAT == "every other":
        at = tl.multiple_of(lane * 2, 4)
    if WHAT == "every fourth":
        at = tl.multiple_of(lane * 4, 4)
    if WHAT == "pointers":
        x = tl.max_contiguous(tl.multiple_of(x + lane, 16), B) - lane
    if WHAT == "every other pointer":
        x = tl.max_contiguous(x + 2 * lane, B) - 2 * lane
    if WHAT == "pointers from the second":
        x = tl.multiple_of(x + 1 + lane, 16) - lane - 1
    tl.store(out + lane, tl.load(x + at, mask=at < n, other=0.0) + s, mask=lane < n)


@pytest.mark.parametrize("what", [
    "stride", "assume", "contiguous", "start", "backwards", "constant", "every other", "every other pointer",
    "pointers from the second",
])
def test_a_promise_that_does_not_hold_is_found(what):
    result = launched(promising, (1,), [X], [torch.empty(13)], [13, 3], B=16, WHAT=what)
    assert causes(result) == [Cause.BROKEN_PROMISE]
    assert result.findings[0].line is not None


@pytest.mark.parametrize("what", ["wraps", "wraps often", "holds", "constant pairs", "every fourth", "pointers"])
def test_a_promise_that_holds_for_all_lanes_that_matter_is_kept(what):
    assert not launched(promising, (1,), [X], [torch.empty(13)], [13, 3], B=16, WHAT=what).findings


@triton.jit
def described(x, out, begin, stride):
    rows = tl.make_tensor_descriptor(x + begin, shape=[2, 4], strides=[stride, 1], block_shape=[1, 4])
    tl.store(out + tl.arange(0, 4), rows.load([0, 0]).reshape(4))


@pytest.mark.parametrize(("begin", "stride", "found"), [(0, 8, []), (4, 8, []), (2, 8, [Cause.BROKEN_PROMISE]), (0, 6, [Cause.BROKEN_PROMISE])])
def test_a_descriptor_begins_at_and_steps_by_multiples_of_16_bytes(begin, stride, found):
    """A card's copies of whole tiles take no others: there it faults, or reads elsewhere"""
    assert causes(launched(described, (1,), [X], [torch.empty(4)], [begin, stride])) == found


@triton.jit
def wrapped(x, out, n, WRAP: tl.constexpr, B: tl.constexpr):
    lane = tl.arange(0, B)
    at = tl.max_contiguous(lane % WRAP, B)
    tl.store(out + lane, tl.load(x + at), mask=lane < n)


@pytest.mark.parametrize(("wrap", "found"), [(13, []), (5, [Cause.BROKEN_PROMISE])])
def test_lanes_that_begin_anew_where_they_were_promised_to_go_on_must_not_matter(wrap, found):
    """Past the end of a tensor they do not; in the midst of it the compiler reads what comes next instead"""
    made = program(wrapped, (1,), [X], [torch.empty(13)], [13], WRAP=wrap, B=16)
    result = tried(made, [X])
    assert causes(result) == found and torch.equal(result.results[0], X[torch.arange(13) % wrap])
    if found:
        assert result.findings[0].line is not None and "tl.max_contiguous" in result.findings[0].message


def test_an_empty_tensor_has_the_address_0_which_is_a_multiple_of_16():
    aligned = '  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x")) attributes {} {'
    assert misaligned_arguments(aligned, [View(0, "float32", (3,), (1,), 1)]) == ["x"]
    assert misaligned_arguments(aligned, [View(0, "float32", (0,), (1,), 1)]) == []


def test_a_kernel_specialized_to_multiples_of_16_must_get_them():
    made = program(writes, (2,), [X], [torch.empty(13)], [13], B=8)
    aligned = made.kernels["k"].ttir.replace("%n: i32", "%n: i32 {tt.divisibility = 16 : i32}")
    made.kernels["k"] = Kernel("k", aligned)
    (finding,) = run(made, [X]).findings
    assert finding.cause is Cause.BROKEN_PROMISE
    assert "n is a multiple of 16" in finding.message
