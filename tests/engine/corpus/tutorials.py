"""Whole kernels of the kind that Triton's tutorials teach: matmul in groups, layer norm backward, attention backward."""

import torch
import triton
import triton.language as tl

from corpus.case import case, filled, normal, positive


@triton.jit
def _leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


def _activated(a):
    product = a["x"].double() @ a["y"].double()
    return {"out": torch.where(product >= 0, product, 0.01 * product).half()}


@case(grid=(12,), out=filled(60, 90, dtype=torch.float16), x=normal(60, 70, dtype=torch.float16),
      y=normal(70, 90, dtype=torch.float16), m=60, n=90, k=70, sxm=70, sxk=1, syk=90, syn=1, som=90, son=1,
      BM=16, BN=32, BK=32, GROUP=2, ACTIVATION="leaky_relu", oracle=_activated, tolerance=1e-3)  # fmt: skip
@triton.jit
def matmul_in_groups(
    x, y, out, m, n, k, sxm, sxk, syk, syn, som, son,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    group = pid // (GROUP * columns)
    first = group * GROUP
    height = min(rows - first, GROUP)
    row = first + (pid % (GROUP * columns)) % height
    column = (pid % (GROUP * columns)) // height
    i = (row * BM + tl.arange(0, BM)) % m
    j = (column * BN + tl.arange(0, BN)) % n
    inner = tl.arange(0, BK)
    a_at = x + i[:, None] * sxm + inner[None, :] * sxk
    b_at = y + inner[:, None] * syk + j[None, :] * syn
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(k, BK)):
        a = tl.load(a_at, mask=inner[None, :] < k - step * BK, other=0.0)
        b = tl.load(b_at, mask=inner[:, None] < k - step * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_at += BK * sxk
        b_at += BK * syk
    if ACTIVATION == "leaky_relu":
        acc = _leaky_relu(acc)
    i = row * BM + tl.arange(0, BM)
    j = column * BN + tl.arange(0, BN)
    inside = (i[:, None] < m) & (j[None, :] < n)
    tl.store(out + som * i[:, None] + son * j[None, :], acc.to(tl.float16), mask=inside)


def _statistics(a):
    x = a["x"].double()
    mean = x.mean(1, keepdim=True)
    return (x - mean) * (x.var(1, correction=0, keepdim=True) + 1e-5).rsqrt()


def _layer_norm_gradients(a):
    """The row statistics are recomputed in the kernel, so that the entry stands alone."""
    dy, w = a["dy"].double(), a["w"].double()
    xhat = _statistics(a)
    rstd = (a["x"].double().var(1, correction=0, keepdim=True) + 1e-5).rsqrt()
    g = dy * w
    dx = rstd * (g - xhat * (g * xhat).mean(1, keepdim=True) - g.mean(1, keepdim=True))
    dw, db = torch.zeros(2, 40).double(), torch.zeros(2, 40).double()
    for row in range(6):
        dw[row % 2] += (dy * xhat)[row]
        db[row % 2] += dy[row]
    return {"dx": dx.float(), "dw": dw.float(), "db": db.float()}


@case(grid=(6,), dx=filled(6, 40), dw=filled(2, 40), db=filled(2, 40), dy=normal(6, 40), x=normal(6, 40), w=positive(40),
      locks=filled(4, dtype=torch.int32, value=0), n=40, eps=1e-5, GROUP=2, B=64, oracle=_layer_norm_gradients,
      tolerance=1e-6)  # fmt: skip
@triton.jit
def layer_norm_backward(dx, dw, db, dy, x, w, locks, n, eps, GROUP: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    v = tl.load(x + row * n + c, mask=m, other=0.0)
    g = tl.load(dy + row * n + c, mask=m, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(m, v - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    xhat = d * rstd
    wg = tl.load(w + c, mask=m, other=0.0) * g
    share = tl.sum(xhat * wg, 0) / n
    mean_wg = tl.sum(wg, 0) / n
    tl.store(dx + row * n + c, (wg - (xhat * share + mean_wg)) * rstd, mask=m)
    # rows of one group add up in one place, one after another
    slot = row % GROUP
    while tl.atomic_cas(locks + slot, 0, 1) == 1:
        pass
    at = slot * n + c
    part_w, part_b = g * xhat, g
    if tl.load(locks + GROUP + slot) == 0:
        tl.atomic_xchg(locks + GROUP + slot, 1)
    else:
        part_w += tl.load(dw + at, mask=m)
        part_b += tl.load(db + at, mask=m)
    tl.store(dw + at, part_w, mask=m)
    tl.store(db + at, part_b, mask=m)
    tl.debug_barrier()
    tl.atomic_xchg(locks + slot, 0)


def _attention_gradients(a):
    q, k, v = (a[name].double().requires_grad_() for name in "qkv")
    scores = (q @ k.transpose(-1, -2) * 0.25).masked_fill(torch.ones(32, 32).triu(1).bool(), float("-inf"))
    (scores.softmax(-1) @ v).backward(a["do"].double())
    return {"dq": q.grad.float(), "dk": k.grad.float(), "dv": v.grad.float()}


_HEADS = {name: normal(2, 32, 16) for name in ("q", "k", "v", "do")}


@case(grid=(2, 2), dq=filled(2, 32, 16, value=0), dk=filled(2, 32, 16), dv=filled(2, 32, 16), **_HEADS, n=32, D=16, B=16,
      oracle=_attention_gradients, tolerance=1e-5)  # fmt: skip
@triton.jit
def attention_backward(dq, dk, dv, q, k, v, do, n, D: tl.constexpr, B: tl.constexpr):
    """One block of keys for each program: dk and dv are its own, dq is added up by all of them."""
    base = tl.program_id(1) * n * D
    j, d = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    mine = base + j[:, None] * D + d[None, :]
    keys, values = tl.load(k + mine), tl.load(v + mine)
    dkeys, dvalues = tl.zeros((B, D), tl.float32), tl.zeros((B, D), tl.float32)
    for start in range(tl.program_id(0) * B, n, B):
        i = start + tl.arange(0, B)
        rows = base + i[:, None] * D + d[None, :]
        queries, grads = tl.load(q + rows), tl.load(do + rows)
        # the softmax of these rows over all keys, again
        top = tl.full((B,), -float("inf"), tl.float32)
        total = tl.zeros((B,), tl.float32)
        mixed = tl.zeros((B, D), tl.float32)
        for other in range(0, start + B, B):
            o = other + tl.arange(0, B)
            at = base + o[:, None] * D + d[None, :]
            s = tl.dot(queries, tl.trans(tl.load(k + at)), input_precision="ieee") * 0.25
            s = tl.where(i[:, None] >= o[None, :], s, -float("inf"))
            new = tl.maximum(top, tl.max(s, 1))
            p = tl.exp(s - new[:, None])
            keep = tl.exp(top - new)
            total = total * keep + tl.sum(p, 1)
            mixed = mixed * keep[:, None] + tl.dot(p, tl.load(v + at), input_precision="ieee")
            top = new
        delta = tl.sum(mixed / total[:, None] * grads, 1)
        s = tl.dot(queries, tl.trans(keys), input_precision="ieee") * 0.25
        p = tl.where(i[:, None] >= j[None, :], tl.exp(s - top[:, None]) / total[:, None], 0.0)
        dvalues += tl.dot(tl.trans(p), grads, input_precision="ieee")
        ds = p * (tl.dot(grads, tl.trans(values), input_precision="ieee") - delta[:, None]) * 0.25
        dkeys += tl.dot(tl.trans(ds), queries, input_precision="ieee")
        tl.atomic_add(dq + rows, tl.dot(ds, keys, input_precision="ieee"))
    tl.store(dk + mine, dkeys)
    tl.store(dv + mine, dvalues)


@case(grid=(4,), out=filled(3, 25), x=normal(3, 25), rows=3, n=25, B=32, tolerance=3e-7)
@triton.jit
def persistent_softmax(out, x, rows, n, B: tl.constexpr):
    """Each program takes every so-manieth row; one has none to take."""
    c = tl.arange(0, B)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        a = tl.load(x + row * n + c, mask=c < n, other=-float("inf"))
        e = tl.exp(a - tl.max(a, axis=0))
        tl.store(out + row * n + c, e / tl.sum(e, axis=0), mask=c < n)
