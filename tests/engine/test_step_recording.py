"""Whoever looks on while programs run sees what they do, and changes nothing."""

import pytest
import torch
import triton
import triton.language as tl
from launching import program, sum_under_a_lock

from gradekit.engine.conditions import Conditions, Order
from gradekit.engine.executor import run
from gradekit.engine.observer import Owners
from gradekit.stepview import Limit
from gradekit.stepview.recording import PlayRecorder, Tensors

X = torch.arange(1, 41, dtype=torch.float32).view(5, 8)


def recorded(made, inputs, chosen, conditions=None, names=("x",)):
    tensors = Tensors(made, names)
    recorder = PlayRecorder([(0, id) for id in chosen], tensors)
    result = run(made, inputs, names=names, observer=recorder, conditions=conditions or Conditions())
    return result, [recorder.programs[0, id] for id in chosen], tensors


def values(played):
    return [value for step in played.steps for value in step["values"]]


def line(kernel, text):
    return kernel.starting_line_number + next(k for k, code in enumerate(kernel.raw_src) if text in code)


@triton.jit
def row_sums(x, out, N, B: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, N, B):
        at = start + tl.arange(0, B)
        part = tl.load(x + row * N + at, mask=at < N, other=0.0)
        total += tl.sum(part, 0)
    tl.store(out + row, total)


def test_turns_of_a_loop_values_masks_and_touched_elements_are_kept():
    inputs = [X[:, :7].contiguous()]
    made = program(row_sums, (5,), inputs, [torch.empty(5)], [7], B=4)
    result, (played,), tensors = recorded(made, inputs, [3])
    assert torch.equal(result.results[0], inputs[0].sum(1))
    loads = [value for value in values(played) if value.get("access") == "load"]
    loop = line(row_sums, "for start")
    turns = [step["loops"] for step in played.steps if step["line"] == line(row_sums, "tl.load")]
    assert [t for t in turns if t] == [[[loop, 1]], [[loop, 2]]]
    assert [value["numbers"] for value in loads] == [["25", "26", "27", "28"], ["29", "30", "31", "0"]]
    assert [value["runs"] for value in loads] == [[[21, 4]], [[25, 3]]]  # row 3 of 7 columns
    assert "mask" not in loads[0] and loads[1]["mask"] == "1110"
    assert [tensors.drawn[value["tensor"]].name for value in loads] == ["x", "x"]
    assert values(played)[-1]["access"] == "store" and values(played)[-1]["number"] == "196"


@triton.jit
def nested(x, out, N, M):
    total = 0.0
    for i in range(N):
        for j in range(M):
            total += tl.load(x + i * M + j)
    tl.store(out, total)


def test_turns_of_nested_loops_are_counted_apart():
    made = program(nested, (1,), [X], [torch.empty(1)], [2, 3])
    _, (played,), _ = recorded(made, [X], [0])
    inner = line(nested, "tl.load")
    turns = [tuple(turn for _, turn in step["loops"]) for step in played.steps if step["line"] == inner]
    assert list(dict.fromkeys(turns)) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


@triton.jit
def past_the_end(x, out, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at), mask=at < 6)


def test_an_access_outside_of_a_tensor_says_how_far():
    x = torch.ones(6)
    made = program(past_the_end, (2,), [x], [torch.empty(6)], B=4)
    result, (first, second), _ = recorded(made, [x], [0, 1])
    assert result.findings  # the run was made twice, the second time with every lane examined
    assert [("outside" in value) for value in values(first) if value.get("access") == "load"] == [False]
    (load,) = [value for value in values(second) if value.get("access") == "load"]
    assert load["outside"] == {"before": 0, "after": 2, "first": 6, "size": 6}
    assert load["runs"] == [[4, 2]]


@pytest.mark.parametrize("order", Order)
def test_programs_that_wait_for_each_other_are_recorded_in_each_order(order):
    x = torch.arange(1.0, 5.0)
    made = program(sum_under_a_lock, (4,), [x], [torch.empty(1), torch.empty(1, dtype=torch.int32)], fill=0)
    result, played, _ = recorded(made, [x], [0, 1, 2, 3], Conditions(order))
    assert result.results[0].item() == 10
    stored = [[v["number"] for v in values(each) if v.get("access") == "store"] for each in played]
    assert all(len(each) == 1 for each in stored)
    first = {Order.ASCENDING: 0, Order.REVERSED: 3}.get(order)
    assert first is None or stored[first] == [f"{first + 1}"]
    assert "10" in [each[0] for each in stored]


@triton.jit
def tiled(x, out, M, N, BLOCKS: tl.constexpr, B: tl.constexpr):
    if BLOCKS:
        source = tl.make_block_ptr(x, (M, N), (N, 1), (tl.program_id(0) * B, 0), (B, B), (1, 0))
        tile = tl.load(source, boundary_check=(0, 1))
    else:
        described = tl.make_tensor_descriptor(x, (M, N), (N, 1), (B, B))
        tile = described.load([tl.program_id(0) * B, 0])
    at = (tl.program_id(0) * B + tl.arange(0, B))[:, None] * N + tl.arange(0, B)[None, :]
    inside = (tl.program_id(0) * B + tl.arange(0, B))[:, None] < M
    tl.store(out + at, tile, mask=inside & (tl.arange(0, B)[None, :] < N))


GONE = pytest.mark.skipif(not triton.__version__.startswith("3.6"), reason="this Triton has no block pointers")


@pytest.mark.parametrize("blocks", [False, pytest.param(True, marks=GONE)])
def test_tiles_of_descriptors_touch_what_they_load(blocks):
    made = program(tiled, (2,), [X], [torch.empty(5, 8)], [5, 8], BLOCKS=blocks, B=4)
    _, (first, second), tensors = recorded(made, [X], [0, 1])
    for played, runs in ((first, [[0, 4], [8, 4], [16, 4], [24, 4]]), (second, [[32, 4]])):
        loads = [value for value in values(played) if value.get("access") == "load"]
        assert [value["runs"] for value in loads] == [runs]
        assert tensors.drawn[loads[0]["tensor"]].name == "x"
    owners = Owners()
    run(made, [X], observer=owners)
    assert owners.owner(1, 3) == (0, 0) and owners.owner(1, 32) == (0, 1) and owners.owner(1, 37) is None


def test_a_long_program_keeps_its_first_and_last_steps():
    x = torch.ones(1000)
    made = program(nested, (1,), [x], [torch.empty(1)], [1000, 1])
    _, (played,), _ = recorded(made, [x], [0])
    assert len(played.steps) == Limit.FIRST_STEPS + Limit.LAST_STEPS < played.count
    assert played.steps[-1]["values"][-1]["access"] == "store"
    assert played.steps[-1]["number"] == played.count - 1


def test_looking_on_changes_no_result():
    made = program(row_sums, (5,), [X], [torch.empty(5)], [8], B=4)
    alone = run(made, [X])
    seen, _, _ = recorded(made, [X], list(range(5)))
    assert torch.equal(alone.results[0], seen.results[0]) and alone.counters == seen.counters
