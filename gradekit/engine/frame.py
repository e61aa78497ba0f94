"""Where values live while a region runs: names to values, for a set of programs that
shrinks as control flow parts them.

A `Frame` holds the values of a region, and of those inside it that the same `count` programs run. A frame inside it may
run for fewer of them (`select`): a value from outside is narrowed to those programs when it is first asked for, so that
only what is used is copied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.budget import Meter, Unsupported
from gradekit.engine.conditions import USUAL, Conditions
from gradekit.engine.integers import tensor
from gradekit.engine.kernel_facts import KernelFacts, is_narrow
from gradekit.engine.lanes import Access, AccessSite, LaunchMemory
from gradekit.engine.ttir import Module, Op, Type
from gradekit.engine.ttir_locations import line_of
from gradekit.engine.values import BITS, FLOAT, INTEGER, Affine, Integer, Pointer, Value, dense, materialize, narrow
from gradekit.findings import Cause
from gradekit.observations import SHOWN, Incident, Site

PROGRAM = "program id"  # the name under which a frame keeps the linear ids of its programs (no SSA name has a space)


Loops = tuple[tuple["Op", int], ...]  # the loops that an operation is in, outermost first, each with its turn from 1 on

Observe = Callable[["Frame", "Op"], None]
"""Called after an operation, while its operands and results are in the frame. Several programs may share the frame."""


@dataclass
class LaunchContext:
    """What all frames of one launch share. `pause` lets another program go on, where programs take turns; `observe` is
    called after each operation (see observer.py), and finds in `accessed` the last access to memory with the operation
    that made it; `ways` is the branch coverage (see branch_coverage.py), `looks` says how often each mask was looked at
    for it; `begins_anew` is that of RunResult."""

    module: Module
    facts: KernelFacts
    grid: tuple[int, int, int]
    memory: LaunchMemory
    meter: Meter
    launch: int
    kernel: str
    path: str
    prints: list[str] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    conditions: Conditions = USUAL
    pause: Callable[[], None] = lambda: None
    observe: Observe | None = None
    accessed: tuple[Op, Access] | None = None
    ways: dict[tuple[int, int], int] = field(default_factory=dict)
    looks: dict[int, int] = field(default_factory=dict)
    begins_anew: bool = False

    def line(self, op: Op) -> int | None:
        """The innermost line of the submission that the operation comes from."""
        return line_of(op.location, self.path)

    def site(self, op: Op) -> Site:
        """Where the operation stands."""
        around = [line for file, line, _ in op.location if file == self.path][1:]
        return Site(self.line(op), self.launch, self.kernel, next(iter(around), None))


class Scope(dict[str, Any]):
    """The values of one region by name; those from outside are taken in when they are first asked for."""

    __slots__ = ("outside", "select")

    def __init__(self, outside: Scope | None = None, select: Tensor | None = None) -> None:
        super().__init__()
        self.outside, self.select = outside, select

    def __missing__(self, name: str) -> Any:
        if self.outside is None:
            raise KeyError(f"%{name} is used before it is defined")
        value = self.outside[name]
        if self.select is not None:
            value = narrow(value, self.select)
        self[name] = value
        return value


class Frame:
    """The values of one region: see the module. `loops` are those around it, None in code for one element."""

    __slots__ = ("context", "count", "loops", "values")

    def __init__(
        self, context: LaunchContext, count: int, values: Scope | None = None, loops: Loops | None = ()
    ) -> None:
        self.context, self.count, self.loops = context, count, loops
        self.values: Scope = Scope() if values is None else values

    def inner(self, select: Tensor | None = None) -> Frame:
        """A frame for a region inside this one, for those programs at `select`; for all of them, this one itself."""
        if select is None:
            return self
        return Frame(self.context, select.numel(), Scope(self.values, select), self.loops)

    def turn(self, loop: Op, number: int) -> Frame:
        """The same frame in turn `number`, from 1 on, of a loop inside it."""
        return Frame(
            self.context, self.count, self.values, None if self.loops is None else (*self.loops, (loop, number))
        )

    # --- operands in the form that an operation wants ----------------------------------------------------------------

    def shape(self, type: Type) -> tuple[int, ...]:
        """(count, *tile)."""
        return (self.count, *type.shape)

    def operand(self, op: Op, position: int) -> Any:
        """The value of the operand at `position`, in whatever form it has."""
        return self.values[op.operands[position]]

    def tensor(self, op: Op, position: int) -> Tensor:
        """An operand as a lazily broadcast tensor of its own dtype."""
        type = op.operand_types[position]
        return dense(self.operand(op, position), dtype_of(type), self.shape(type))

    def full(self, op: Op, position: int) -> Tensor:
        """An operand with its tile at full size; the program axis may still be 1."""
        value, type = self.tensor(op, position), op.operand_types[position]
        return value if value.shape[1:] == type.shape else value.expand([value.shape[0], *type.shape])

    def tile(self, name: str, type: Type, position: int) -> Tensor:
        """The value of `name` for the program at `position` of this frame, at full size: [*tile]."""
        value = dense(self.values[name], dtype_of(type), self.shape(type))
        mine = value[position if value.shape[0] > 1 else 0]
        return mine.expand(list(type.shape)) if type.shape else mine.reshape(())

    def programs(self) -> Tensor:
        """The linear ids of this frame's programs, int64 [count]."""
        ids: Integer = self.values[PROGRAM]
        if isinstance(ids, Affine):
            return materialize(ids, (self.count,)).expand(self.count)
        return tensor(ids, 64, (self.count,)).expand(self.count)

    def access(self, op: Op, pointer: Pointer, mask: Value | None, tile: tuple[int, ...]) -> Access:
        """What `op` asks of the memory."""
        if pointer.storage is not None and pointer.storage.fold is not None:
            elements = dense(pointer.offset, torch.int64, (self.count, *tile))
            pointer = Pointer(pointer.storage, pointer.storage.places_of(elements, pointer.itemsize), pointer.itemsize)
        site = self._site(op) if self.context.memory.explains else None
        access = Access(pointer, mask, (self.count, *tile), site)
        if self.context.observe is not None:  # kept for nobody else: it would keep tensors alive
            self.context.accessed = op, access
        return access

    def _site(self, op: Op) -> AccessSite:
        site = AccessSite(self.context.site(op), self.programs(), bool(op.attributes.get("isVolatile", False)))
        if op.attributes.get("scope") in ("gpu", "sys"):
            semantics = str(op.attributes.get("sem", ""))
            site.acquires = semantics in ("acquire", "acq_rel")
            site.releases = semantics in ("release", "acq_rel")
        site.answers = any(name in self.context.facts.used for name in op.results)
        site.narrow = is_narrow(op)
        site.early = op.number in self.context.facts.early
        return site

    def report(self, cause: Cause, op: Op, which: Tensor, message: str) -> None:
        """An incident that concerns no memory, for the programs where `which` (bool [count]) holds."""
        programs = self.programs()[which]
        shown, site = programs[:SHOWN].tolist(), self.context.site(op)
        self.context.incidents.append(Incident(cause, site, None, 1, [], shown, len(programs), message))


def dtype_of(type: Type) -> torch.dtype:
    """torch's dtype for the elements of a TTIR type; raises Unsupported for one that torch cannot hold."""
    if type.element in FLOAT:
        return FLOAT[type.element]
    if type.element in BITS:
        return INTEGER[max(BITS[type.element], 8) if type.element != "i1" else 1]
    raise Unsupported(f"the type {type.element}")


def itemsize_of(type: Type) -> int:
    """Bytes of one element in memory; a pointer in memory is a 64-bit address, a boolean one byte."""
    return 8 if type.element == "ptr" else dtype_of(type).itemsize


def known_itemsize(type: Type | None) -> int:
    """The same, or 1 where the type is not known."""
    with contextlib.suppress(Unsupported):
        return itemsize_of(type) if type else 1
    return 1
