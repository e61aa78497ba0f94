"""The kernels that the engine is measured on, in the style of a submission: the tracer reads this file, and
Triton's interpreter runs it as it is."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out, x, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * row_stride + at, mask=inside, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * row_stride + at, value / tl.sum(value, 0), mask=inside)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](out, x, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@triton.jit
def layer_norm_kernel(out, x, weight, bias, row_stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * row_stride + at, mask=inside, other=0.0)
    centered = tl.where(inside, value - tl.sum(value, 0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centered * centered, 0) / columns + eps)
    value = centered * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + row * row_stride + at, value, mask=inside)


def layer_norm(x, weight, bias):
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    layer_norm_kernel[(x.shape[0],)](out, x, weight, bias, x.stride(0), x.shape[1], 1e-5, BLOCK=block)
    return out


@triton.jit
def chain_kernel(x, bias, residual, out, rows, columns, row_stride, BM: tl.constexpr, BN: tl.constexpr):
    m = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    n = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    inside = (m < rows) & (n < columns)
    value = tl.load(x + m * row_stride + n, mask=inside) + tl.load(bias + n, mask=n < columns)
    inner = 0.7978845608 * (value + 0.044715 * value * value * value)
    value = value * tl.sigmoid(2 * inner) + tl.load(residual + m * row_stride + n, mask=inside)
    tl.store(out + m * row_stride + n, value, mask=inside)


def chain(x, bias, residual):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.shape[0], 4), triton.cdiv(x.shape[1], 256))
    chain_kernel[grid](x, bias, residual, out, x.shape[0], x.shape[1], x.stride(0), BM=4, BN=256)
    return out


@triton.jit
def add_kernel(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def matmul_kernel(a, b, c, M, N, K, a_stride, b_stride, c_stride, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (columns[None, :] < N)
        left = tl.load(a + rows[:, None] * a_stride + inner[None, :], mask=a_mask, other=0.0)
        right = tl.load(b + inner[:, None] * b_stride + columns[None, :], mask=b_mask, other=0.0)
        total = tl.dot(left, right, total)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * c_stride + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


def matmul(a, b):
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(a.shape[0], 64), triton.cdiv(b.shape[1], 64))
    matmul_kernel[grid](
        a, b, c, a.shape[0], b.shape[1], a.shape[1], a.stride(0), b.stride(0), c.stride(0), BM=64, BN=64, BK=32
    )
    return c


@triton.jit
def attention_kernel(q, k, v, out, head_stride, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    block, head = tl.program_id(0), tl.program_id(1)
    rows, depth = block * BM + tl.arange(0, BM), tl.arange(0, D)
    base = head * head_stride
    at = base + rows[:, None] * D + depth[None, :]
    query = tl.load(q + at, mask=rows[:, None] < length, other=0.0)
    high = tl.full((BM,), float("-inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, (block + 1) * BM, BN):
        keys = start + tl.arange(0, BN)
        key = tl.load(k + base + keys[None, :] * D + depth[:, None], mask=keys[None, :] < length, other=0.0)
        score = tl.where(rows[:, None] >= keys[None, :], tl.dot(query, key) * scale, float("-inf"))
        above = tl.maximum(high, tl.max(score, 1))
        chance = tl.exp(score - above[:, None])
        fade = tl.exp(high - above)
        weight = weight * fade + tl.sum(chance, 1)
        value = tl.load(v + base + keys[:, None] * D + depth[None, :], mask=keys[:, None] < length, other=0.0)
        total = tl.dot(chance.to(tl.float16), value, total * fade[:, None])
        high = above
    tl.store(out + at, (total / weight[:, None]).to(tl.float16), mask=rows[:, None] < length)


def attention(q, k, v):
    out = torch.empty_like(q)
    batch, heads, length, depth = q.shape
    grid = (triton.cdiv(length, 64), batch * heads)
    attention_kernel[grid](q, k, v, out, q.stride(1), length, depth**-0.5, BM=64, BN=64, D=depth)
    return out
