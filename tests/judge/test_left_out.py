"""What is never written or read is told with the part of the program that leaves it out, by what the call does when it runs again."""

from collections.abc import Callable

import pytest
import torch

from gradekit.judge import accesses
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.left_out import never_read, unwritten
from tests.judge.test_by_running import ran

COPY = """\
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    n = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + n, mask=n < N)
    tl.store(out_ptr + n, x, mask=n < N)

def entry(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 4),)](x, out, x.numel(), BLOCK=4)
    return out
"""
STORE = "    tl.store(out_ptr + n, x, mask=n < N)\n"


@pytest.mark.parametrize(("old", "new", "line", "says"), [
    ("triton.cdiv(x.numel(), 4)", "x.numel() // 4", 9, "line 9 has the address of [8] in no lane, masked or not"),
    (STORE, STORE.replace("n < N", "n < N - 1"), 9, ""),
    ("out_ptr + n, x", "out_ptr + n % 8, x", 9, "line 9 has the address of [8] in no lane, masked or not; programs (0, 0, 0) and (2, 0, 0) both have the address of [0]; both have the same number from line 9 on"),
    ("    n = pid * BLOCK", "    n = pid % 2 * BLOCK", 9, "line 9 has the address of [8] in no lane, masked or not; programs (0, 0, 0) and (2, 0, 0) both have the address of [0]; both have the same number from line 7 on"),
    ("    n = pid * BLOCK", "    n = (pid + pid // 2) * BLOCK", 9, "line 9 has the address of [8] in no lane, masked or not; program (2, 0, 0) stores nothing to the result"),
    ("    n = pid * BLOCK", "    n = pid // 3 * BLOCK", 9, "line 9 has the address of [4] in no lane, masked or not; programs (0, 0, 0) and (1, 0, 0) both have the address of [0]; both have the same number from line 7 on"),
    (STORE, "    for i in range(tl.cdiv(N, 100)):\n        tl.store(out_ptr + n + i, x, mask=n < N - 1)\n", 10, "steps of the loop in line 9: 1 at most"),
    (STORE, f"    if pid < 2:\n    {STORE}", 10, "line 10 has the address of [8] in no lane, masked or not; program (2, 0, 0) stores nothing to the result"),
    (STORE, f"    for _ in range(0, pid):\n    {STORE}", 10, "line 10 has the address of [0] in no lane, masked or not; program (2, 0, 0) has the address of [8] twice; program (0, 0, 0) stores nothing to the result"),
    (STORE, STORE + STORE.replace("n, x", "n + 1, x").replace("N)", "0)"), 0, ""),  # two lines, and nothing is left out
    ("return out", "return out[:9].clone()", 0, ""),
], ids=str)  # fmt: skip
def test_the_part_that_leaves_elements_unwritten_is_told(old: str, new: str, line: int, says: str) -> None:
    assert old in COPY
    text = COPY.replace(old, new)
    program, _ = ran(text, x := torch.arange(10.0), lambda x: x)
    assert unwritten(program, [x], ()) == ((line, says) if line else None)


def test_nothing_is_told_of_a_call_with_too_many_lanes_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    text = COPY.replace(STORE, STORE.replace("n < N", "n < N - 1"))
    program, _ = ran(text, x := torch.arange(10.0), lambda x: x)
    monkeypatch.setattr(accesses, "_MOST_LANES", 11)
    assert unwritten(program, [x], ()) is None


def test_nothing_is_told_where_all_is_written() -> None:
    program, _ = ran(COPY, x := torch.arange(10.0), lambda x: x)
    assert unwritten(program, [x], ()) is None


# --- what is never read ------------------------------------------------------------------------------------------------

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
READ = "Only the first 8 of 11 columns of x are read."


def row_sums(x: torch.Tensor) -> torch.Tensor:
    return x.sum(1)


def told(
    text: str, x: torch.Tensor, right: Callable[[torch.Tensor], torch.Tensor] = row_sums
) -> Diagnosis | None:  # fmt: skip
    """What is said of a submission whose results are to be those of a function."""
    program, comparison = ran(text, x, right)
    return never_read(program, [x], comparison, (), ["x"])


@pytest.mark.parametrize("x", [torch.arange(33.0).view(3, 11) - 40, torch.arange(33.0).view(11, 3).T - 40], ids=["as it is", "a copy"])
def test_columns_that_no_kernel_reads_are_told_of_an_input(x: torch.Tensor) -> None:
    found = told(SUM, x)
    assert found is not None and found.sentence == READ


def test_what_a_maximum_lacks_is_told_as_well() -> None:
    text = ONE_TILE.replace("OTHER", '-float("inf")').replace("RESULT", "tl.max(x, axis=0)")
    found = told(text, torch.arange(33.0).view(3, 11) - 40, lambda x: x.amax(1))
    assert found is not None and found.sentence == READ


COUNTS = """\
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, share, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + tl.load(x_ptr + tl.program_id(0) * share + n, mask=n < share), 1, mask=n < share)

def entry(x):
    out = torch.zeros((3,), dtype=torch.int32, device=x.device)
    kernel[(2,)](x, out, x.shape[0] // 2, BLOCK=8)
    return out
"""


def test_the_last_ones_that_a_share_leaves_out_are_told_of_what_is_counted() -> None:
    found = told(COUNTS, torch.arange(11, dtype=torch.int32) % 3, lambda x: torch.bincount(x, minlength=3).int())
    assert found is not None and found.sentence == "Only the first 10 of 11 elements of x are read."
    assert found.line == 7 and not found.hint, "a mask stops lanes of the first program that have its address"


def test_elements_that_are_left_out_here_and_there_are_counted() -> None:
    found = told(SUM.replace("mask=n < N", "mask=(n < N) & (n % 2 == 0)"), torch.arange(1.0, 22.0).view(3, 7))
    assert found is not None and found.sentence.startswith("9 of 21 elements of x are never read.")


STEPS = """\
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, tl.num_programs(0) * BLOCK):
        total += tl.load(x_ptr + n, mask=n < N, other=0.0)
        n += BLOCK
    tl.atomic_add(out_ptr, tl.sum(total, axis=0))

def entry(x):
    out = torch.zeros((1,), dtype=x.dtype, device=x.device)
    kernel[(2,)](x, out, x.shape[0], BLOCK=4)
    return out
"""


def test_two_programs_that_read_one_element_are_told_with_their_steps() -> None:
    found = told(STEPS, torch.arange(1.0, 16.0), lambda x: x.sum().view(1))
    assert found is not None and found.sentence == "Only the first 12 of 15 elements of x are read."
    assert found.line == 9 and found.hint == (
        "line 9 has the address of [12] in no lane, masked or not; program (0, 0, 0) has the address of [4] in step 2 of "
        "the loop in line 8, and program (1, 0, 0) in step 1"
    )


def test_nothing_is_told_where_something_else_is_wrong_that_does_not_depend_on_it() -> None:
    x = torch.arange(33.0).view(3, 11)
    assert told(SUM, x, lambda x: x[:, :8].sum(1) + 1) is None, "all that the right result needs is read"
    assert told(SUM, x, lambda x: x[:, :8].sum(1) + torch.tensor([1.0, 1.0, 0.0]) * x[:, 10] + 1) is None, "the last row is wrong, too"


def test_nothing_is_told_of_inputs_that_are_read_whole() -> None:
    assert told(SUM.replace("tl.sum(x, axis=0)", "tl.max(x, axis=0)"), torch.arange(21.0).view(3, 7)) is None
