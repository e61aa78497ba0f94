"""Arithmetic on masks is arithmetic in one bit, as on a card (PTX has xor.pred for a + b): also of masks kept lazily."""

from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from launching import launched

N, BLOCK = 21, 32


@triton.jit
def lazy_kernel(values, out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = i < n, i < n // 2
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
def dense_kernel(values, out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(values + i)
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
@pytest.mark.parametrize("kernel", [lazy_kernel, dense_kernel])
def test_a_sum_of_masks_is_exclusive_and_the_smaller_is_both(kernel: Any, kind: str) -> None:
    values, out = torch.arange(BLOCK, dtype=torch.int32), torch.empty(BLOCK, dtype=torch.int32)
    seen = launched(kernel, (1,), [values], [out], (N,), KIND=kind, BLOCK=BLOCK)
    assert torch.equal(seen.results[0], right(kind))


def test_adding_up_masks_tells_whether_their_number_is_odd() -> None:
    values, out = torch.arange(BLOCK, dtype=torch.int32), torch.empty(BLOCK + 1, dtype=torch.int32)
    seen = launched(reduce_kernel, (1,), [values], [out], (N,), BLOCK=BLOCK)
    counted = (torch.arange(BLOCK) < N).int().cumsum(0) % 2
    assert torch.equal(seen.results[0], torch.cat([counted, counted[-1:]]).int())
