"""A 2-D grid over a view as [rows, columns], with every stride passed to the kernel and the planes looped on the host."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(
    x_ptr, y_ptr, z_ptr, M, N, sxm, sxn, sym, syn, szm, szn, BM: tl.constexpr, BN: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    x = tl.load(x_ptr + rows[:, None] * sxm + cols[None, :] * sxn, mask=mask)
    y = tl.load(y_ptr + rows[:, None] * sym + cols[None, :] * syn, mask=mask)
    tl.store(z_ptr + rows[:, None] * szm + cols[None, :] * szn, x + y, mask=mask)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.empty_like(x)
    if z.numel() == 0:
        return z
    planes = [(x, y, z)] if x.dim() < 3 else [(x[i], y[i], z[i]) for i in range(x.shape[0])]
    starts = range(0, x.shape[-1], 64 * 65535)  # the y of a grid counts to 65,535
    planes = [tuple(t[..., n : n + 64 * 65535] for t in one) for one in planes for n in starts]
    for a, b, c in planes:
        if a.dim() == 1:
            a, b, c = a.unsqueeze(1), b.unsqueeze(1), c.unsqueeze(1)  # the y of a grid counts to 65,535
        M, N = a.shape
        grid = (triton.cdiv(M, 8), triton.cdiv(N, 64))
        add_kernel[grid](a, b, c, M, N, *a.stride(), *b.stride(), *c.stride(), BM=8, BN=64)
    return z
