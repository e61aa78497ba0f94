"""Whole numbers of a kernel that go through floats, and back, on their way to an address: beside the same kernel with
float64 in their place, which holds every index. What parts from it where no float32 holds them is wrong."""

import functools
from collections.abc import Collection, Mapping, Sequence

import torch

from gradekit.engine import executor
from gradekit.engine.budget import Budget, OverBudget, Unsupported
from gradekit.engine.def_use import ATOMICS, LOADS, DefUse
from gradekit.engine.executor import Setup, as_compiled
from gradekit.engine.host import ForbiddenOp
from gradekit.engine.kernel_facts import KernelFacts, every_operation, parsed
from gradekit.engine.ttir import Module
from gradekit.engine.ttir_locations import line_of
from gradekit.exact.widening import Widening
from gradekit.program import Kernel, Program

HELD = 1 << 24
"""Up to here float32 holds every whole number."""

MOST_BYTES = 1 << 29  # that a run may allocate: the result alone is large, and little of it is touched

_INTO = ("arith.sitofp", "arith.uitofp")
_BACK = ("arith.fptosi", "arith.fptoui")


def parting(
    program: Program, tensors: Sequence[torch.Tensor], allow: Collection[str], programs: Mapping[int, Sequence[int]]
) -> tuple[int, int | None] | None:
    """The first element of a result, counted in row-major order, that some `programs` of a call (by launch) compute
    otherwise than with whole numbers kept whole, and the line that converts them; None where there is none, or where
    they part for small numbers too."""
    try:
        usual, whole = (
            executor.run_setup(
                Setup(program, tensors, 0, allow, reader=reader, programs=programs), Budget(bytes=MOST_BYTES)
            ).results
            for reader in (as_compiled, _kept_whole)
        )
    except (OverBudget, Unsupported, ForbiddenOp):
        return None
    for one, other in zip(usual, whole, strict=True):
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            part = one.flatten().view(torch.uint8) != other.flatten().view(torch.uint8)
            first = int(part.view(torch.uint8).argmax()) // one.element_size()  # 0 where nothing parts
            if first > HELD:
                texts = (kernel.unaligned for kernel in program.kernels.values())
                ops = (op for text in texts for op in every_operation(parsed(text)) if op.name in _INTO)
                return first, next((line_of(op.location, program.path) for op in ops), None)
    return None


def _kept_whole(kernel: Kernel) -> tuple[Module, KernelFacts]:
    return _of_text(kernel.unaligned)


@functools.lru_cache(maxsize=16)
def _of_text(ttir: str) -> tuple[Module, KernelFacts]:
    module = parsed(ttir)
    flow = DefUse(module.functions.values())
    each = (flow.behind(op.operands) for op in flow.ops if op.name in _BACK)
    names = [one for one in each if not any(op.name in LOADS | ATOMICS for op in flow.makers(one))]
    return Widening(names=frozenset().union(*names)).module(module)
