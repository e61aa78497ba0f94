"""Operations that give no value: printing, assertions, what the compiler may assume, and barriers."""

import torch
from torch import Tensor

from gradekit.engine.budget import Limit, Unsupported
from gradekit.engine.frame import Frame
from gradekit.engine.registry import evaluates
from gradekit.engine.ttir import Op
from gradekit.engine.values import Below, Conjunction, Pointer, Value, absolute, dense
from gradekit.findings import Cause


@evaluates("tt.print")
def _evaluate_print(frame: Frame, op: Op) -> None:
    lines = frame.context.prints
    prefix = str(op.attributes.get("prefix", "")).strip()
    for position in range(len(op.operands)):
        value = frame.operand(op, position)
        if isinstance(value, Pointer):
            value = absolute(value).offset
        if len(lines) < Limit.PRINTED:
            lines.append(f"{prefix} {_shown(value, frame.shape(op.operand_types[position]))}".strip())
    if not op.operands and len(lines) < Limit.PRINTED:
        lines.append(prefix)


def _shown(value: Value, shape: tuple[int, ...]) -> str:
    """The first elements of the first programs; a number that all of them share once."""
    if isinstance(value, int):
        return str(value)
    flat = dense(value, torch.bool if isinstance(value, Below | Conjunction) else torch.int64, shape).reshape(-1)
    return ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in flat[:16].tolist())


@evaluates("tt.assert", "cf.assert")
def _evaluate_assert(frame: Frame, op: Op) -> None:
    failed = _fails(frame, op)
    if bool(failed.any()):
        frame.report(Cause.DEVICE_ASSERT, op, failed, str(op.attributes.get("message", "")))


def _fails(frame: Frame, op: Op) -> Tensor:
    """The programs for which the operation's condition is false somewhere: bool [count]."""
    holds = dense(frame.operand(op, 0), torch.bool, frame.shape(op.operand_types[0]))
    return ~(holds.flatten(1).all(1) if holds.dim() > 1 else holds).expand(frame.count)


@evaluates("gpu.barrier", "ttg.barrier", "ttg.local_barrier", "tt.debug_barrier")
def _evaluate_barrier(frame: Frame, op: Op) -> None:
    frame.context.memory.barrier(frame.programs())


@evaluates("llvm.intr.assume")
def _evaluate_assume(frame: Frame, op: Op) -> None:
    broken = _fails(frame, op)
    if bool(broken.any()):
        frame.report(Cause.BROKEN_PROMISE, op, broken, "by tl.assume")


@evaluates("tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents")
def _evaluate_nothing(frame: Frame, op: Op) -> None:
    """Operations of a program, and launches, happen in order; nothing is made of what the compiler may assume."""


@evaluates("tt.elementwise_inline_asm")
def _evaluate_inline_asm(frame: Frame, op: Op) -> int:
    """Machine code is not known, but for Triton 3.6's way to wait for an earlier launch, whose result is a dummy."""
    if not str(op.attributes.get("asm_string", "")).strip().startswith("griddepcontrol."):
        raise Unsupported(op.name, frame.context.line(op))
    return 0
