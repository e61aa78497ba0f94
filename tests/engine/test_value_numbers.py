"""Kernels that compute the same from the same are one text; those that do not, are not."""

import pytest
import torch
import triton
import triton.language as tl
from launching import program

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
