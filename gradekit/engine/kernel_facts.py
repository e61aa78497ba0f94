"""What can be said of a kernel from its text alone, and decides how its programs are run."""

import functools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gradekit.engine.budget import Limit
from gradekit.engine.masked_lanes import left_out_lanes_matter
from gradekit.engine.ttir import Block, Module, Op, Region, Type, parse
from gradekit.engine.ttir_nodes import BYTES, names_used

COMMUTING = frozenset({"add", "and", "or", "xor", "max", "min", "umax", "umin", "fadd", "fmax", "fmin"})
"""Kinds of atomics that leave the same in an element in any order, roundings aside."""

_EXTREMES = frozenset({"max", "min", "fmax", "fmin"})
CONTIGUITY = "tt.contiguity"
"""The attribute by which a kernel promises that whole numbers follow one another: tl.max_contiguous."""


@dataclass(frozen=True)
class KernelFacts:
    """`used` has the names of all values that something uses, `tile` is the number of elements of the largest tile.

    `peak` is the most bytes of tiles that one program holds at a time. `waits` says that programs may wait for each
    other, `volatile` that it asks for what others write meanwhile, `ordered` that what an atomic does, or a volatile
    load reads, may depend on the order of programs, `rounded` that an atomic depends on it by a rounding alone.
    `undefined_loads` says that lanes which the mask of a load leaves out, without another value for them, may matter,
    `narrow` that an atomic is one for its own program alone, `contiguous` that numbers are promised to be contiguous.
    `mixed` says that there are atomics of several kinds: where two of them meet on one element, they do not commute.
    `early` has the numbers of the atomics before which other lanes' stores stand, and nothing that may be a barrier.
    """

    used: frozenset[str]
    tile: int
    peak: int
    waits: bool
    volatile: bool
    ordered: bool
    rounded: bool
    undefined_loads: bool
    narrow: bool
    contiguous: bool
    mixed: bool = False
    early: frozenset[int] = frozenset()


@functools.lru_cache(maxsize=512)
def parsed(ttir: str) -> Module:
    """The module of a TTIR text; raises TTIRError."""
    module = parse(ttir)
    for number, op in enumerate(every_operation(module)):
        op.number = number
    return module


@functools.lru_cache(maxsize=512)
def facts(ttir: str) -> KernelFacts:
    """The facts about the kernel with this text."""
    return facts_of(parsed(ttir))


def facts_of(module: Module) -> KernelFacts:
    """The facts about the kernel of a module."""
    functions = list(module.functions.values())
    ops = list(every_operation(module))
    used = frozenset(name for op in ops for name in (*op.operands, *(n for _, names in op.successors for n in names)))
    mixed = len({_kind(op) for op in ops if op.name == "tt.atomic_rmw"}) > 1
    return KernelFacts(
        used=used, tile=max((math.prod(type.shape) for op in ops for type in op.result_types), default=1),
        peak=sum(peak_bytes(function.body) for function in functions),
        waits=any(op.name == "scf.while" and _asks_others(op) for op in ops),
        volatile=any(_is_volatile(op) for op in ops),
        ordered=mixed or any(_is_volatile(op) or _depends_on_order(op, used) for op in ops),
        rounded=any(_adds_floats(op) for op in ops),
        undefined_loads=any(leaves_lanes_undefined(op) and left_out_lanes_matter(op, ops) for op in ops),
        narrow=any(map(is_narrow, ops)), contiguous=any(map(promises_contiguity, ops)), mixed=mixed,
        early=frozenset(_early(ops, used)),
    )  # fmt: skip


def every_operation(module: Module) -> Iterator[Op]:
    """All operations of all functions of a module, in the order of the text."""
    for function in module.functions.values():
        yield from operations(function.body)


def operations(region: Region) -> Iterator[Op]:
    """All operations of a region, those of regions inside it after the operation that has them."""
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from operations(inner)


def _asks_others(op: Op) -> bool:
    """Whether a loop looks at what other programs do meanwhile."""
    inside = (inner for region in op.regions for inner in operations(region))
    return any(inner.name.startswith("tt.atomic") or _is_volatile(inner) for inner in inside)


def meets_others(op: Op) -> bool:
    """Whether an operation may look at what other programs do meanwhile, or let them see what its program has done."""
    return op.name.startswith("tt.atomic") or op.name == "tt.call" or _is_volatile(op) or _asks_others(op)


def promises_contiguity(op: Op) -> bool:
    """Whether the operation's whole numbers are promised to be contiguous."""
    return CONTIGUITY in op.attributes and len(op.results) == 1 and op.result_types[0].element[:1] == "i"


def is_narrow(op: Op) -> bool:
    """Whether an atomic keeps apart the lanes of its own program alone."""
    return op.name.startswith("tt.atomic") and str(op.attributes.get("scope", "")) == "cta"


def _is_volatile(op: Op) -> bool:
    return bool(op.attributes.get("isVolatile", False))


def _depends_on_order(op: Op, used: frozenset[str]) -> bool:
    if not op.name.startswith("tt.atomic"):
        return False
    looks = any(name in used for name in op.results)
    return looks or op.name != "tt.atomic_rmw" or _kind(op) not in COMMUTING


_NO_BARRIER = re.compile(
    r"(arith|math)\..*|tt\.(addptr|splat|load|store|make_range|get_program_id|atomic_.*)|scf\.(if|yield)"
)
"""Operations that the compiler never puts a barrier into, but for an atomic whose answer all lanes get."""


def _early(ops: list[Op], used: frozenset[str]) -> Iterator[int]:
    """The atomics, by number, that a store comes before with no barrier between, in the order of the text."""
    stored = False
    for op in ops:
        atomic = op.name.startswith("tt.atomic")
        if atomic and stored:
            yield op.number
        if not _NO_BARRIER.fullmatch(op.name) or (atomic and any(name in used for name in op.results)):
            stored = False
        stored |= op.name == "tt.store"


def _kind(op: Op) -> str:
    """The kind of an atomic, such as "fadd"."""
    return str(op.attributes.get("kind", "")).lower()


def _adds_floats(op: Op) -> bool:
    """Whether the operation is an atomic of floats whose order changes roundings."""
    if op.name != "tt.atomic_rmw" or op.operand_types[1].element.startswith("i"):
        return False
    return _kind(op) not in _EXTREMES


def leaves_lanes_undefined(op: Op) -> bool:
    """Whether lanes outside of the load's mask have no value."""
    return op.name == "tt.load" and len(op.operands) == 2


# --- how long values live, and what a block costs ---------------------------------------------------------------------


def last_uses(block: Block, escaping: Collection[str]) -> list[tuple[str, ...]]:
    """For each operation of `block`, the values defined in the block that nothing needs after it; those that are
    `escaping`, because other blocks may use them, are never among them."""
    defined = {*block.arguments, *(name for op in block.ops for name in op.results)} - {*escaping}
    dead: list[tuple[str, ...]] = []
    needed = {*escaping}
    for op in reversed(block.ops):
        used = set(names_used(op))
        dead.append(tuple(name for name in {*used, *op.results} - needed if name in defined))
        needed |= used
    return dead[::-1]


def only_stored(block: Block) -> frozenset[str]:
    """The values that one store of the block needs, to store them, and nothing else there."""
    uses = Counter(name for op in block.ops for name in names_used(op))
    return frozenset(op.operands[1] for op in block.ops if op.name == "tt.store" and uses[op.operands[1]] == 1)


def shared_names(region: Region) -> frozenset[str]:
    """The values that are used in another block of the region than the one that defines them."""
    if len(region.blocks) < 2:
        return frozenset()
    found: set[str] = set()
    for block in region.blocks:
        own = {*block.arguments, *(name for op in block.ops for name in op.results)}
        found |= {name for op in block.ops for name in names_used(op)} - own
    return frozenset(found)


def elements(op: Op) -> int:
    """The elements that an operation makes or reads for one program, whichever are more."""
    most = max((math.prod(type.shape) for type in (*op.result_types, *op.operand_types)), default=1)
    if op.name == "tt.dot":
        most += math.prod(op.result_types[0].shape) * op.operand_types[0].shape[-1] // Limit.PRODUCTS
    return most


def peak_bytes(region: Region) -> int:
    """The most bytes of tiles that one program holds at a time while it runs `region`."""
    escaping = shared_names(region)
    return max((_peak(block, escaping) for block in region.blocks), default=0)


def _peak(block: Block, escaping: Collection[str]) -> int:
    sizes = dict(zip(block.arguments, map(type_bytes, block.argument_types), strict=True))
    live = peak = sum(sizes.values())
    for op, dead in zip(block.ops, last_uses(block, escaping), strict=True):
        made = dict(zip(op.results, map(type_bytes, op.result_types), strict=True))
        inside = max((peak_bytes(region) for region in op.regions), default=0)
        peak = max(peak, live + sum(made.values()) + inside)
        sizes |= made
        live += sum(made.values()) - sum(sizes.pop(name, 0) for name in dead)
    return peak


def type_bytes(type: Type) -> int:
    """The bytes of a tile of this type."""
    return math.prod(type.shape) * BYTES.get(type.element, BYTES["f64"])
