"""The bounds for attention: right algorithms stay well inside, in every dtype and in TF32; lower precision does not."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradekit.assignment import beside
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import FLOATS, Input
from gradekit.judge.comparison import Comparison
from gradekit.judge.reference import Reference, reference
from gradekit.judge.tolerance import Rounding
from gradekit.judge.trivial import TRIVIAL_RESULTS

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"
attention = beside(ASSIGNMENTS / "flash_attention" / "test_flash_attention.py", "errors")
of_output, of_gradients = attention.of_output, attention.of_gradients
of_decoding = beside(ASSIGNMENTS / "decode_attention" / "test_decode_attention.py", "errors").of_output
Tensor = torch.Tensor
SIZES = [(1, 16), (2, 32), (9, 64), (33, 16), (130, 64)]


def inputs(dtype: str, size: int, width: int, profile: str) -> list[Input]:
    """q, k, v and the gradient of the result."""
    return [Input(dtype, (size, width), row_major((size, width)), 0, profile, seed) for seed in range(4)]


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return torch.softmax(q @ k.mT * scale, -1) @ v


def gradients(q: Tensor, k: Tensor, v: Tensor, grad: Tensor, scale: float) -> tuple[Tensor, ...]:
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    return torch.autograd.grad(attend(*leaves, scale), leaves, grad)


def factor(value: Tensor, dtype: torch.dtype) -> Tensor:
    """What a tensor core reads of a float32 value: `dtype`, or TF32 with its bits dropped."""
    if dtype is not torch.float32:
        return value.to(dtype).float()
    return (value.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)


def kernel(
    q: Tensor, k: Tensor, v: Tensor, grad: Tensor, scale: float, keeps_scaled: bool = False
) -> list[Tensor]:
    """The result and its gradients as a kernel on tensor cores computes them, rounding what it may; one that
    `keeps_scaled` has no other q than q * scale."""
    dtype = q.dtype
    a, b, c, g = (factor(x.float(), dtype) for x in (q * scale, k, v, grad))
    weights = torch.softmax(a.to(dtype).float() @ b.mT, -1)
    out = (factor(weights, dtype) @ c).to(dtype)
    d_scores = weights * (g @ c.mT - (out.float() * grad.float()).sum(-1, keepdim=True))
    rounded = factor(d_scores, dtype)
    dq, dk = rounded @ b * scale, rounded.mT @ (a if keeps_scaled else factor(q.float(), dtype) * scale)
    return [out, *(x.to(dtype) for x in (dq, dk, factor(weights, dtype).mT @ g))]


def references(specs: list[Input], scale: float) -> list[Reference]:
    out = reference(attend, *specs[:3], scale, bound=of_output, input_precision="tf32")
    return [out, *reference(gradients, *specs, scale, bound=of_gradients, input_precision="tf32")]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("profile", ["ones", "normal", "integers", "grid", "positive", "mixed"])
def test_a_right_kernel_stays_inside(dtype: str, profile: str) -> None:
    for size, width in SIZES:
        specs, scale = inputs(dtype, size, width, profile), width**-0.5
        found = kernel(*(x.tensor() for x in specs), scale)
        worst = [Comparison(f, r).error.max().item() for f, r in zip(found, references(specs, scale), strict=True)]
        assert max(worst) < 0.8, (size, width, worst)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("profile", ["normal", "faint"])
def test_a_kernel_may_make_the_gradient_of_k_from_q_times_the_scale_which_may_underflow(
    dtype: str, profile: str
) -> None:
    for size, width in SIZES:
        q, *others = inputs(dtype, size, width, profile)
        specs = [q, *(replace(one, profile="normal") for one in others)]
        found = kernel(*(x.tensor() for x in specs), width**-0.5, keeps_scaled=True)[2]
        worst = Comparison(found, references(specs, width**-0.5)[2]).error.max().item()
        assert worst < 0.9, (size, width, worst)


FAR = [Input("float32", (33, 32), row_major((33, 32)), 0, profile, seed)
       for seed, profile in enumerate(["far_above", "far_below", "normal", "normal"], 32)]  # fmt: skip
"""Scores of 30 million below 0, which lie some thousands apart: TF32 moves them by tens of thousands."""


def test_a_right_kernel_stays_inside_where_tf32_makes_another_score_the_highest() -> None:
    found = kernel(*(x.tensor() for x in FAR), 1.0)
    exact = attend(*(x.tensor().double() for x in FAR[:3]), 1.0)
    assert (found[0].double() - exact).abs().max() > 0.5
    worst = [Comparison(f, r).error.max().item() for f, r in zip(found, references(FAR, 1.0), strict=True)]
    assert max(worst) < 1, worst


def test_decoding_may_have_another_score_as_the_highest_in_tf32() -> None:
    q, k, v, _ = (x.tensor().double() for x in FAR)
    found = of_decoding(Rounding(torch.float32), q, k, v, 1.0, torch.tensor([[33]]))
    assert torch.allclose(found, of_output(Rounding(torch.float32), q, k, v, 1.0), rtol=1e-9, atol=0.0)
    assert ((kernel(*(x.tensor() for x in FAR), 1.0)[0].double() - attend(q, k, v, 1.0)).abs() <= found).all()


def large_scores(dtype: str) -> tuple[list[Input], Reference]:
    """Whole numbers as q and k, and what attention makes of scores 32 times their products, for 2,000 queries."""
    specs = [Input(dtype, shape, row_major(shape), 0, profile, seed)
             for seed, (shape, profile) in enumerate([((2000, 64), "integers"), ((33, 64), "integers"), ((33, 64), "normal")])]  # fmt: skip
    return specs, reference(attend, *specs, 32.0, bound=of_output, input_precision="tf32")


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_kernel_may_round_q_times_the_scale_where_two_scores_are_close(dtype: str) -> None:
    specs, expected = large_scores(dtype)
    q, k, v = (x.tensor() for x in specs)
    of_base_two = factor(q.float() * (32.0 * math.log2(math.e)), q.dtype) @ k.float().mT
    weights = torch.softmax(of_base_two * math.log(2), -1)
    found = (factor(weights, v.dtype) @ v.float()).to(v.dtype)
    exact = torch.softmax(q.double() @ k.double().mT * 32.0, -1) @ v.double()
    assert dtype != "bfloat16" or (found.double() - exact).abs().max() > 0.5  # another key is the highest
    assert Comparison(found, expected).error.max() < 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_most_large_scores_leave_no_doubt_which_is_the_highest(dtype: str) -> None:
    specs, _ = large_scores(dtype)
    q, k, v = (x.tensor().double() for x in specs)
    wide = (of_output(Rounding(getattr(torch, dtype)), q, k, v, 32.0) > 0.1).any(-1)
    assert wide.double().mean() < 0.15


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1), ("float16", 9), ("bfloat16", 1)])
def test_an_output_of_lower_precision_falls_outside(dtype: str, size: int) -> None:
    expected = references(inputs(dtype, size, 32, "grid"), 32**-0.5)[0]
    assert Comparison(TRIVIAL_RESULTS["lower_precision"]([expected.rounded], [])[0], expected).wrong_count > 0


@pytest.mark.parametrize("which", [1, 2, 3], ids=["dq", "dk", "dv"])
def test_a_gradient_of_lower_precision_falls_outside(which: int) -> None:
    expected = references(inputs("float16", 9, 32, "grid"), 32**-0.5)[which]
    assert Comparison(TRIVIAL_RESULTS["lower_precision"]([expected.rounded], [])[0], expected).wrong_count > 0


def test_with_one_key_there_is_nothing_to_weigh() -> None:
    q, k, v, _ = (x.tensor().double() for x in inputs("float32", 1, 16, "integers"))
    bound = of_output(Rounding(torch.float32, "ieee"), q, k, v, 1.0)
    assert (bound <= 40 * 2**-23 * v.abs()).all()


def test_what_is_hidden_adds_nothing() -> None:
    q, k, v, _ = (x.tensor().double() for x in inputs("float16", 4, 16, "normal"))
    hidden = torch.ones(4, 4, dtype=torch.bool).triu(1)
    huge = torch.cat([v[:1], v[1:] * 1e6])
    first = of_output(Rounding(torch.float16), q, k, huge, 0.25, hidden)[0]
    assert first.max() < 4 * 2**-10 * float(v[0].abs().max())


def test_tf32_is_wider_than_ieee() -> None:
    q, k, v, _ = (x.tensor().double() for x in inputs("float32", 9, 16, "normal"))
    tf32, ieee = (of_output(Rounding(torch.float32, p), q, k, v, 0.25) for p in ("tf32", "ieee"))
    assert (tf32 > 10 * ieee).all() and math.isfinite(float(tf32.sum()))


@pytest.mark.parametrize("precision", ["tf32", "ieee"])
def test_decoding_has_the_bound_of_attention(precision: str) -> None:
    q, k, v, _ = (x.tensor().double() for x in inputs("float32", 33, 16, "normal"))
    rounding = Rounding(torch.float32, precision)
    found = of_decoding(rounding, q, k, v, 0.25, torch.tensor([[33]]))
    assert torch.allclose(found, of_output(rounding, q, k, v, 0.25), rtol=1e-12, atol=0.0)


def test_a_sequence_has_the_bound_of_its_own_length_beside_others() -> None:
    q, k, v, _ = (x.tensor().double() for x in inputs("float32", 33, 16, "normal"))
    lengths, rounding = torch.tensor([1, 20, 33])[:, None, None], Rounding(torch.float32)
    several = [x.expand(3, 33, 16) for x in (q, k, v)]
    beyond = torch.arange(33)[:, None] >= lengths
    found = of_decoding(rounding, several[0], *(x.masked_fill(beyond, torch.nan) for x in several[1:]), 0.25, lengths)
    for bound, length in zip(found, lengths.flatten().tolist(), strict=True):
        alone = of_output(rounding, q, k[:length], v[:length], 0.25)
        assert torch.allclose(bound, alone, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_some_queries_at_a_time_have_the_bounds_of_all_together(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [x.tensor().double() for x in inputs(dtype, 33, 16, "normal")]
    hidden = torch.ones(33, 33, dtype=torch.bool).triu(1)

    def bounds() -> list[Tensor]:
        rounding = Rounding(getattr(torch, dtype))
        return [of_output(rounding, *arguments[:3], 0.25, hidden), *of_gradients(rounding, *arguments, 0.25, hidden)]

    whole = bounds()
    monkeypatch.setattr(attention, "_SMALL", 5 * 33)
    for some, all_of_it in zip(bounds(), whole, strict=True):
        assert torch.allclose(some, all_of_it, rtol=1e-12, atol=0.0)


def test_bounds_are_worked_out_where_the_inputs_lie() -> None:
    """On a card, too: here, what is made elsewhere has no data."""
    rounding = Rounding(torch.float16)
    q, k, v, grad = (torch.ones(2, 5, 16, dtype=torch.float64) for _ in range(4))
    lengths = torch.ones(2, 1, 1, dtype=torch.int64)
    with torch.device("meta"):
        bounds = (of_decoding(rounding, q, k, v, 0.25, lengths), *of_gradients(rounding, q, k, v, grad, 0.25))
    assert {bound.device.type for bound in bounds} == {"cpu"}
