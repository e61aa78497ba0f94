"""What a call never reads of its inputs is told where the wrong result is what comes of inputs without it, and nowhere else."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from gradekit import engine
from gradekit.judge.by_reads import never_read
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.reference import reference
from gradekit.program import View
from gradekit.sandbox import Tracer

ONE_TILE = """\
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * N + n, mask=n < N, other=OTHER)
    tl.store(out_ptr + tl.program_id(0), RESULT)

def entry(x):
    x = x.contiguous()
    out = torch.empty((x.shape[0],), dtype=x.dtype, device=x.device)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=8)
    return out
"""
SUM = ONE_TILE.replace("OTHER", "0.0").replace("RESULT", "tl.sum(x, axis=0)")
READ = "Only the first 8 of 11 columns of x are read. The result is as if {} stood in the place of the others."


@dataclass
class Text:
    text: str


def row_sums(x: torch.Tensor) -> torch.Tensor:
    return x.sum(1)


def told(
    text: str, x: torch.Tensor, right: Callable[[torch.Tensor], torch.Tensor] = row_sums, source: str = ""
) -> Diagnosis | None:  # fmt: skip
    """What is said of a submission whose results are to be those of a function, where its source is looked at or not."""
    with Tracer(Text(text)) as tracer:  # type: ignore[arg-type]
        program = tracer.trace("entry", [View(0, "float32", tuple(x.shape), x.stride())])
    result = engine.run(program, [x]).results[0]
    assert isinstance(result, torch.Tensor)
    return never_read(program, [x], Comparison(result, reference(right, x)), (), ["x"], source)


@pytest.mark.parametrize("x", [torch.arange(33.0).view(3, 11) - 40, torch.arange(33.0).view(11, 3).T - 40], ids=["as it is", "a copy"])
def test_columns_that_no_kernel_reads_are_told_of_an_input(x: torch.Tensor) -> None:
    found = told(SUM, x)
    assert found is not None and found.sentence == READ.format("0")


def test_what_a_maximum_lacks_is_told_as_minus_infinity() -> None:
    text = ONE_TILE.replace("OTHER", '-float("inf")').replace("RESULT", "tl.max(x, axis=0)")
    found = told(text, torch.arange(33.0).view(3, 11) - 40, lambda x: x.amax(1))
    assert found is not None and found.sentence == READ.format("-inf")


def test_elements_that_are_left_out_here_and_there_are_counted() -> None:
    found = told(SUM.replace("mask=n < N", "mask=(n < N) & (n % 2 == 0)"), torch.arange(1.0, 22.0).view(3, 7))
    assert found is not None and found.sentence.startswith("9 of 21 elements of x are never read.")


def test_that_no_loop_goes_on_behind_a_tile_is_told_where_as_much_is_read_as_the_tile_has() -> None:
    found = told(SUM, torch.arange(33.0).view(3, 11), source=SUM)
    assert found is not None and found.sentence == f"{READ.format('0')} No loop of kernel goes on behind the tile in line 6."
    assert found.line == 6
    too_few = SUM.replace("n = tl", "n = tl.program_id(1) * BLOCK + tl")
    found = told(too_few, torch.arange(33.0).view(3, 11), source=too_few)
    assert found is not None and found.sentence == READ.format("0"), "each program has a tile of its own"


def test_nothing_is_told_where_the_result_is_wrong_in_another_way_too() -> None:
    assert told(SUM.replace("tl.sum(x, axis=0)", "tl.sum(x, axis=0) * 2.0"), torch.arange(33.0).view(3, 11)) is None


def test_nothing_is_told_of_inputs_that_are_read_whole() -> None:
    assert told(SUM.replace("tl.sum(x, axis=0)", "tl.max(x, axis=0)"), torch.arange(21.0).view(3, 7)) is None
