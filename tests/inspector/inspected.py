"""Kernels that show each thing the inspector says, and how to ask it about them."""

import functools
from typing import Any

from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.inspector.inspect import Inspected, inspect
from gradekit.inspector.targets import target
from gradekit.program import Program
from gradekit.sandbox import Tracer
from gradekit.subject.call_spec import to_arguments
from gradekit.submission import Submission

SOURCE = """\
import torch, triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def matmul_kernel(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, P: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * sa + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)  # load a
        y = tl.load(b + k[:, None] * sb + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)  # load b
        acc = tl.dot(x, y, acc, input_precision=P)  # dot
    mask = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * sc + n[None, :], acc.to(c.dtype.element_ty), mask=mask)  # store c

def product(a, b, P, BM=64, BN=64, BK=32, num_warps=4):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BM), triton.cdiv(N, BN))
    matmul_kernel[grid](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BM, BN, BK, P, num_warps=num_warps)
    return c

def matmul(a, b):
    return product(a, b, "ieee")

def matmul_tf32(a, b):
    return product(a, b, "tf32")

def low_tiles(a, b):
    return product(a, b, "ieee", BM=16, BN=64)

def few_warps(a, b):
    return product(a, b, "ieee", num_warps=2)

def too_large(a, b):
    return product(a, b, "ieee", BM=128, BN=128, BK=128, num_warps=8)

def crowded(a, b):
    return product(a, b, "ieee", BM=64, BN=128, num_warps=2)

@triton.jit
def copy_kernel(x, out, N, s0, s1, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + row * s0 + columns * s1, mask=columns < N)  # load x
    tl.store(out + row * N + columns, value, mask=columns < N)  # store out

def copy(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    copy_kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

@triton.jit
def swapped_kernel(x, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + (i ^ 1)))  # both

def swapped(x):
    out = torch.empty_like(x)
    swapped_kernel[(triton.cdiv(x.shape[0], 1024),)](x, out, x.shape[0], BLOCK=1024)
    return out

@triton.jit
def tenth_kernel(x, out, N, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < N)
    if WIDE:
        value = value.to(tl.float64) * 0.1  # wide
    else:
        value = value * 0.1
    tl.store(out + i, value, mask=i < N)

def tenth(x, WIDE=False):
    out = torch.empty_like(x)
    tenth_kernel[(triton.cdiv(x.shape[0], 1024),)](x, out, x.shape[0], WIDE, BLOCK=1024)
    return out

def tenth_in_float64(x):
    return tenth(x, True)

@triton.jit
def attention_kernel(q, k, v, out, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n, d = tl.arange(0, BN), tl.arange(0, D)
    queries = tl.load(q + m[:, None] * D + d[None, :], mask=m[:, None] < N, other=0.0)
    peak = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        inside = start + n < N
        keys = tl.load(k + (start + n)[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(queries, keys), -float("inf"))  # first dot
        higher = tl.maximum(peak, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(peak - higher)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + (start + n)[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None])  # second dot
        peak = higher
    tl.store(out + m[:, None] * D + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty), mask=m[:, None] < N)

def attention(q, k, v):
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(q.shape[0], 128),)](q, k, v, out, q.shape[0], q.shape[1], BM=128, BN=64, num_warps=8)
    return out

@triton.jit
def tiles_kernel(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    out.store([row, 0], x.load([row, 0]))  # tiles

def tiles(x):
    out = torch.empty_like(x)
    whole = [TensorDescriptor.from_tensor(t, [16, 64]) for t in (x, out)]
    tiles_kernel[(x.shape[0] // 16,)](*whole, BLOCK=16)
    return out
"""

LINES = SOURCE.split("\n")


def line(comment: str) -> int:
    """The line of SOURCE that ends with `# comment`."""
    (found,) = [number for number, text in enumerate(LINES, start=1) if text.endswith(f"# {comment}")]
    return found


def float16(*shape: int, **changes: Any) -> Input:
    """A float16 input, contiguous unless said otherwise."""
    return Input("float16", shape, changes.get("stride", row_major(shape)), changes.get("offset", 0))


def float32(*shape: int, **changes: Any) -> Input:
    """A float32 input, contiguous unless said otherwise."""
    return Input("float32", shape, changes.get("stride", row_major(shape)), changes.get("offset", 0))


@functools.cache
def program(entry: str, *inputs: Input) -> Program:
    """The program of a call of SOURCE."""
    with Tracer(Submission("submission.py", SOURCE, "")) as tracer:
        return tracer.trace(entry, to_arguments(inputs))


@functools.cache
def inspected(entry: str, *inputs: Input, on: str = "sm_80") -> Inspected:
    """The one kernel that `entry(*inputs)` launches, on a target."""
    (found,) = inspect(program(entry, *inputs), target(on))
    return found


def said(entry: str, *inputs: Input, on: str = "sm_80") -> dict[str, list[str]]:
    """The sentences on that kernel, by their kind."""
    kinds: dict[str, list[str]] = {}
    for sentence in inspected(entry, *inputs, on=on).sentences:
        kinds.setdefault(sentence.kind, []).append(sentence.text)
    return kinds
