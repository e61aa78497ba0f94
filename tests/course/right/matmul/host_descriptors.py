"""Host-side tensor descriptors over copies whose rows are padded to 16 bytes, as the hardware asks."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BM, BN, BK = 32, 32, 32


@triton.jit
def kernel(a_desc, b_desc, c_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = a_desc.load([m, k])
        b = b_desc.load([k, n])
        acc = tl.dot(a, b, acc, input_precision="ieee")
    c_desc.store([m, n], acc.to(c_desc.dtype))


def aligned(x):
    rows, cols = x.shape
    pad = 16 // x.element_size()
    return torch.empty((rows, triton.cdiv(cols, pad) * pad), dtype=x.dtype, device=x.device)[:, :cols]


def aligned_copy(x):
    return aligned(x).copy_(x)


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = aligned(a.new_empty(1, 1).expand(M, N))
    descriptors = [
        TensorDescriptor(t, t.shape, t.stride(), block)
        for t, block in ((aligned_copy(a), [BM, BK]), (aligned_copy(b), [BK, BN]), (c, [BM, BN]))
    ]
    kernel[(triton.cdiv(M, BM), triton.cdiv(N, BN))](*descriptors, K, BM=BM, BN=BN, BK=BK, num_warps=4)
    return c.contiguous()
