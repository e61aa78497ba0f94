"""Parts of a split result lie in a workspace that is kept between calls, and made larger where need be."""

import torch
import triton
import triton.language as tl

WORKSPACE = {}


def workspace(numbers, device):
    have = WORKSPACE.get(str(device))
    if have is None or have.numel() < numbers:
        WORKSPACE[str(device)] = have = torch.empty(numbers, dtype=torch.float32, device=device)
    return have


@triton.jit
def part(
    q,
    kc,
    vc,
    ln,
    ws,
    Hk,
    G,
    D,
    PARTS,
    scale,
    q0,
    q1,
    q2,
    k0,
    k1,
    k2,
    k3,
    v0,
    v1,
    v2,
    v3,
    l0,
    T: tl.constexpr,
    P: tl.constexpr,
):
    bh, s = tl.program_id(0), tl.program_id(1)
    b, h = (bh // (Hk * G)).to(tl.int64), bh % (Hk * G)
    length = tl.load(ln + b * l0)
    d = tl.arange(0, P)
    ok = d < D
    query = tl.load(q + b * q0 + h.to(tl.int64) * q1 + d * q2, mask=ok, other=0.0).to(tl.float32)
    m = -float("inf")
    z = 0.0
    acc = tl.zeros((P,), tl.float32)
    for start in range(s * T, length, PARTS * T):
        t = start + tl.arange(0, T)
        both = (t[:, None] < length) & ok[None, :]
        g = (h // G).to(tl.int64)
        kk = tl.load(kc + b * k0 + g * k1 + t[:, None].to(tl.int64) * k2 + d[None, :] * k3, mask=both, other=0.0).to(
            tl.float32
        )
        x = tl.where(t < length, tl.sum(kk * query[None, :], 1) * scale, -float("inf"))
        new = tl.maximum(m, tl.max(x, 0))
        shrink = tl.exp(m - new)
        w = tl.exp(x - new)
        vv = tl.load(vc + b * v0 + g * v1 + t[:, None].to(tl.int64) * v2 + d[None, :] * v3, mask=both, other=0.0).to(
            tl.float32
        )
        acc = acc * shrink + tl.sum(vv * w[:, None], 0)
        z = z * shrink + tl.sum(w, 0)
        m = new
    at = ws + (bh * PARTS + s).to(tl.int64) * (D + 2)
    tl.store(at, m)
    tl.store(at + 1, z)
    tl.store(at + 2 + d, acc, mask=ok)


@triton.jit
def merge(ws, o, D, PARTS: tl.constexpr, P: tl.constexpr):
    bh = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, P)
    s = tl.arange(0, PARTS)
    at = ws + (bh * PARTS + s) * (D + 2)
    m = tl.load(at)
    w = tl.exp(m - tl.max(m, 0))
    z = tl.sum(w * tl.load(at + 1), 0)
    a = tl.load(at[:, None] + 2 + d[None, :], mask=d[None, :] < D, other=0.0)
    tl.store(o + bh * D + d, (tl.sum(a * w[:, None], 0) / z).to(o.dtype.element_ty), mask=d < D)


def decode_attention(q, k_cache, v_cache, lengths, sm_scale):
    B, Hq, D = q.shape
    Hk = k_cache.shape[1]
    PARTS, P = 4, triton.next_power_of_2(D)
    ws = workspace(B * Hq * PARTS * (D + 2), q.device)
    o = torch.empty((B, Hq, D), dtype=q.dtype, device=q.device)
    part[(B * Hq, PARTS)](
        q,
        k_cache,
        v_cache,
        lengths,
        ws,
        Hk,
        Hq // Hk,
        D,
        PARTS,
        sm_scale,
        *q.stride(),
        *k_cache.stride(),
        *v_cache.stride(),
        lengths.stride(0),
        T=16,
        P=P,
    )
    merge[(B * Hq,)](ws, o, D, PARTS=PARTS, P=P)
    return o
