"""Branch coverage of kernels: which ways the conditions and loops of a run have gone.

Of each comparison, choice (`tl.where`), `if`, minimum and maximum is noted whether it was true and whether
it was false for any lane; of each clamp, whether a value lay below its range (true) and above it (false); of each
loop, whether it ran no times, once and several times; of the mask of each load and store, what it leaves of whole
tiles: all of one, nothing of one, or a part, for some program. Once all is known of an operation, or its mask was
looked at often enough in a launch, it costs nothing.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gradekit.engine.budget import Limit
from gradekit.engine.masks import Box
from gradekit.engine.memory import anywhere, everywhere
from gradekit.engine.registry import Evaluator
from gradekit.engine.values import Affine, Below, Conjunction, Value
from gradekit.program import Launch, Program, run_steps

if TYPE_CHECKING:
    from gradekit.engine.frame import Frame, LaunchContext
    from gradekit.engine.ttir import Op

TRUE, FALSE = 1, 2
NEVER, ONCE, SEVERAL = 1, 2, 4
BOTH = TRUE | FALSE

Ways = dict[tuple[int, int], int]
"""By number of launch and number of operation in its kernel: TRUE and FALSE, or NEVER, ONCE and SEVERAL, added up."""

CLAMP = "tt.clampf"
_TOGETHER = frozenset({"arith.andi", "arith.ori", "arith.xori"})
_LESSER = frozenset(
    f"arith.{name}" for name in ("minsi", "maxsi", "minui", "maxui", "minnumf", "maxnumf", "minimumf", "maximumf")
)


def watches(op: Op) -> bool:
    """Whether the ways of an operation are noted when it is evaluated."""
    if op.name in _TOGETHER:
        return op.result_types[0].element == "i1"
    return op.name in _LESSER or op.name in ("arith.cmpi", "arith.cmpf", "arith.select", CLAMP)


def watched(op: Op, step: Evaluator) -> Evaluator:
    """The evaluator `step` of an operation, which also notes the way that it goes."""
    orders, chooses = _orders(op), op.name == "arith.select"

    def evaluate(frame: Frame) -> Any:
        context = frame.context
        known = BOTH if context is None else context.ways.get((context.launch, op.number), 0)
        if known == BOTH:
            return step(frame)
        for way, relation, place in orders:
            if not known & way and _holds(relation, frame.operand(op, 0), frame.operand(op, place)):
                add_way(frame.context, op.number, way)
        chosen = frame.operand(op, 0) if chooses else None
        value = step(frame)
        if not orders:
            note(frame, op, chosen if chooses else value)
        return value

    return evaluate


def _orders(op: Op) -> Sequence[tuple[int, Callable[[Any, Any], Any], int]]:
    """Each way of an operation that orders its first operand and another, with the relation between them, and the place
    of the other. None holds for NaN, as lanes that are stored nowhere often are: they say nothing of a limit."""
    if op.name == CLAMP:
        return (TRUE, operator.lt, 1), (FALSE, operator.gt, 2)
    relations = _RELATIONS.get("le" if op.name in _LESSER else str(op.attributes.get("predicate", ""))[1:])
    if relations is None or op.name == "arith.cmpi":
        return ()
    return (TRUE, relations[0], 1), (FALSE, relations[1], 1)


_RELATIONS = {
    "lt": (operator.lt, operator.ge), "le": (operator.le, operator.gt),
    "gt": (operator.gt, operator.le), "ge": (operator.ge, operator.lt),
}  # fmt: skip
"""Each with its opposite."""


def _holds(relation: Callable[[Any, Any], Any], a: Any, b: Any) -> bool:
    """Whether a relation is known to hold for any lane; of numbers that rise along axes, between the likeliest ends."""
    is_less = relation in (operator.lt, operator.le)
    a, b = _end(a, not is_less), _end(b, is_less)
    if type(a) not in (int, Tensor) or type(b) not in (int, Tensor):
        return False
    found = relation(a, b)
    return anywhere(found) if isinstance(found, Tensor) else bool(found)


def _end(value: Any, is_high: bool) -> Any:
    return value if type(value) is not Affine else value.high if is_high else value.low


def note(frame: Frame, op: Op, value: Any) -> None:
    """A condition has this value: numbers alone tell, for a run may be made of other things too."""
    kind = type(value)
    if kind is bool or kind is int:
        way = TRUE if value else FALSE
    elif kind is Below:
        way = BOTH  # true for some elements and false for others
    elif kind is Tensor and value.dtype == torch.bool and value.numel():
        way = (TRUE if anywhere(value) else 0) | (0 if everywhere(value) else FALSE)
    elif kind is Conjunction and all(type(f) is Below or type(f) is Tensor for f in value.factors):
        context, looks = frame.context, frame.context.looks.get(op.number, 0)
        if looks >= Limit.LOOKS:
            return
        context.looks[op.number] = looks + 1
        tile = op.operand_types[0] if op.name == "arith.select" else op.result_types[0]
        left = left_of_tiles(context.memory.box(value, frame.shape(tile)))
        way = TRUE * bool(left & (WHOLE | PART)) | FALSE * bool(left & (NOTHING | PART))
    else:
        return
    add_way(frame.context, op.number, way)


def note_turns(frame: Frame, op: Op, least: int, most: int) -> None:
    """A loop runs from `least` to `most` times, for some programs of the frame."""
    way = sum(bit for bit, seen in ((NEVER, least == 0), (ONCE, least <= 1 <= most), (SEVERAL, most > 1)) if seen)
    add_way(frame.context, op.number, way)


def add_way(context: LaunchContext, number: int, way: int) -> None:
    """The operation of this number has gone this way."""
    key = context.launch, number
    context.ways[key] = context.ways.get(key, 0) | way


def merged(*parts: Mapping[Any, int]) -> dict[Any, int]:
    """What any of the parts has seen."""
    found: dict[Any, int] = {}
    for part in parts:
        for key, way in part.items():
            found[key] = found.get(key, 0) | way
    return found


WaysByKernel = dict[str, dict[int, int]]  # by name of kernel and number of operation: as `Ways`


def by_kernel(program: Program, option: int, ways: Mapping[tuple[int, int], int]) -> WaysByKernel:
    """The ways that a run with this option has seen, of each kernel in all its launches."""
    launches = [step for step in run_steps(program.steps, option) if isinstance(step, Launch)]
    known = ((launches[n].kernel, {number: way}) for (n, number), way in ways.items() if n < len(launches))
    return together({kernel: one} for kernel, one in known)


def together(parts: Iterable[WaysByKernel]) -> WaysByKernel:
    """What any of the parts has seen."""
    found: WaysByKernel = {}
    for part in parts:
        for name, ways in part.items():
            found[name] = merged(found.get(name, {}), ways)
    return found


# --- masks ------------------------------------------------------------------------------------------------------------


WHOLE, NOTHING, PART = 1, 2, 4
MASKED = ("tt.load", "tt.store")  # the operations whose masks are noted


def ways_of(op: Op) -> tuple[int, ...]:
    """The ways that an operation may go: what a mask may leave of a tile is nothing in between, where it has one
    element."""
    if op.name not in MASKED:
        return (NEVER, ONCE, SEVERAL) if op.name == "scf.for" else (TRUE, FALSE)
    type = op.result_types[0] if op.result_types else op.operand_types[1]
    return (WHOLE, NOTHING, PART) if math.prod(type.shape) > 1 else (WHOLE, NOTHING)


def note_mask(frame: Frame, op: Op, mask: Value, shape: tuple[int, ...]) -> None:
    """A load or store of tiles, `shape` with the programs first, has this mask."""
    context, key = frame.context, (frame.context.launch, op.number)
    known, looks = context.ways.get(key, 0), context.looks.get(op.number, 0)
    if known != WHOLE | NOTHING | PART and looks < Limit.LOOKS:
        context.looks[op.number] = looks + 1
        context.ways[key] = known | left_of_tiles(context.memory.box(mask, shape))


def left_of_tiles(box: Box) -> int:
    """What a mask leaves of the programs' tiles, added up."""
    if box.empty:
        return NOTHING
    if box.row is not None:
        tile, row = math.prod(box.shape[1:]), box.row
        return WHOLE * (row >= tile) | PART * (row % tile > 0) | NOTHING * (row <= tile * (box.shape[0] - 1))
    all_of_it = WHOLE if box.sizes[1:] == list(box.shape[1:]) else PART
    if not box.masks:
        return all_of_it
    flat = [mask.reshape(mask.shape[0], -1) for mask in box.masks]
    every = functools.reduce(torch.logical_and, [mask.all(1) for mask in flat])
    none = functools.reduce(torch.logical_or, [~mask.any(1) for mask in flat])
    return all_of_it * anywhere(every) | NOTHING * anywhere(none) | PART * (not everywhere(every | none))
