"""tl.softmax on one row at a time, with the width chosen by a heuristic and the warps by autotuning."""

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (1, 4)], key=["N"])
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["N"])})
@triton.jit
def softmax_kernel(x_ptr, y_ptr, sm, sn, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=cols < N, other=-float("inf"))
    y = tl.softmax(x.to(tl.float32))
    tl.store(y_ptr + row * N + cols, y.to(x.dtype), mask=cols < N)


def softmax(x):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(M,)](x, y, x.stride(0), x.stride(1), N)
    return y
