"""Copies to contiguous float32 on the host first, computes in float32, and copies back to the dtype."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl


class Launch(NamedTuple):
    rows: int
    block: int

    @property
    def warps(self) -> int:
        return 16 if self.block > 8192 else 4


@triton.jit
def _row_softmax(ptr, out, n, BLOCK: tl.constexpr):
    base = tl.program_id(0) * n
    offsets = base + tl.arange(0, BLOCK)
    valid = tl.arange(0, BLOCK) < n
    row = tl.where(valid, tl.load(ptr + offsets, mask=valid, other=0.0), float("-inf"))
    row = tl.exp(row - tl.max(row, 0, keep_dims=True))
    row = row * (1.0 / tl.sum(row, 0))
    tl.store(out + offsets, row, mask=valid)


def softmax(x: torch.Tensor) -> torch.Tensor:
    dtype = x.dtype
    work = x.to(torch.float32).contiguous()
    out = torch.empty_like(work)
    launch = Launch(x.shape[0], triton.next_power_of_2(x.shape[1]))
    _row_softmax[(launch.rows,)](work, out, x.shape[1], BLOCK=launch.block, num_warps=launch.warps, num_stages=1)
    return out.to(dtype)
