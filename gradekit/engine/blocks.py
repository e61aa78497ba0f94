"""Blocks of operations, compiled to evaluators once and run for all programs of a frame.

What follows from constants alone is worked out when the block is compiled. A value is dropped after its last use, so
that what is alive is never more than what a program holds in its registers, and what is settled.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradekit.engine.branch_coverage import add_way, watched, watches
from gradekit.engine.budget import Limit, Meter, OverBudget, Unsupported
from gradekit.engine.frame import PROGRAM, Frame
from gradekit.engine.kernel_facts import elements, last_uses, only_stored, shared_names, type_bytes
from gradekit.engine.promises import kept, promises
from gradekit.engine.registry import OPS, Evaluator
from gradekit.engine.ttir import Block, Function, Op, Region
from gradekit.engine.ttir_nodes import names_used
from gradekit.engine.values import BITS, Affine
from gradekit.reuse import SharedCache, shared

Values = list[Any]
ENDS = frozenset(
    {"scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}
)
BRANCHES = frozenset({"cf.br", "cf.cond_br", "cf.switch"})


CompiledOp = tuple["Op", Evaluator, str | tuple[str, ...]]
"""An operation, what evaluates it, and the names of its results."""


Names = Collection[str]


@dataclass(slots=True, eq=False)
class CompiledBlock:
    """A block whose operations are to be evaluated as `steps`, in their order; or, where nobody looks on, as those that
    are `settled` by the `numbers` among a function's arguments, and then the `rest`, where those `needed` are used;
    in later turns of a loop, `again` is enough of it. `known` are the values that follow from constants alone, `end` is
    the operation that ends the block, if one does, and `elements` what all of them make for one program."""

    steps: list[CompiledOp]
    known: dict[str, Any]
    elements: int
    numbers: Names
    end: Op | None = None
    settled: list[CompiledOp] = field(default_factory=list)
    rest: list[CompiledOp] = field(default_factory=list)
    again: list[CompiledOp] = field(default_factory=list)
    needed: Names = ()


def run_block(frame: Frame, block: Block, arguments: Sequence[Any], again: bool = False) -> tuple[Op, Values]:
    """Evaluates a block: the operation that ends it, and its operands' values; `again` in a frame that has done so."""
    frame.values.update(zip(block.arguments, arguments, strict=True))
    frame.values.update(block.compiled.known)
    return finish_block(frame, block, 0, 0, again)


def begin_block(frame: Frame, block: Block, count: int) -> int:
    """Evaluates the first `count` steps of a block without arguments; gives how many elements they make for one."""
    steps = block.compiled.steps[:count]
    frame.values.update(block.compiled.known)
    made = sum(elements(op) for op, *_ in steps)
    _counted(frame, block, Meter.spend, count, frame.count * made)
    _run_steps(frame, steps)
    return made


def finish_block(frame: Frame, block: Block, begun: int, made: int, again: bool = False) -> tuple[Op, Values]:
    """As `run_block`, after the first `begun` steps, which `made` so many elements and whose values the frame knows."""
    compiled: CompiledBlock = block.compiled
    _counted(frame, block, Meter.spend, len(block.ops) - begun, frame.count * (compiled.elements - made))
    if begun or frame.context.observe is not None:
        _run_steps(frame, compiled.steps[begun:])
    else:
        if compiled.settled:
            _settle(frame, compiled)
        _run_steps(frame, compiled.again if again else compiled.rest)
    if compiled.end is None:
        return block.ops[-1], []
    return compiled.end, [frame.values[name] for name in compiled.end.operands]


def _run_steps(frame: Frame, steps: list[CompiledOp]) -> None:
    values, observe = frame.values, frame.context.observe
    try:
        for op, step, names in steps:  # where it goes wrong, `op` is the one
            if type(names) is str:
                values[names] = step(frame)  # and nowhere else, so that a later step may take its memory
            else:
                values.update(zip(names, step(frame) or (), strict=True))
            if observe is not None:
                observe(frame, op)
            for name in op.dead:
                values.pop(name, None)
    except Unsupported as error:
        error.line = error.line or frame.context.line(op)
        raise


def afford_turns(frame: Frame, region: Region, turns: int, programs: int) -> None:
    """After the first turn of a loop, which shows what cannot be evaluated: whether so many others, for so many
    `programs` in all of them together, are within the budget. A loop to a bound that is read from the wrong place is
    stopped at once. Raises OverBudget where they are not, whatever the blocks inside take."""
    if len(region.blocks) == 1:
        block = region.blocks[0]
        _counted(frame, block, Meter.afford, turns * len(block.ops), programs * block.compiled.elements)


def _counted(frame: Frame, block: Block, count: Callable[[Meter, int, int], None], steps: int, made: int) -> None:
    try:
        count(frame.context.meter, steps, made)
    except OverBudget as error:
        error.line = next((line for op in block.ops if (line := frame.context.line(op))), None)
        raise


# --- blocks as steps --------------------------------------------------------------------------------------------------

_FOLDED = frozenset(
    {"arith.constant", "tt.make_range", "tt.splat", "tt.expand_dims", "tt.broadcast", "tt.trans",
     "arith.extsi", "arith.extui", "arith.trunci", "arith.addi", "arith.subi", "arith.muli", "arith.cmpi"}
)  # fmt: skip
"""Operations that compute nothing but integers from their operands: of constants, they are constants."""

_LASTING = _FOLDED | {"tt.addptr", "arith.andi", "arith.divsi", "arith.remsi", "arith.minsi"}
"""Operations that give the same in each turn of a loop, and for all programs, whose operands are the same."""


_WRONG = (Unsupported, LookupError, TypeError, ValueError)
"""How an operation can be unknown or malformed. It goes wrong again where it is met, and only there."""


def compile_function(function: Function) -> None:
    """Compiles the blocks of a function, and all inside them, unless that has been done."""
    if function.body.blocks[0].compiled is None:
        typed = zip(function.arguments, function.argument_types, strict=True)
        compile_region(function.body, {}, numbers=[name for name, type in typed if type.element in BITS])


def compile_region(
    region: Region, outside: Mapping[str, Any], turns: bool = True, numbers: Names | None = None
) -> None:
    """Compiles the blocks of a region, and all inside them; `outside` are known values that they may use. The region
    `turns` if it is run again and again, as a loop's is: some values stay the same. A function has `numbers`."""
    shared = shared_names(region)
    for block in region.blocks:
        compile_block(block, outside, _lasting(block) if turns else (), shared, numbers)


def compile_block(
    block: Block, outside: Mapping[str, Any], lasting: Names, escaping: Names, numbers: Names | None
) -> None:
    """Compiles a block and all inside it; `outside` are known values that it may use, `lasting` the names of its
    values that are the same in each turn, `escaping` those of values that other blocks use; `numbers` as above."""
    visible = dict(outside)
    block.compiled = compiled = CompiledBlock([], {}, sum(map(elements, block.ops)), numbers or ())
    stored = only_stored(block).difference(escaping, lasting)
    settled = set() if numbers is None else _settled_names(block, numbers, stored)
    used = {name for op in block.ops if settled.isdisjoint(op.results) for name in names_used(op)}
    compiled.needed = settled & {*used, *escaping}
    escaping = {*escaping, *lasting, *compiled.needed}
    for op, dead in zip(block.ops, last_uses(block, escaping), strict=True):
        op.dead = dead
        op.only_stored = op.results[:1] != () and op.results[0] in stored
        if op.name in ENDS or op.name in BRANCHES:
            compiled.end = op
            break
        step = _evaluator(op)
        if _fold(op, step, visible):
            compiled.known[op.results[0]] = visible[op.results[0]]
        else:
            gives_tuple = len(op.results) != 1 or op.regions or op.name == "tt.call"
            compiled.steps.append((op, step, op.results if gives_tuple else op.results[0]))
            (compiled.rest if settled.isdisjoint(op.results) else compiled.settled).append(compiled.steps[-1])
        for region in op.regions:
            compile_region(region, visible, op.name == "scf.for")
    compiled.again = [one for one in compiled.rest if not (one[0].results and one[0].results[0] in lasting)]


def _lasting(block: Block) -> Names:
    """The values of a block that are the same in each turn and for all programs, whose names no region inside has."""
    changing, found = {*block.arguments}, set[str]()
    inside = {name for op in block.ops for region in op.regions for name in _defined(region)}
    for op in block.ops:
        lasts = op.name in _LASTING and not promises(op) and changing.isdisjoint(op.operands)
        (found if lasts and inside.isdisjoint(op.results) else changing).update(op.results)
    return found


def _defined(region: Region) -> set[str]:
    found = set[str]()
    for block in region.blocks:
        found.update(block.arguments, *(op.results for op in block.ops))
        found.update(*(_defined(inner) for op in block.ops for inner in op.regions))
    return found


def _evaluator(op: Op) -> Evaluator:
    compiler = OPS.get(op.name, _unknown)
    try:
        step = compiler(op)
        step = watched(op, step) if watches(op) else step
        return kept(op, step) if promises(op) else step
    except _WRONG:
        return lambda frame: compiler(op)(frame)


def _unknown(op: Op) -> Evaluator:
    raise Unsupported(op.name)


def _fold(op: Op, step: Evaluator, visible: dict[str, Any]) -> bool:
    """Evaluates an operation on constants here, once for all; whether it could."""
    if op.name not in _FOLDED or promises(op) or not all(name in visible for name in op.operands):
        return False
    alone = Frame(None, 1)  # type: ignore[arg-type]  # none of them asks the launch
    alone.values.update((name, visible[name]) for name in op.operands)
    try:
        visible[op.results[0]] = step(alone)
    except _WRONG:
        return False
    return True


# --- what a kernel computes from whole numbers alone: addresses, masks, random numbers --------------------------------

_PURE = re.compile(
    r"(arith|math|ub)\..*"
    r"|tt\.(get_program_id|get_num_programs|make_range|splat|unsplat|expand_dims|broadcast|trans|reshape|join|split|cat"
    r"|mulhiui|clampf|fp_to_fp|bitcast|precise_.*)"
)
"""Operations whose results follow from their operands, the program ids and the grid."""


def _settled_names(block: Block, numbers: Names, stored: Names) -> set[str]:
    """The values of a function's block that follow from whole numbers alone; those just `stored` are made in place."""
    found = {*numbers}
    for op in block.ops:
        if _PURE.fullmatch(op.name) and not promises(op) and found.issuperset(op.operands):
            found.update(() if op.results[0] in stored else op.results)
    return found


_Kept = tuple[dict[str, Any], dict[int, int], int, int]  # values, ways by operation, flops; and the bytes of the values
_KEPT: SharedCache[Any, _Kept] = shared(Limit.SETTLED_BYTES, lambda kept: 1024 + kept[-1])  # with the entry's own


def _settle(frame: Frame, compiled: CompiledBlock) -> None:
    """Puts the settled values that others need into a frame: those of an earlier launch with the same key, if any."""
    key, context = _settled_by(frame, compiled), frame.context
    if key is None or (kept := _KEPT.get(key)) is None:
        before = context.meter.flops
        _run_steps(frame, compiled.settled)
        if key is not None:
            _KEPT.put(key, _to_keep(frame, compiled, context.meter.flops - before))
        return
    frame.values.update(kept[0])
    for number, way in kept[1].items():
        add_way(context, number, way)
    context.meter.flops += kept[2]


def _settled_by(frame: Frame, compiled: CompiledBlock) -> tuple[Any, ...] | None:
    """All that a block's settled values follow from; None where that is more than a few numbers."""
    ids = frame.values[PROGRAM]
    first, *steps = (ids.base, *ids.steps) if isinstance(ids, Affine) else (ids,)
    numbers = [first, *(frame.values[name] for name in compiled.numbers)]
    known = all(isinstance(number, int) for number in numbers)
    return (compiled, frame.context.grid, frame.count, *steps, *numbers) if known else None


def _to_keep(frame: Frame, compiled: CompiledBlock, flops: int) -> _Kept:
    ways, launch, ops = frame.context.ways, frame.context.launch, [op for op, *_ in compiled.settled]
    typed = {name: type for op in ops for name, type in zip(op.results, op.result_types, strict=True)}
    values = {name: frame.values[name] for name in compiled.needed & typed.keys()}
    small = lambda value: isinstance(value, int) or (isinstance(value, Affine) and isinstance(value.base, int))
    size = sum(type_bytes(typed[name]) for name, value in values.items() if not small(value))
    noted = {op.number: ways[launch, op.number] for op in ops if (launch, op.number) in ways}
    return values, noted, flops, frame.count * size
