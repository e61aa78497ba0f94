"""How far rounding may carry attention and its gradients: first-order bounds, step by step, for every element.

    S = sm_scale * Q K^T        P = softmax(S)        O = P V
    dP = dO V^T                 dS = P * (dP - delta)             delta = the sum of dO * O over each row
    dV = P^T dO                 dQ = sm_scale * dS K              dK = sm_scale * dS^T Q

A right kernel keeps S, P, dP and dS in float32, and rounds P and dS to the inputs' dtype (float32: to TF32) where they
become factors of a product; it may round Q times sm_scale too. What eager torch rounds beyond that is no part of this. Where
scores are so large that rounding may change which of two is the highest, P may become anything between 0 and what `_reached`
gives.

Roundings of many terms mostly cancel: a sum of them is taken for SPREAD times the root of the sum of their squares, or
for the sum of their sizes where that is less. What does not cancel is counted apart: TF32 drops bits, always towards 0,
so that whole products come out smaller; and an error of one row's sum is common to the row.

All tensors are float64, [..., M, D] for q and [..., N, D] for k and v; `hidden` is True where a query must not look.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradekit import Rounding

_NONE = 745.0
"""How far below the highest score one lies whose weight is 0 in float64."""

SPREAD = 3.0
"""Each error is at most its size, and evenly spread below it: this is five standard deviations of their sum."""


def times(a: Tensor, b: Tensor) -> Tensor:
    """a @ b, where b has few columns: with these first it takes half as long."""
    return (b.mT @ a.mT).mT


def added(errors: Tensor, factors: Tensor) -> Tensor:
    """The error of the product errors @ factors, where each of the errors, which are sizes, may have either sign."""
    straight = times(errors, factors.abs())
    return torch.minimum(straight, times(errors.square(), factors.square()).sqrt_().mul_(SPREAD))


@dataclass(frozen=True, eq=False)
class AttentionErrors:
    """The bounds for one call: of the output, and of the gradients for `grad` [..., M, D], that of the output."""

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
        return scores if self.hidden is None else scores.masked_fill(self.hidden, -torch.inf)

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
        return abs(self.sm_scale) * self._product(self.q, self.k.mT, self._query_error, self.unscaled)

    @cached_property
    def _is_open(self) -> bool:
        """Whether rounding may bring a weight of exactly 0 back."""
        return bool((self._of_products > _NONE / 4).any())

    @cached_property
    def result(self) -> Tensor:
        """O."""
        return times(self.weights, self.v)

    @cached_property
    def score_error(self) -> Tensor:
        """Of S, and so the relative error of P: 0 where P is."""
        highest = self.scores.masked_fill(self.unreached, 0.0).abs().amax(-1, keepdim=True)
        error = self._of_products + self.rounding.sum(highest, self.q.shape[-1])
        return error.masked_fill(self.unreached, 0.0)

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

    def gradients(self, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of dQ, dK and dV."""
        scale, p, relative = abs(self.sm_scale), self.weights, self._weight_error
        dp = grad @ self.v.mT
        away = dp - (grad * self.result).sum(-1, keepdim=True)
        ds = p * away
        own = p * self._product(grad, self.v.mT, self.rounding.lost(grad), dp) + self._factor(ds)
        of_delta = self._delta_error(grad, dp)
        changed = self._reached if self._is_open else p * relative  # a weight that is 0 may become any up to that
        moved = changed * away.abs()
        dq = times(moved, self.k.abs()) + self._product(ds, self.k, own) + of_delta * times(p, self.k).abs()
        of_scores = self._product(ds.mT, self.q, (own + p * of_delta).mT, of_b=self._query_error)
        dk = times(moved.mT, self.q.abs()) + of_scores
        dv = times(changed.mT, grad.abs()) + self._product(p.mT, grad, self._weight_factor.mT, is_size=True)
        return scale * dq, scale * dk, dv

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
            variance = (self._reached * (dp - delta).square()).sum(-1, keepdim=True)
        else:
            variance = ((self.weights * dp.square()).sum(-1, keepdim=True) - delta.square()).clamp(min=0.0)
        by_scores = self._score_spread * variance.sqrt()
        weighed = self._weight_factor * dp.abs()
        by_weights = torch.minimum(
            weighed.sum(-1, keepdim=True), SPREAD * weighed.square_().sum(-1, keepdim=True).sqrt()
        )
        sums = self.rounding.sum((grad * self.result).abs().sum(-1, keepdim=True), grad.shape[-1])
        return by_rounding + by_scores + by_weights + sums + self.rounding.operand * delta.abs()

    @property
    def _score_spread(self) -> Tensor:
        changes = torch.minimum(self.score_error, 1 / self._reached)  # no weight changes by more than 1
        return (self._reached * changes.square()).sum(-1, keepdim=True).sqrt()

    @cached_property
    def _reached(self) -> Tensor:
        """P as it may count where errors of the scores are not small: exp(x) - 1 in place of x, and never above 1."""
        if self._is_open:  # exp(x) overflows
            x = self._weight_error.clamp(min=torch.finfo(torch.float64).tiny)
            return (torch.log_softmax(self.scores, -1) + x + torch.log(-torch.expm1(-x) / x)).clamp(max=0.0).exp()
        relative = self._weight_error.clamp(max=700.0)  # exp(710) overflows
        grown = torch.where(relative > 0, torch.expm1(relative) / relative, 1.0)
        return (self.weights * grown).clamp(max=1.0)

    def _product(
        self, a: Tensor, b: Tensor, of_a: Tensor, whole: Tensor | None = None, *,
        of_b: Tensor | None = None, is_size: bool = False,
    ) -> Tensor:  # fmt: skip
        """Of a @ b, the `whole` if it is known, where a (which `is_size` where nothing of it is negative) has the errors
        `of_a`, and b is an input, or has the errors `of_b`. What TF32 drops makes the whole smaller."""
        unit, size = self.rounding, a if is_size else a.abs()
        own = added(of_a, b) + (added(size, unit.lost(b)) if unit.is_tf32 else 0.0)
        own = own if of_b is None else torch.hypot(own, added(of_b.mT, a.mT).mT)
        cut = unit.cut * (times(a, b) if whole is None else whole).abs()
        return torch.maximum(own, cut) + unit.sum(times(size, b.abs()), a.shape[-1])

    @cached_property
    def _weight_factor(self) -> Tensor:
        """The error of P as a factor."""
        return self._factor(self.weights)

    def _factor(self, value: Tensor) -> Tensor:
        """As `Rounding.factor`, but what is exactly 0 stays so."""
        return self.rounding.factor(value).masked_fill(self.unreached, 0.0)
