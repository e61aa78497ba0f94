"""Masks and quotients that are worked out for some lanes only are what they would be for all."""

import itertools
import random

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import launched

from gradekit.engine import integers
from gradekit.engine.blocks import compile_region
from gradekit.engine.branch_coverage import NOTHING, PART, WHOLE, left_of_tiles
from gradekit.engine.budget import Limit
from gradekit.engine.fast import FastMemory
from gradekit.engine.lanes import Access
from gradekit.engine.masks import Box
from gradekit.engine.memory import Memory
from gradekit.engine.ttir import parse
from gradekit.engine.values import Affine, Below, Conjunction, Pointer, dense, span
from gradekit.observations import Traffic
from tests.beside import beside

SHAPE = (5, 6, 4)


def affine(base: int, steps: tuple[int, ...]) -> Affine:
    value = Affine(base, steps, 0, 0)
    value.low, value.high = span(value, SHAPE)
    return value


def elements(value: object, sizes: tuple[int, ...] = SHAPE) -> torch.Tensor:
    return dense(value, torch.int64, sizes).to(torch.int64).expand(sizes)  # type: ignore[arg-type]


def lanes(box: Box) -> torch.Tensor:
    """The lanes of SHAPE that a box has."""
    inside = torch.zeros(SHAPE, dtype=torch.bool)
    if not box.empty:
        part = inside[:, : box.sizes[1], : box.sizes[2]]
        part[...] = True
        for mask in box.masks:
            part &= mask
    return inside


steps = st.tuples(st.integers(0, 9), st.integers(-3, 9), st.integers(-3, 3))


@settings(deadline=None)
@given(
    base=st.integers(-60, 60), by=steps, limit=st.integers(-40, 40),
    predicate=st.sampled_from(["slt", "sle", "sgt", "sge"]),
)
def test_a_comparison_put_off_is_the_comparison(base: int, by: tuple[int, ...], limit: int, predicate: str) -> None:
    value = affine(base, by)
    found = integers.cmpi(predicate, value, limit, 32, SHAPE)
    plain = {"slt": torch.lt, "sle": torch.le, "sgt": torch.gt, "sge": torch.ge}[predicate](elements(value), limit)
    assert torch.equal(elements(found).bool(), plain)


@settings(deadline=None)
@given(gaps=st.lists(st.tuples(st.integers(-60, 20), steps), min_size=1, max_size=2))
def test_the_box_of_a_mask_has_its_lanes(gaps: list[tuple[int, tuple[int, ...]]]) -> None:
    mask = Conjunction(tuple(Below(affine(base, by)) for base, by in gaps))
    assert torch.equal(lanes(Box(mask, SHAPE)), elements(mask).bool())


@settings(deadline=None)
@given(base=st.integers(0, 50), by=st.tuples(*[st.integers(0, 20)] * 3), divisor=st.integers(1, 60))
def test_a_quotient_and_its_remainder_are_what_they_are_for_each_element(
    base: int, by: tuple[int, ...], divisor: int
) -> None:
    value = affine(base, by)
    row, column = integers.divsi(value, divisor, 32, SHAPE), integers.remsi(value, divisor, 32, SHAPE)
    together = integers.addi(integers.muli(row, 7, 32, SHAPE), column, 32, SHAPE)
    plain = elements(value).div(divisor, rounding_mode="floor") * 7 + elements(value) % divisor
    assert torch.equal(elements(together), plain)


def kernel(type: str) -> str:
    return f"""module {{
  tt.func public @k(%a: {type} loc("a"(#loc))) {{
    %b = tt.splat %a : {type} -> tensor<4x{type}> loc(#loc1)
    tt.print " b" {{hex = false, isSigned = array<i32: 0>}} : %b : tensor<4x{type}> loc(#loc1)
    tt.return loc(#loc)
  }} loc(#loc)
}} loc(#loc)
#loc = loc("k.py":1:1)
#loc1 = loc("k.py":{len(type)}:5)
"""


def test_equal_lines_of_two_texts_have_the_types_of_their_own() -> None:
    line = "    tt.return loc(#loc)"
    texts = [kernel(type).replace(line, f"    tt.func_of_both %b : none loc(#loc1)\n{line}") for type in ("i32", "f16")]
    first, second = (parse(text).entry.body.blocks[0].ops[2] for text in texts)
    assert [op.operand_types[0].element for op in (first, second)] == ["i32", "f16"]
    assert [op.location[0][1] for op in (first, second)] == [3, 3]


def test_a_number_that_goes_on_on_the_next_line_is_read() -> None:
    text = kernel("i32").replace("%b =", "%c = arith.constant dense<\n1> : tensor<4xi32> loc(#loc1)\n    %b =")
    assert parse(text).entry.body.blocks[0].ops[0].attributes["value"] == 1


# --- arithmetic on masks is arithmetic in one bit, as on a card (PTX has xor.pred for a + b) --------------------------


N, BLOCK = 21, 32


@triton.jit
def masks_kernel(values, out, n, LOADED: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(values + i) if LOADED else i
    a, b = v < n, v < n // 2
    if KIND == "+":
        mask = a + b
    elif KIND == "-":
        mask = a - b
    elif KIND == "*":
        mask = a * b
    elif KIND == "minimum":
        mask = tl.minimum(a, b)
    else:
        mask = tl.maximum(a, b)
    tl.store(out + i, mask.to(tl.int32))


@triton.jit
def add_up(a, b):
    return a + b


@triton.jit
def reduce_kernel(values, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    small = tl.load(values + i) < n
    tl.store(out + i, tl.associative_scan(small, 0, add_up).to(tl.int32))
    tl.store(out + BLOCK, tl.reduce(small, 0, add_up).to(tl.int32))


def right(kind: str) -> torch.Tensor:
    i = torch.arange(BLOCK)
    a, b = i < N, i < N // 2
    return {"+": a ^ b, "-": a ^ b, "*": a & b, "minimum": a & b, "maximum": a | b}[kind].int()


@pytest.mark.parametrize("kind", ["+", "-", "*", "minimum", "maximum"])
@pytest.mark.parametrize("loaded", [False, True], ids=["lazy", "dense"])
def test_a_sum_of_masks_is_exclusive_and_the_smaller_is_both(loaded: bool, kind: str) -> None:
    values, out = torch.arange(BLOCK, dtype=torch.int32), torch.empty(BLOCK, dtype=torch.int32)
    seen = launched(masks_kernel, (1,), [values], [out], (N,), LOADED=loaded, KIND=kind, BLOCK=BLOCK)
    assert torch.equal(seen.results[0], right(kind))


def test_adding_up_masks_tells_whether_their_number_is_odd() -> None:
    values, out = torch.arange(BLOCK, dtype=torch.int32), torch.empty(BLOCK + 1, dtype=torch.int32)
    seen = launched(reduce_kernel, (1,), [values], [out], (N,), BLOCK=BLOCK)
    counted = (torch.arange(BLOCK) < N).int().cumsum(0) % 2
    assert torch.equal(seen.results[0], torch.cat([counted, counted[-1:]]).int())


# --- what a mask leaves of the programs' tiles is told from its form as from its elements -----------------------------


TILES = (5, 4, 8)


def below(base: int, steps: tuple[int, int, int], by_program: bool) -> Below:
    """The factor, with what it has from program to program as a step or in a tensor."""
    turn = torch.arange(TILES[0]).view(-1, 1, 1) * steps[0]
    inner = [step * (size - 1) for step, size in zip(steps, TILES, strict=True)]
    low, high = base + sum(min(i, 0) for i in inner), base + sum(max(i, 0) for i in inner)
    gap = Affine(base + turn, (0, *steps[1:]), low, high) if by_program else Affine(base, steps, low, high)
    return Below(gap)


def told(masks: list[torch.Tensor]) -> int:
    """By looking at every element of every program's tile."""
    every = torch.ones(TILES, dtype=torch.bool)
    for mask in masks:
        every &= mask
    counts = every.flatten(1).sum(1)
    size = TILES[1] * TILES[2]
    found = (WHOLE, counts == size), (NOTHING, counts == 0), (PART, (counts > 0) & (counts < size))
    return sum(way for way, where in found if bool(where.any()))


@pytest.mark.parametrize("by_program", [False, True])
def test_it_is_what_the_elements_say(by_program: bool) -> None:
    draw, seen = random.Random(3), set()
    for _ in range(300):
        rows = below(draw.randint(-24, 12), (draw.choice([-8, -4, 0, 1, 4]), draw.choice([0, 1, 2]), 0), by_program)
        columns = below(draw.randint(-12, 6), (0, 0, draw.choice([0, 1, 3])), False)
        for factors in ((rows,), (columns,), (rows, columns)):
            tensors = [dense(factor, torch.bool, TILES) for factor in factors]
            said = left_of_tiles(Box(Conjunction(factors), TILES))
            assert said == told(tensors), factors
            assert left_of_tiles(Box(Conjunction(tuple(tensors)), TILES)) == said
            seen.add(said)
    assert seen >= {WHOLE, NOTHING, PART, WHOLE | PART, NOTHING | PART, WHOLE | NOTHING | PART}


def test_a_mask_that_is_one_value_leaves_all_or_nothing() -> None:
    assert [left_of_tiles(Box(mask, TILES)) for mask in (True, False)] == [WHOLE, NOTHING]


def test_masks_of_single_elements_have_no_part() -> None:
    for bits in itertools.product([False, True], repeat=3):
        mask = torch.tensor(bits)
        assert left_of_tiles(Box(mask, (3,))) == WHOLE * any(bits) + NOTHING * (not all(bits))


NESTED = beside(__file__)["nested"]


def test_later_turns_of_a_loop_leave_out_what_stays_the_same_unless_a_region_inside_has_a_value_of_that_name():
    body = parse(NESTED).entry.body
    compile_region(body, {})
    outer = next(op for op in body.blocks[0].ops if op.regions).regions[0].blocks[0]
    inner = next(op for op in outer.ops if op.regions).regions[0].blocks[0]
    assert [names for _, _, names in outer.compiled.steps] == ["same", (), "named", "next"]
    assert [names for _, _, names in outer.compiled.again] == [(), "named", "next"]
    assert [names for _, _, names in inner.compiled.again] == ["other"]


@triton.jit
def by_weights_kernel(x, weight, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=0.0) * tl.load(weight + at, mask=inside, other=1.0)
    shift = tl.load(weight + at, mask=inside, other=2.0)
    for turn in range(row % 3):
        value += turn * tl.load(weight + at, mask=at < columns - 1, other=0.0)
    tl.store(out + row * columns + at, value - shift, mask=inside)


@pytest.mark.parametrize("lanes", [16, 64, 1 << 19])
def test_programs_in_parts_give_and_move_what_each_does_alone(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limit, "LANES", lanes)
    x, weight = torch.linspace(-2, 2, 21 * 13).view(21, 13), torch.linspace(1, 3, 13)
    ran = launched(by_weights_kernel, (21,), [x, weight], [torch.empty(21, 13)], [13], BLOCK=16)
    turns = torch.tensor([0, 0, 1])[torch.arange(21) % 3].view(-1, 1)
    tail = torch.cat([weight[:-1], torch.zeros(1)])
    assert not ran.findings
    torch.testing.assert_close(ran.results[0], x * weight + turns * tail - weight)
    loops = sum(row % 3 for row in range(21))
    assert ran.counters.bytes_loaded == 4 * (21 * 13 * 3 + loops * 12)


@pytest.mark.parametrize("widths", list(itertools.product(*((1, size) for size in SHAPE))))
@pytest.mark.parametrize("steps", [(0, 4, 1), (0, 1, 6), (24, 4, 1)])
def test_lanes_that_are_active_together_move_as_each_alone_would(widths: tuple, steps: tuple[int, ...]) -> None:
    data, memory, drawn = torch.arange(120.0), Memory(), torch.Generator().manual_seed(1)
    mask = torch.rand(widths, generator=drawn) < 0.7
    offset = Affine(0 if steps[0] else torch.randperm(5, generator=drawn).view(5, 1, 1) * 24, steps, 0, 119)
    index, active = elements(offset), mask.expand(SHAPE)
    source, target, fast = memory.place_input(0, data.view(torch.uint8)), memory.allocate(1, 480), FastMemory(Traffic())
    loaded = fast.load(Access(Pointer(source, offset, 4), mask, SHAPE), None, torch.float32)
    assert torch.equal(loaded.expand(SHAPE), torch.where(active, data[index], 0))
    fast.store(Access(Pointer(target, offset, 4), mask, SHAPE), data[index])
    fast.finish()
    stored = target.typed(torch.float32)
    assert torch.equal(stored[index[active]], data[index[active]]) and stored.isnan().sum() == (~active).sum()
    assert fast.traffic.loaded == fast.traffic.stored == 4 * active.sum()
