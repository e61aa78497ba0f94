"""Diagnoses for which the failing call runs once more: which operation made the NaN or the infinity of a result, of
which numbers. An observer follows the program that wrote the wrong element, where each value that holds one has an
origin, its own or that of an operand, and then the launch whose memory it was loaded from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from gradekit.causes import Cause
from gradekit.engine import executor
from gradekit.engine.budget import AGAIN, Budget, OverBudget, Unsupported
from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.host import ForbiddenOp
from gradekit.engine.memory import Memory
from gradekit.engine.observer import DrawnWith, Observer, Owners, TouchedElements, touched
from gradekit.engine.ttir import Op
from gradekit.engine.values import FLOAT
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, operations_of
from gradekit.program import Program, View

MOST_LAUNCHES = 4
"""How many launches back an origin is looked for."""

_WRITTEN = {
    "arith.addf": "{} + {}", "arith.subf": "{} - {}", "arith.mulf": "{} * {}", "arith.divf": "{} / {}",
    "arith.remf": "{} % {}", "math.sqrt": "sqrt({})", "math.rsqrt": "rsqrt({})",
    "math.exp": "exp({})", "math.exp2": "exp2({})",
    "math.log": "log({})", "math.log2": "log2({})", "math.fma": "{} * {} + {}",
}  # fmt: skip
"""Operations as a student writes them."""

_ELEMENTWISE = ("arith.", "math.", "tt.precise_", "tt.extern_elementwise", "tt.fp_to_fp", "tt.clampf")

_THROUGH = ("arith.max", "arith.min", "arith.addf", "arith.subf", "arith.mulf", "tt.reduce")
"""Operations out of which an infinity may come as it went in."""

_AROUND = ("scf.", "tt.call")
"""Operations whose results are values of a region inside them."""

_LOGARITHM = "a logarithm needs a number above 0"
_ROOT = "under a root nothing may be negative"

_OF_NAN = {
    "math.sqrt": _ROOT, "math.rsqrt": _ROOT, "math.log": _LOGARITHM, "math.log2": _LOGARITHM,
    "-inf - -inf": "where all so far is -inf, take 0 in place of this difference, with tl.where",
}  # fmt: skip
_OF_INFINITY = {"math.log": _LOGARITHM, "math.log2": _LOGARITHM}


@dataclass(frozen=True)
class Origin:
    """The operation that made a NaN or an infinity, its line, and where an infinity that went into it was computed; of
    one that was given, the lines that it has only `passed`."""

    line: int | None
    said: str
    operation: str
    infinite: Origin | None = None
    passed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class _Given:
    """It was written down, or, with a `storage`, in memory before the launch; `passed` are lines of operations into
    which it went, and out of which it came."""

    storage: int | None = None
    index: int = 0
    passed: frozenset[int] = frozenset()


@dataclass
class _Follower:
    """An observer that follows one program of one launch up to its write to an element of a storage, in a `lane` of the
    tiles with so many elements, where it is known; then it is the one that was `stored`."""

    at: tuple[int, int]
    storage: int
    index: int
    lane: tuple[int, int] = (0, 0)
    stored: tuple[int, int] = (0, 0)
    found: Origin | _Given | None = None

    def launch(self, context: LaunchContext, memory: Memory) -> Observe | None:
        """A launch begins."""
        if context.launch == self.at[0]:
            self._memory, self._origins = memory, dict[int, tuple[Any, Origin | _Given, bool]]()
            return self._after
        return None

    def _after(self, frame: Frame, op: Op) -> None:
        programs = frame.programs().tolist()
        if self.at[1] not in programs:
            return
        done = _Done(frame, op, programs.index(self.at[1]))
        access = touched(frame, op, self._memory)
        for name, type in zip(op.results, op.result_types, strict=True):
            value = frame.tile(name, type, done.position) if type.element in FLOAT else None
            if value is not None and (lane := _special_lane(value, *self.lane)) is not None:
                kept = frame.values[name]
                inside = op.name.startswith(_AROUND)
                origin = self._known(kept) if inside else self._origin(done, value.flatten()[lane], lane, access)
                if origin is not None:
                    self._origins[id(kept)] = kept, origin, bool(value.flatten()[lane].isnan())
        if access is not None and not op.results and access.storage is not None and access.storage.id == self.storage:
            lanes = access.active[done.position] & (access.index[done.position] == self.index)
            place = next((n for n, type in enumerate(op.operand_types) if type.element in FLOAT), None)
            if place is not None and bool(lanes.any()):  # bits may be stored as integers
                self.found = self._known(frame.operand(op, place))
                self.stored = int(lanes.long().argmax()), lanes.numel()

    def _known(self, value: Any, number: Tensor | None = None) -> Origin | _Given | None:
        _, known, is_nan = self._origins.get(id(value), (None, None, False))
        return known if number is None or bool(number.isnan()) is is_nan else None  # else it is another lane's

    def _origin(self, done: _Done, value: Tensor, lane: int, access: TouchedElements | None) -> Origin | _Given | None:
        """Where the special `value` in a lane of an operation's result begins; None where it was written down."""
        op = done.op
        if access is not None:
            index, active = access.index[done.position], access.active[done.position]
            known = access.storage is not None and index.numel() > lane and bool(active[lane])
            return _Given(access.storage.id, int(index[lane])) if known else None  # type: ignore[union-attr]
        numbers = [(done.at(n, lane, value), n) for n in done.floats(lane)]
        operands = [(number, self._known(done.frame.operand(op, n), number)) for number, n in numbers]
        same = {one: known for one, known in operands if one.isnan() == value.isnan() and not one.isfinite()}
        if same:
            return _handed_on(done, value, same)
        if not operands or not op.name.startswith(_ELEMENTWISE):
            crossing = "a sum of products" if op.name.startswith("tt.dot") else "a reduction"
            return None if not operands else Origin(done.line, crossing, op.name, *_infinite(operands))
        kind = "-inf - -inf" if op.name == "arith.subf" and done.is_of_nothing(lane) else op.name
        return Origin(done.line, _said(op, [number for number, _ in operands]), kind, *_infinite(operands))


def _handed_on(done: _Done, value: Tensor, same: Mapping[Tensor, Origin | _Given | None]) -> Origin | _Given | None:
    """What is known of a `value` that comes out of an operation as it went in; a choice may be where it was put in."""
    known = next((one for one in same.values() if one is not None), None)
    if isinstance(known, Origin) or done.line is None or bool(value.isnan()):
        return known
    passed = frozenset[int]().union(*(one.passed for one in same.values() if one is not None))
    if not any(bool(one == value) for one in same):  # of the other sign: this one is new
        passed = frozenset()
    elif done.op.name.startswith(_THROUGH):
        passed |= {done.line}
    return replace(known or _Given(), passed=passed)


def _infinite(operands: Sequence[tuple[Tensor, Origin | _Given | None]]) -> tuple[Origin | None, frozenset[int]]:
    """Where an infinity among the operands was computed; or else which lines those have passed that were given."""
    known = [one for number, one in operands if number.isinf()]
    computed = next((one for one in known if isinstance(one, Origin)), None)
    return computed, frozenset[int]().union(*(one.passed for one in known if one and not computed))


def _said(op: Op, numbers: Sequence[Tensor]) -> str:
    form = _WRITTEN.get(op.name)
    texts = [f"{float(number):.4g}" for number in numbers]
    if form is not None:
        return form.format(*texts)
    if op.name == "arith.truncf":
        return f"{texts[0]} in {op.result_types[0].element.replace('bf', 'bfloat').replace('f16', 'float16')}"
    name = str(op.attributes.get("symbol", "")).removeprefix("__nv_") or op.name.partition(".")[2]
    return f"{name}({', '.join(texts)})"


@dataclass(frozen=True)
class _Done:
    """An operation that has ended, for the program at `position` of its frame."""

    frame: Frame
    op: Op
    position: int

    @property
    def line(self) -> int | None:
        return self.frame.context.line(self.op)

    def floats(self, lane: int) -> list[int]:
        """The operands that are floats; of a choice, the one that was chosen for the lane."""
        if self.op.name == "arith.select":
            condition = self.frame.tile(self.op.operands[0], self.op.operand_types[0], self.position).flatten()
            return [1 if bool(condition[lane if condition.numel() > 1 else 0]) else 2]
        return [n for n, type in enumerate(self.op.operand_types) if type.element in FLOAT]

    def is_of_nothing(self, lane: int) -> bool:
        """Whether all that stands in the rows of its operands that the lane belongs to is -inf."""
        operands = zip(self.op.operands, self.op.operand_types, strict=True)
        tiles = [self.frame.tile(name, type, self.position) for name, type in operands]
        rows = [tile.reshape(-1, tile.shape[-1])[lane // tile.shape[-1]] if tile.dim() else tile for tile in tiles]
        return all(bool((row == -torch.inf).all()) for row in rows)

    def at(self, operand: int, lane: int, made: Tensor) -> Tensor:
        """An operand's number in a lane; where its lanes are others, one like what is `made`, or else a special one."""
        tile = self.frame.tile(self.op.operands[operand], self.op.operand_types[operand], self.position).flatten()
        if self.op.name.startswith((*_ELEMENTWISE, "tt.store")):
            return tile[lane if tile.numel() > 1 else 0]
        alike = tile.isnan() if bool(made.isnan()) else tile == made
        special = int(alike.long().argmax()) if bool(alike.any()) else _special_lane(tile)
        return tile[special if special is not None else 0]


def _special_lane(tile: Tensor, wanted: int = 0, lanes: int = 0) -> int | None:
    """A lane that holds NaN, or else an infinity: the one `wanted` of a tile of so many `lanes`, or else the first."""
    flat = tile.double().flatten()
    if len(flat) == lanes and not bool(flat[wanted].isfinite()):
        return wanted
    for special in (flat.isnan(), flat.isinf()):
        if bool(special.any()):
            return int(special.long().argmax())
    return None


def special_origin(
    program: Program, inputs: Sequence[Tensor], comparison: Comparison | None, allow: Collection[str]
) -> Diagnosis | None:
    """Why an element is NaN or infinite, by running the failing call once more; None where it is not known."""
    places, owners = _wrong_places(program, comparison), Owners()
    if not places or not ran(program, inputs, allow, owners):
        return None
    follow = lambda place: _followed(program, inputs, allow, owners, *place)
    origin = next(filter(None, map(follow, places)), None)
    return _told(origin, bool(comparison is not None and comparison.nan.any()), program) if origin is not None else None


def _followed(
    program: Program, inputs: Sequence[Tensor], allow: Collection[str], owners: Owners, storage: int, index: int
) -> Origin | None:
    """Where the NaN or the infinity begins that the last write to an element of a storage has left there."""
    for _ in range(MOST_LAUNCHES):
        at = owners.owner(storage, index)
        if at is None:
            return None
        follower = _Follower(at, storage, index)
        if not ran(program, inputs, allow, follower) or follower.found is None:
            return None
        again = _Follower(at, storage, index, follower.stored)  # lanes that a mask leaves out may hold a NaN, too
        found = again.found if ran(program, inputs, allow, again) and again.found is not None else follower.found
        if isinstance(found, Origin):
            return found
        if found.storage is None:
            break
        storage, index = found.storage, found.index
    return None


def _wrong_places(program: Program, comparison: Comparison | None) -> list[tuple[int, int]]:
    """The storage and the index in it of the first element that is NaN, or else infinite, and must not be: in each
    result that has the shape of the one that was compared."""
    if comparison is None or not comparison.actual.is_floating_point():
        return []
    special = comparison.nan if bool(comparison.nan.any()) else comparison.inf
    views = [v for v in program.results if isinstance(v, View) and v.shape == tuple(special.shape)]
    place = lambda view, index: view.offset + sum(i * s for i, s in zip(index, view.stride, strict=True))
    return [(view.storage, place(view, index)) for view in views for index in special.nonzero()[:1].tolist()]


def ran(
    program: Program, inputs: Sequence[Tensor], allow: Collection[str], observer: Observer, option: int = 0,
    work: int = AGAIN,
) -> bool:  # fmt: skip
    """Runs an option of a program once more under an observer; False where that cannot be done."""
    try:
        executor.run(program, inputs, option=option, allow=allow, budget=Budget(work), observer=observer)
    except (Unsupported, OverBudget, ForbiddenOp):
        return False
    return True


def _told(origin: Origin, is_nan: bool, program: Program) -> Diagnosis:
    before = origin.infinite
    sentence = f"The first {'NaN' if is_nan else 'infinity'} is made by {_place(origin)}."
    if before is not None and before.line != origin.line:
        sentence += f" The infinity in it is made by {_place(before)}."
    first = before or origin
    if first.operation in ("math.exp", "math.exp2"):
        return Diagnosis(Cause.OVERFLOW, sentence, first.line, _before_exp(program))
    if first.operation in ("arith.truncf", "tt.fp_to_fp"):
        return Diagnosis(Cause.OVERFLOW, sentence, first.line)
    cause = Cause.NAN if is_nan else Cause.WRONG_VALUES
    hint = _OF_NAN.get(origin.operation, "") if is_nan and not before else _OF_INFINITY.get(first.operation, "")
    return Diagnosis(cause, sentence, first.line, hint, passed=origin.passed - {first.line})


def _place(origin: Origin) -> str:
    return f"`{origin.said}`" + (f" in line {origin.line}" if origin.line else "")


def _before_exp(program: Program) -> str:
    """What to do about an exp that overflows: where rows are reduced, and nothing takes a maximum, that is missing."""
    names = {op.name for op in operations_of(program)}
    if "tt.reduce" not in names or not names.isdisjoint(("arith.maxnumf", "arith.maximumf")):
        return "exp overflows float32 above 88.7"
    return "subtract the row's maximum before exp, which overflows float32 above 88.7"


# --- random numbers ---------------------------------------------------------------------------------------------------


@dataclass
class _Counters:
    """An observer: by the line that draws, the line that makes what it draws with, and whether it does so in a loop,
    the different numbers in it; and the lines of loops in which it stores."""

    numbers: dict[tuple[int, int, bool], Tensor] = field(default_factory=dict)
    loops: set[int] = field(default_factory=set)

    def launch(self, context: LaunchContext, memory: Memory) -> Observe:
        """A launch begins; with launch 0, everything does."""
        if context.launch == 0:
            self.numbers.clear()
        made = dict[str, int]()  # by value, the line of the submission itself that makes it
        generator = DrawnWith()

        def note(frame: Frame, op: Op) -> None:
            file, own = op.location[0][0] if op.location else "", context.line(op)
            if frame.loops and op.name.startswith("tt.store"):
                self.loops.add(context.line(frame.loops[-1][0]) or 0)
            if own and file == context.path:
                made.update(dict.fromkeys(op.results, own))
            for place in generator.operands(op):
                if own and (name := op.operands[place]) in made and op.operand_types[place].shape:
                    at, drawn = (own, made[name], bool(frame.loops)), frame.full(op, place).flatten()
                    self.numbers[at] = torch.cat([self.numbers.get(at, drawn[:0]), drawn]).unique()

        return note


def shared_draws(program: Program, inputs: Sequence[Tensor], allow: Collection[str]) -> Diagnosis | None:
    """That elements must share random numbers, as a line draws with too few different counters for all of a result, of
    four numbers each at most; None where it draws with more, or nobody knows."""
    if not ran(program, inputs, allow, counters := _Counters(), work=20 * AGAIN) or not counters.numbers:
        return None
    (line, made, is_repeated), numbers = max(counters.numbers.items(), key=lambda one: one[1].numel())
    elements = max((one.numel for one in program.results if isinstance(one, View)), default=0)
    if 4 * numbers.numel() >= elements:
        return None
    sentence = f"Line {line} draws with {numbers.numel():,} different counters, for {elements:,} elements"
    where = f": see line {made}." if made != line else "."
    hint = "each element needs a counter of its own, its number, say"
    if counters.loops and not is_repeated:
        hint = f"draw inside the loop of line {min(counters.loops)}, with other counters in each step"
    return Diagnosis(Cause.WRONG_VALUES, sentence + where, made, hint)
