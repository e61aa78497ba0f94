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
    """The error of the product errors @ factors, where each of the errors, which are sizes, may have either sign."""
    straight, squares = errors @ factors.abs(), errors.square() @ factors.square()
    return torch.minimum(straight, squares.sqrt_().mul_(SPREAD), out=straight)


def of_product(rounding, size, b, of_a, whole, terms):
    """Of a @ b, the `whole`, a sum of so many `terms`, where a has that `size` and the errors `of_a`, and b is an input.
    What TF32 drops makes the whole smaller."""
    own = added(of_a, b)
    own = own.add_(added(size, rounding.lost(b))) if rounding.is_tf32 else own
    own = torch.maximum(own, whole.abs().mul_(rounding.cut), out=own)
    return own.add_(of_sum(rounding, size @ b.abs(), terms))


def of_sum(rounding, size, terms):
    """As `rounding.sum`, where `terms` is a tensor: that is in proportion to 1 and the root of their number."""
    return rounding.sum(size, 1).mul_((1 + terms.sqrt()) / 2)


def reached(scores, weights, of_scores, is_open):
    """P as it may count where errors of the scores are not small: exp(x) - 1 in place of x, and never above 1."""
    x = of_scores + (weights * of_scores).sum(-1, keepdim=True)
    x.clamp_(min=torch.finfo(torch.float64).tiny)
    if not is_open:
        x.clamp_(max=700.0)  # exp(710) overflows
        return torch.expm1(x).div_(x).mul_(weights).clamp_(max=1.0)
    return (torch.log_softmax(scores, -1) + x + torch.log(-torch.expm1(-x) / x)).clamp(max=0.0).exp()  # exp(x) overflows


def unreached(scores, weights, of_scores, is_open):
    """Where P is 0, whatever rounding does to the scores."""
    if not is_open:
        return weights == 0
    return scores + of_scores + NONE < (scores - of_scores).amax(-1, keepdim=True)


def of_output(rounding, q, k, v, sm_scale, lengths):
    """Of O. By Cauchy and Schwarz, errors of the scores count as far as the values of v differ."""
    beyond = torch.arange(k.shape[-2], device=k.device) >= lengths
    terms, width = lengths.double(), torch.tensor(float(q.shape[-1]), device=k.device)
    k, v = k.masked_fill(beyond.mT, 0.0), v.masked_fill(beyond.mT, 0.0)
    unscaled, size = q @ k.mT, q.abs()
    scores = (sm_scale * unscaled).masked_fill_(beyond, -torch.inf)
    weights = torch.softmax(scores, -1)
    of_scores = of_product(rounding, size, k.mT, rounding.operand * size, unscaled, width).mul_(abs(sm_scale))
    is_open = not bool(of_scores.amax() <= NONE / 4)  # rounding may bring a weight of exactly 0 back
    none = unreached(scores, weights, of_scores, is_open)
    highest = scores.masked_fill(none, 0.0).abs_().amax(-1, keepdim=True)
    of_scores.add_(of_sum(rounding, highest, width)).masked_fill_(none, 0.0)
    counted, result = reached(scores, weights, of_scores, is_open), weights @ v
    from_result = counted @ v.square() - 2 * result * (counted @ v) + counted.sum(-1, keepdim=True) * result.square()
    factor = rounding.factor(weights).masked_fill_(none, 0.0)  # what is exactly 0 stays so
    of_weights = of_product(rounding, weights, v, factor, result, terms)
    changes = torch.minimum(of_scores, 1 / counted, out=of_scores)  # no weight changes by more than 1
    spread = changes.square_().mul_(counted).sum(-1, keepdim=True).sqrt_()
    return spread * from_result.clamp(min=0.0).sqrt_() + of_weights
