"""What host code passes, counts, allocates and returns: any value of the same kind is tried in its place, but where it is
the same number in the failing call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradekit.causes import Cause
from gradekit.inputs.spec import normal
from gradekit.repair.host_numbers import KnownNumbers
from gradekit.repair.idioms.candidates import mends
from gradekit.repair.mend import Clues, Mend
from gradekit.repair.search import Mending, Tries
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import Edit

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
    wrong = KERNEL.replace("mask=n < N)\n    tl.store", "mask=n <= N)\n    tl.store")
    mend = next(mend for mend in mends(wrong) if mend.applied(wrong) == KERNEL)
    assert not known((1, 1), (1, 1), text=wrong).are_left_by(mend)


def test_a_number_in_a_kernel_may_become_a_name_of_that_kernel() -> None:
    wrong = KERNEL.replace("m * N + n, x", "m * 4 + n, x")
    place = wrong.encode().index(b"m * 4 + n, x") + 4
    mend = next(iter(mends(wrong)))
    by = lambda new: replace(mend, edits=(Edit(place, place + 1, new, ""),))
    assert not known((4, 5), (4, 5), text=wrong).are_left_by(by("n"))  # known to the kernel alone
    assert not known((4, 5), (4, 5), text=wrong).are_left_by(by("N"))
    assert known((4, 4), (4, 4), text=wrong).are_left_by(by("N"))


def test_a_name_that_is_given_two_values_is_not_known() -> None:
    source = KERNEL.replace("    z = torch", "    N = N + 1\n    z = torch")
    wrong = source.replace("scaled_kernel[(M,)]", "scaled_kernel[(N,)]")
    mend = next(mend for mend in mends(wrong) if mend.applied(wrong) == source)
    assert not known((4, 4), (4, 4), text=wrong).are_left_by(mend)
