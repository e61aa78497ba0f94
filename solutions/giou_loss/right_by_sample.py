"""One program for each sample, as in the article, with masks; torch adds up."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(p_ptr, g_ptr, giou_ptr, real_ptr, N, sb, sn, pc, tb, tn, gc, BLOCK: tl.constexpr):
    """One program for each sample of the batch."""
    batch = tl.program_id(0)
    n = tl.arange(0, BLOCK)
    mask = n < N
    p_ptr += batch * sb + n * sn
    g_ptr += batch * tb + n * tn
    pl = tl.load(p_ptr, mask=mask, other=0.0).to(tl.float32)
    pt = tl.load(p_ptr + pc, mask=mask, other=0.0).to(tl.float32)
    pr = tl.load(p_ptr + 2 * pc, mask=mask, other=0.0).to(tl.float32)
    pb = tl.load(p_ptr + 3 * pc, mask=mask, other=0.0).to(tl.float32)
    gl = tl.load(g_ptr, mask=mask, other=0.0).to(tl.float32)
    gt = tl.load(g_ptr + gc, mask=mask, other=0.0).to(tl.float32)
    gr = tl.load(g_ptr + 2 * gc, mask=mask, other=0.0).to(tl.float32)
    gb = tl.load(g_ptr + 3 * gc, mask=mask, other=0.0).to(tl.float32)
    iw = tl.maximum(tl.minimum(pr, gr) - tl.maximum(pl, gl), 0.0)
    ih = tl.maximum(tl.minimum(pb, gb) - tl.maximum(pt, gt), 0.0)
    ew = tl.maximum(tl.maximum(pr, gr) - tl.minimum(pl, gl), 0.0)
    eh = tl.maximum(tl.maximum(pb, gb) - tl.minimum(pt, gt), 0.0)
    inter = iw * ih
    enclosing = ew * eh
    union = (pr - pl) * (pb - pt) + (gr - gl) * (gb - gt) - inter
    giou = inter / tl.maximum(union, 1e-5) - (enclosing - union) / tl.maximum(enclosing, 1e-5)
    real = gb > 0
    tl.store(giou_ptr + batch * N + n, tl.where(real, giou, 0.0), mask=mask)
    tl.store(real_ptr + batch * N + n, real, mask=mask)


@triton.jit
def backward_kernel(dloss_ptr, count_ptr, p_ptr, g_ptr, dp_ptr, N, sb, sn, pc, tb, tn, gc, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    n = tl.arange(0, BLOCK)
    mask = n < N
    p_ptr += batch * sb + n * sn
    g_ptr += batch * tb + n * tn
    pl = tl.load(p_ptr, mask=mask, other=0.0).to(tl.float32)
    pt = tl.load(p_ptr + pc, mask=mask, other=0.0).to(tl.float32)
    pr = tl.load(p_ptr + 2 * pc, mask=mask, other=0.0).to(tl.float32)
    pb = tl.load(p_ptr + 3 * pc, mask=mask, other=0.0).to(tl.float32)
    gl = tl.load(g_ptr, mask=mask, other=0.0).to(tl.float32)
    gt = tl.load(g_ptr + gc, mask=mask, other=0.0).to(tl.float32)
    gr = tl.load(g_ptr + 2 * gc, mask=mask, other=0.0).to(tl.float32)
    gb = tl.load(g_ptr + 3 * gc, mask=mask, other=0.0).to(tl.float32)
    iw = tl.maximum(tl.minimum(pr, gr) - tl.maximum(pl, gl), 0.0)
    ih = tl.maximum(tl.minimum(pb, gb) - tl.maximum(pt, gt), 0.0)
    ew = tl.maximum(tl.maximum(pr, gr) - tl.minimum(pl, gl), 0.0)
    eh = tl.maximum(tl.maximum(pb, gb) - tl.minimum(pt, gt), 0.0)
    inter = iw * ih
    enclosing = ew * eh
    union = (pr - pl) * (pb - pt) + (gr - gl) * (gb - gt) - inter
    u = tl.maximum(union, 1e-5)
    e = tl.maximum(enclosing, 1e-5)
    d_union = 1 / e - inter / (u * u)
    d_inter = 1 / u - d_union
    d_enclosing = (enclosing - union) / (e * e) - 1 / e
    area_w = d_union * (pb - pt)
    area_h = d_union * (pr - pl)
    inter_w = tl.where(iw > 0, d_inter * ih, 0.0)
    inter_h = tl.where(ih > 0, d_inter * iw, 0.0)
    outer_w = d_enclosing * eh
    outer_h = d_enclosing * ew
    scale = tl.load(dloss_ptr) / tl.maximum(tl.load(count_ptr).to(tl.float32), 1.0)
    dl = -area_w - tl.where(pl > gl, inter_w, 0.0) - tl.where(pl < gl, outer_w, 0.0)
    dt = -area_h - tl.where(pt > gt, inter_h, 0.0) - tl.where(pt < gt, outer_h, 0.0)
    dr = area_w + tl.where(pr < gr, inter_w, 0.0) + tl.where(pr > gr, outer_w, 0.0)
    db = area_h + tl.where(pb < gb, inter_h, 0.0) + tl.where(pb > gb, outer_h, 0.0)
    real = gb > 0
    dp_ptr += (batch * N + n) * 4
    tl.store(dp_ptr, tl.where(real, dl * scale, 0.0), mask=mask)
    tl.store(dp_ptr + 1, tl.where(real, dt * scale, 0.0), mask=mask)
    tl.store(dp_ptr + 2, tl.where(real, dr * scale, 0.0), mask=mask)
    tl.store(dp_ptr + 3, tl.where(real, db * scale, 0.0), mask=mask)


class GIoULoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, targets):
        B, N, _ = pred.shape
        giou = torch.empty((B, N), dtype=torch.float32, device=pred.device)
        real = torch.empty((B, N), dtype=torch.bool, device=pred.device)
        BLOCK = triton.next_power_of_2(N)
        forward_kernel[(B,)](pred, targets, giou, real, N, *pred.stride(), *targets.stride(), BLOCK=BLOCK)
        count = real.sum()
        ctx.save_for_backward(pred, targets, count)
        return giou.sum() / count.clamp(1)

    @staticmethod
    def backward(ctx, dloss):
        pred, targets, count = ctx.saved_tensors
        B, N, _ = pred.shape
        dpred = torch.empty((B, N, 4), dtype=pred.dtype, device=pred.device)
        BLOCK = triton.next_power_of_2(N)
        backward_kernel[(B,)](dloss, count, pred, targets, dpred, N, *pred.stride(), *targets.stride(), BLOCK=BLOCK)
        return dpred, None


def giou_loss(pred, targets):
    return GIoULoss.apply(pred, targets)
