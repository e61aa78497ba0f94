"""Several programs share a tile along K and add their parts with atomics onto float32 zeros."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(tl.program_id(2) * BK, K, BK * SPLIT):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * sam + k[None, :] * sak, (m[:, None] < M) & (k[None, :] < K), 0.0)
        b = tl.load(b_ptr + k[:, None] * sbk + n[None, :] * sbn, (k[:, None] < K) & (n[None, :] < N), 0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3" if a.dtype == tl.float32 else None)
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, (m[:, None] < M) & (n[None, :] < N), sem="relaxed")


def matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.zeros((M, N), dtype=torch.float32, device=a.device)
    split = 4
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32), split)](a, b, c, M, N, K, *a.stride(), *b.stride(), 32, 32, 16, split)
    return c.to(a.dtype)
