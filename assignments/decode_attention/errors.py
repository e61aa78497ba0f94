"""How far rounding may carry attention: a first-order bound, step by step, for every element.

    S = sm_scale * Q K^T        P = softmax(S)        O = P V

A right kernel keeps S and P in float32, and rounds P to the inputs' dtype (float32: to TF32) where it becomes a factor
of a product; it may round Q times sm_scale too. What eager torch rounds beyond that is no part of this. Where scores are so
large that rounding may change which of two is the highest, P may become anything between 0 and what `reached` gives.

Roundings of many terms mostly cancel: a sum of them is taken for SPREAD times the root of the sum of their squares, or
for the sum of their sizes where that is less. TF32 drops bits, always towards 0, so that whole products come out smaller.

All tensors are float64, [..., M, D] for q and [..., N, D] for k and v; of N rows, the first `lengths` [..., 1, 1] count.
"""

import torch

NONE = 745.0
"""How far below the highest score one lies whose weight is 0 in float64."""

SPREAD = 3.0
"""Each error is at most its size, and evenly spread below it: this is five standard deviations of their sum."""


def added(errors, factors):
    """The error of the product errors @ factors, where each of the errors may have either sign."""
    straight = errors.abs() @ factors.abs()
    return torch.minimum(straight, (errors.square() @ factors.square()).sqrt_().mul_(SPREAD))


def of_product(rounding, a, b, of_a, whole, terms):
    """Of a @ b, the `whole`, a sum of so many `terms`, where a has the errors `of_a`, and b is an input. What TF32 drops
    makes the whole smaller."""
    own = added(of_a, b) + (added(a, rounding.lost(b)) if rounding.is_tf32 else 0.0)
    return torch.maximum(own, rounding.cut * whole.abs()) + of_sum(rounding, a.abs() @ b.abs(), terms)


def of_sum(rounding, size, terms):
    """As `rounding.sum`, where `terms` is a tensor: that is in proportion to 1 and the root of their number."""
    return rounding.sum(size, 1) * ((1 + terms.sqrt()) / 2)


def reached(scores, weights, of_scores):
    """P as it may count where errors of the scores are not small: exp(x) - 1 in place of x, and never above 1."""
    x = (of_scores + (weights * of_scores).sum(-1, keepdim=True)).clamp(min=torch.finfo(torch.float64).tiny)
    return (torch.log_softmax(scores, -1) + x + torch.log(-torch.expm1(-x) / x)).clamp(max=0.0).exp()  # exp(x) overflows


def of_output(rounding, q, k, v, sm_scale, lengths):
    """Of O. By Cauchy and Schwarz, errors of the scores count as far as the values of v differ."""
    beyond = torch.arange(k.shape[-2], device=k.device) >= lengths
    terms, width = lengths.double(), torch.tensor(float(q.shape[-1]), device=k.device)
    k, v = k.masked_fill(beyond.mT, 0.0), v.masked_fill(beyond.mT, 0.0)
    unscaled = q @ k.mT
    scores = (sm_scale * unscaled).masked_fill(beyond, -torch.inf)
    weights = torch.softmax(scores, -1)
    of_scores = abs(sm_scale) * of_product(rounding, q, k.mT, rounding.operand * q, unscaled, width)
    none = scores + of_scores + NONE < (scores - of_scores).amax(-1, keepdim=True)  # whatever rounding does to them
    highest = scores.masked_fill(none, 0.0).abs().amax(-1, keepdim=True)
    of_scores = (of_scores + of_sum(rounding, highest, width)).masked_fill(none, 0.0)
    counted, result = reached(scores, weights, of_scores), weights @ v
    from_result = counted @ v.square() - 2 * result * (counted @ v) + counted.sum(-1, keepdim=True) * result.square()
    spread = (counted * torch.minimum(of_scores, 1 / counted).square()).sum(-1, keepdim=True).sqrt()
    factor = rounding.factor(weights).masked_fill(none, 0.0)  # what is exactly 0 stays so
    return spread * from_result.clamp(min=0.0).sqrt() + of_product(rounding, weights, v, factor, result, terms)
