"""A program for some queries of one head; backwards, one kernel walks along keys and another along queries."""

import torch
import triton
import triton.language as tl


@triton.jit
def scores(q, k, rows, cols, n, scale, CAUSAL: tl.constexpr):
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    seen = cols[None, :] < n
    if CAUSAL:
        seen = seen & (cols[None, :] <= rows[:, None])
    return tl.where(seen, s, float("-inf"))


@triton.jit
def tile(ptr, rows, n, step_row, step_col, D: tl.constexpr):
    d = tl.arange(0, D)
    where = rows[:, None].to(tl.int64) * step_row + d[None, :] * step_col
    return tl.load(ptr + where, mask=rows[:, None] < n, other=0.0)


@triton.jit
def forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, n, heads, scale,
    qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
    CAUSAL: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):
    first = tl.program_id(0) * ROWS
    bh = tl.program_id(1).to(tl.int64)
    b = bh // heads
    h = bh % heads
    rows = first + tl.arange(0, ROWS)
    q = tile(q_ptr + b * qb + h * qh, rows, n, qs, qd, D)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    end = tl.minimum(first + ROWS, n) if CAUSAL else n
    for start in range(0, end, COLS):
        cols = start + tl.arange(0, COLS)
        k = tile(k_ptr + b * kb + h * kh, cols, n, ks, kd, D)
        v = tile(v_ptr + b * vb + h * vh, cols, n, vs, vd, D)
        s = scores(q, k, rows, cols, n, scale, CAUSAL)
        higher = tl.maximum(top, tl.max(s, axis=1))
        shrink = tl.exp(top - higher)
        p = tl.exp(s - higher[:, None])
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        top = higher
    out = acc / total[:, None]
    d = tl.arange(0, D)
    where = bh * n * D + rows[:, None].to(tl.int64) * D + d[None, :]
    tl.store(o_ptr + where, out.to(o_ptr.dtype.element_ty), mask=rows[:, None] < n)
    tl.store(lse_ptr + bh * n + rows, top + tl.log(total), mask=rows < n)


@triton.jit
def delta_kernel(o_ptr, g_ptr, delta_ptr, n, D: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    bh = tl.program_id(1).to(tl.int64)
    o = tile(o_ptr + bh * n * D, rows, n, D, 1, D).to(tl.float32)
    g = tile(g_ptr + bh * n * D, rows, n, D, 1, D).to(tl.float32)
    tl.store(delta_ptr + bh * n + rows, tl.sum(o * g, axis=1), mask=rows < n)


@triton.jit
def dkv_kernel(
    q_ptr, k_ptr, v_ptr, g_ptr, dk_ptr, dv_ptr, lse_ptr, delta_ptr, n, heads, scale,
    qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
    CAUSAL: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):
    first = tl.program_id(0) * COLS
    bh = tl.program_id(1).to(tl.int64)
    b = bh // heads
    h = bh % heads
    cols = first + tl.arange(0, COLS)
    k = tile(k_ptr + b * kb + h * kh, cols, n, ks, kd, D)
    v = tile(v_ptr + b * vb + h * vh, cols, n, vs, vd, D)
    dk = tl.zeros((COLS, D), tl.float32)
    dv = tl.zeros((COLS, D), tl.float32)
    begin = first // ROWS * ROWS if CAUSAL else 0
    for start in range(begin, n, ROWS):
        rows = start + tl.arange(0, ROWS)
        q = tile(q_ptr + b * qb + h * qh, rows, n, qs, qd, D)
        g = tile(g_ptr + bh * n * D, rows, n, D, 1, D)
        lse = tl.load(lse_ptr + bh * n + rows, mask=rows < n, other=0.0)
        delta = tl.load(delta_ptr + bh * n + rows, mask=rows < n, other=0.0)
        s = scores(q, k, rows, cols, n, scale, CAUSAL)
        p = tl.where(rows[:, None] < n, tl.exp(s - lse[:, None]), 0.0)
        dv += tl.dot(tl.trans(p.to(g.dtype)), g, input_precision="ieee")
        dp = tl.dot(g, tl.trans(v), input_precision="ieee")
        ds = p * (dp - delta[:, None])
        dk += tl.dot(tl.trans(ds.to(q.dtype)), q, input_precision="ieee") * scale
    d = tl.arange(0, D)
    where = bh * n * D + cols[:, None].to(tl.int64) * D + d[None, :]
    tl.store(dk_ptr + where, dk.to(dk_ptr.dtype.element_ty), mask=cols[:, None] < n)
    tl.store(dv_ptr + where, dv.to(dv_ptr.dtype.element_ty), mask=cols[:, None] < n)


@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, g_ptr, dq_ptr, lse_ptr, delta_ptr, n, heads, scale,
    qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
    CAUSAL: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):
    first = tl.program_id(0) * ROWS
    bh = tl.program_id(1).to(tl.int64)
    b = bh // heads
    h = bh % heads
    rows = first + tl.arange(0, ROWS)
    q = tile(q_ptr + b * qb + h * qh, rows, n, qs, qd, D)
    g = tile(g_ptr + bh * n * D, rows, n, D, 1, D)
    lse = tl.load(lse_ptr + bh * n + rows, mask=rows < n, other=0.0)
    delta = tl.load(delta_ptr + bh * n + rows, mask=rows < n, other=0.0)
    dq = tl.zeros((ROWS, D), tl.float32)
    end = tl.minimum(first + ROWS, n) if CAUSAL else n
    for start in range(0, end, COLS):
        cols = start + tl.arange(0, COLS)
        k = tile(k_ptr + b * kb + h * kh, cols, n, ks, kd, D)
        v = tile(v_ptr + b * vb + h * vh, cols, n, vs, vd, D)
        s = scores(q, k, rows, cols, n, scale, CAUSAL)
        p = tl.exp(s - lse[:, None])
        dp = tl.dot(g, tl.trans(v), input_precision="ieee")
        ds = p * (dp - delta[:, None])
        dq += tl.dot(ds.to(k.dtype), k, input_precision="ieee")
    d = tl.arange(0, D)
    where = bh * n * D + rows[:, None].to(tl.int64) * D + d[None, :]
    tl.store(dq_ptr + where, (dq * scale).to(dq_ptr.dtype.element_ty), mask=rows[:, None] < n)


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, sm_scale):
        B, H, S, D = q.shape
        o = torch.empty((B, H, S, D), dtype=q.dtype, device=q.device)
        lse = torch.empty((B, H, S), dtype=torch.float32, device=q.device)
        strides = (*q.stride(), *k.stride(), *v.stride())
        forward_kernel[(triton.cdiv(S, 32), B * H)](
            q, k, v, o, lse, S, H, sm_scale, *strides, CAUSAL=causal, D=D, ROWS=32, COLS=16
        )
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.causal, ctx.scale = causal, sm_scale
        return o

    @staticmethod
    def backward(ctx, g):
        q, k, v, o, lse = ctx.saved_tensors
        B, H, S, D = q.shape
        g = g.contiguous()
        delta = torch.empty((B, H, S), dtype=torch.float32, device=q.device)
        dq, dk, dv = (torch.empty((B, H, S, D), dtype=q.dtype, device=q.device) for _ in range(3))
        strides = (*q.stride(), *k.stride(), *v.stride())
        delta_kernel[(triton.cdiv(S, 32), B * H)](o, g, delta, S, D=D, ROWS=32)
        dkv_kernel[(triton.cdiv(S, 16), B * H)](
            q, k, v, g, dk, dv, lse, delta, S, H, ctx.scale, *strides, CAUSAL=ctx.causal, D=D, ROWS=32, COLS=16
        )
        dq_kernel[(triton.cdiv(S, 32), B * H)](
            q, k, v, g, dq, lse, delta, S, H, ctx.scale, *strides, CAUSAL=ctx.causal, D=D, ROWS=32, COLS=16
        )
        return dq, dk, dv, None, None


def attention(q, k, v, causal, sm_scale):
    return Attention.apply(q, k, v, causal, sm_scale)
