"""What kernels decide that follows from sizes alone: formulas of a symbolic walk (`gradekit.prove`), worked out for
many calls at once, or for all programs of a launch."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradekit.engine import Function, Op
from gradekit.engine.branch_coverage import NEVER, ONCE, TRUE
from gradekit.engine.def_use import ATOMICS, LOADS, STORES
from gradekit.engine.kernel_facts import operations
from gradekit.engine.mask_coverage import MASKED, NOTHING, WHOLE
from gradekit.prove.columns import COLUMNS, ColumnEvaluation, Numbers
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_values import OTHER, SymbolicPointer, Value
from gradekit.prove.terms import ZERO, Atom, Term, Truth, free, var
from gradekit.prove.value_of import Undefined
from gradekit.prove.walk import TooLong, Walk, turn_of
from gradekit.unseen.kernel_branches import KernelBranch, KernelText

AXES = "xyz"
MOST_PARTS = 64
"""Of a sum that is followed."""
MOST_KEPT = 50
"""Values that are kept for the next decision."""


class _ByRanges(Solver):
    def follows(self, hypotheses: Sequence[Truth], goal: Truth) -> bool:
        return goal.op == "true"


class _FormulaWalk(Walk):
    """Follows all integers of a kernel. `met` has the operands and the results of each operation, by its number, in a
    turn of its loops that could be any; `loops` where they start, where they stop, and their steps."""

    def __init__(self, text: KernelText) -> None:
        self.met: dict[int, tuple[list[Value], list[Value]]] = {}
        self.loops: dict[str, list[Value]] = {}
        entry = text.module.entry
        arguments = [_argument(*one) for one in zip(entry.argument_names, entry.argument_types, strict=True)]
        grid = [var(f"grid {axis}", 0) for axis in AXES]
        try:
            super().__init__(text.module, text.path, arguments, grid, (), _ByRanges())
        except TooLong:
            self.met.clear()

    def followed(self, function: Function) -> frozenset[str]:
        """All."""
        return frozenset(name for op in operations(function.body) for name in op.results)

    def owe(self, op: Op, value: Term, low: int | None, high: int | None) -> None:
        """Nothing is proved here."""

    def op(self, op: Op) -> None:
        """Keeps what it meets."""
        operands = [*map(self.get, op.operands)]
        if op.name == "scf.for":
            ((turn,),) = turn_of(self, op).parts
            self.loops[turn.key] = operands[:3]
        super().op(op)
        self.met[op.number] = operands, [*map(self.get, op.results)]

    def _results(self, op: Op) -> Sequence[Value]:
        if op.name == "tt.atomic_rmw" and op.attributes.get("kind") == "add":
            amount = self.get(op.operands[1])
            if isinstance(amount, Term):  # a sum that began at 0, and that each program before has added to once
                return [amount * var("programs before", 0)]
        if op.name in LOADS | STORES | ATOMICS:
            return [self.unknown(type) for type in op.result_types]
        found = super()._results(op)
        large = (isinstance(value, Term) and len(value.parts) > MOST_PARTS for value in found)
        return [self.unknown(type) for type in op.result_types] if any(large) else found


def _argument(name: str, type: Any) -> Value:
    if type.pointee is not None:
        return SymbolicPointer(0, ZERO, 1)
    if type.element == "i1":
        return free(name)
    return var(f"argument {name}") if type.element[0] == "i" else OTHER


formulas = functools.lru_cache(maxsize=64)(_FormulaWalk)
"""Those of a kernel."""


@dataclass(frozen=True)
class Place:
    """Where in a launch values are asked for: the ids of one `program` or of several, the first or the `last_lane` of
    tiles and the first or the `last_turn` of loops (None: what differs among them has no value). `grid` has three
    sizes, `names` the whole numbers that the kernel gets, `before` how many programs have been there."""

    grid: Sequence[Numbers | None]
    names: Mapping[str, Numbers | None]
    program: Sequence[Any]
    last_lane: bool | None = None
    last_turn: bool | None = None
    before: Any = None
    _worked: dict[KernelText, _Worked] = field(default_factory=dict, compare=False, repr=False)

    @functools.cached_property
    def at_last_lane(self) -> Place:
        """The same at the end of each tile."""
        return replace(self, last_lane=True, _worked={})

    def values(self, text: KernelText, number: int) -> tuple[list[Any], list[Any]]:
        """What the operands and the results of an operation are, int64 or bool for many calls or programs or one for
        all; None where that does not follow from sizes."""
        worked = self._worked.setdefault(text, _Worked(self, text))
        if len(worked.known) > MOST_KEPT:
            worked.known.clear()
        operands, results = formulas(text).met.get(number, ([], []))
        return [*map(worked.value, operands)], [*map(worked.value, results)]

    def operand(self, text: KernelText, number: int, position: int) -> Any:
        """One of its operands."""
        found, _ = self.values(text, number)
        return found[position] if position < len(found) else None


class _Worked(ColumnEvaluation):
    """Terms as columns, at a place."""

    def __init__(self, place: Place, text: KernelText) -> None:
        super().__init__({})
        self.place, self.text = place, text

    def value(self, value: Value) -> Any:
        try:
            return self.term(value) if isinstance(value, Term) else self.truth(value)  # type: ignore[arg-type]
        except (Undefined, AttributeError):
            return None

    def given(self, atom: Atom) -> Any:
        found = self._given(atom)
        if found is None:
            raise Undefined(atom.key)
        return found

    def _given(self, atom: Atom) -> Any:
        name, place = str(atom.args[0]), self.place
        kind, _, which = name.partition(" ")
        if atom.op == "var" and kind == "argument":
            return place.names.get(which)
        if atom.op == "var" and kind in ("program", "grid"):
            return (place.program if kind == "program" else place.grid)[AXES.index(which)]
        if atom.op == "var" and kind == "programs":
            return place.before
        if kind.startswith("@") and place.last_lane is not None:
            return int(kind.partition("/")[2]) - 1 if place.last_lane else 0
        if atom.op == "var" and kind == "turn" and place.last_turn is not None:
            return turns(*map(self.value, formulas(self.text).loops[atom.key])) - 1 if place.last_turn else 0
        return None


def turns(start: Any, stop: Any, step: Any) -> Any:
    """How often a loop runs; None where that is not known."""
    if start is None or stop is None or step is None:
        return None
    found = COLUMNS.applied("//", stop - start + step - 1, step)
    return max(found, 0) if isinstance(found, int) else found.clamp(min=0)


def corners(grid: tuple[Numbers | None, ...], names: Mapping[str, Numbers | None]) -> list[Place]:
    """The first and the last program, lane and turn of a launch, in all combinations."""
    last = [None if size is None else size - 1 for size in grid]
    before = None if None in grid else math.prod(grid) - 1  # type: ignore[arg-type]
    ends = (False, True)
    return [
        Place(grid, names, last if program else (0, 0, 0), lane, turn, before if program else 0)
        for program in ends for lane in ends for turn in ends
    ]  # fmt: skip


def goes(text: KernelText, number: int, branch: KernelBranch, place: Place) -> Any:
    """Where the branch goes the way that it asks for; None where that does not follow from sizes."""
    op = text.ops[number]
    operands, results = place.values(text, number)
    if op.name == "scf.for":
        count = turns(*operands[:3]) if operands else None
        if count is None:
            return None
        return count == 0 if branch.way == NEVER else count == 1 if branch.way == ONCE else count > 1
    if op.name in MASKED:
        return _left(text, op, branch.way, place)
    condition = _decides(op, operands, results)
    return None if condition is None else condition if branch.way == TRUE else condition ^ True


def _left(text: KernelText, op: Op, way: int, place: Place) -> Any:
    """Where a mask leaves that of a tile, by its first and last elements."""
    position = 1 if op.name == "tt.load" else 2
    if len(op.operands) <= position or place.last_lane:  # each tile once
        return None if len(op.operands) <= position else False
    ends = [end.operand(text, op.number, position) for end in (place, place.at_last_lane)]
    if ends[0] is None or ends[1] is None:
        return None
    first, last = (torch.as_tensor(end).bool() for end in ends)
    return first & last if way == WHOLE else ~first & ~last if way == NOTHING else first ^ last


def _decides(op: Op, operands: Sequence[Any], results: Sequence[Any]) -> Any:
    if op.name in ("arith.select", "scf.if", "cf.cond_br"):
        return operands[0] if operands else None
    if op.name.startswith(("arith.min", "arith.max")):
        return operands[0] <= operands[1] if operands and None not in operands[:2] else None
    return results[0] if results else None
