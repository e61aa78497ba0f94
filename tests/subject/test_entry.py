"""A function of a submission as a test calls it: its result, and the gradients of its arguments."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gradekit.assignment import Assignment
from gradekit.findings import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.compare import assert_close
from gradekit.judge.failure import Failure
from gradekit.judge.reference import reference
from gradekit.sandbox import Tracer
from gradekit.subject.subject import Subject
from gradekit.submission import Submission

TEXT = """
import torch
import triton
import triton.language as tl


@triton.jit
def multiply_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask) * tl.load(y_ptr + i, mask), mask)


def multiply(x, y):
    out = torch.empty_like(x)
    multiply_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return multiply(x, y)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        grad = grad.contiguous()
        return multiply(grad, y), multiply(grad, x)


class WithoutY(Product):
    @staticmethod
    def backward(ctx, grad):
        return multiply(grad, ctx.saved_tensors[1]), None


class ByTorch(Product):
    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x


def product(x, y):
    return Product.apply(x, y)


def without_y(x, y):
    return WithoutY.apply(x, y)


def by_torch(x, y):
    return ByTorch.apply(x, y)
"""
X, Y = Input("float32", (3, 40), (40, 1), seed=1), Input("float32", (3, 40), (40, 1), seed=2)
UPSTREAM = Input("float32", (3, 40), (0, 1), seed=3)


@pytest.fixture(scope="module")
def submission() -> Iterator[Subject]:
    source = Submission("submission.py", TEXT, "0" * 64)
    found = Subject(source, Assignment("product", "Product", "product", "", Path()), lambda: Tracer(source))
    yield found
    found.close()


def of_x(x: torch.Tensor, y: torch.Tensor, upstream: torch.Tensor) -> torch.Tensor:
    return upstream * y


def of_y(x: torch.Tensor, y: torch.Tensor, upstream: torch.Tensor) -> torch.Tensor:
    return upstream * x


def test_a_call_gives_the_result(submission: Subject) -> None:
    assert_close(submission.product(X, Y), reference(torch.mul, X, Y))


def test_the_gradients_come_in_the_order_wanted(submission: Subject) -> None:
    found = submission.product.gradient(X, Y, upstream=UPSTREAM, wanted=(1, 0))
    assert_close(found, [reference(of_y, X, Y, UPSTREAM), reference(of_x, X, Y, UPSTREAM)])


def test_one_gradient_alone_can_be_judged(submission: Subject) -> None:
    found = submission.product.gradient(X, Y, upstream=UPSTREAM, wanted=(0, 1), only=1)
    assert_close(found, reference(of_y, X, Y, UPSTREAM))


def test_a_backward_pass_runs_once_for_all_that_is_asked_of_it(submission: Subject) -> None:
    one = submission.product.gradient(X, Y, upstream=UPSTREAM, wanted=(0, 1), only=0)
    other = submission.product.gradient(X, Y, upstream=UPSTREAM, wanted=(0, 1), only=1)
    assert one.counters is other.counters


def test_a_call_is_not_mistaken_for_a_backward_pass(submission: Subject) -> None:
    assert submission.product(X, Y).counters.launches == 1
    assert submission.product.gradient(X, Y, upstream=UPSTREAM).counters.launches == 3


def test_a_gradient_that_is_missing_is_named(submission: Subject) -> None:
    with pytest.raises(Failure) as caught:
        submission.without_y.gradient(X, Y, upstream=UPSTREAM, wanted=(0, 1))
    assert caught.value.cause is Cause.WRONG_TYPE
    assert "no gradient for y" in str(caught.value)


def test_torch_may_not_compute_in_the_backward_pass(submission: Subject) -> None:
    with pytest.raises(Failure) as caught:
        submission.by_torch.gradient(X, Y, upstream=UPSTREAM)
    assert caught.value.cause is Cause.FORBIDDEN_OP
