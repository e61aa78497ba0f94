"""A fixed number of persistent programs, each taking every num_programs-th tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0), num_stages=STAGES):
        offsets = tile * BLOCK + tl.arange(0, BLOCK)
        offsets = tl.max_contiguous(tl.multiple_of(offsets, BLOCK), BLOCK)
        keep = offsets < n
        x = tl.load(x_ptr + offsets, mask=keep, other=0)
        y = tl.load(y_ptr + offsets, mask=keep, other=0)
        tl.store(out_ptr + offsets, x + y, mask=keep)


def add(x, y):
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count
    add_kernel[(programs,)](x.contiguous(), y.contiguous(), out, x.numel(), BLOCK=128, STAGES=2, num_warps=4)
    torch.cuda.synchronize()
    return out
