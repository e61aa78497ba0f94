"""One launch of a kernel, on inputs given as tensors and outputs given by what they are filled with."""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from corpus.case import Case
from corpus.compile import compiled

from gradekit.engine.budget import Budget
from gradekit.engine.conditions import USUAL, Conditions
from gradekit.engine.executor import RunResult, run
from gradekit.program import ITEMSIZE, Allocate, Fill, Kernel, Launch, Program, Scalar, Source, View


def view(storage: int, tensor: torch.Tensor) -> View:
    """The tensor as a view of a storage."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return View(storage, dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


def program(
    kernel: Any, grid: Sequence[int], inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor] = (),
    numbers: Sequence[int | float] = (), fill: int | None = None, addresses: dict[int, int] | None = None,
    options: dict[str, Any] | None = None, **constants: Any,
) -> Program:
    """kernel[grid](*inputs, *outputs, *numbers, **constants): storages in that order, outputs allocated like those given."""
    values = dict(zip(kernel.arg_names, [*inputs, *outputs, *numbers], strict=False)) | constants
    text = compiled(Case(kernel.fn.__name__, kernel, (1,), values))
    given = tuple(view(k, tensor) for k, tensor in enumerate(inputs))
    made = tuple(view(len(inputs) + k, tensor) for k, tensor in enumerate(outputs))
    steps: list[Any] = [Allocate(v.storage, v.numel * ITEMSIZE[v.dtype]) for v in made]
    steps += [Fill(v, fill) for v in made if fill is not None]
    scalars = tuple(Scalar(n, "fp32" if isinstance(n, float) else "i32" if abs(n) < 2**31 else "i64") for n in numbers)
    x, y, z = (*grid, 1, 1)[:3]
    launch = Launch("k", (x, y, z), (*given, *made, *scalars), Source(1))
    return Program(
        given, {}, (*steps, launch), made, "tuple", {"k": Kernel("k", text, options or {})}, kernel.fn.__code__.co_filename,
        addresses or {},
    )  # fmt: skip


def launched(
    kernel: Any, grid: Sequence[int], inputs: Sequence[torch.Tensor], *args: Any, budget: Budget | None = None,
    conditions: Conditions = USUAL, **more: Any,
) -> RunResult:
    """What comes of `program` on these inputs."""
    return run(program(kernel, grid, inputs, *args, **more), inputs, budget=budget, conditions=conditions)


@triton.jit
def sum_under_a_lock(x, total, lock):
    value = tl.load(x + tl.program_id(0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + value)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)
