import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, N, stride):
    for n in range(tl.program_id(0), N, tl.num_programs(0)):
        x = tl.load(x_ptr + n.to(tl.int64) * stride)
        tl.atomic_add(out_ptr + x, 1)


def histogram(x, bins):
    out = torch.zeros((bins,), dtype=torch.int32, device=x.device)
    kernel[(min(x.numel(), 1024),)](x, out, x.numel(), x.stride(0))
    return out
