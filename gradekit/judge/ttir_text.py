"""The operations of a program's kernels, and which lines load and store. What the engine cannot read gives nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from gradekit.engine import Op, TTIRError
from gradekit.engine.kernel_facts import every_operation, parsed
from gradekit.engine.masked_lanes import mask_of
from gradekit.program import Program

_ATOMIC = "tt.atomic_rmw"
_KINDS = {"tt.load": "load", "tt.store": "store", _ATOMIC: "store"}


@dataclass(frozen=True)
class Access:
    """A load or store, of a tile unless it `is_scalar`, in its own line and those of calls around it. An atomic stores;
    its mask is there, written or not, so that only the text tells whether it has one."""

    kind: str
    masked: bool
    is_scalar: bool
    lines: frozenset[int]


def operations_of(program: Program) -> Iterator[Op]:
    """The operations of every kernel."""
    for kernel in program.kernels.values():
        try:
            module = parsed(kernel.unaligned)
        except TTIRError:
            continue
        yield from every_operation(module)


def accesses(program: Program) -> list[Access]:
    """Every load, store and atomic of every kernel; a bounds check of a block pointer counts as a mask."""
    return [_access(op, program.path) for op in operations_of(program) if op.name in _KINDS]


def _access(op: Op, path: str) -> Access:
    masked = bool(op.attributes.get("boundaryCheck") or op.name != _ATOMIC and mask_of(op))
    pointer = op.operand_types[0]
    is_tile = bool(pointer.shape or pointer.pointee is not None and pointer.pointee.shape)
    return Access(_KINDS[op.name], masked, not is_tile, lines_of(op, path))


def lines_of(op: Op, path: str) -> frozenset[int]:
    """The lines of the submission, which is called `path`, that an operation stands in."""
    return frozenset(line for file, line, _ in op.location if file == path or not path)
