"""Writes all weights to memory and multiplies them by v in a second kernel: right, and quadratic in memory."""

import torch
import triton
import triton.language as tl


@triton.jit
def weights_kernel(q_ptr, k_ptr, p_ptr, lse_ptr, sqb, sqs, sqd, skb, sks, skd, S, sm_scale,
                   CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    m, bh = tl.program_id(0), tl.program_id(1)
    n, d = tl.arange(0, BLOCK), tl.arange(0, D)
    q = tl.load(q_ptr + bh * sqb + m * sqs + d * sqd).to(tl.float32)
    k = tl.load(k_ptr + bh * skb + n[:, None] * sks + d[None, :] * skd, mask=n[:, None] < S, other=0.0).to(tl.float32)
    s = tl.where(n < S, tl.sum(q[None, :] * k, axis=1) * sm_scale, -float("inf"))
    if CAUSAL:
        s = tl.where(n <= m, s, -float("inf"))
    top = tl.max(s, axis=0)
    e = tl.exp(s - top)
    total = tl.sum(e, axis=0)
    tl.store(p_ptr + (bh * S + m) * S + n, e / total, mask=n < S)
    tl.store(lse_ptr + bh * S + m, top + tl.log(total))


@triton.jit
def values_kernel(p_ptr, v_ptr, o_ptr, svb, svs, svd, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    bh = tl.program_id(1)
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, S, BN):
        n = start + tl.arange(0, BN)
        inside = (m[:, None] < S) & (n[None, :] < S)
        p = tl.load(p_ptr + (bh * S + m[:, None]) * S + n[None, :], mask=inside, other=0.0)
        v = tl.load(v_ptr + bh * svb + n[:, None] * svs + d[None, :] * svd, mask=n[:, None] < S, other=0.0)
        acc += tl.dot(p, v.to(tl.float32))
    tl.store(o_ptr + (bh * S + m[:, None]) * D + d[None, :], acc, mask=m[:, None] < S)


@triton.jit
def delta_kernel(o_ptr, do_ptr, delta_ptr, rows, D: tl.constexpr, BM: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    where = m[:, None] * D + tl.arange(0, D)[None, :]
    o = tl.load(o_ptr + where, mask=m[:, None] < rows, other=0.0).to(tl.float32)
    do = tl.load(do_ptr + where, mask=m[:, None] < rows, other=0.0).to(tl.float32)
    tl.store(delta_ptr + m, tl.sum(o * do, axis=1), mask=m < rows)


@triton.jit
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    sqb, sqs, sqd, skb, sks, skd, svb, svs, svd, S, sm_scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    bh = tl.program_id(1)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    k = tl.load(k_ptr + bh * skb + n[:, None] * sks + d[None, :] * skd, mask=n[:, None] < S, other=0.0)
    v = tl.load(v_ptr + bh * svb + n[:, None] * svs + d[None, :] * svd, mask=n[:, None] < S, other=0.0)
    dk = tl.zeros((BN, D), dtype=tl.float32)
    dv = tl.zeros((BN, D), dtype=tl.float32)
    begin = 0
    if CAUSAL:
        begin = tl.program_id(0) * BN // BM * BM
    for start in range(begin, S, BM):
        m = start + tl.arange(0, BM)
        q = tl.load(q_ptr + bh * sqb + m[:, None] * sqs + d[None, :] * sqd, mask=m[:, None] < S, other=0.0)
        do = tl.load(do_ptr + (bh * S + m[:, None]) * D + d[None, :], mask=m[:, None] < S, other=0.0)
        lse = tl.load(lse_ptr + bh * S + m, mask=m < S, other=0.0)
        delta = tl.load(delta_ptr + bh * S + m, mask=m < S, other=0.0)
        p = tl.exp(tl.dot(q, tl.trans(k)) * sm_scale - lse[:, None])
        p = tl.where((m[:, None] < S) & (n[None, :] < S), p, 0.0)
        if CAUSAL:
            p = tl.where(m[:, None] >= n[None, :], p, 0.0)
        dv += tl.dot(tl.trans(p).to(do.dtype), do)
        dp = tl.dot(do, tl.trans(v))
        ds = p * (dp - delta[:, None]) * sm_scale
        dk += tl.dot(tl.trans(ds).to(q.dtype), q)
    where = (bh * S + n[:, None]) * D + d[None, :]
    tl.store(dk_ptr + where, dk, mask=n[:, None] < S)
    tl.store(dv_ptr + where, dv, mask=n[:, None] < S)


@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
    sqb, sqs, sqd, skb, sks, skd, svb, svs, svd, S, sm_scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    bh = tl.program_id(1)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + bh * sqb + m[:, None] * sqs + d[None, :] * sqd, mask=m[:, None] < S, other=0.0)
    do = tl.load(do_ptr + (bh * S + m[:, None]) * D + d[None, :], mask=m[:, None] < S, other=0.0)
    lse = tl.load(lse_ptr + bh * S + m, mask=m < S, other=0.0)
    delta = tl.load(delta_ptr + bh * S + m, mask=m < S, other=0.0)
    dq = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, S, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + bh * skb + n[:, None] * sks + d[None, :] * skd, mask=n[:, None] < S, other=0.0)
        v = tl.load(v_ptr + bh * svb + n[:, None] * svs + d[None, :] * svd, mask=n[:, None] < S, other=0.0)
        p = tl.exp(tl.dot(q, tl.trans(k)) * sm_scale - lse[:, None])
        p = tl.where(n[None, :] < S, p, 0.0)
        if CAUSAL:
            p = tl.where(m[:, None] >= n[None, :], p, 0.0)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq += tl.dot(ds.to(k.dtype), k)
    tl.store(dq_ptr + (bh * S + m[:, None]) * D + d[None, :], dq * sm_scale, mask=m[:, None] < S)


def flat(x):
    return x.reshape(-1, x.shape[2], x.shape[3])


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, sm_scale):
        B, H, S, D = q.shape
        q, k, v = flat(q), flat(k), flat(v)
        o = torch.empty((B, H, S, D), dtype=q.dtype, device=q.device)
        lse = torch.empty((B * H, S), dtype=torch.float32, device=q.device)
        p = torch.empty((B * H, S, S), dtype=torch.float32, device=q.device)
        weights_kernel[(S, B * H)](
            q, k, p, lse, *q.stride(), *k.stride(), S, sm_scale, CAUSAL=causal, D=D, BLOCK=triton.next_power_of_2(S)
        )
        values_kernel[(triton.cdiv(S, 32), B * H)](p, v, o, *v.stride(), S, D=D, BM=32, BN=32)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.causal, ctx.sm_scale = causal, sm_scale
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        B, H, S, D = o.shape
        do = do.contiguous()
        delta = torch.empty_like(lse)
        dq, dk, dv = (torch.empty((B, H, S, D), dtype=o.dtype, device=o.device) for _ in range(3))
        delta_kernel[(triton.cdiv(B * H * S, 32),)](o, do, delta, B * H * S, D=D, BM=32)
        strides = (*q.stride(), *k.stride(), *v.stride())
        args = (q, k, v, do, lse, delta)
        sizes = dict(CAUSAL=ctx.causal, D=D, BM=32, BN=32)
        dkdv_kernel[(triton.cdiv(S, 32), B * H)](*args, dk, dv, *strides, S, ctx.sm_scale, **sizes)
        dq_kernel[(triton.cdiv(S, 32), B * H)](*args, dq, *strides, S, ctx.sm_scale, **sizes)
        return dq, dk, dv, None, None


def attention(q, k, v, causal, sm_scale):
    return Attention.apply(q, k, v, causal, sm_scale)
