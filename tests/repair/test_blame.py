"""What was blamed wrongly once: of each kind a small submission, and what is said of it now."""

from __future__ import annotations

import pytest

from gradekit.causes import Cause
from gradekit.repair.idioms.candidates import mends
from gradekit.repair.mend import Clues, Mend
from gradekit.repair.search import RIGHT, Mending, OtherChecks, Tries, diagnosis_of
from gradekit.repair.tutor import bounds_from_memory, mend_of_both
from gradekit.source.draft import Draft

CLUES = Clues(frozenset({Cause.WRONG_VALUES}), ())

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"

ROWS = (
    HEAD
    + """def rows_kernel(x_ptr, y_ptr, out_ptr, N, sx, tx, sy, ty, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sx + cols * tx, mask=cols < N, other=0.0)
    y = tl.load(y_ptr + row * sy + cols * ty, mask=cols < N, other=0.0)
    tl.store(out_ptr + row * N + cols, x + y, mask=cols < N)


def entry(x, y):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    rows_kernel[(M,)](x, y, out, N, *x.stride(), *x.stride(), BLOCK=128)
    return out
"""
)

STEPS = (
    HEAD
    + """def sums_kernel(ends_ptr, x_ptr, out_ptr, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    begin = tl.load(ends_ptr + row * step)
    end = tl.load(ends_ptr + row * step + 1)
    top = -1.0e30
    total = 0.0
    for first in range(begin, end, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < end, other=-1.0e30)
        new = tl.maximum(top, tl.max(x, axis=0))
        top = new
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), axis=0)
    tl.store(out_ptr + row, top + tl.log(total))
"""
)


def said(text: str, piece: str) -> list[Mend]:
    return [mend for mend in mends(text) if piece in mend.sentence]


def test_a_tile_is_too_narrow_for_a_whole_row_and_never_where_a_loop_goes_in_steps_of_it() -> None:
    assert said(ROWS, "is too narrow")
    stepping = ROWS.replace(
        "    x = tl.load", "    for first in range(0, N, BLOCK):\n        cols += BLOCK\n    x = tl.load"
    )
    assert Draft(stepping).kernels[0].loops and not said(stepping, "is too narrow")


def test_the_strides_of_the_tensor_that_a_kernel_reads_with_them_are_missed_at_the_launch() -> None:
    (mend,) = said(ROWS, "passes the strides of x for sy")
    assert mend.applied(ROWS) == ROWS.replace("*x.stride(), BLOCK", "*y.stride(), BLOCK") and mend.line == 18
    assert not said(ROWS.replace("*x.stride(), BLOCK", "*y.stride(), BLOCK"), "passes the strides of y for sy")


@pytest.mark.parametrize("held", OtherChecks)
def test_what_other_checks_refute_is_not_told(held: OtherChecks) -> None:
    mending, wanted = Mending(ROWS), "*y.stride(), BLOCK"
    mend = mending.found(CLUES, Tries(lambda text: wanted in text, holds=lambda mend: held))
    assert (mend is None) is (held is OtherChecks.NOT)


def test_of_two_mends_that_is_told_with_which_more_checks_are_right() -> None:
    tried: list[Mend] = []

    def holds(mend: Mend) -> OtherChecks:
        tried.append(mend)
        return OtherChecks.IN_PART if len(tried) == 1 else OtherChecks.ALL

    helps = ("*y.stride(), BLOCK", "triton.next_power_of_2(N)")
    mend = Mending(ROWS).found(CLUES, Tries(lambda text: any(one in text for one in helps), holds=holds))
    assert mend is tried[-1] and len(tried) == 2


def test_how_often_a_loop_runs_is_said_to_be_read_where_a_run_was_cut_off_in_it() -> None:
    for line in (13, 14):
        told = bounds_from_memory(STEPS, line)
        assert told is not None and told.line == 10 and told.cause is Cause.BUDGET_EXCEEDED
        assert told.sentence.endswith("line 13 runs is read from memory: `begin` in line 9 and `end` in line 10.")
    assert bounds_from_memory(STEPS, 9) is None
    assert bounds_from_memory(STEPS.replace("range(begin, end, BLOCK)", "range(0, step, BLOCK)"), 14) is None
    assert bounds_from_memory("def", 1) is None


def test_two_mends_that_were_right_are_the_first_that_another_check_tries_and_told_as_before() -> None:
    both = ROWS.replace("(M,)](", "(N,)](").replace("x + y", "x - y")
    half = mends(ROWS)[0]
    mending, mend = Mending(ROWS), mend_of_both(ROWS, both, half)
    assert mend.applied(ROWS) == both
    mending.work.tried.spend(mending.work.tried.left)
    mending.remember(mend, diagnosis_of(half, CLUES, RIGHT))
    assert mending.diagnosis(CLUES, Tries(lambda text: text == both)) == diagnosis_of(half, CLUES, RIGHT)
