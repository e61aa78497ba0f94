"""Integers that a kernel converts to floats and back on their way to an address, such as a quotient computed in
float32: the kernel is compared with itself, with float64 in their place, which holds every index exactly."""

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
from gradekit.program import Program

LARGEST_EXACT = 1 << 24
"""Up to here float32 holds every integer exactly."""

MOST_BYTES = 1 << 29  # that a run may allocate: the result alone is large, and little of it is touched

_INTO = ("arith.sitofp", "arith.uitofp")
_BACK = ("arith.fptosi", "arith.fptoui")


def first_difference(
    program: Program, tensors: Sequence[torch.Tensor], allow: Collection[str], programs: Mapping[int, Sequence[int]]
) -> tuple[int, int | None] | None:
    """The first element of a result, counted in row-major order, that some `programs` of a call (by launch) compute
    otherwise than with exact integers, and the line that converts them to floats; None where there is none, or where
    one differs already that float32 counts exactly."""
    try:
        usual, exact = (
            executor.run_setup(
                Setup(program, tensors, 0, allow, reader=reader, programs=programs), Budget(bytes=MOST_BYTES)
            ).results
            for reader in (as_compiled, lambda kernel: _of_text(kernel.unaligned))
        )
    except (OverBudget, Unsupported, ForbiddenOp):
        return None
    for one, other in zip(usual, exact, strict=True):
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            differs = one.flatten().view(torch.uint8) != other.flatten().view(torch.uint8)
            first = int(differs.view(torch.uint8).argmax()) // one.element_size()  # 0 where nothing differs
            if first > LARGEST_EXACT:
                texts = (kernel.unaligned for kernel in program.kernels.values())
                ops = (op for text in texts for op in every_operation(parsed(text)) if op.name in _INTO)
                return first, next((line_of(op.location, program.path) for op in ops), None)
    return None


@functools.lru_cache(maxsize=16)
def _of_text(ttir: str) -> tuple[Module, KernelFacts]:
    module = parsed(ttir)
    flow = DefUse(module.functions.values())
    each = (flow.behind(op.operands) for op in flow.ops if op.name in _BACK)
    names = [one for one in each if not any(op.name in LOADS | ATOMICS for op in flow.makers(one))]
    return Widening(names=frozenset().union(*names)).module(module)
