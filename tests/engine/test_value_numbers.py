"""What values of TTIR are made of, and which kernels compute the same."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from launching import program

from gradekit.engine.def_use import DefUse
from gradekit.engine.kernel_facts import parsed
from gradekit.engine.value_numbers import numbered


@triton.jit
def shifted(x, bias, out, n, rows, B: tl.constexpr, EDIT: tl.constexpr):
    at, row = tl.arange(0, B)[None, :], tl.arange(0, 2)[:, None]
    if EDIT == "another other":
        b = tl.load(bias + at, mask=at < n, other=1.0).to(tl.float32)
    elif EDIT == "no other":
        b = tl.load(bias + at, mask=at < n).to(tl.float32)
    elif EDIT == "no cast":
        b = tl.load(bias + at, mask=at < n, other=0.0)
    elif EDIT == "another mask":
        b = tl.load(bias + at, mask=at < n - 1, other=0.0).to(tl.float32)
    elif EDIT == "a narrow cast":
        b = tl.load(bias + at, mask=at < n, other=0.0).to(tl.bfloat16).to(tl.float32)
    else:
        b = tl.load(bias + at, mask=at < n, other=0.0).to(tl.float32)
    inside = (at < n) & (row < rows)
    total = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32) + b
    factor = 1.0
    for _ in range(rows):
        factor = factor * 2
    tl.store(out + row * n + at, total * factor, mask=inside)


@triton.jit
def summed(x, bias, out, n, rows, B: tl.constexpr, EDIT: tl.constexpr):
    at = tl.arange(0, B)
    if EDIT == "another other":
        value = tl.load(x + at, mask=at < n, other=1.0)
    elif EDIT == "no other":
        value = tl.load(x + at, mask=at < n)
    else:
        value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out, tl.sum(value, axis=0))


def text(kernel, edit: str) -> str:
    """What the kernel computes after an edit."""
    x = torch.ones(16, dtype=torch.float16)
    made = program(kernel, (1,), [x, x], [torch.empty(16)], [8, 2], fill=0, B=16, EDIT=edit)
    return numbered(made.kernels["k"].unaligned)


@pytest.mark.parametrize("edit", ["another other", "no other", "no cast"])
def test_an_edit_that_changes_no_result_changes_no_text(edit: str) -> None:
    assert text(shifted, edit) == text(shifted, "")


@pytest.mark.parametrize(
    ("kernel", "edit"),
    [(shifted, "another mask"), (shifted, "a narrow cast"), (summed, "another other"), (summed, "no other")],
)
def test_an_edit_that_may_change_a_result_changes_the_text(kernel, edit: str) -> None:
    assert text(kernel, edit) != text(kernel, "")


# --- what values of TTIR are made of, through loops and where regions beside each other use a name twice --------------


TWO_LOOPS = """
module {
  tt.func public @kernel(%p: !tt.ptr<f32>, %n: i32, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %first = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (i32)  : i32 {
      %x = arith.addi %a, %n : i32
      scf.yield %x : i32
    }
    %second = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c1) -> (i32)  : i32 {
      %x = arith.muli %a, %m : i32
      scf.yield %x : i32
    }
    %q = tt.addptr %p, %second : !tt.ptr<f32>, i32
    tt.return
  }
}
"""
FLOW = DefUse(parsed(TWO_LOOPS).functions.values())


def test_a_name_that_two_loops_use_stands_for_what_it_is_in_both() -> None:
    assert {"n", "m", "a"} <= FLOW.behind(["x"])
    assert [op.name for op in FLOW.makers(["x"])] == ["arith.addi", "arith.muli"]


def test_a_result_of_a_loop_is_made_of_what_it_carries_and_of_its_bounds() -> None:
    assert {"x", "a", "c1", "m", "c0"} <= FLOW.behind(["second"])


def test_nothing_is_looked_for_behind_where_one_stops() -> None:
    assert FLOW.behind(["q"], stop=["second"]) == {"q", "p", "second"}


def test_a_pointer_is_made_of_the_pointer_that_it_was_moved_from() -> None:
    assert list(FLOW.pointed("q")) == ["p"]
