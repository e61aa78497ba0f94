"""Every row adds to the gradients of weight and bias atomically, in float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, rstd_ptr, N, eps, sm, sn, sw, sb, BLOCK: tl.constexpr):
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
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def dx_kernel(dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, N, dm, dn, sm, sn, sw, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    dy = tl.load(dy_ptr + row * dm + cols * dn, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols * sw, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    xhat = (x - tl.load(mean_ptr + row)) * rstd
    wdy = w * dy
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(dx_ptr + row * N + cols, (wdy - xhat * c1 - c2) * rstd, mask=mask)


@triton.jit
def parameters_kernel(dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_ptr, db_ptr, N, dm, dn, sm, sn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    dy = tl.load(dy_ptr + row * dm + cols * dn, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * sm + cols * sn, mask=mask, other=0.0).to(tl.float32)
    xhat = (x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row)
    tl.atomic_add(dw_ptr + cols, dy * xhat, mask=mask)
    tl.atomic_add(db_ptr + cols, dy, mask=mask)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        mean = torch.empty(M, dtype=torch.float32, device=x.device)
        rstd = torch.empty(M, dtype=torch.float32, device=x.device)
        BLOCK = triton.next_power_of_2(N)
        forward_kernel[(M,)](
            x, weight, bias, out, mean, rstd, N, eps, *x.stride(), weight.stride(0), bias.stride(0), BLOCK=BLOCK
        )
        ctx.save_for_backward(x, weight, mean, rstd)
        return out

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        M, N = x.shape
        dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
        dw = torch.zeros(N, dtype=torch.float32, device=x.device)
        db = torch.zeros(N, dtype=torch.float32, device=x.device)
        BLOCK = triton.next_power_of_2(N)
        dx_kernel[(M,)](dy, x, weight, mean, rstd, dx, N, *dy.stride(), *x.stride(), weight.stride(0), BLOCK=BLOCK)
        parameters_kernel[(M,)](dy, x, mean, rstd, dw, db, N, *dy.stride(), *x.stride(), BLOCK=BLOCK)
        return dx, dw.to(weight.dtype), db.to(weight.dtype), None


def layer_norm(x, weight, bias, eps=1e-5):
    return LayerNorm.apply(x, weight, bias, eps)
