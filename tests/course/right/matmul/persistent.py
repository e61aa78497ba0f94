"""A fixed number of programs walks over the tiles; one flat loop over tiles and steps along K."""

import torch
import triton
import triton.language as tl


@triton.jit
def _place(tile, tiles_n):
    return tile // tiles_n, tile % tiles_n


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    steps = tl.cdiv(K, BK)
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS):
        pm, pn = _place(tile, tiles_n)
        m = pm * BM + tl.arange(0, BM)
        n = pn * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for step in tl.range(steps, num_stages=2):
            k = step * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + m[:, None] * sam + k[None, :] * sak, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            b = tl.load(b_ptr + k[:, None] * sbk + n[None, :] * sbn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc=acc, out_dtype=tl.float32)
        c = acc.to(c_ptr.dtype.element_ty)
        tl.store(c_ptr + m[:, None] * scm + n[None, :] * scn, c, mask=(m[:, None] < M) & (n[None, :] < N))


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    M, N, K = a.shape[0], b.shape[1], a.shape[1]
    c = a.new_empty(M, N)
    programs = min(torch.cuda.get_device_properties(0).multi_processor_count, triton.cdiv(M, 64) * triton.cdiv(N, 32))
    kernel[(programs,)](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), BM=64, BN=32, BK=16, PROGRAMS=programs)
    return c
