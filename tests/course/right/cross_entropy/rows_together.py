import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, M, V, sm, sv, sy, R: tl.constexpr, BLOCK: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    top = tl.full((R,), -float("inf"), tl.float32)
    total = tl.zeros((R,), tl.float32)
    for start in range(0, V, BLOCK):
        v = start + tl.arange(0, BLOCK).to(tl.int64)
        inside = (m[:, None] < M) & (v[None, :] < V)
        x = tl.load(x_ptr + m[:, None] * sm + v[None, :] * sv, mask=inside, other=-float("inf")).to(tl.float32)
        x = tl.where(inside, x, -float("inf"))
        new = tl.maximum(top, tl.max(x, 1))
        total = total * tl.exp(top - new) + tl.sum(tl.where(inside, tl.exp(x - new[:, None]), 0.0), 1)
        top = new
    label = tl.load(y_ptr + m * sy, mask=m < M, other=0)
    picked = tl.load(x_ptr + m * sm + label * sv, mask=m < M, other=0.0).to(tl.float32)
    tl.store(o_ptr + m, tl.log(total) + (top - picked), mask=m < M)


def cross_entropy(logits, labels):
    M, V = logits.shape
    out = torch.empty((M,), dtype=torch.float32, device=logits.device)
    kernel[(triton.cdiv(M, 4),)](logits, labels, out, M, V, logits.stride(0), logits.stride(1), labels.stride(0), 4, 128)
    return out
