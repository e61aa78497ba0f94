"""Structured control flow, branches and calls, for programs that may part ways.

All programs of a frame take a region together while they agree. Where they do not, each side runs for its own programs
in a frame narrowed to them, and the results are stitched together again; a loop goes on with the programs that are
still in it. So a program never executes what it would not execute on the card.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradekit.engine import integers
from gradekit.engine.blocks import BRANCHES, afford_turns, compile_function, run_block
from gradekit.engine.branch_coverage import note, note_turns
from gradekit.engine.budget import Unsupported
from gradekit.engine.frame import PROGRAM, Frame, Scope, dtype_of
from gradekit.engine.registry import evaluates
from gradekit.engine.ttir import Block, Function, Op, Region, Type
from gradekit.engine.values import BITS, FLOAT, arange, dense, narrow, stitch

Values = list[Any]


def run_region(frame: Frame, region: Region, arguments: Sequence[Any] = (), again: bool = False) -> Values:
    """Evaluates a region in `frame`, `again` in a later turn of a loop; the values that it yields."""
    if len(region.blocks) != 1:
        return run_blocks(frame, region, arguments)
    if not region.blocks[0].ops:  # a yield of nothing is left out of the text
        return []
    return run_block(frame, region.blocks[0], arguments, again)[1]


def _stitched(pieces: list[tuple[Tensor, Values]], count: int, types: Sequence[Type]) -> Values:
    """Values for `count` programs from pieces (positions, values), column by column."""
    return [
        stitch([(index, values[k]) for index, values in pieces], count, _dtype(type), type.shape)
        for k, type in enumerate(types)
    ]


def _dtype(type: Type) -> torch.dtype | None:
    return dtype_of(type) if type.element in FLOAT or type.element in BITS else None


def truths(frame: Frame, value: Any) -> bool | Tensor:
    """A condition as one bool where all programs agree, else bool [count]."""
    if isinstance(value, bool | int):
        return bool(value)
    return _agreed(dense(value, torch.bool, (frame.count,)).expand(frame.count))


def _agreed(each: Tensor) -> bool | Tensor:
    if bool(each.all()):
        return True
    return each if bool(each.any()) else False


# --- scf.if -----------------------------------------------------------------------------------------------------------


@evaluates("scf.if")
def _evaluate_if(frame: Frame, op: Op) -> tuple[Any, ...]:
    condition = truths(frame, frame.operand(op, 0))
    note(frame, op, condition)
    if isinstance(condition, bool):
        return tuple(_branch(frame.inner(), op, condition))
    pieces = []
    for side, mask in ((True, condition), (False, ~condition)):
        index = mask.nonzero().view(-1)
        pieces.append((index, _branch(frame.inner(index), op, side)))
    return tuple(_stitched(pieces, frame.count, op.result_types))


def _branch(frame: Frame, op: Op, side: bool) -> Values:
    position = 0 if side else 1
    if position >= len(op.regions) or not op.regions[position].blocks:
        return []
    return run_region(frame, op.regions[position])


# --- loops ------------------------------------------------------------------------------------------------------------


class Survivors:
    """The programs still in a loop, with what they carry, and their frame; `leave` sets aside those that are done."""

    def __init__(self, frame: Frame, carried: Values) -> None:
        self.frame, self.inner, self.carried = frame, frame, carried
        self.alive: Tensor | None = None
        self.pieces: list[tuple[Tensor, Values]] = []

    @property
    def index(self) -> Tensor:
        """The positions of the programs that are still in the loop."""
        return arange(self.frame.count) if self.alive is None else self.alive

    def leave(self, staying: bool | Tensor, carried: Values) -> bool:
        """Programs where `staying` is false go with what they carry; whether any stay."""
        if staying is True:
            self.carried = carried
            return True
        index = self.index
        if staying is False:
            self.pieces.append((index, carried))
            return False
        assert isinstance(staying, Tensor)
        gone, kept = (~staying).nonzero().view(-1), staying.nonzero().view(-1)
        self.pieces.append((index[gone], [narrow(value, gone) for value in carried]))
        self.alive, self.carried = index[kept], [narrow(value, kept) for value in carried]
        self.inner = self.frame.inner(self.alive)
        return True

    def results(self, types: Sequence[Type]) -> tuple[Any, ...]:
        """What the loop gives, with the programs in their order again."""
        return tuple(_stitched(self.pieces, self.frame.count, types))


@evaluates("scf.for")
def _evaluate_for(frame: Frame, op: Op) -> tuple[Any, ...]:
    start, stop, step = (frame.values[name] for name in op.operands[:3])
    carried = [frame.values[name] for name in op.operands[3:]]
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        turns = len(range(start, stop, step or 1))
        note_turns(frame, op, turns, turns)
        return tuple(_count(frame, op, range(start, stop, step or 1), carried))
    return _count_apart(frame, op, start, stop, step, carried)


def _count(frame: Frame, op: Op, numbers: range, carried: Values) -> Values:
    for turn, number in enumerate(numbers, 1):
        carried = run_region(frame.turn(op, turn), op.regions[0], [number, *carried], turn > 1)
        if number == numbers[0]:
            afford_turns(frame, op.regions[0], len(numbers) - 1, frame.count * (len(numbers) - 1))
    return carried


def _count_apart(frame: Frame, op: Op, start: Any, stop: Any, step: Any, carried: Values) -> tuple[Any, ...]:
    """A loop whose bounds depend on the program: trips are counted beforehand, as the hardware's loop would."""
    bits = BITS[op.operand_types[0].element]
    trips = _trips(frame, start, stop, step, bits)
    note_turns(frame, op, int(trips.min()), int(trips.max()))
    survivors, before, ends = Survivors(frame, carried), None, {*trips.tolist()}
    for turn in range(max(ends) + 1):
        stay = _agreed(narrow(trips, survivors.index) > turn) if turn in ends else True
        if not survivors.leave(stay, survivors.carried):
            break
        inner, again = survivors.inner, survivors.inner is before
        before = inner
        first, by, shape = inner.values[op.operands[0]], inner.values[op.operands[2]], (inner.count,)
        number = integers.addi(first, integers.muli(by, turn, bits, shape), bits, shape)
        survivors.carried = run_region(inner.turn(op, turn + 1), op.regions[0], [number, *survivors.carried], again)
        if turn == 0:
            afford_turns(frame, op.regions[0], max(ends) - 1, int((trips - 1).clamp(min=0).sum()))
    return survivors.results(op.result_types)


def _trips(frame: Frame, start: Any, stop: Any, step: Any, bits: int) -> Tensor:
    first, last, by = (dense(value, torch.int64, (frame.count,)).to(torch.int64) for value in (start, stop, step))
    count = torch.div(last - first + by - 1, by.clamp(min=1), rounding_mode="floor").clamp(min=0)
    return count.expand(frame.count)


@evaluates("scf.while")
def _evaluate_while(frame: Frame, op: Op) -> tuple[Any, ...]:
    survivors = Survivors(frame, [frame.values[name] for name in op.operands])
    for turn in itertools.count(1):
        inner = survivors.inner.turn(op, turn)
        _, values = run_block(inner, op.regions[0].blocks[0], survivors.carried)
        if not survivors.leave(truths(inner, values[0]), values[1:]):
            break
        survivors.carried = run_region(survivors.inner.turn(op, turn), op.regions[1], survivors.carried)
    return survivors.results(op.result_types)


# --- branches between blocks, as an early return makes them -----------------------------------------------------------


class BlockScope(Scope):
    """One block's values among several, for the programs at `index`; those of earlier blocks are found by programs."""

    __slots__ = ("defines", "earlier", "index")

    def __init__(self, frame: Frame, block: Block, index: Tensor, earlier: list[BlockScope]) -> None:
        super().__init__(frame.values, None if index.numel() == frame.count else index)
        self.index, self.earlier = index, earlier
        self.defines = {*block.arguments, *(name for op in block.ops for name in op.results)}

    def __missing__(self, name: str) -> Any:
        for other in self.earlier:
            if name in other.defines:
                return narrow(other[name], torch.searchsorted(other.index, self.index))
        return super().__missing__(name)


def run_blocks(frame: Frame, region: Region, arguments: Sequence[Any]) -> Values:
    """Evaluates blocks in their order, each for the programs that reach it; the values returned."""
    waiting: dict[str, list[tuple[Tensor, Values]]] = {region.blocks[0].label: [(arange(frame.count), list(arguments))]}
    finished: list[tuple[Tensor, Values]] = []
    earlier: list[BlockScope] = []
    types: Sequence[Type] = ()
    for block in region.blocks:
        pieces = waiting.pop(block.label, [])
        if not pieces:
            continue
        scope, given = _enter(frame, block, pieces, earlier)
        inner = Frame(frame.context, scope.index.numel(), scope, frame.loops)
        end, values = run_block(inner, block, given)
        earlier.append(scope)
        if end.name in BRANCHES:
            _branch_out(inner, scope.index, end, values, waiting)
        else:
            finished.append((scope.index, values))
            types = end.operand_types
    if waiting:
        raise Unsupported("a branch back to an earlier block")
    return _stitched(finished, frame.count, types)


def _enter(
    frame: Frame, block: Block, pieces: list[tuple[Tensor, Values]], earlier: list[BlockScope]
) -> tuple[BlockScope, Values]:
    """A scope for the programs of all pieces, in order, and the block's arguments for them."""
    index = torch.cat([piece for piece, _ in pieces]).sort().values
    placed = [(torch.searchsorted(index, piece), values) for piece, values in pieces]
    return BlockScope(frame, block, index, list(earlier)), _stitched(placed, index.numel(), block.argument_types)


def _branch_out(
    frame: Frame, index: Tensor, end: Op, values: Values, waiting: dict[str, list[tuple[Tensor, Values]]]
) -> None:
    if end.name == "cf.switch":
        raise Unsupported("cf.switch", frame.context.line(end))
    condition = truths(frame, values[0]) if end.name == "cf.cond_br" else True
    if end.name == "cf.cond_br":
        note(frame, end, condition)
    other = not condition if isinstance(condition, bool) else ~condition
    for (label, names), taken in zip(end.successors, (condition, other), strict=False):
        if taken is False:
            continue
        carried = [frame.values[name] for name in names]
        if taken is True:
            waiting.setdefault(label, []).append((index, carried))
            continue
        chosen = taken.nonzero().view(-1)
        waiting.setdefault(label, []).append((index[chosen], [narrow(value, chosen) for value in carried]))


# --- functions --------------------------------------------------------------------------------------------------------


def call(own: Frame, function: Function, arguments: Sequence[Any], again: bool = False) -> Values:
    """Runs a function for the programs of a frame that knows nothing else; or has run it for others, if `again`."""
    compile_function(function)
    own.values.update(zip(function.arguments, arguments, strict=True))
    return run_region(own, function.body, arguments if function.body.blocks[0].arguments else (), again)


@evaluates("tt.call")
def _evaluate_call(frame: Frame, op: Op) -> tuple[Any, ...]:
    function = frame.context.module.functions.get(str(op.attributes["callee"]).lstrip("@"))
    if function is None:
        raise Unsupported(f"a call of {op.attributes['callee']}", frame.context.line(op))
    own = Frame(frame.context, frame.count, loops=frame.loops)
    own.values[PROGRAM] = frame.values[PROGRAM]
    return tuple(call(own, function, [frame.values[name] for name in op.operands]))
