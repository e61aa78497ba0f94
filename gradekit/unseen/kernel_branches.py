"""What kernels decide on, which ways of it no run has gone, and what of it follows from sizes alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch

from gradekit.engine import Module, Op
from gradekit.engine.branch_coverage import CLAMP, FALSE, NEVER, ONCE, SEVERAL, TRUE
from gradekit.engine.kernel_facts import operations, parsed
from gradekit.engine.mask_coverage import MASKED, NOTHING, PART, WHOLE, ways_of
from gradekit.unseen.evaluation import Numbers

MOST_DEPTH = 60
"""Operations that one value is followed back through."""

MOST_VALUES = 200
"""Values that one decision is worked out from."""

_TILES = {WHOLE: "true for a whole tile", NOTHING: "false for a whole tile", PART: "true for a part of a tile"}
_TURNS = {NEVER: "no times", ONCE: "once", SEVERAL: "several times"}
_WHAT = {
    "arith.select": "the condition of a choice",
    "scf.if": "the condition of an if",
    "cf.cond_br": "the condition of an if",
}


@dataclass(frozen=True)
class KernelBranch:
    """An operation of a kernel that decides something, and a way of it. It is the same one in each specialization: the
    operation is the `place`-th of its `name` on its line. `dtypes` are those of its pointers, where that matters."""

    kernel: str
    line: int | None
    name: str
    place: int
    way: int
    dtypes: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """The way, as the end of a sentence."""
        if self.name == "scf.for":
            return f"a loop never runs {_TURNS[self.way]}"
        if self.name in MASKED:
            return f"the mask of a {self.name.removeprefix('tt.')} is never {_TILES[self.way]}"
        if self.name == CLAMP:
            return f"a clamped value is never {'below' if self.way == TRUE else 'above'} its range"
        what = _WHAT.get(self.name, "a comparison")
        if self.name.startswith(("arith.min", "arith.max")):
            what = "the first operand of a minimum or maximum being less"
        elif self.name in ("arith.andi", "arith.ori", "arith.xori"):
            what = "a condition"
        return f"{what} is never {'true' if self.way == TRUE else 'false'}"


class KernelText:
    """A kernel's operations by number, and what each value comes from. `path` names the submission in its locations."""

    def __init__(self, name: str, ttir: str, path: str) -> None:
        self.name, self.path = name, path
        self.module: Module = parsed(ttir)
        functions = self.module.functions.values()
        self.ops = [op for function in functions for op in operations(function.body)]
        self.made = {result: op for op in self.ops for result in op.results}
        self.carried = dict(_carried(self.ops))
        self.arguments = dict(zip(self.module.entry.arguments, self.module.entry.argument_names, strict=True))

    def line(self, op: Op) -> int | None:
        """The innermost line of the submission that the operation comes from."""
        return next((line for file, line, _ in op.location if file == self.path), None)

    @functools.cached_property
    def places(self) -> list[tuple[int | None, str, int]]:
        """For each operation its line, its name, and how many of that name stand before it on that line."""
        counted: dict[tuple[int | None, str], int] = {}
        found = []
        for op in self.ops:
            key = self.line(op), op.name
            found.append((*key, counted.get(key, 0)))
            counted[key] = counted.get(key, 0) + 1
        return found

    def branches(self, ways: Mapping[int, int]) -> Iterator[tuple[KernelBranch, int, bool]]:
        """The ways of the operations that a run has come by, each with its number and whether a run has gone it."""
        for number, way in ways.items():
            if 0 <= number < len(self.ops):
                line, name, place = self.places[number]
                for one in _ways(self.ops[number]):
                    yield KernelBranch(self.name, line, name, place, one), number, bool(way & one)

    def behind(self, op: Op) -> list[Op]:
        """The operations that one depends on."""
        found: dict[int, Op] = {}
        left = list(op.operands)
        while left and len(found) < 40 * MOST_DEPTH:
            name = left.pop()
            source = self.made.get(name)
            if source is None:
                left += [n for n in self.carried.get(name, ()) if n not in found]
            elif source.number not in found:
                found[source.number] = source
                left += source.operands
        return [found[number] for number in sorted(found)]

    def computed_from(self, names: Sequence[str]) -> frozenset[str]:
        """The names of the operations that values depend on, also of those in loops and branches that have ended."""
        seen, found, left = set[int](), set[str](), list(names)
        while left:
            name = left.pop()
            source = self.made.get(name)
            if source is None:
                left += [first for first in self.carried.get(name, ()) if first in self.made]
            elif source.number not in seen:
                seen.add(source.number)
                found.add(source.name)
                left += [*source.operands, *_results_of(source)]
        return frozenset(found)


def _results_of(op: Op) -> Iterator[str]:
    """What the regions of a loop or of an if end with: its results."""
    for region in op.regions if op.name.startswith("scf.") else ():
        for block in region.blocks:
            yield from block.ops[-1].operands if block.ops else ()


def _ways(op: Op) -> tuple[int, ...]:
    if op.name in MASKED:
        return ways_of(op)
    return (NEVER, ONCE, SEVERAL) if op.name == "scf.for" else (TRUE, FALSE)


def _carried(ops: Sequence[Op]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """For each value that a loop carries, the operand that it begins as."""
    for op in ops:
        if op.name == "scf.for" and op.regions and op.regions[0].blocks:
            for name, first in zip(op.regions[0].blocks[0].arguments[1:], op.operands[3:], strict=False):
                yield name, (first,)


def numbers_in(ops: Sequence[Op], floating: bool) -> list[Any]:
    """The constants among operations, in order, each once."""
    found: dict[Any, None] = {}
    for op in ops:
        value: Any = op.attributes.get("value") if op.name == "arith.constant" else None
        is_float = op.name == "arith.constant" and op.result_types[0].element[0] in "fb"
        if type(value) in (int, float) and is_float == floating and math.isfinite(value):
            found[float(value) if floating else value] = None
    return list(found)


# --- values that follow from sizes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corner:
    """One program, lane and turn of a loop of a launch: the first or the last of each. `grid` has three sizes, `names`
    the whole numbers that the kernel gets. `known` are the values of one decision there, by name: an unrolled loop may
    use a value so often that it cannot be worked out anew for each use."""

    grid: tuple[Numbers | None, ...]
    names: Mapping[str, Numbers | None]
    program: bool
    last_lane: bool
    last_turn: bool
    known: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

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


def corners(grid: tuple[Numbers | None, ...], names: Mapping[str, Numbers | None]) -> Iterator[Corner]:
    """All of them."""
    for program in (False, True):
        for lane in (False, True):
            for turn in (False, True):
                yield Corner(grid, names, program, lane, turn)


def goes(text: KernelText, number: int, branch: KernelBranch, corner: Corner) -> Any:
    """Where the branch goes the way that it asks for; None where that does not follow from sizes."""
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
    ends = [value_of(text, op.operands[place], replace(corner, last_lane=lane), 0) for lane in (False, True)]
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
    turns = _divided(stop - start + step - 1, step)
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
    if name in text.carried:
        return value_of(text, text.carried[name][0], corner, depth + 1)
    for op in text.ops:
        if op.name == "scf.for" and op.regions[0].blocks and op.regions[0].blocks[0].arguments[:1] == (name,):
            start, stop, step = (value_of(text, n, corner, depth + 1) for n in op.operands[:3])
            if not corner.last_turn or start is None or stop is None or step is None:
                return start
            return start + _divided(stop - start - 1, step) * step
    return None


def _divided(a: Any, b: Any) -> Any:
    """a // b; where b is 0, a."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else a
    divisor = torch.as_tensor(b)
    return torch.div(torch.as_tensor(a), torch.where(divisor == 0, 1, divisor), rounding_mode="floor")


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
    **{f"arith.{name}": lambda op, a, b: _divided(a, b) for name in ("divsi", "divui", "floordivsi")},
    **{f"arith.{name}": lambda op, a, b: a - _divided(a, b) * b for name in ("remsi", "remui")},
    "arith.ceildivsi": lambda op, a, b: -_divided(-a, b),
    **{f"arith.{name}": _lesser for name in ("minsi", "maxsi", "minui", "maxui")},
    "arith.cmpi": _compared,
    "arith.select": _chosen,
    "arith.andi": _bits("&"),
    "arith.ori": _bits("|"),
    "arith.xori": _bits("^"),
}


@functools.lru_cache(maxsize=64)
def kernel_text(name: str, ttir: str, path: str) -> KernelText:
    """The kernel with this text."""
    return KernelText(name, ttir, path)
