"""How far rounding may carry attention and its gradients: first-order bounds, step by step, for every element.

    S = sm_scale * Q K^T        P = softmax(S)        O = P V
    dP = dO V^T                 dS = P * (dP - delta)             delta = the sum of dO * O over each row
    dV = P^T dO                 dQ = sm_scale * dS K              dK = sm_scale * dS^T Q

A right kernel keeps S, P, dP and dS in float32, and rounds P and dS to the inputs' dtype (float32: to TF32) where they
become factors of a product; it may round Q times sm_scale too. What eager torch rounds beyond that is no part of this. Where
scores are so large that rounding may change which of two is the highest, P may become anything between 0 and what `reached`
gives.

Roundings of many terms mostly cancel: a sum of them is taken for SPREAD times the root of the sum of their squares, or
for the sum of their sizes where that is less. What does not cancel is counted apart: TF32 drops bits, always towards 0,
so that whole products come out smaller; and an error of one row's sum is common to the row.

What a product loses is worked out for as many queries at a time as make small matrices, and added up.

All tensors are float64, [..., M, D] for q and [..., N, D] for k and v; `hidden` is True where a query must not look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradekit import Rounding

_NONE = 745.0
"""How far below the highest score one lies whose weight is 0 in float64."""

SPREAD = 3.0
"""Each error is at most its size, and evenly spread below it: this is five standard deviations of their sum."""

_SMALL = 1 << 17
"""Elements of a small matrix: a dozen of them are there at once."""


def times(a: Tensor, b: Tensor) -> Tensor:
    """a @ b: where b has few columns, with these first it takes half as long."""
    return (b.mT @ a.mT).mT if b.shape[-1] < b.shape[-2] else a @ b


def _summed(errors: Tensor, factors: Tensor) -> list[Tensor]:
    """Of errors @ factors, which both are sizes: the sum for each element, and that of the squares."""
    return [times(errors, factors), times(errors.square(), factors.square())]


def _added(total: list[Tensor], more: list[Tensor]) -> list[Tensor]:
    return [a.add_(b) for a, b in zip(total, more, strict=True)]


def _error(rounding: Rounding, sums: list[Tensor], terms: int) -> Tensor:
    """That of a product whose `_sums` have so many terms. What TF32 drops makes the whole smaller."""
    whole, size, *pairs = sums
    each = [
        torch.minimum(straight, squares.sqrt_().mul_(SPREAD), out=straight)
        for straight, squares in zip(pairs[::2], pairs[1::2], strict=True)
    ]
    cut = whole.abs().mul_(rounding.cut)
    if each:
        own = each[0].add_(each[1]) if rounding.is_tf32 else each[0]
        own = torch.hypot(own, each[-1]) if len(each) > 1 + rounding.is_tf32 else own
        torch.maximum(own, cut, out=cut)
    return cut.add_(rounding.sum(size, terms))


@dataclass(frozen=True, eq=False)
class AttentionErrors:
    """The bounds for some queries of one call: of the output, and of the gradients for `grad` [..., M, D], theirs."""

    rounding: Rounding
    q: Tensor
    k: Tensor
    v: Tensor
    sm_scale: float
    hidden: Tensor | None = None

    @cached_property
    def unscaled(self) -> Tensor:
        """Q K^T."""
        return self.q @ self.k.mT

    @cached_property
    def scores(self) -> Tensor:
        """S, with -inf where `hidden`."""
        scores = self.sm_scale * self.unscaled
        return scores if self.hidden is None else scores.masked_fill_(self.hidden, -torch.inf)

    @cached_property
    def weights(self) -> Tensor:
        """P."""
        return torch.softmax(self.scores, -1)

    @cached_property
    def unreached(self) -> Tensor:
        """Where P is 0, whatever rounding does to the scores."""
        none = self.weights == 0
        if not self._is_open:
            return none
        return none & (self.scores + self._of_products + _NONE < (self.scores - self._of_products).amax(-1, True))

    @cached_property
    def _of_products(self) -> Tensor:
        """The error of S from products alone."""
        return self._product(self.q, self.k.mT, self._query_error, self.unscaled).mul_(abs(self.sm_scale))

    @cached_property
    def _is_open(self) -> bool:
        """Whether rounding may bring a weight of exactly 0 back."""
        return self._of_products.numel() > 0 and float(self._of_products.amax()) > _NONE / 4

    @cached_property
    def result(self) -> Tensor:
        """O."""
        return times(self.weights, self.v)

    @cached_property
    def score_error(self) -> Tensor:
        """Of S, and so the relative error of P: 0 where P is."""
        highest = self.scores.masked_fill(self.unreached, 0.0).abs_().amax(-1, keepdim=True)
        error = self._of_products + self.rounding.sum(highest, self.q.shape[-1])
        return error.masked_fill_(self.unreached, 0.0)

    @cached_property
    def _query_error(self) -> Tensor:
        """Of Q, which may become a factor as sm_scale * Q: what is small may underflow there."""
        return self.rounding.factor(self.sm_scale * self.q) / abs(self.sm_scale)

    @cached_property
    def output(self) -> Tensor:
        """Of O. By Cauchy and Schwarz, errors of the scores count as far as the values of v differ."""
        reached, v, result = self._reached, self.v, self.result
        by_size = times(reached, v.square()) - 2 * result * times(reached, v)
        from_result = by_size + reached.sum(-1, keepdim=True) * result.square()
        of_scores = self._score_spread * from_result.clamp(min=0.0).sqrt()
        return of_scores + self._product(self.weights, v, self._weight_factor, result, is_size=True)

    def gradients(self, grad: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Of dQ; of dK / sm_scale and dV what is to be added up over all queries: an error, and the `_sums` of another."""
        p, relative = self.weights, self._weight_error
        dp = grad @ self.v.mT
        ds = dp - (grad * self.result).sum(-1, keepdim=True)
        changed = self._reached if self._is_open else p * relative  # a weight that is 0 may become any up to that
        moved = ds.abs().mul_(changed)
        ds.mul_(p)
        lost = self.rounding.lost(grad) if self.rounding.is_tf32 else None
        own = self._product(grad, self.v.mT, lost, dp).mul_(p).add_(self._factor(ds))
        of_delta = self._delta_error(grad, dp)
        dq = times(moved, self.k.abs()) + self._product(ds, self.k, own) + of_delta * times(p, self.k).abs()
        own.addcmul_(p, of_delta)
        of_k = self._sums(ds.mT, self.q, own.mT, of_b=self._query_error)
        of_v = self._sums(p.mT, grad, self._weight_factor.mT, is_size=True)
        moved_k, moved_v = times(moved.mT, self.q.abs()), times(changed.mT, grad.abs())
        return abs(self.sm_scale) * dq, [moved_k, *of_k], [moved_v, *of_v]

    @cached_property
    def _weight_error(self) -> Tensor:
        """The relative error of P where it is made from S and the logarithm of the row's sum."""
        return self.score_error + (self.weights * self.score_error).sum(-1, keepdim=True)

    def _delta_error(self, grad: Tensor, dp: Tensor) -> Tensor:
        """Of delta [..., M, 1], made from the output as it was stored."""
        stored = torch.finfo(self.rounding.dtype).eps * self.result.abs() + self.rounding.lost(self.v).amax(
            -2, keepdim=True
        )
        by_rounding = SPREAD * (grad * stored).square().sum(-1, keepdim=True).sqrt()
        delta = (grad * self.result).sum(-1, keepdim=True)
        if self._is_open:
            variance = (self._reached * (dp - delta).square_()).sum(-1, keepdim=True)
        else:
            variance = (dp.square().mul_(self.weights).sum(-1, keepdim=True) - delta.square()).clamp(min=0.0)
        by_scores = self._score_spread * variance.sqrt()
        weighed = dp.abs().mul_(self._weight_factor)
        by_weights = torch.minimum(
            weighed.sum(-1, keepdim=True), SPREAD * weighed.square_().sum(-1, keepdim=True).sqrt()
        )
        sums = self.rounding.sum((grad * self.result).abs().sum(-1, keepdim=True), grad.shape[-1])
        return by_rounding + by_scores + by_weights + sums + self.rounding.operand * delta.abs()

    @property
    def _score_spread(self) -> Tensor:
        changes = self._reached.reciprocal()  # no weight changes by more than 1
        torch.minimum(self.score_error, changes, out=changes)
        return changes.square_().mul_(self._reached).sum(-1, keepdim=True).sqrt_()

    @cached_property
    def _reached(self) -> Tensor:
        """P as it may count where errors of the scores are not small: exp(x) - 1 in place of x, and never above 1."""
        x = self._weight_error.clamp(min=torch.finfo(torch.float64).tiny)
        if self._is_open:  # exp(x) overflows
            return (torch.log_softmax(self.scores, -1) + x + torch.log(-torch.expm1(-x) / x)).clamp(max=0.0).exp()
        x.clamp_(max=700.0)  # exp(710) overflows
        return torch.expm1(x).div_(x).mul_(self.weights).clamp_(max=1.0)

    def _product(
        self, a: Tensor, b: Tensor, of_a: Tensor | None, whole: Tensor | None = None, *, is_size: bool = False
    ) -> Tensor:
        """Of a @ b."""
        return _error(self.rounding, self._sums(a, b, of_a, whole, is_size=is_size), a.shape[-1])

    def _sums(
        self, a: Tensor, b: Tensor, of_a: Tensor | None, whole: Tensor | None = None, *,
        of_b: Tensor | None = None, is_size: bool = False,
    ) -> list[Tensor]:  # fmt: skip
        """What the error of a @ b is made of, the `whole` if it is known, where a (which `is_size` where nothing of it is
        negative) has the errors `of_a`, if any, and b is an input, or has the errors `of_b`: sums over the columns of a."""
        size = a if is_size else a.abs()
        sums = [times(a, b) if whole is None else whole, times(size, b.abs())]
        lost = self.rounding.lost(b) if self.rounding.is_tf32 else None
        for errors, factors in ((of_a, b.abs()), (size, lost), (size, of_b)):
            sums += _summed(errors, factors) if errors is not None and factors is not None else []
        return sums

    @cached_property
    def _weight_factor(self) -> Tensor:
        """The error of P as a factor."""
        return self._factor(self.weights)

    def _factor(self, value: Tensor) -> Tensor:
        """As `Rounding.factor`, but what is exactly 0 stays so."""
        return self.rounding.factor(value).masked_fill_(self.unreached, 0.0)


def _several(
    rounding: Rounding, q: Tensor, k: Tensor, v: Tensor, sm_scale: float, hidden: Tensor | None
) -> Iterator[tuple[slice, AttentionErrors]]:
    """The bounds of a call, for some queries at a time."""
    several = max(_SMALL // k.shape[-2], 1)
    for first in range(0, q.shape[-2], several):
        queries = slice(first, first + several)
        unseen = None if hidden is None else hidden[queries]
        yield queries, AttentionErrors(rounding, q[..., queries, :], k, v, sm_scale, unseen)


def of_output(
    rounding: Rounding, q: Tensor, k: Tensor, v: Tensor, sm_scale: float, hidden: Tensor | None = None
) -> Tensor:
    """That of O."""
    return torch.cat([some.output for _, some in _several(rounding, q, k, v, sm_scale, hidden)], -2)


def of_gradients(
    rounding: Rounding, q: Tensor, k: Tensor, v: Tensor, grad: Tensor, sm_scale: float, hidden: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Those of dQ, dK and dV, where `grad` is the gradient of O."""
    of_q: list[Tensor] = []
    totals: list[list[Tensor]] = []
    for queries, some in _several(rounding, q, k, v, sm_scale, hidden):
        dq, *sums = some.gradients(grad[..., queries, :])
        of_q.append(dq)
        totals = [_added(*both) for both in zip(totals, sums, strict=True)] if totals else sums
    dk, dv = (moved + _error(rounding, sums, q.shape[-2]) for moved, *sums in totals)
    return torch.cat(of_q, -2), abs(sm_scale) * dk, dv
