"""The kernel of FIND_THE_BUG.md, mended step by step; the numbers are those of its questions."""

import torch
import triton
import triton.language as tl


@triton.jit
def load_boxes(ptr, sample, box, stride_b, stride_n, stride_c, mask):
    # 3: a view has strides of its own.
    # 4: the cast happens in registers, after 2 bytes of a number have travelled, and not 2 + 4 + 4.
    ptr += sample * stride_b + box * stride_n
    left = tl.load(ptr, mask=mask, other=0.0).to(tl.float32)
    top = tl.load(ptr + stride_c, mask=mask, other=0.0).to(tl.float32)
    right = tl.load(ptr + 2 * stride_c, mask=mask, other=0.0).to(tl.float32)
    bottom = tl.load(ptr + 3 * stride_c, mask=mask, other=0.0).to(tl.float32)
    return left, top, right, bottom


@triton.jit
def giou_kernel(
    pred_ptr, target_ptr, out_ptr, valid_ptr, boxes, pred_b, pred_n, pred_c, target_b, target_n, target_c,
    BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """One program for each sample of the batch, all of its boxes at once."""
    sample = tl.program_id(axis=0).to(tl.int64)
    # 2: the tile is a power of two wide, the list of boxes is not: samples lie `boxes` apart, and a mask is needed.
    box = tl.arange(0, BLOCK_SIZE)
    mask = box < boxes
    left, top, right, bottom = load_boxes(pred_ptr, sample, box, pred_b, pred_n, pred_c, mask)
    its_left, its_top, its_right, its_bottom = load_boxes(target_ptr, sample, box, target_b, target_n, target_c, mask)
    width = tl.maximum(tl.minimum(right, its_right) - tl.maximum(left, its_left), 0)
    height = tl.maximum(tl.minimum(bottom, its_bottom) - tl.maximum(top, its_top), 0)
    inter = width * height
    union = (right - left) * (bottom - top) + (its_right - its_left) * (its_bottom - its_top) - inter
    outer_width = tl.maximum(tl.maximum(right, its_right) - tl.minimum(left, its_left), 0)
    outer_height = tl.maximum(tl.maximum(bottom, its_bottom) - tl.minimum(top, its_top), 0)
    enclosing = outer_width * outer_height
    giou = inter / tl.maximum(union, 1e-5) - (enclosing - union) / tl.maximum(enclosing, 1e-5)
    # 5: giou may be nan in the padding; where does not care, and a product would be nan too.
    tl.store(out_ptr + sample * boxes + box, tl.where(its_bottom > 0, giou, 0), mask=mask)
    tl.store(valid_ptr + sample * boxes + box, its_bottom > 0, mask=mask)


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
        batch_size, boxes = pred.shape[0], pred.shape[1]
        out = torch.empty((batch_size, boxes), dtype=torch.float32, device=pred.device)
        valid = torch.empty((batch_size, boxes), dtype=torch.bool, device=pred.device)
        # 1: a kernel is launched over a grid, in brackets; and it has arguments.
        giou_kernel[(batch_size,)](
            pred, targets, out, valid, boxes, *pred.stride(), *targets.stride(),
            BLOCK_SIZE=triton.next_power_of_2(boxes),
        )  # fmt: skip
        count = valid.sum()
        ctx.save_for_backward(pred, targets, count)
        return out.sum() / count.clamp(1)

    # 6: autograd knows nothing of what a kernel does: someone has to say what the derivative is.
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
