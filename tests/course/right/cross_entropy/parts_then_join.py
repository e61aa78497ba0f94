import torch
import triton
import triton.language as tl


@triton.jit
def part(x_ptr, top_ptr, sum_ptr, V, P, sm, sv, BLOCK: tl.constexpr):
    m, p = tl.program_id(0).to(tl.int64), tl.program_id(1)
    v = p.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + m * sm + v * sv, mask=v < V, other=-float("inf")).to(tl.float32)
    top = tl.max(x, 0)
    tl.store(top_ptr + m * P + p, top)
    tl.store(sum_ptr + m * P + p, tl.sum(tl.exp(x - top), 0))


@triton.jit
def join(x_ptr, y_ptr, top_ptr, sum_ptr, o_ptr, P, sm, sv, sy, PARTS: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    p = tl.arange(0, PARTS)
    tops = tl.load(top_ptr + m * P + p, mask=p < P, other=-float("inf"))
    sums = tl.load(sum_ptr + m * P + p, mask=p < P, other=0.0)
    top = tl.max(tops, 0)
    picked = tl.load(x_ptr + m * sm + tl.load(y_ptr + m * sy) * sv).to(tl.float32)
    tl.store(o_ptr + m, tl.log(tl.sum(sums * tl.exp(tops - top), 0)) + (top - picked))


def cross_entropy(logits, labels):
    M, V = logits.shape
    block = 1024
    parts = triton.cdiv(V, block)
    tops, sums = (torch.empty((M, parts), dtype=torch.float32, device=logits.device) for _ in range(2))
    out = torch.empty((M,), dtype=torch.float32, device=logits.device)
    part[(M, parts)](logits, tops, sums, V, parts, logits.stride(0), logits.stride(1), BLOCK=block)
    join[(M,)](logits, labels, tops, sums, out, parts, logits.stride(0), logits.stride(1), labels.stride(0),
               PARTS=triton.next_power_of_2(parts))
    return out
