"""The kernel of FIND_THE_BUG.md as it stands there."""

import torch
import triton
import triton.language as tl


@triton.jit
def giou_kernel(pred_ptr, target_ptr, out_ptr, valid_ptr, BLOCK_SIZE: tl.constexpr):
    """One program for each sample of the batch, all of its boxes at once."""
    sample = tl.program_id(axis=0)
    box = sample * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    left, top = tl.load(pred_ptr + 4 * box), tl.load(pred_ptr + 4 * box + 1)
    right, bottom = tl.load(pred_ptr + 4 * box + 2), tl.load(pred_ptr + 4 * box + 3)
    its_left, its_top = tl.load(target_ptr + 4 * box), tl.load(target_ptr + 4 * box + 1)
    its_right, its_bottom = tl.load(target_ptr + 4 * box + 2), tl.load(target_ptr + 4 * box + 3)

    width = tl.maximum(tl.minimum(right, its_right) - tl.maximum(left, its_left), 0)
    height = tl.maximum(tl.minimum(bottom, its_bottom) - tl.maximum(top, its_top), 0)
    inter = width * height
    union = (right - left) * (bottom - top) + (its_right - its_left) * (its_bottom - its_top) - inter

    outer_width = tl.maximum(tl.maximum(right, its_right) - tl.minimum(left, its_left), 0)
    outer_height = tl.maximum(tl.maximum(bottom, its_bottom) - tl.minimum(top, its_top), 0)
    enclosing = outer_width * outer_height
    giou = inter / tl.maximum(union, 1e-5) - (enclosing - union) / tl.maximum(enclosing, 1e-5)

    tl.store(out_ptr + box, tl.where(its_bottom > 0, giou, 0))
    tl.store(valid_ptr + box, its_bottom > 0)


def giou_loss(pred, targets):
    batch_size, boxes = pred.shape[0], pred.shape[1]
    pred, targets = pred.to(torch.float32), targets.to(torch.float32)  # may be left out, to keep the dtype
    out = torch.empty((batch_size, boxes), dtype=pred.dtype, device=pred.device)
    valid = torch.empty((batch_size, boxes), dtype=torch.bool, device=pred.device)
    giou_kernel(batch_size,)
    return out.sum() / valid.sum().clamp(1)
