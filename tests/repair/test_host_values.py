"""What host code passes, counts, allocates and returns: any value of the same kind is tried in its place, but where it is
the same number in the failing call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gradekit.causes import Cause
from gradekit.inputs.spec import normal
from gradekit.repair.host_numbers import KnownNumbers
from gradekit.repair.idioms.candidates import mends
from gradekit.repair.mend import Clues, Mend
from gradekit.repair.search import Mending, Tries
from gradekit.source.draft import Draft

KERNEL = """
import math, torch, triton
import triton.language as tl


@triton.jit
def scaled_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, scale, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    n = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + m * stride_xm + n * stride_xn, mask=n < N)
    tl.store(out_ptr + m * N + n, x * scale, mask=n < N)


@triton.jit
def added_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n_elements)
    y = tl.load(y_ptr + i, mask=i < n_elements)
    tl.store(out_ptr + i, x + y, mask=i < n_elements)


def scaled(x, y):
    M, N = x.shape
    z = torch.empty((M, N), device=x.device)
    out = torch.empty((M, N), device=x.device)
    scaled_kernel[(M,)](x, z, M, N, x.stride(0), x.stride(1), 1 / math.sqrt(N), BLOCK=64)
    added_kernel[(triton.cdiv(M * N, 64),)](z, y, out, M * N, BLOCK=64)
    return out
"""


def of(wrong: str) -> list[Mend]:
    assert wrong != KERNEL
    return mends(wrong)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("z, M, N, x", "z, M, x.shape[0], x"),
        ("x.stride(0), x.stride(1), 1", "x.stride(1), x.stride(1), 1"),
        ("x.stride(0), x.stride(1), 1", "y.stride(0), x.stride(1), 1"),
        ("scaled_kernel[(M,)]", "scaled_kernel[(N,)]"),
        ("scaled_kernel[(M,)]", "scaled_kernel[(M - 1,)]"),
    ],
)
def test_any_value_of_the_same_kind_is_tried_in_its_place(right: str, wrong: str) -> None:
    source = KERNEL.replace(right, wrong)
    line = next(n for n, (a, b) in enumerate(zip(source.splitlines(), KERNEL.splitlines(), strict=True), 1) if a != b)
    plain = lambda text: text.replace(" ", "").replace("x.shape[1],", "N,").replace("triton.next_power_of_2(N)", "64")
    mending = [mend for mend in of(source) if plain(mend.applied(source)) == plain(KERNEL)]
    assert mending and mending[0].line == line and mending[0].rank < 40


def test_all_axes_of_a_grid_that_are_rounded_down_are_rounded_up_together() -> None:
    right = KERNEL.replace("scaled_kernel[(M,)]", "scaled_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))]")
    wrong = right.replace("triton.cdiv(M, 64), triton.cdiv(N, 64)", "M // 64, N // 64")
    assert mends(wrong)[0].applied(wrong) == right and "`M // 64` and `N // 64` down" in mends(wrong)[0].sentence


def test_a_tile_of_a_fixed_width_is_made_wide_enough_where_the_width_is_given_a_name() -> None:
    named = KERNEL.replace("    z = torch", "    BLOCK = triton.next_power_of_2(N)\n    z = torch").replace("sqrt(N), BLOCK=64", "sqrt(N), BLOCK=BLOCK")
    wrong = named.replace("BLOCK = triton.next_power_of_2(N)", "BLOCK = 128")
    mend = next(mend for mend in of(wrong) if mend.applied(wrong) == named)
    assert "tile of 128 lanes" in mend.sentence and wrong.splitlines()[mend.line - 1].strip() == "BLOCK = 128"


def test_strides_that_are_taken_before_a_copy_are_taken_after_it() -> None:
    right = KERNEL.replace("    M, N = x.shape\n", "    x = x.contiguous()\n    strides = x.stride()\n    M, N = x.shape\n")
    right = right.replace("x.stride(0), x.stride(1), 1", "*strides, 1")
    wrong = right.replace("    x = x.contiguous()\n    strides = x.stride()\n", "    strides = x.stride()\n    x = x.contiguous()\n")
    assert any(mend.applied(wrong) == right and "takes `stride` of x before" in mend.sentence for mend in of(wrong))
    assert not any("tensors those names" in mend.sentence for mend in mends(right))




def test_a_list_that_is_filled_up_on_the_wrong_side_is_filled_up_on_the_other() -> None:
    right = KERNEL.replace("    z = torch", "    shape = [1] * 2 + list(x.shape)\n    steps = [0] * 2 + list(x.stride())\n    z = torch")
    wrong = right.replace("[0] * 2 + list(x.stride())", "list(x.stride()) + [0] * 2")
    mend = next(mend for mend in of(wrong) if "on the wrong side" in mend.sentence)
    assert mend.applied(wrong) == right and f"Line {mend.line - 1} puts it on the other side." in mend.sentence


# --- what the failing call tells --------------------------------------------------------------------------------------


def known(*shapes: Sequence[int], text: str = KERNEL) -> KnownNumbers:
    return KnownNumbers(Draft(text), "scaled", [normal(shape) for shape in shapes])


def test_a_mend_that_puts_a_number_for_the_same_number_is_left_out() -> None:
    wrong = KERNEL.replace("scaled_kernel[(M,)]", "scaled_kernel[(N,)]")
    mend = next(mend for mend in mends(wrong) if mend.applied(wrong) == KERNEL)
    assert known((5, 5), (5, 5), text=wrong).are_left_by(mend)
    assert not known((4, 5), (4, 5), text=wrong).are_left_by(mend)
    clues = Clues(frozenset({Cause.WRONG_VALUES}), ())
    tried: list[str] = []
    for shape in ((5, 5), (4, 5)):
        given = tuple(normal(shape) for _ in range(2))
        Mending(wrong).diagnosis(replace(clues, call=("scaled", given)), Tries(lambda text: bool(tried.append(text))))
        assert (KERNEL in tried) is (shape == (4, 5))




def test_a_mend_of_anything_but_numbers_is_kept() -> None:
    wrong = KERNEL.replace("x * scale", "x / scale")
    mend = next(mend for mend in mends(wrong) if mend.applied(wrong) == KERNEL)
    assert not known((1, 1), (1, 1), text=wrong).are_left_by(mend)


def test_a_name_that_is_given_two_values_is_not_known() -> None:
    source = KERNEL.replace("    z = torch", "    N = N + 1\n    z = torch")
    wrong = source.replace("scaled_kernel[(M,)]", "scaled_kernel[(N,)]")
    mend = next(mend for mend in mends(wrong) if mend.applied(wrong) == source)
    assert not known((4, 4), (4, 4), text=wrong).are_left_by(mend)
