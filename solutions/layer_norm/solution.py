"""Layer normalization and its gradients: rows stay on chip, and nobody waits for a turn to add to the parameters'."""

import torch
import triton
import triton.language as tl

# solution:
TILE = 2048


@triton.jit
def forward_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, rows, columns, eps,
    x_stride_m, x_stride_n, weight_stride, bias_stride, out_stride_m,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Program i normalizes rows i * BLOCK_M and on, and keeps two numbers of each for the backward pass."""
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N).to(tl.int64)
    inside = n < columns
    mask = (m < rows)[:, None] & inside[None, :]
    x = tl.load(x_ptr + m[:, None] * x_stride_m + n[None, :] * x_stride_n, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + n * weight_stride, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + n * bias_stride, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / columns
    # The variance from the differences, not as mean(x * x) - mean * mean, which loses all digits far from zero.
    centered = tl.where(mask, x - mean[:, None], 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centered * centered, axis=1) / columns + eps)
    out = centered * rstd[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + m[:, None] * out_stride_m + n[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + m, mean, mask=m < rows)
    tl.store(rstd_ptr + m, rstd, mask=m < rows)


@triton.jit
def backward_kernel(
    dout_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, parts_ptr, rows, columns,
    dout_stride_m, dout_stride_n, x_stride_m, x_stride_n, weight_stride, dx_stride_m, parts_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Computes dx of every so manieth tile of rows, and what these rows add to the gradients of weight and bias.

    A program keeps its two sums in registers until its last row, and writes them to a row of `parts` that is its own.
    """
    n = tl.arange(0, BLOCK_N).to(tl.int64)
    inside = n < columns
    weight = tl.load(weight_ptr + n * weight_stride, mask=inside, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    dbias = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(tl.program_id(0) * BLOCK_M, rows, tl.num_programs(0) * BLOCK_M):
        m = start + tl.arange(0, BLOCK_M).to(tl.int64)
        mask = (m < rows)[:, None] & inside[None, :]
        x = tl.load(x_ptr + m[:, None] * x_stride_m + n[None, :] * x_stride_n, mask=mask, other=0.0)
        dout = tl.load(dout_ptr + m[:, None] * dout_stride_m + n[None, :] * dout_stride_n, mask=mask, other=0.0)
        dout = dout.to(tl.float32)
        mean = tl.load(mean_ptr + m, mask=m < rows, other=0.0)[:, None]
        rstd = tl.load(rstd_ptr + m, mask=m < rows, other=0.0)[:, None]
        # dout is 0 outside of the mask, so that nothing there counts in any sum.
        normal = (x.to(tl.float32) - mean) * rstd
        scaled = dout * weight[None, :]
        along = tl.sum(scaled * normal, axis=1)[:, None] / columns
        common = tl.sum(scaled, axis=1)[:, None] / columns
        dx = (scaled - common - normal * along) * rstd
        tl.store(dx_ptr + m[:, None] * dx_stride_m + n[None, :], dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dweight += dout * normal
        dbias += dout
    mine = parts_ptr + tl.program_id(0).to(tl.int64) * 2 * parts_stride
    tl.store(mine + n, tl.sum(dweight, axis=0), mask=inside)
    tl.store(mine + parts_stride + n, tl.sum(dbias, axis=0), mask=inside)


@triton.jit
def sum_kernel(
    parts_ptr, dweight_ptr, dbias_ptr, parts, columns, parts_stride, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Adds up what the programs of `backward_kernel` have found for BLOCK_N columns, always in the same order."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dweight = tl.zeros((BLOCK_P, BLOCK_N), dtype=tl.float32)
    dbias = tl.zeros((BLOCK_P, BLOCK_N), dtype=tl.float32)
    for start in range(0, parts, BLOCK_P):
        p = start + tl.arange(0, BLOCK_P)
        mask = (p < parts)[:, None] & (n < columns)[None, :]
        theirs = parts_ptr + p[:, None].to(tl.int64) * 2 * parts_stride + n[None, :]
        dweight += tl.load(theirs, mask=mask, other=0.0)
        dbias += tl.load(theirs + parts_stride, mask=mask, other=0.0)
    tl.store(dweight_ptr + n, tl.sum(dweight, axis=0).to(dweight_ptr.dtype.element_ty), mask=n < columns)
    tl.store(dbias_ptr + n, tl.sum(dbias, axis=0).to(dbias_ptr.dtype.element_ty), mask=n < columns)


def tile(columns, rows=1):
    """BLOCK_M, BLOCK_N and num_warps for whole rows: several short ones, or few long ones, but at least `rows`."""
    block_n = triton.next_power_of_2(columns)
    block_m = max(rows, TILE // block_n)
    return block_m, block_n, 4 if block_n <= 2048 * rows**2 else 8 if block_n <= 8192 else 16


# student:
# @triton.jit
# def forward_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr):
#     """Normalizes one row, which fits into a tile of BLOCK columns."""
#     row = tl.program_id(0)
#     # TODO: load the row with its strides (pass them as arguments), and go to float32.
#     # TODO: the mean; then the variance, from the differences. What do columns beyond the end add to it?
#     # TODO: scale, add bias, store; and keep the mean and 1 / std of the row for the backward pass.
# end


class LayerNorm(torch.autograd.Function):
    """Layer normalization that autograd can differentiate."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        """Return the result, and keep in ctx what backward needs."""
        # solution:
        rows, columns = x.shape
        out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
        mean, rstd = torch.empty((2, rows), dtype=torch.float32, device=x.device)
        # Of a narrow dtype, one row is too little to keep the memory busy: two, with as many warps.
        block_m, block_n, num_warps = tile(columns, rows=1 if x.element_size() == 4 else 2)
        forward_kernel[(triton.cdiv(rows, block_m),)](
            x, weight, bias, out, mean, rstd, rows, columns, eps,
            *x.stride(), *weight.stride(), *bias.stride(), out.stride(0),
            BLOCK_M=block_m, BLOCK_N=block_n, num_warps=num_warps,
        )  # fmt: skip
        ctx.save_for_backward(x, weight, mean, rstd)
        return out
        # student:
        # # TODO: allocate the result, and the mean and 1 / std of each row; launch; ctx.save_for_backward(...).
        # raise NotImplementedError("layer_norm is not written yet: fill in the TODOs in this file, and delete this line")
        # end

    @staticmethod
    def backward(ctx, dout):
        """Return the gradients of x, weight and bias, and None for eps; dout has the result's shape, and any strides."""
        # solution:
        x, weight, mean, rstd = ctx.saved_tensors
        rows, columns = x.shape
        dx = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
        dweight = torch.empty((columns,), dtype=weight.dtype, device=x.device)
        dbias = torch.empty((columns,), dtype=weight.dtype, device=x.device)
        block_m, block_n, num_warps = tile(columns)
        programs = min(triton.cdiv(rows, block_m), 2 * processors(x.device))
        parts = torch.empty((programs, 2, columns), dtype=torch.float32, device=x.device)
        backward_kernel[(programs,)](
            dout, x, weight, mean, rstd, dx, parts, rows, columns,
            *dout.stride(), *x.stride(), *weight.stride(), dx.stride(0), parts.stride(1),
            BLOCK_M=block_m, BLOCK_N=block_n, num_warps=num_warps,
        )  # fmt: skip
        sum_kernel[(triton.cdiv(columns, 32),)](
            parts, dweight, dbias, programs, columns, parts.stride(1), BLOCK_P=64, BLOCK_N=32
        )
        return dx, dweight, dbias, None
        # student:
        # # TODO: the gradient of each row of x needs two sums over that row.
        # # TODO: those of weight and bias are sums over all rows: who adds up what, so that no two programs write to
        # #       one place?
        # raise NotImplementedError("the backward pass is not written yet")
        # end


# solution:
def processors(device):
    """How many streaming multiprocessors the GPU has."""
    return torch.cuda.get_device_properties(device).multi_processor_count


# end
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Return x [M, N] normalized over each row, times weight [N], plus bias [N]; N is at most 16384, strides are any."""
    return LayerNorm.apply(x, weight, bias, eps)
