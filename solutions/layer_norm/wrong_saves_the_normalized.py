"""Keeps the whole normalized x for the backward pass, in float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, w_ptr, b_ptr, out_ptr, xhat_ptr, rstd_ptr, N, eps, sm, sn, sw, sb, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sm + cols * sn, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centered = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centered * centered, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    w = tl.load(w_ptr + cols * sw, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols * sb, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * N + cols, (x - mean) * rstd * w + b, mask=mask)
    tl.store(xhat_ptr + row * N + cols, (x - mean) * rstd, mask=mask)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def dx_kernel(dy_ptr, xhat_ptr, w_ptr, rstd_ptr, dx_ptr, N, dm, dn, sw, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    dy = tl.load(dy_ptr + row * dm + cols * dn, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols * sw, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    xhat = tl.load(xhat_ptr + row * N + cols, mask=mask, other=0.0)
    wdy = w * dy
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(dx_ptr + row * N + cols, (wdy - xhat * c1 - c2) * rstd, mask=mask)


@triton.jit
def parameters_kernel(dy_ptr, xhat_ptr, dw_ptr, db_ptr, M, N, dm, dn, ROWS: tl.constexpr, COLS: tl.constexpr):
    """All rows of a few columns: each column belongs to one program."""
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)[None, :]
    dw = tl.zeros((ROWS, COLS), dtype=tl.float32)
    db = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for start in range(0, M, ROWS):
        rows = start + tl.arange(0, ROWS)[:, None]
        mask = (rows < M) & (cols < N)
        dy = tl.load(dy_ptr + rows * dm + cols * dn, mask=mask, other=0.0).to(tl.float32)
        dw += dy * tl.load(xhat_ptr + rows * N + cols, mask=mask, other=0.0)
        db += dy
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_ptr + cols, tl.sum(db, axis=0), mask=cols < N)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        xhat = torch.empty((M, N), dtype=torch.float32, device=x.device)
        rstd = torch.empty(M, dtype=torch.float32, device=x.device)
        BLOCK = triton.next_power_of_2(N)
        forward_kernel[(M,)](
            x, weight, bias, out, xhat, rstd, N, eps, *x.stride(), weight.stride(0), bias.stride(0), BLOCK=BLOCK
        )
        ctx.save_for_backward(xhat, weight, rstd)
        return out

    @staticmethod
    def backward(ctx, dy):
        xhat, weight, rstd = ctx.saved_tensors
        M, N = xhat.shape
        dx = torch.empty((M, N), dtype=weight.dtype, device=dy.device)
        dw = torch.empty(N, dtype=weight.dtype, device=dy.device)
        db = torch.empty(N, dtype=weight.dtype, device=dy.device)
        BLOCK = triton.next_power_of_2(N)
        dx_kernel[(M,)](dy, xhat, weight, rstd, dx, N, *dy.stride(), weight.stride(0), BLOCK=BLOCK)
        grid = (triton.cdiv(N, 32),)
        parameters_kernel[grid](dy, xhat, dw, db, M, N, *dy.stride(), ROWS=16, COLS=32)
        return dx, dw, db, None


def layer_norm(x, weight, bias, eps=1e-5):
    return LayerNorm.apply(x, weight, bias, eps)
