"""What kernels decide that follows from sizes alone: for many calls at once, or for all programs of a launch."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch

from gradekit.engine import Op
from gradekit.engine.branch_coverage import NEVER, ONCE, TRUE
from gradekit.engine.mask_coverage import MASKED, NOTHING, WHOLE
from gradekit.unseen.columns import Numbers, floor_divided
from gradekit.unseen.kernel_branches import KernelBranch, KernelText

MOST_DEPTH = 60
"""Operations that one value is followed back through."""

MOST_VALUES, MOST_KEPT = 200, 50
"""Values that one decision is worked out from, and how many of those that are known the next one may find."""


@dataclass(frozen=True)
class Corner:
    """One program, lane and turn of a loop of a launch: the first or the last of each. `grid` has three sizes, `names`
    the whole numbers that the kernel gets. `known` are one kernel's values there, by name: an unrolled loop may use a
    value so often that it cannot be worked out anew for each use."""

    grid: tuple[Numbers | None, ...]
    names: Mapping[str, Numbers | None]
    program: bool
    last_lane: bool
    last_turn: bool
    known: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @functools.cached_property
    def at_last_lane(self) -> Corner:
        """The same at the end of each tile."""
        return replace(self, last_lane=True)

    def argument(self, text: KernelText, name: str) -> Numbers | None:
        """The number that an argument is."""
        return self.names.get(text.arguments[name])

    def program_id(self, axis: int) -> Numbers | None:
        """Of the program."""
        count = self.grid[axis]
        return 0 if not self.program else None if count is None else count - 1

    def lane(self, op: Op) -> int:
        """The number of a tt.make_range that the lane has."""
        return int(op.attributes["end"]) - 1 if self.last_lane else int(op.attributes["start"])

    def turn(self, text: KernelText, name: str, depth: int) -> Any:
        """The value of what a loop carries or counts by."""
        return _looped(text, name, self, depth)

    def before_atomic(self, text: KernelText, op: Op, depth: int) -> Any:
        """What an atomic finds: a sum that began at 0, and that each program before has added to once."""
        if op.attributes.get("kind") != "add" or op.result_types[0].element[:1] != "i":
            return None
        amount = value_of(text, op.operands[1], self, depth + 1)
        if amount is None or None in self.grid:
            return None
        return amount * (math.prod(self.grid) - 1) if self.program else 0  # type: ignore[arg-type]


class ValuePlace(Protocol):
    """Where in a launch values are asked for: in one program or in several, at a lane, in a turn of loops. `known`
    keeps the values that have been worked out."""

    @property
    def known(self) -> dict[str, Any]:
        """By name."""

    @property
    def grid(self) -> Sequence[Numbers | None]:
        """How many programs there are along each axis."""

    def argument(self, text: KernelText, name: str) -> Numbers | None:
        """The whole number that an argument of the kernel is."""

    def program_id(self, axis: int) -> Any:
        """What tl.program_id gives."""

    def lane(self, op: Op) -> int | None:
        """What a tt.make_range gives."""

    def turn(self, text: KernelText, name: str, depth: int) -> Any:
        """What a name is that a loop gives a value."""

    def before_atomic(self, text: KernelText, op: Op, depth: int) -> Any:
        """What an atomic gives: the value that its element had before."""


def corners(grid: tuple[Numbers | None, ...], names: Mapping[str, Numbers | None]) -> list[Corner]:
    """All of them."""
    ends = (False, True)
    return [Corner(grid, names, program, lane, turn) for program in ends for lane in ends for turn in ends]


def goes(text: KernelText, number: int, branch: KernelBranch, corner: Corner) -> Any:
    """Where the branch goes the way that it asks for; None where that does not follow from sizes."""
    for place in (corner, corner.at_last_lane):
        if len(place.known) > MOST_KEPT:
            place.known.clear()
    op = text.ops[number]
    if op.name == "scf.for":
        turns = _turns(text, op, corner)
        if turns is None:
            return None
        return turns == 0 if branch.way == NEVER else turns == 1 if branch.way == ONCE else turns > 1
    if op.name in MASKED:
        return _left(text, op, branch.way, corner)
    condition = _decides(text, op, corner)
    if condition is None:
        return None
    return condition if branch.way == TRUE else ~condition if isinstance(condition, torch.Tensor) else not condition


def _left(text: KernelText, op: Op, way: int, corner: Corner) -> Any:
    """Where a mask leaves that of a tile, by its first and last elements."""
    place = 1 if op.name == "tt.load" else 2
    if len(op.operands) <= place or corner.last_lane:  # each tile once
        return None if len(op.operands) <= place else False
    ends = [value_of(text, op.operands[place], end, 0) for end in (corner, corner.at_last_lane)]
    if ends[0] is None or ends[1] is None:
        return None
    first, last = (torch.as_tensor(end).bool() for end in ends)
    return first & last if way == WHOLE else ~first & ~last if way == NOTHING else first ^ last


def _decides(text: KernelText, op: Op, corner: Corner) -> Any:
    if op.name in ("arith.select", "scf.if", "cf.cond_br"):
        return value_of(text, op.operands[0], corner)
    if op.name.startswith(("arith.min", "arith.max")):
        a, b = (value_of(text, name, corner) for name in op.operands)
        return None if a is None or b is None else a <= b
    return value_of(text, op.results[0], corner) if op.results else None


def _turns(text: KernelText, op: Op, corner: Corner) -> Any:
    start, stop, step = (value_of(text, name, corner) for name in op.operands[:3])
    if start is None or stop is None or step is None:
        return None
    turns = floor_divided(stop - start + step - 1, step)
    return max(turns, 0) if isinstance(turns, int) else turns.clamp(min=0)


def value_of(text: KernelText, name: str, place: ValuePlace, depth: int = 0) -> Any:
    """The value of a name, int64 or bool for many calls or programs or one for all; None where it does not follow from
    sizes."""
    if name not in place.known:
        if depth > MOST_DEPTH or len(place.known) >= MOST_VALUES:
            return None
        place.known[name] = _worked_out(text, name, place, depth)
    return place.known[name]


def _worked_out(text: KernelText, name: str, place: ValuePlace, depth: int) -> Any:
    if name in text.arguments:
        return place.argument(text, name)
    op = text.made.get(name)
    if op is None:
        return place.turn(text, name, depth)
    match op.name:
        case "arith.constant":
            value = op.attributes.get("value")
            return value if type(value) in (int, bool) else None
        case "tt.get_num_programs":
            return place.grid[op.attributes["axis"]]
        case "tt.get_program_id":
            return place.program_id(op.attributes["axis"])
        case "tt.make_range":
            return place.lane(op)
        case "tt.atomic_rmw":
            return place.before_atomic(text, op, depth)
    rule, operands = _RULES.get(op.name), []
    for operand in op.operands if rule is not None else ():
        operands.append(value_of(text, operand, place, depth + 1))
        if operands[-1] is None:
            return None
    return None if rule is None else rule(op, *operands)


def _looped(text: KernelText, name: str, corner: Corner, depth: int) -> Any:
    if name in text.flow.begun:
        return value_of(text, text.flow.begun[name], corner, depth + 1)
    for op in text.ops:
        if op.name == "scf.for" and op.regions[0].blocks and op.regions[0].blocks[0].arguments[:1] == (name,):
            start, stop, step = (value_of(text, n, corner, depth + 1) for n in op.operands[:3])
            if not corner.last_turn or start is None or stop is None or step is None:
                return start
            return start + floor_divided(stop - start - 1, step) * step
    return None


def _lesser(op: Op, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b) if "min" in op.name else max(a, b)
    pick = torch.minimum if "min" in op.name else torch.maximum
    return pick(*torch.broadcast_tensors(torch.as_tensor(a), torch.as_tensor(b)))


def _compared(op: Op, a: Any, b: Any) -> Any:
    name = str(op.attributes.get("predicate", ""))
    name = name[1:] if name[:1] in "su" and len(name) == 3 else name
    comparisons: dict[str, Callable[[Any, Any], Any]] = {
        "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    }  # fmt: skip
    return comparisons[name](a, b) if name in comparisons else None


def _chosen(op: Op, condition: Any, yes: Any, no: Any) -> Any:
    if isinstance(condition, bool | int):
        return yes if condition else no
    return torch.where(condition, torch.as_tensor(yes), torch.as_tensor(no))


def _bits(symbol: str) -> Callable[..., Any]:
    def rule(op: Op, a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return a & b if symbol == "&" else a | b if symbol == "|" else a ^ b
        a, b = torch.as_tensor(a), torch.as_tensor(b)
        return a & b if symbol == "&" else a | b if symbol == "|" else a ^ b

    return rule


_SAME = (
    "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.unsplat", "arith.extsi", "arith.extui",
    "arith.trunci", "arith.index_cast",
)  # fmt: skip
_RULES: dict[str, Callable[..., Any]] = {
    **{name: lambda op, a: a for name in _SAME},
    "arith.addi": lambda op, a, b: a + b,
    "arith.subi": lambda op, a, b: a - b,
    "arith.muli": lambda op, a, b: a * b,
    **{f"arith.{name}": lambda op, a, b: floor_divided(a, b) for name in ("divsi", "divui", "floordivsi")},
    **{f"arith.{name}": lambda op, a, b: a - floor_divided(a, b) * b for name in ("remsi", "remui")},
    "arith.ceildivsi": lambda op, a, b: -floor_divided(-a, b),
    **{f"arith.{name}": _lesser for name in ("minsi", "maxsi", "minui", "maxui")},
    "arith.cmpi": _compared,
    "arith.select": _chosen,
    "arith.andi": _bits("&"),
    "arith.ori": _bits("|"),
    "arith.xori": _bits("^"),
}
