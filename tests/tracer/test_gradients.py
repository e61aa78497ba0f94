"""The program of a backward pass, with the gradient of the result as its last input."""

import pytest

from gradekit.findings import Cause
from gradekit.program import Launch, Program, Scalar, View
from gradekit.sandbox import TraceError, Tracer

from .helpers import X, kinds, submission, tensor

SCALED = """
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            out = torch.empty_like(x)
            copy_kernel[(1,)](x, out, x.numel(), BLOCK=128)
            ctx.save_for_backward(w)
            return out
        @staticmethod
        def backward(ctx, grad):
            w, = ctx.saved_tensors
            dx = torch.empty_like(grad)
            copy_kernel[(2,)](grad, dx, grad.numel(), BLOCK=64)
            return dx, torch.zeros_like(w)
    def entry(x, w, other=None):
        return Scaled.apply(x, w)
    def plain(x, w):
        out = torch.empty_like(x)
        copy_kernel[(1,)](x, out, x.numel(), BLOCK=128)
        return out
    """
W = tensor(1, 3)


def gradient(wanted: list[int], upstream: View | None = None, entry: str = "entry") -> Program:
    with Tracer(submission(SCALED)) as tracer:
        return tracer.trace(entry, [X, W], wanted, upstream)


def test_the_program_holds_both_passes() -> None:
    program = gradient([0, 1])
    assert kinds(program.steps) == ["Allocate", "Launch", "Allocate", "Launch", "Allocate", "Fill"]
    assert program.inputs == (X, W, View(2, "float32", (100,), (1,)))
    backward = program.steps[3]
    assert isinstance(backward, Launch) and backward.grid == (2, 1, 1)
    assert backward.args[:2] == (program.inputs[2], program.results[0])
    assert [view.shape for view in program.results if isinstance(view, View)] == [(100,), (3,)]


def test_the_gradient_of_the_result_may_have_any_layout() -> None:
    upstream = View(5, "float32", (100,), (0,))
    program = gradient([0], upstream)
    assert program.inputs[2] == upstream and program.storages[5] == 4
    assert next(step for step in program.steps[::-1] if isinstance(step, Launch)).args[0] == upstream


def test_a_result_without_a_gradient_is_explained() -> None:
    with pytest.raises(TraceError) as caught:
        gradient([0], entry="plain")
    assert caught.value.cause is Cause.EXCEPTION
    assert "torch.autograd.Function" in caught.value.message


def test_an_error_in_the_backward_pass_has_its_line() -> None:
    body = SCALED.replace("w, = ctx.saved_tensors", "w, = ctx.saved_tensors; grad.sum().item()")
    with Tracer(submission(body)) as tracer, pytest.raises(TraceError) as caught:
        tracer.trace("entry", [X, W], [0])
    assert caught.value.cause is Cause.READS_VALUES and caught.value.line == 19


def test_a_gradient_that_is_not_given_is_none() -> None:
    with Tracer(submission(SCALED.replace("torch.zeros_like(w)", "None"))) as tracer:
        assert tracer.trace("entry", [X, W], [1]).results == (Scalar(None),)
