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
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.program import Argument, Program, Scalar, Step, View
from gradekit.sandbox import Tracer
from gradekit.subject.call_spec import to_arguments
from tests.beside import beside
from tests.patience import eventually
from tests.tracer.helpers import submission
from tests.tracer.styles import Text

TEXTS = beside(__file__)

COPY = """
    def entry(x):
        out = torch.empty_like(x)
        copy_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
"""

AUTOTUNED = TEXTS["autotuned"]

SECOND_TIME = TEXTS["second_time"]

ENDLESS = TEXTS["endless"]

FAR_AWAY = TEXTS["far_away"]

NEXT_TO_IT = TEXTS["next_to_it"]

TABLE = TEXTS["table"]

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
    return Input(dtype, shape, row_major(shape))


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
