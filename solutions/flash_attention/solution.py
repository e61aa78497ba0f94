"""Attention in tiles: the weights live on chip, one tile at a time, in the forward pass and again in the backward pass."""

import torch
import triton
import triton.language as tl

# solution:
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2E = 1.4426950408889634

# Everything is in powers of two: exp(x) is exp2(x * log2(e)), and `scale` is sm_scale with that factor.
# q, k, v and their gradients are [B * H, S, D]; a descriptor loads a tile of one head, and gives zeros past its end.


@triton.jit
def hide(scores, rows, columns, S, CAUSAL: tl.constexpr):
    """The tile of scores with -inf where a query must not look: past the end, or ahead of itself."""
    visible = columns < S
    if CAUSAL:
        visible = visible & (columns <= rows)
    return tl.where(visible, scores, -float("inf"))


@triton.jit
def walk(
    result, total, peak, q, k_desc, v_desc, head, rows, begin, end, S, scale,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """The running result, sum and maximum of each query, after the keys from begin to end."""
    for start in tl.range(begin, end, BLOCK_N):
        v = v_desc.load([head, start, 0]).reshape(BLOCK_N, D)
        k = k_desc.load([head, start, 0]).reshape(BLOCK_N, D)
        scores = tl.dot(q, k.T, input_precision="tf32x3")
        if MASKED:
            scores = hide(scores, rows[:, None], start + tl.arange(0, BLOCK_N)[None, :], S, CAUSAL)
        higher = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - higher[:, None])  # one instruction multiplies and subtracts
        shrink = tl.exp2(peak - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        result = tl.dot(weights.to(v.dtype), v, result * shrink[:, None], input_precision="tf32x3")
        peak = higher
    return result, total, peak


@triton.jit
def forward_kernel(
    q_desc, k_desc, v_desc, out_ptr, log_sum_ptr, S, scale,
    FLIPPED: tl.constexpr, CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One program: BLOCK_M queries of one head, against all keys, or where CAUSAL against those up to their own."""
    tile = tl.num_programs(0) - 1 - tl.program_id(0)  # where causal, the last queries have most to do: they begin
    head = tl.program_id(1)
    first = tile * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    q = q_desc.load([head, first, 0]).reshape(BLOCK_M, D)
    if FLIPPED:  # the highest score is found before it is scaled, so the scale must be positive
        q, scale = -q, -scale
    peak = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    # First the tiles of keys that every query of mine sees whole; then those that need a mask.
    whole = (first if CAUSAL else S) // BLOCK_N * BLOCK_N
    end = min(first + BLOCK_M, S) if CAUSAL else S
    result, total, peak = walk(
        result, total, peak, q, k_desc, v_desc, head, rows, 0, whole, S, scale, False, CAUSAL, BLOCK_N, D
    )
    result, total, peak = walk(
        result, total, peak, q, k_desc, v_desc, head, rows, whole, end, S, scale, True, CAUSAL, BLOCK_N, D
    )
    place = head.to(tl.int64) * S + rows
    tl.store(log_sum_ptr + place, peak + tl.log2(total), mask=rows < S)
    out = (result / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + place[:, None] * D + tl.arange(0, D)[None, :], out, mask=(rows < S)[:, None])


@triton.jit
def row_sums_kernel(out_ptr, grad_ptr, sums_ptr, rows, D: tl.constexpr, BLOCK: tl.constexpr):
    """For each query the sum of out * grad, which all gradients of its scores need."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    place, mask = row[:, None] * D + tl.arange(0, D)[None, :], (row < rows)[:, None]
    out = tl.load(out_ptr + place, mask=mask, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + place, mask=mask, other=0.0).to(tl.float32)
    tl.store(sums_ptr + row, tl.sum(out * grad, axis=1), mask=row < rows)


@triton.jit
def walk_queries(
    dk, dv, k, v, q_desc, grad_desc, log_sum_ptr, sums_ptr, head, columns, begin, end, S, scale,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """The running gradients of some keys and values, after the queries from begin to end; all tiles are transposed."""
    for start in tl.range(begin, end, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        q = q_desc.load([head, start, 0]).reshape(BLOCK_M, D)
        grad = grad_desc.load([head, start, 0]).reshape(BLOCK_M, D)
        # Past the end the weights become exp2(-inf) = 0.
        log_sum = tl.load(log_sum_ptr + head.to(tl.int64) * S + rows, mask=rows < S, other=float("inf"))
        scores = tl.dot(k, q.T, input_precision="tf32x3")
        weights = tl.exp2(scores * scale - log_sum[None, :])
        if MASKED:
            weights = tl.where(columns[:, None] <= rows[None, :], weights, 0.0)
        dv = tl.dot(weights.to(grad.dtype), grad, dv, input_precision="tf32x3")
        sums = tl.load(sums_ptr + head.to(tl.int64) * S + rows, mask=rows < S, other=0.0)
        d_scores = weights * (tl.dot(v, grad.T, input_precision="tf32x3") - sums[None, :])
        dk = tl.dot(d_scores.to(q.dtype), q, dk, input_precision="tf32x3")
    return dk, dv


@triton.jit
def key_value_kernel(
    q_desc, k_desc, v_desc, grad_desc, log_sum_ptr, sums_ptr, dk_ptr, dv_ptr, S, scale, sm_scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One program: the gradients of BLOCK_N keys and values of one head, from all queries that look at them."""
    first, head = tl.program_id(0) * BLOCK_N, tl.program_id(1)
    columns = first + tl.arange(0, BLOCK_N)
    k = k_desc.load([head, first, 0]).reshape(BLOCK_N, D)
    v = v_desc.load([head, first, 0]).reshape(BLOCK_N, D)
    dk = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    begin = 0
    if CAUSAL:
        begin = first // BLOCK_M * BLOCK_M
        whole = min(tl.cdiv(first + BLOCK_N, BLOCK_M) * BLOCK_M, S)  # from here on every query sees all my keys
        dk, dv = walk_queries(
            dk, dv, k, v, q_desc, grad_desc, log_sum_ptr, sums_ptr, head, columns, begin, whole, S, scale,
            True, CAUSAL, BLOCK_M, D,
        )  # fmt: skip
        begin = whole
    dk, dv = walk_queries(
        dk, dv, k, v, q_desc, grad_desc, log_sum_ptr, sums_ptr, head, columns, begin, S, S, scale,
        False, CAUSAL, BLOCK_M, D,
    )  # fmt: skip
    place = (head.to(tl.int64) * S + columns)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(dk_ptr + place, (dk * sm_scale).to(dk_ptr.dtype.element_ty), mask=(columns < S)[:, None])
    tl.store(dv_ptr + place, dv.to(dv_ptr.dtype.element_ty), mask=(columns < S)[:, None])


@triton.jit
def walk_keys(
    dq, q, grad, log_sum, sums, k_desc, v_desc, head, rows, begin, end, S, scale,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """The running gradient of some queries, after the keys from begin to end."""
    for start in tl.range(begin, end, BLOCK_N):
        k = k_desc.load([head, start, 0]).reshape(BLOCK_N, D)
        v = v_desc.load([head, start, 0]).reshape(BLOCK_N, D)
        scores = tl.dot(q, k.T, input_precision="tf32x3")
        if MASKED:
            scores = hide(scores, rows[:, None], start + tl.arange(0, BLOCK_N)[None, :], S, CAUSAL)
        weights = tl.exp2(scores * scale - log_sum[:, None])
        d_scores = weights * (tl.dot(grad, v.T, input_precision="tf32x3") - sums[:, None])
        dq = tl.dot(d_scores.to(k.dtype), k, dq, input_precision="tf32x3")
    return dq


@triton.jit
def query_kernel(
    q_desc, k_desc, v_desc, grad_desc, log_sum_ptr, sums_ptr, dq_ptr, S, scale, sm_scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One program: the gradient of BLOCK_M queries of one head."""
    tile, head = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1)
    first = tile * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    q = q_desc.load([head, first, 0]).reshape(BLOCK_M, D)
    grad = grad_desc.load([head, first, 0]).reshape(BLOCK_M, D)
    place = head.to(tl.int64) * S + rows
    log_sum = tl.load(log_sum_ptr + place, mask=rows < S, other=float("inf"))
    sums = tl.load(sums_ptr + place, mask=rows < S, other=0.0)
    dq = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    whole = (first if CAUSAL else S) // BLOCK_N * BLOCK_N
    end = min(first + BLOCK_M, S) if CAUSAL else S
    dq = walk_keys(
        dq, q, grad, log_sum, sums, k_desc, v_desc, head, rows, 0, whole, S, scale, False, CAUSAL, BLOCK_N, D
    )
    dq = walk_keys(
        dq, q, grad, log_sum, sums, k_desc, v_desc, head, rows, whole, end, S, scale, True, CAUSAL, BLOCK_N, D
    )
    dq = (dq * sm_scale).to(dq_ptr.dtype.element_ty)
    tl.store(dq_ptr + place[:, None] * D + tl.arange(0, D)[None, :], dq, mask=(rows < S)[:, None])


def heads_of(x: torch.Tensor) -> torch.Tensor:
    """x [B, H, S, D] as [B * H, S, D]: as it lies where a descriptor can read it, which wants 16-byte steps, or a copy."""
    x = x.contiguous()
    x = x if x.data_ptr() % 16 == 0 else x.clone()
    return x.view(-1, *x.shape[2:])


def tiles(x: torch.Tensor, block: int) -> TensorDescriptor:
    """A descriptor for tiles of `block` rows of one head of x [B * H, S, D]."""
    _, S, D = x.shape
    return TensorDescriptor(x, list(x.shape), [S * D, D, 1], [1, block, D])


def forward(q, k, v, causal: bool, sm_scale: float):
    """The result [B * H, S, D] and, for each query, the logarithm (to base 2) of the sum of its weights."""
    heads, S, D = q.shape
    out = torch.empty((heads, S, D), dtype=q.dtype, device=q.device)
    log_sum = torch.empty((heads, S), dtype=torch.float32, device=q.device)
    block_m, block_n, options = FORWARD[q.element_size() == 2, D <= 64]
    forward_kernel[(triton.cdiv(S, block_m), heads)](
        tiles(q, block_m), tiles(k, block_n), tiles(v, block_n), out, log_sum, S, sm_scale * LOG2E,
        FLIPPED=sm_scale < 0, CAUSAL=causal, D=D, BLOCK_M=block_m, BLOCK_N=block_n, **options,
    )  # fmt: skip
    return out, log_sum


def backward(grad, q, k, v, out, log_sum, causal: bool, sm_scale: float):
    """The gradients of q, k and v, each [B * H, S, D]."""
    heads, S, D = q.shape
    sums, (dq, dk, dv) = torch.empty_like(log_sum), (torch.empty_like(x) for x in (q, k, v))
    row_sums_kernel[(triton.cdiv(heads * S, 64),)](out, grad, sums, heads * S, D=D, BLOCK=64)
    block_m, block_n, options = KEY_VALUE[q.element_size() == 2, D <= 64]
    key_value_kernel[(triton.cdiv(S, block_n), heads)](
        tiles(q, block_m), tiles(k, block_n), tiles(v, block_n), tiles(grad, block_m), log_sum, sums, dk, dv,
        S, sm_scale * LOG2E, sm_scale, CAUSAL=causal, D=D, BLOCK_M=block_m, BLOCK_N=block_n, **options,
    )  # fmt: skip
    block_m, block_n, options = QUERY[q.element_size() == 2, D <= 64]
    query_kernel[(triton.cdiv(S, block_m), heads)](
        tiles(q, block_m), tiles(k, block_n), tiles(v, block_n), tiles(grad, block_m), log_sum, sums, dq,
        S, sm_scale * LOG2E, sm_scale, CAUSAL=causal, D=D, BLOCK_M=block_m, BLOCK_N=block_n, **options,
    )  # fmt: skip
    return dq, dk, dv


# By (16-bit dtype, D up to 64): rows of q, rows of k and v, and how the compiler is to do it, as measured on an H200.
FORWARD = {
    (True, True): (64, 128, {"num_warps": 4, "num_stages": 2}),
    (True, False): (64, 64, {"num_warps": 4, "num_stages": 3}),
    (False, True): (64, 32, {"num_warps": 4, "num_stages": 2}),
    (False, False): (64, 32, {"num_warps": 8, "num_stages": 2}),
}
KEY_VALUE = {
    (True, True): (64, 64, {"num_warps": 4, "num_stages": 3}),
    (True, False): (64, 64, {"num_warps": 4, "num_stages": 2}),
    (False, True): (32, 32, {"num_warps": 4, "num_stages": 1}),
    (False, False): (32, 32, {"num_warps": 8, "num_stages": 1}),
}
QUERY = {
    (True, True): (64, 64, {"num_warps": 4, "num_stages": 3}),
    (True, False): (128, 64, {"num_warps": 8, "num_stages": 3}),
    (False, True): (32, 32, {"num_warps": 4, "num_stages": 1}),
    (False, False): (32, 32, {"num_warps": 8, "num_stages": 1}),
}
# student:
# @triton.jit
# def forward_kernel(
#     q_ptr, k_ptr, v_ptr, out_ptr, log_sum_ptr, S, sm_scale,
#     CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
# ):
#     """Computes BLOCK_M rows of one head's result, and for each the logarithm of the sum of its weights."""
#     # TODO: which rows of which head are mine? Load this tile of q.
#     # TODO: walk along k and v in tiles of BLOCK_N rows: scores, their running maximum, the running sum of the weights,
#     #       the running result. Which scores must be -inf? Compute in float32.
#     # TODO: divide and store; the backward pass needs maximum + log(sum), too.
# end


class Attention(torch.autograd.Function):
    """Attention with a backward pass of its own."""

    @staticmethod
    def forward(ctx, q, k, v, causal, sm_scale):
        """The result; what `backward` needs goes to ctx.save_for_backward, numbers to ctx itself."""
        # solution:
        shape = q.shape
        q, k, v = heads_of(q), heads_of(k), heads_of(v)
        out, log_sum = forward(q, k, v, causal, sm_scale)
        ctx.save_for_backward(q, k, v, out, log_sum)
        ctx.causal, ctx.sm_scale = causal, sm_scale
        return out.view(shape)
        # student:
        # # TODO: allocate the result, choose tiles and a grid, launch, return the result.
        # raise NotImplementedError("attention is not written yet: fill in the TODOs in this file, and delete this line")
        # end

    @staticmethod
    def backward(ctx, grad):
        """The gradients of q, k and v, and None for each of the two numbers."""
        # solution:
        q, k, v, out, log_sum = ctx.saved_tensors
        gradients = backward(heads_of(grad), q, k, v, out, log_sum, ctx.causal, ctx.sm_scale)
        return *(x.view(grad.shape) for x in gradients), None, None
        # student:
        # # TODO: make the weights again, tile by tile, from the scores and what you saved; do not store them.
        # raise NotImplementedError("the backward pass is not written yet")
        # end


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, sm_scale: float) -> torch.Tensor:
    """Return softmax(sm_scale * q k^T) v for each head of q, k, v [B, H, S, D], as a new tensor; strides are any.

    Where `causal`, query i looks at keys 0 to i alone. Differentiable in q, k and v.
    """
    return Attention.apply(q, k, v, causal, sm_scale)
