"""A sum and a count for each program; both are added up with torch, and the backward pass divides by the same count."""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-5)


@triton.jit
def box(ptr, i, N, sb, sn, sc, ok):
    at = ptr + (i // N).to(tl.int64) * sb + (i % N).to(tl.int64) * sn
    x1 = tl.load(at, mask=ok, other=0.0).to(tl.float32)
    y1 = tl.load(at + sc, mask=ok, other=0.0).to(tl.float32)
    x2 = tl.load(at + 2 * sc, mask=ok, other=0.0).to(tl.float32)
    y2 = tl.load(at + 3 * sc, mask=ok, other=0.0).to(tl.float32)
    return x1, y1, x2, y2


@triton.jit
def real_boxes(ptr, i, N, sb, sn, sc, total):
    ok = i < total
    bottom = tl.load(ptr + (i // N).to(tl.int64) * sb + (i % N).to(tl.int64) * sn + 3 * sc, mask=ok, other=0.0)
    return ok & (bottom > 0)


@triton.jit
def value_kernel(
    p_ptr, t_ptr, sums_ptr, counts_ptr, total, N, pb, pn, pc, tb, tn, tc, B: tl.constexpr
):
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    real = real_boxes(t_ptr, i, N, tb, tn, tc, total)
    ax1, ay1, ax2, ay2 = box(p_ptr, i, N, pb, pn, pc, real)
    bx1, by1, bx2, by2 = box(t_ptr, i, N, tb, tn, tc, real)
    iw = tl.maximum(tl.minimum(ax2, bx2) - tl.maximum(ax1, bx1), 0.0)
    ih = tl.maximum(tl.minimum(ay2, by2) - tl.maximum(ay1, by1), 0.0)
    inter = iw * ih
    union = (ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - inter
    cw = tl.maximum(ax2, bx2) - tl.minimum(ax1, bx1)
    ch = tl.maximum(ay2, by2) - tl.minimum(ay1, by1)
    hull = cw * ch
    giou = inter / tl.maximum(union, EPS) - (hull - union) / tl.maximum(hull, EPS)
    tl.store(sums_ptr + pid, tl.sum(tl.where(real, giou, 0.0), axis=0))
    tl.store(counts_ptr + pid, tl.sum(real.to(tl.float32), axis=0))


@triton.jit
def slope_kernel(
    p_ptr, t_ptr, d_ptr, up_ptr, count_ptr, total, N, pb, pn, pc, tb, tn, tc, B: tl.constexpr
):
    i = tl.program_id(0) * B + tl.arange(0, B)
    real = real_boxes(t_ptr, i, N, tb, tn, tc, total)
    ax1, ay1, ax2, ay2 = box(p_ptr, i, N, pb, pn, pc, real)
    bx1, by1, bx2, by2 = box(t_ptr, i, N, tb, tn, tc, real)
    w = ax2 - ax1
    h = ay2 - ay1
    iw = tl.maximum(tl.minimum(ax2, bx2) - tl.maximum(ax1, bx1), 0.0)
    ih = tl.maximum(tl.minimum(ay2, by2) - tl.maximum(ay1, by1), 0.0)
    inter = iw * ih
    union = w * h + (bx2 - bx1) * (by2 - by1) - inter
    cw = tl.maximum(ax2, bx2) - tl.minimum(ax1, bx1)
    ch = tl.maximum(ay2, by2) - tl.minimum(ay1, by1)
    hull = cw * ch
    union = tl.maximum(union, EPS)
    hull = tl.maximum(hull, EPS)
    # giou = inter / union - 1 + union / hull
    by_inter = 1.0 / union
    by_union = 1.0 / hull - inter / (union * union)
    by_hull = -union / (hull * hull)
    meet = (iw > 0) & (ih > 0)
    i_x1 = tl.where(meet & (ax1 > bx1), -ih, 0.0)
    i_y1 = tl.where(meet & (ay1 > by1), -iw, 0.0)
    i_x2 = tl.where(meet & (ax2 < bx2), ih, 0.0)
    i_y2 = tl.where(meet & (ay2 < by2), iw, 0.0)
    c_x1 = tl.where(ax1 < bx1, -ch, 0.0)
    c_y1 = tl.where(ay1 < by1, -cw, 0.0)
    c_x2 = tl.where(ax2 > bx2, ch, 0.0)
    c_y2 = tl.where(ay2 > by2, cw, 0.0)
    up = tl.load(up_ptr).to(tl.float32) / tl.maximum(tl.load(count_ptr), 1.0)
    d_x1 = by_inter * i_x1 + by_union * (-h - i_x1) + by_hull * c_x1
    d_y1 = by_inter * i_y1 + by_union * (-w - i_y1) + by_hull * c_y1
    d_x2 = by_inter * i_x2 + by_union * (h - i_x2) + by_hull * c_x2
    d_y2 = by_inter * i_y2 + by_union * (w - i_y2) + by_hull * c_y2
    ok = i < total
    at = d_ptr + i.to(tl.int64) * 4
    tl.store(at, tl.where(real, up * d_x1, 0.0), mask=ok)
    tl.store(at + 1, tl.where(real, up * d_y1, 0.0), mask=ok)
    tl.store(at + 2, tl.where(real, up * d_x2, 0.0), mask=ok)
    tl.store(at + 3, tl.where(real, up * d_y2, 0.0), mask=ok)


class GIoU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, targets):
        total, N = pred.shape[0] * pred.shape[1], pred.shape[1]
        programs = triton.cdiv(total, 128)
        sums = torch.empty(programs, dtype=torch.float32, device=pred.device)
        counts = torch.empty(programs, dtype=torch.float32, device=pred.device)
        value_kernel[(programs,)](pred, targets, sums, counts, total, N, *pred.stride(), *targets.stride(), B=128)
        count = counts.sum()
        ctx.save_for_backward(pred, targets, count)
        return sums.sum() / count.clamp(min=1)

    @staticmethod
    def backward(ctx, grad):
        pred, targets, count = ctx.saved_tensors
        total, N = pred.shape[0] * pred.shape[1], pred.shape[1]
        d = torch.empty(pred.shape, dtype=pred.dtype, device=pred.device)
        slope_kernel[(triton.cdiv(total, 128),)](
            pred, targets, d, grad, count, total, N, *pred.stride(), *targets.stride(), B=128
        )
        return d, None


def giou_loss(pred, targets):
    return GIoU.apply(pred, targets)
