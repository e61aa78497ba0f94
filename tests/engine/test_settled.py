"""What a kernel computes from whole numbers alone is evaluated once for all launches with the same ones."""

import pytest
import torch
import triton
import triton.language as tl
from launching import launched

from gradekit import reuse
from gradekit.engine import blocks
from gradekit.engine.branch_coverage import NOTHING, PART, WHOLE, left_of_tiles
from gradekit.engine.executor import RunResult
from gradekit.engine.masks import Box
from gradekit.engine.values import Affine, Below


@triton.jit
def dropped(x, out, count, seed, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) >= p
    tl.store(out + at, tl.where(kept, tl.load(x + at, mask=at < count), 0.0), mask=at < count)


X = torch.linspace(1, 3, 300)


def ran(x: torch.Tensor, seed: int = 7, p: float = 0.5, blocks_of: int = 64) -> RunResult:
    return launched(dropped, (-(-x.numel() // blocks_of),), [x], [x], [x.numel(), seed, p], BLOCK=blocks_of)


def seen(result: RunResult) -> tuple:
    return result.results[0].tolist(), result.counters, result.ways, result.findings


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names, run_steps = list[str](), blocks._run_steps
    noted = lambda frame, steps: (names.extend(op.name for op, *_ in steps), run_steps(frame, steps))
    monkeypatch.setattr(blocks, "_run_steps", noted)
    return names


def test_other_values_and_another_float_find_the_random_numbers_made(evaluated: list[str]) -> None:
    with reuse.kept():
        ran(X)
        assert "tt.mulhiui" in evaluated
        evaluated.clear()
        again = seen(ran(2 * X, p=0.25))
        assert "tt.mulhiui" not in evaluated
        assert {"tt.load", "tt.store", "arith.cmpf"} <= {*evaluated}
    with reuse.kept():
        assert again == seen(ran(2 * X, p=0.25))
    assert 0 < again[0].count(0.0) < 150


@pytest.mark.parametrize("other", [{"seed": 8}, {"x": X[:299]}, {"blocks_of": 128}], ids=str)
def test_other_numbers_another_grid_and_another_text_do_not(other: dict, evaluated: list[str]) -> None:
    with reuse.kept():
        ran(X)
        evaluated.clear()
        result = seen(ran(**{"x": X} | other))
        assert "tt.mulhiui" in evaluated
    with reuse.kept():
        assert result == seen(ran(**{"x": X} | other))


def test_what_is_kept_is_bounded(evaluated: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with reuse.kept():
        monkeypatch.setattr(blocks._KEPT.current, "most", 4000)
        for seed in (1, 2, 1):
            evaluated.clear()
            ran(X, seed)
            assert "tt.mulhiui" in evaluated
            assert 1024 <= blocks._KEPT.current.weight <= 4000
        for count in range(1, 9):  # of which a few numbers are kept
            launched(shifted, (1,), [X[:count]], [torch.empty(37)], [count], fill=0, BLOCK=8)
            assert blocks._KEPT.current.weight <= 4000


@triton.jit
def shifted(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < count, other=5.0) + 1.0, mask=at < 37)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 24, 31, 39])
def test_a_mask_that_ends_a_row_of_programs_reads_and_writes_up_to_its_end(count: int) -> None:
    x = torch.linspace(-2, 2, 40)[:count].clone()
    result = launched(shifted, (5,), [x], [torch.empty(37)], [count], BLOCK=8)
    assert not result.findings
    expected = torch.cat([x, torch.full([40 - count], 5.0)])[:37] + 1
    torch.testing.assert_close(result.results[0], expected, rtol=0, atol=0)
    assert (result.counters.bytes_loaded, result.counters.bytes_stored) == (4 * count, 4 * 37)


@triton.jit
def by_the_second(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) == 1:
        tl.store(out + at, tl.load(x + at, mask=at < count), mask=at < count)


@pytest.mark.parametrize(("count", "written"), [(3, 0), (12, 4), (20, 8)])
def test_such_a_mask_of_a_program_that_branches_off_may_have_all_of_it_or_nothing(count: int, written: int) -> None:
    x = torch.linspace(1, 2, count)
    result = launched(by_the_second, (3,), [x], [torch.empty(24)], [count], fill=0, BLOCK=8)
    assert not result.findings
    expected = torch.zeros(24)
    expected[8 : 8 + written] = x[8 : 8 + written]
    assert torch.equal(result.results[0], expected)


@pytest.mark.parametrize("shape", [(5, 8), (3, 4, 2), (6, 1)])
def test_such_a_mask_leaves_of_tiles_what_its_elements_say(shape: tuple[int, ...]) -> None:
    lanes = torch.arange(torch.Size(shape).numel()).view(shape)
    for count in range(1, lanes.numel()):
        box = Box(Below(Affine(-count, lanes.stride(), -count, lanes.numel() - 1 - count)), shape)
        tiles = [tile.flatten().tolist() for tile in lanes < count]
        said = sum({WHOLE if all(tile) else PART if any(tile) else NOTHING for tile in tiles})
        assert (box.row, left_of_tiles(box)) == (count, said)


@triton.jit
def until_its_end(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) * BLOCK >= count:
        return
    tl.store(out + at, tl.load(x + at, mask=at < count), mask=at < count)


def test_what_is_kept_is_there_for_the_blocks_behind_an_early_return() -> None:
    with reuse.kept():
        for x in (X, 2 * X):
            result = launched(until_its_end, (6,), [x], [torch.empty(300)], [300], BLOCK=64)
            assert not result.findings and torch.equal(result.results[0], x)
