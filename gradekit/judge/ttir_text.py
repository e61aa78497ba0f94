"""Which lines of a program's kernels load and store, with or without a mask, and which operations they use.

What the engine cannot read gives nothing.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gradekit.engine import Function, Op, TTIRError
from gradekit.engine.frame import dtype_of
from gradekit.engine.kernel_facts import operations, parsed
from gradekit.program import Kernel, Program

_WITHOUT_MASK = {"tt.load": 1, "tt.store": 2}
"""Operands of an access that has no mask."""


@dataclass(frozen=True)
class Access:
    """A load or store, of a tile unless it `is_scalar`, in its own line and those of calls around it."""

    kind: str
    masked: bool
    is_scalar: bool
    lines: frozenset[int]


def accesses(program: Program) -> list[Access]:
    """Every load and store of every kernel of `program`; a bounds check of a block pointer counts as a mask."""
    return [_access(op, program.path) for op in _operations(program) if op.name in _WITHOUT_MASK]


def _access(op: Op, path: str) -> Access:
    masked = bool(op.attributes.get("boundaryCheck")) or len(op.operands) > _WITHOUT_MASK[op.name]
    pointer = op.operand_types[0]
    is_tile = bool(pointer.shape or pointer.pointee is not None and pointer.pointee.shape)
    return Access(op.name.removeprefix("tt."), masked, not is_tile, _lines(op, path))


def typed_lines(program: Program, operation: str, elements: Collection[str]) -> list[tuple[str, frozenset[int]]]:
    """Each `operation` with a result of one of these types of `elements`: torch's name for it, and its lines."""
    return [
        (str(dtype_of(narrow[-1])).removeprefix("torch."), _lines(op, program.path))
        for op in _operations(program)
        if op.name == operation
        if (narrow := [t for t in op.result_types if t.element in elements])
    ]


def largest_range(program: Program) -> int:
    """The length of the longest `tl.arange`, 0 where there is none: the block size of a kernel in one dimension."""
    return max((op.attributes["end"] for op in _operations(program) if op.name == "tt.make_range"), default=0)


def uses(program: Program, operation: str) -> bool:
    """Whether some kernel has `operation`, such as "math.exp"."""
    return any(op.name == operation for op in _operations(program))


def _functions(kernel: Kernel) -> list[Function]:
    """The functions of a kernel, that which a launch runs first."""
    try:
        module = parsed(kernel.unaligned)
    except TTIRError:
        return []
    return sorted(module.functions.values(), key=lambda function: not function.public)


def _operations(program: Program) -> Iterator[Op]:
    for kernel in program.kernels.values():
        for function in _functions(kernel):
            yield from operations(function.body)


def _lines(op: Op, path: str) -> frozenset[int]:
    return frozenset(line for file, line, _ in op.location if file == path or not path)
