"""Blocks of operations, compiled to evaluators once and run for all programs of a frame.

What follows from constants alone is worked out when the block is compiled. A value is dropped after its last use, so
that what is alive is never more than what a program holds in its registers.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.engine.branch_coverage import watched, watches
from gradekit.engine.budget import Meter, OverBudget, Unsupported
from gradekit.engine.frame import Frame
from gradekit.engine.kernel_facts import elements, last_uses, only_stored, shared_names
from gradekit.engine.promises import kept, promises
from gradekit.engine.registry import OPS, Evaluator
from gradekit.engine.ttir import Block, Op, Region

Values = list[Any]
ENDS = frozenset(
    {"scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}
)
BRANCHES = frozenset({"cf.br", "cf.cond_br", "cf.switch"})


CompiledOp = tuple["Op", Evaluator, str | tuple[str, ...]]
"""An operation, what evaluates it, and the names of its results."""


@dataclass(slots=True)
class CompiledBlock:
    """A block whose operations are to be evaluated as `steps`; in later turns of a loop, those of `again` are enough.
    `known` are the values that follow from constants alone, `end` is the operation that ends the block, if one does,
    and `elements` what all of them make for one program."""

    steps: list[CompiledOp]
    again: list[CompiledOp]
    known: dict[str, Any]
    elements: int
    end: Op | None = None


def run_block(frame: Frame, block: Block, arguments: Sequence[Any], again: bool = False) -> tuple[Op, Values]:
    """Evaluates the operations in order; returns the one that ends the block, with its operands' values. Where the
    frame has run it before in the same loop, it does so `again`."""
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
    """Evaluates the steps after the first `begun`, whose values the frame knows and which `made` so many elements;
    returns what `run_block` does."""
    compiled: CompiledBlock = block.compiled
    _counted(frame, block, Meter.spend, len(block.ops) - begun, frame.count * (compiled.elements - made))
    steps = compiled.again if again and frame.context.observe is None else compiled.steps
    _run_steps(frame, steps[begun:] if begun else steps)
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


def compile_region(region: Region, outside: Mapping[str, Any], turns: bool = True) -> None:
    """Compiles the blocks of a region, and all inside them; `outside` are known values that they may use. The region
    `turns` where it is run again and again, as a kernel's or a loop's is: some values stay the same."""
    shared = shared_names(region)
    for block in region.blocks:
        compile_block(block, outside, _lasting(block) if turns else (), shared)


def compile_block(
    block: Block, outside: Mapping[str, Any], lasting: Collection[str], escaping: Collection[str] = ()
) -> None:
    """Compiles a block and all inside it; `outside` are known values that it may use, `lasting` the names of its
    values that are the same in each turn, `escaping` those of values that other blocks use."""
    known: dict[str, Any] = {}
    visible = dict(outside)
    steps: list[CompiledOp] = []
    block.compiled = compiled = CompiledBlock(steps, [], known, sum(map(elements, block.ops)))
    escaping = {*escaping, *lasting}
    stored = only_stored(block).difference(escaping)
    for op, dead in zip(block.ops, last_uses(block, escaping), strict=True):
        op.dead = dead
        op.only_stored = op.results[:1] != () and op.results[0] in stored
        if op.name in ENDS or op.name in BRANCHES:
            compiled.end = op
            break
        step = _evaluator(op)
        if _fold(op, step, visible):
            known[op.results[0]] = visible[op.results[0]]
        else:
            gives_tuple = len(op.results) != 1 or op.regions or op.name == "tt.call"
            steps.append((op, step, op.results if gives_tuple else op.results[0]))
            compiled.again += [] if op.results and op.results[0] in lasting else steps[-1:]
        for region in op.regions:
            compile_region(region, visible, op.name == "scf.for")


def _lasting(block: Block) -> Collection[str]:
    """The values of a block that are the same in each turn, and for all programs; their names are no others' in regions
    inside, so that they stay in the frame."""
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
