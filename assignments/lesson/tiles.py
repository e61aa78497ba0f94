"""The kernel of tiles.md: takes each row's mean away from it, and writes the matrix transposed. Run it: python tiles.py

Without a GPU, Triton's interpreter runs it: you can print inside the kernel, and change it.
"""

import os

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported

import triton
import triton.language as tl


@triton.jit
def centre_kernel(x_ptr, out_ptr, M, N, stride_m, stride_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)  # [BLOCK_M]
    cols = tl.arange(0, BLOCK_N)  # [BLOCK_N]
    exists = (rows[:, None] < M) & (cols[None, :] < N)  # [BLOCK_M, BLOCK_N]
    places = rows[:, None] * stride_m + cols[None, :] * stride_n  # [BLOCK_M, BLOCK_N]
    x = tl.load(x_ptr + places, mask=exists, other=0.0)
    mean = tl.sum(x, axis=1, keep_dims=True) / N  # [BLOCK_M, 1]
    centred = tl.where(exists, x - mean, 0.0)
    turned = tl.trans(centred)  # [BLOCK_N, BLOCK_M]
    tl.store(out_ptr + cols[:, None] * M + rows[None, :], turned, mask=(cols[:, None] < N) & (rows[None, :] < M))


def centre(x):
    M, N = x.shape
    out = torch.empty((N, M), dtype=x.dtype, device=x.device)
    BLOCK_M, BLOCK_N = 4, triton.next_power_of_2(N)
    centre_kernel[(triton.cdiv(M, BLOCK_M),)](x, out, M, N, *x.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return out


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.arange(18.0, device=device).reshape(6, 3) ** 2
    print(x, centre(x), "right:", (x - x.mean(1, keepdim=True)).T, sep="\n")
