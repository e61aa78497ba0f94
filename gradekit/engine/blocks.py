"""Blocks of operations, compiled to evaluators once and run for all programs of a frame.

What follows from constants alone is worked out when the block is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradekit.engine.budget import OverBudget
from gradekit.engine.frame import Frame, Unsupported
from gradekit.engine.registry import OPS, Evaluator

if TYPE_CHECKING:
    from gradekit.engine.ttir import Block, Op

Values = list[Any]
ENDS = frozenset(
    {"scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}
)
BRANCHES = frozenset({"cf.br", "cf.cond_br", "cf.switch"})


@dataclass(slots=True)
class CompiledBlock:
    """A block as steps: operations that are to be evaluated, how, and the names of what comes out. `known` are the values
    that follow from constants alone; `end` is the operation that ends the block, if one does."""

    steps: list[tuple[Op, Evaluator, str | tuple[str, ...]]]
    known: dict[str, Any]
    end: Op | None


def run_block(frame: Frame, block: Block, arguments: Sequence[Any]) -> tuple[Op, Values]:
    """Evaluates the operations in order; returns the one that ends the block, with its operands' values."""
    compiled: CompiledBlock = block.compiled or compile_block(block, {})
    values = frame.values
    values.update(zip(block.arguments, arguments, strict=True))
    values.update(compiled.known)
    _spend(frame, block)
    _run_steps(frame, compiled.steps)
    if compiled.end is None:
        return block.ops[-1], []
    return compiled.end, [values[name] for name in compiled.end.operands]


def _run_steps(frame: Frame, steps: list[tuple[Op, Evaluator, str | tuple[str, ...]]]) -> None:
    values = frame.values
    try:
        for op, step, names in steps:  # noqa: B007  # where it goes wrong, `op` is the one
            result = step(frame)
            if type(names) is str:
                values[names] = result
            elif names:
                values.update(zip(names, result, strict=True))
    except Unsupported as error:
        error.line = error.line or frame.context.line(op)
        raise


def _spend(frame: Frame, block: Block) -> None:
    try:
        frame.context.meter.spend(len(block.ops))
    except OverBudget as error:
        error.line = next((line for op in block.ops if (line := frame.context.line(op))), None)
        raise


# --- blocks as steps -------------------------------------------------------------------------------------------------

_FOLDED = frozenset(
    {"arith.constant", "tt.make_range", "tt.splat", "tt.expand_dims", "tt.broadcast", "tt.trans",
     "arith.extsi", "arith.extui", "arith.trunci", "arith.addi", "arith.subi", "arith.muli", "arith.cmpi"}
)  # fmt: skip
"""Operations that compute nothing but integers from their operands: of constants, they are constants."""


_WRONG = (Unsupported, LookupError, TypeError, ValueError)
"""How an operation can be unknown or malformed. It goes wrong again where it is met, and only there."""


def compile_block(block: Block, outside: Mapping[str, Any]) -> CompiledBlock:
    """Makes steps of a block and of all inside it; `outside` are known values that it may use."""
    known: dict[str, Any] = {}
    visible = dict(outside)
    steps: list[tuple[Op, Evaluator, str | tuple[str, ...]]] = []
    block.compiled = compiled = CompiledBlock(steps, known, None)
    for op in block.ops:
        if op.name in ENDS or op.name in BRANCHES:
            compiled.end = op
            break
        step = _evaluator(op)
        if _fold(op, step, visible):
            known[op.results[0]] = visible[op.results[0]]
        else:
            steps.append((op, step, op.results[0] if len(op.results) == 1 else op.results))
        for inner in [block for region in op.regions for block in region.blocks]:
            compile_block(inner, visible)
    return compiled


def _evaluator(op: Op) -> Evaluator:
    compiler = OPS.get(op.name, _unknown)
    try:
        return compiler(op)
    except _WRONG:
        return lambda frame: compiler(op)(frame)


def _unknown(op: Op) -> Evaluator:
    raise Unsupported(op.name)


def _fold(op: Op, step: Evaluator, visible: dict[str, Any]) -> bool:
    """Evaluates an operation on constants here, once for all; whether it could."""
    if op.name not in _FOLDED or not all(name in visible for name in op.operands):
        return False
    alone = Frame(None, 1)  # type: ignore[arg-type]  # none of them asks the launch
    alone.values.update((name, visible[name]) for name in op.operands)
    try:
        visible[op.results[0]] = step(alone)
    except _WRONG:
        return False
    return True
