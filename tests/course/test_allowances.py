"""What the assignments allow is enough for every right algorithm, computed here by torch instead of a kernel."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from gradekit import FLOATS, Input, assert_close
from gradekit.inputs.layouts import row_major

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"
ORDINARY = ("ones", "integers", "grid", "normal", "positive", "mixed")
Tensor = torch.Tensor


def checks(assignment: str) -> ModuleType:
    """The assignment's test file as a module."""
    spec = importlib.util.spec_from_file_location(assignment, ASSIGNMENTS / assignment / f"test_{assignment}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(dtype: str, shape: tuple[int, ...], profile: str, seed: int) -> Input:
    return Input(dtype, shape, row_major(shape), 0, profile, seed)


def every(algorithms: list[Callable[..., Any]]) -> Callable[[Any], Any]:
    """Parametrizes a test over right algorithms and dtypes."""

    def mark(test: Any) -> Any:
        named = pytest.mark.parametrize("algorithm", algorithms, ids=lambda algorithm: algorithm.__name__)
        return named(pytest.mark.parametrize("dtype", FLOATS)(test))

    return mark


# --- softmax: every step in float32, the result rounded once ---------------------------------------------------------


def by_exp(x: Tensor) -> Tensor:
    top = (x - x.amax(1, keepdim=True)).exp()
    return top / top.sum(1, keepdim=True)


def by_exp2(x: Tensor) -> Tensor:
    top = ((x - x.amax(1, keepdim=True)) * 1.4426950408889634).exp2()
    return top * (1 / top.sum(1, keepdim=True))


def by_running_sum(x: Tensor) -> Tensor:
    """A tile of one column: the sum is rescaled whenever the maximum grows."""
    peak, total = torch.full((len(x),), -math.inf), torch.zeros(len(x))
    for column in x.T:
        higher = torch.maximum(peak, column)
        safe = higher.masked_fill(higher == -math.inf, 0.0)
        total = total * (peak - safe).exp() + (column - safe).exp()
        peak = higher
    return (x - peak[:, None]).exp() / total[:, None]


@every([by_exp, by_exp2, by_running_sum])
def test_softmax_allows(algorithm: Callable[..., Tensor], dtype: str) -> None:
    expected = checks("softmax").expected
    for profile in (*ORDINARY, "neg_inf", "neg_inf_first", "tiny", "large"):
        for seed, shape in enumerate([(2, 1), (3, 31), (2, 14), (4, 300), (2, 1025)]):
            x = plain(dtype, shape, profile, seed)
            assert_close(algorithm(x.tensor().float()).to(x.tensor().dtype), expected(x))


# --- matmul: float32 accumulation in any order -----------------------------------------------------------------------


def in_one(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def one_product_at_a_time(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(len(a), b.shape[1])
    for k in range(a.shape[1]):
        total += a[:, k, None] * b[None, k]
    return total


def in_four_parts_from_the_end(a: Tensor, b: Tensor) -> Tensor:
    parts = zip(a.split(max(1, a.shape[1] // 4), 1), b.split(max(1, len(b) // 4)), strict=True)
    total = torch.zeros(len(a), b.shape[1])
    for left, right in reversed(list(parts)):
        total += left @ right
    return total


def truncated_to_tf32(a: Tensor, b: Tensor) -> Tensor:
    return _tf32(a) @ _tf32(b)


def _tf32(x: Tensor) -> Tensor:
    return (x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)


@every([in_one, one_product_at_a_time, in_four_parts_from_the_end, truncated_to_tf32])
def test_matmul_allows(algorithm: Callable[..., Tensor], dtype: str) -> None:
    expected = checks("matmul").expected
    for profile in ORDINARY:
        for seed, (m, k, n) in enumerate([(1, 1, 1), (17, 33, 15), (5, 130, 64), (3, 2000, 4)]):
            pair = plain(dtype, (m, k), profile, seed), plain(dtype, (k, n), profile, seed + 100)
            a, b = (matrix.tensor() for matrix in pair)
            assert_close(algorithm(a.float(), b.float()).to(a.dtype), expected(*pair))


# --- fused_chain: float32 arithmetic, or x + bias in the inputs' dtype ------------------------------------------------


def _inner(h: Tensor) -> Tensor:
    return 0.7978845608 * (h + 0.044715 * h * h * h)


def by_sigmoid(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    h = x.float() + bias.float()
    return h * torch.sigmoid(2 * _inner(h)) + residual.float()


def by_tanh(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    h = x.float() + bias.float()
    return 0.5 * h * (1 + torch.tanh(_inner(h))) + residual.float()


def by_division(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    h = x.float() + bias.float()
    return 0.5 * h * (1 + (2 / (1 + torch.exp(-2 * _inner(h))) - 1)) + residual.float()


def with_a_sum_in_the_inputs_dtype(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    h = (x + bias).float()
    return h * torch.sigmoid(2 * _inner(h)) + residual.float()


@every([by_sigmoid, by_tanh, by_division, with_a_sum_in_the_inputs_dtype])
def test_fused_chain_allows(algorithm: Callable[..., Tensor], dtype: str) -> None:
    expected = checks("fused_chain").expected
    for profile in (*ORDINARY, "tiny", "large"):
        for seed, (m, n) in enumerate([(1, 1), (3, 33), (20, 128), (5, 1025)]):
            others = "normal" if profile == "large" else profile  # x + bias stays within the dtype's range
            inputs = (
                plain(dtype, (m, n), profile, seed),
                plain(dtype, (n,), others, seed + 100),
                plain(dtype, (m, n), others, seed + 200),
            )
            tensors = [spec.tensor() for spec in inputs]
            assert_close(algorithm(*tensors).to(tensors[0].dtype), expected(*inputs))
