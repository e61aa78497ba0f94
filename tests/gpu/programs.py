"""Programs to replay, and the tensors that go in."""

import functools
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from gradekit import wire
from gradekit.gpu import worker
from gradekit.inputs.spec import Input
from gradekit.program import Argument, Program, Scalar, Step, View
from gradekit.sandbox import Tracer
from gradekit.subject.call_spec import to_arguments
from tests.patience import eventually
from tests.tracer.helpers import submission
from tests.tracer.styles import Text

COPY = """
    def entry(x):
        out = torch.empty_like(x)
        copy_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
"""

AUTOTUNED = """
    @triton.autotune([triton.Config({'BLOCK': b}, num_warps=w) for b, w in ((32, 1), (256, 4), (1024, 8))], key=['n'])
    @triton.jit
    def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)

    def entry(x):
        out = torch.empty_like(x)
        double[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, out, x.numel())
        return out
"""

SECOND_TIME = """
    @triton.jit
    def second_time(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        before = tl.load(out_ptr + at, mask=at < n)
        untouched = before != before
        tl.store(out_ptr + at, tl.where(untouched, tl.load(x_ptr + at, mask=at < n) * 2, 7.0), mask=at < n)

    def entry(x):
        out = torch.empty_like(x)
        second_time[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
"""

ENDLESS = """
    @triton.jit
    def endless(x_ptr, out_ptr):
        i = 0
        while tl.load(x_ptr, volatile=True) > -1e30:
            i += 1
            tl.store(out_ptr + 1, i)
        tl.store(out_ptr, i)

    def entry(x):
        out = torch.zeros(2, dtype=torch.int32, device=x.device)
        endless[(1,)](x, out)
        return out
"""

FAR_AWAY = """
    @triton.jit
    def far_away(x_ptr, out_ptr, far):
        tl.store(out_ptr + far, tl.load(x_ptr))

    def entry(x):
        out = torch.empty_like(x)
        far_away[(1,)](x, out, 1 << 42)
        return out
"""

NEXT_TO_IT = """
    @triton.jit
    def no_mask(x_ptr, out_ptr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at))

    def entry(x):
        out = torch.empty_like(x)
        no_mask[(triton.cdiv(x.numel(), 64),)](x, out, BLOCK=64)
        return out
"""

TABLE = """
    @triton.jit
    def by_table(table, out, BLOCK: tl.constexpr):
        base = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
        at = tl.arange(0, BLOCK)
        tl.store(out + tl.program_id(0) * BLOCK + at, tl.load(base + at))

    def entry(x):
        y = torch.full_like(x, 3.0)
        table = torch.tensor([y.data_ptr(), x.data_ptr() + 16], device=x.device)
        out = torch.empty(16, device=x.device)
        by_table[(2,)](table, out, BLOCK=8)
        return out
"""

MANY_STEPS = """
    def entry(x):
        out = torch.zeros_like(x)
        copy_kernel[(triton.cdiv(x.numel(), 64),)](x.contiguous(), out, x.numel(), BLOCK=64)
        weights = torch.arange(x.numel(), device=x.device, dtype=x.dtype).view(x.shape)
        return out.add(weights).sum(), torch.tensor([1, 2, 3], device=x.device), out.sum(-1)
"""

ALLOWED = ("aten::sum", "aten::add")


def traced(text: Text, entry: str, *args: Any) -> tuple[Program, list[torch.Tensor]]:
    """The program of a call, and the tensors that go in."""
    given = [arg for arg in args if isinstance(arg, (Input, torch.Tensor))]
    return _program(text, entry, to_arguments(args)), [arg.tensor() if isinstance(arg, Input) else arg for arg in given]


@functools.cache
def _program(text: Text, entry: str, arguments: tuple[Argument, ...]) -> Program:
    """Traced once: many tests ask for one call."""
    with Tracer(text) as tracer:
        return tracer.trace(entry, arguments)


def entry(body: str, *args: Any) -> tuple[Program, list[torch.Tensor]]:
    """The program of `entry(*args)` in a submission that begins with HEAD."""
    return traced(submission(body), "entry", *args)


def normal(*shape: int, dtype: str = "float32") -> Input:
    """Normal values, contiguous."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return Input(dtype, shape, tuple(strides[: len(shape)]))


def program(steps: Sequence[Step], results: Sequence[Argument], inputs: Sequence[View] = (), **more: Any) -> Program:
    """A program without kernels."""
    storages = {view.storage: view.numel * 4 for view in inputs}
    return Program(tuple(inputs), storages, tuple(steps), tuple(results), "tensor", {}, **more)


def number(value: int) -> Scalar:
    """A number that a kernel is given."""
    return Scalar(value, "i64")


@contextmanager
def answers_awaited_once_it_runs(found: worker.Worker, kernel: str) -> Iterator[None]:
    """While open, no time is up before the kernel runs, however long the machine takes to get there."""
    receive = wire.receive

    def runs() -> bool:
        assert found._process is not None
        at = found._process.progress()
        return at["kernel"] == kernel and at["what"] != "compile"

    def receive_once_it_runs(sock: socket.socket, *arguments: Any) -> Any:
        assert found._process is None or found._process._sock is not sock or eventually(runs)
        return receive(sock, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "receive", receive_once_it_runs)
        yield
