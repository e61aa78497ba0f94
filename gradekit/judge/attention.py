"""How far rounding may carry attention and its gradients: first-order bounds, step by step, for every element.

    S = sm_scale * Q K^T        P = softmax(S)        O = P V
    dP = dO V^T                 dS = P * (dP - sum(dO * O))
    dV = P^T dO                 dQ = sm_scale * dS K          dK = sm_scale * dS^T Q

A right kernel keeps S, P, dP and dS in float32, and rounds P and dS to the inputs' dtype (float32: to TF32) where they
become factors of a product; it may round Q times sm_scale too. What eager torch rounds beyond that is no part of this.

All tensors are float64, [..., M, D] for q and [..., N, D] for k and v; `hidden` is True where a query must not look.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradekit.judge.rounding import Rounding


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
    def scores(self) -> Tensor:
        """S, with -inf where `hidden`."""
        scores = self.sm_scale * self.q @ self.k.mT
        return scores if self.hidden is None else scores.masked_fill(self.hidden, -torch.inf)

    @cached_property
    def weights(self) -> Tensor:
        """P."""
        return torch.softmax(self.scores, -1)

    @cached_property
    def result(self) -> Tensor:
        """O."""
        return self.weights @ self.v

    @cached_property
    def score_error(self) -> Tensor:
        """Of S, and so the relative error of P: 0 where hidden."""
        unit, q, k, scale = self.rounding, self.q.abs(), self.k.abs(), abs(self.sm_scale)
        size = scale * q @ k.mT
        finite = self.scores.masked_fill(self.weights == 0, 0.0).abs()
        on_the_way = unit.sum(size + finite.amax(-1, keepdim=True), q.shape[-1])
        rounded_query = 2 * unit.operand * scale * (self.q.square() @ self.k.square().mT).sqrt()
        dropped = scale * (unit.lost(self.q) @ k.mT + q @ unit.lost(self.k).mT)
        towards_zero = unit.operand * finite if unit.is_tf32 else 0.0
        return (on_the_way + rounded_query + dropped + towards_zero).masked_fill(self.weights == 0, 0.0)

    @cached_property
    def output(self) -> Tensor:
        """Of O. By Cauchy and Schwarz, errors of the weights count as far as the values of v differ."""
        unit, p, v = self.rounding, self.weights, self.v.abs()
        variance = (p @ self.v.square() - self.result.square()).clamp(min=0.0)
        by_weights = (p * self.score_error.square()).sum(-1, keepdim=True).sqrt() * variance.sqrt()
        visible = p if self.hidden is None else p.masked_fill(self.hidden, 0.0)
        return by_weights + self._factor(visible) @ v + p @ unit.lost(self.v) + unit.sum(p @ v, p.shape[-1])

    def gradients(self, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of dQ, dK and dV."""
        unit, scale, error = self.rounding, abs(self.sm_scale), self._score_gradient_error(grad)
        size = self._score_gradient(grad).abs()
        dq = error @ self.k.abs() + size @ unit.lost(self.k) + unit.sum(size @ self.k.abs(), self.k.shape[-2])
        dk = error.mT @ self.q.abs() + size.mT @ unit.lost(self.q) + unit.sum(size.mT @ self.q.abs(), len(size.mT))
        return scale * dq, scale * dk, self._value_error(grad)

    def _value_error(self, grad: Tensor) -> Tensor:
        unit, p = self.rounding, self.weights
        error = self._factor(p) + p * self._weight_error
        sums = unit.sum(p.mT @ grad.abs(), p.shape[-2])
        return error.mT @ grad.abs() + p.mT @ unit.lost(grad) + sums

    @cached_property
    def _weight_error(self) -> Tensor:
        """The relative error of P where it is made again from S and the logarithm of the row's sum."""
        return self.score_error + (self.weights * self.score_error).sum(-1, keepdim=True)

    def _score_gradient(self, grad: Tensor) -> Tensor:
        return self.weights * (grad @ self.v.mT - (grad * self.result).sum(-1, keepdim=True))

    def _score_gradient_error(self, grad: Tensor) -> Tensor:
        unit, p, v = self.rounding, self.weights, self.v.abs()
        ds = self._score_gradient(grad)
        of_dp = unit.sum(grad.abs() @ v.mT, v.shape[-1]) + unit.lost(grad) @ v.mT + grad.abs() @ unit.lost(self.v).mT
        stored = self.output + torch.finfo(unit.dtype).eps * self.result.abs()
        of_sum = (grad.abs() * stored).sum(-1, keepdim=True)
        return ds.abs() * self._weight_error + p * (of_dp + of_sum) + self._factor(ds)

    def _factor(self, value: Tensor) -> Tensor:
        """As `Rounding.factor`, but what is exactly 0 stays so."""
        return self.rounding.factor(value).masked_fill(self.weights == 0, 0.0)
