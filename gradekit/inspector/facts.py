"""What the compiler made of one kernel: its TTIR and its machine code, joined by the submission's lines.

Whatever cannot be joined for certain, such as two different loads on one line, is left unknown.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from gradekit.engine.def_use import LOADS, STORES, DefUse
from gradekit.engine.frame import known_itemsize
from gradekit.engine.kernel_facts import every_operation, operations
from gradekit.engine.masked_lanes import mask_of
from gradekit.engine.ttir import Function, Module, Op, TTIRError, Type, parse
from gradekit.engine.ttir_locations import line_of
from gradekit.engine.values import FLOAT
from gradekit.inspector.compile import Compiled
from gradekit.inspector.instructions import Instruction, instructions, usage
from gradekit.inspector.targets import Occupancy, Target, occupancy
from gradekit.program import Kernel, Launch

# --- what a kernel asks for, read from its TTIR -----------------------------------------------------------------------

_DOTS = ("tt.dot", "tt.dot_scaled")


@dataclass(frozen=True)
class Dot:
    """A product [m, k] @ [k, n] on `line`; `left` and `right` are dtypes, `precision` the input_precision."""

    line: int | None
    left: str
    right: str
    result: str
    m: int
    n: int
    k: int
    precision: str


@dataclass(frozen=True)
class MemoryAccess:
    """A load or store of a tile on `line`: `elements` of `itemsize` bytes, by tensor descriptor or by pointers.
    `pointer` and `mask` name the arguments of the kernel that the addresses and the mask depend on. `feeds_dot` tells a
    load in a loop whose values reach a product there."""

    line: int | None
    kind: str
    dtype: str
    itemsize: int
    elements: int
    by_descriptor: bool
    feeds_dot: bool
    pointer: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()


def dtype_name(element: str) -> str:
    """torch's name of a TTIR element type: f16 -> float16, i8 -> int8."""
    floating = FLOAT.get(element)
    return str(floating).removeprefix("torch.") if floating else re.sub(r"^i(\d+)$", r"int\1", element)


def dots(module: Module, path: str) -> list[Dot]:
    """The products of every function, in order."""
    return [_dot(op, path) for op in every_operation(module) if op.name in _DOTS]


def _dot(op: Op, path: str) -> Dot:
    left, right = op.operand_types[:2]
    m, k = left.shape[-2:]
    precision = str(op.attributes.get("inputPrecision", "ieee")) if op.name == "tt.dot" else "scaled"
    one, other, result = (dtype_name(kind.element) for kind in (left, right, op.result_types[0]))
    return Dot(line_of(op.location, path), one, other, result, m, right.shape[-1], k, precision)


def accesses(module: Module, path: str) -> list[MemoryAccess]:
    """The loads and stores of every function, in order."""
    return [access for function in module.functions.values() for access in _accesses(function, path)]


def _accesses(function: Function, path: str) -> Iterator[MemoryAccess]:
    """What is loaded from memory has no origin: no argument says anything about it."""
    use = DefUse([function])
    loops = [op for op in use.ops if op.name in ("scf.for", "scf.while")]
    inside = {name for loop in loops for region in loop.regions for op in operations(region) for name in op.results}
    counters = {op.regions[0].blocks[0].arguments[0]: op.operands[:3] for op in loops if op.name == "scf.for"}
    loads = {name for op in use.ops if op.name in LOADS for name in op.results}

    def behind(names: Iterable[str]) -> frozenset[str]:
        return use.behind(names, loads, lambda name: [*use.sources(name), *counters.get(name, ())])

    feeding = behind(name for op in use.ops if op.name in _DOTS for name in op.operands[:2]) & loads & inside
    for op in use.ops:
        if op.name in LOADS | STORES:
            kind = "load" if op.name in LOADS else "store"
            pointer, mask = behind(op.operands[:1]), behind(mask_of(op))
            value = op.result_types[0] if kind == "load" else op.operand_types[1]
            yield MemoryAccess(
                line_of(op.location, path), kind, dtype_name(value.element), known_itemsize(value),
                prod(value.shape), op.name.startswith("tt.descriptor"), bool(feeding & set(op.results)),
                tuple(name for name in function.arguments if name in pointer),
                tuple(name for name in function.arguments if name in mask),
            )  # fmt: skip


def has_float64(kind: Type) -> bool:
    """Whether a value of this type is a double, or points to doubles."""
    return kind.element == "f64" or (kind.pointee is not None and has_float64(kind.pointee))


# --- what became of it ------------------------------------------------------------------------------------------------

WIDEST = 16  # bytes that one thread can move at once, on every architecture


@dataclass(frozen=True)
class DotUse:
    """A product, and how often each tensor-core instruction of PTX stands on its line. `uses` is None where that cannot
    be told: such instructions stand where no product is, or this line computes nothing."""

    dot: Dot
    instructions: dict[str, int]
    uses: bool | None


@dataclass(frozen=True)
class NarrowAccess:
    """An argument that keeps an access narrow. `kind` is "multiple" (of 16: an integer), "address" (the same of a
    pointer) or "apart" (neighbouring elements lie so many elements apart). `value` is what the launch passed, None
    where unknown; `width` bytes would be moved otherwise."""

    argument: str
    kind: str
    value: int | None
    width: int


Place = tuple[int | None, str]  # a line, and "load" or "store"


@dataclass(frozen=True)
class AccessUse:
    """The loads or stores of one line: the instructions of PTX that they became, by opcode.

    `width` is the most bytes that one thread moves at once, 0 where whole tiles are moved, None where several accesses
    of different kinds share the line; `possible` is what the size of the tile would allow. `kept_by` are the arguments
    that keep it narrow, where that is known.
    """

    access: MemoryAccess
    instructions: dict[str, int]
    width: int | None
    possible: int
    is_asynchronous: bool
    kept_by: tuple[NarrowAccess, ...] = ()

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.access.line, self.access.kind

    @property
    def is_narrow(self) -> bool:
        """Whether a thread moves fewer bytes at once than the tile would allow."""
        return self.width is not None and 0 < self.width < self.possible


@dataclass(frozen=True)
class LocalTraffic:
    """Instructions on `line` that go to local memory."""

    line: int | None
    loads: int
    stores: int


@dataclass(frozen=True)
class Facts:
    """All that is known of one kernel in one configuration on one target; `options` are
    its num_warps, num_stages, num_ctas.

    Figures are of one thread (`registers`, `stack` bytes) and of one block (`shared` bytes, `warps`, of
    which the kernel asked for `asked_warps`). `error` is empty, or says why the stage
    `failed` gave nothing: what comes after it is unknown.
    """

    kernel: str
    key: str
    label: str
    target: Target
    options: dict[str, int]
    grid: tuple[int, int, int]
    warps: int
    asked_warps: int
    registers: int | None = None
    stack: int = 0
    has_stack_array: bool = False
    shared: int | None = None
    occupancy: Occupancy | None = None
    dots: tuple[DotUse, ...] = ()
    accesses: tuple[AccessUse, ...] = ()
    local: tuple[LocalTraffic, ...] = ()
    float64_lines: tuple[int, ...] = ()
    error: str = ""
    failed: str = ""


@dataclass(frozen=True)
class Launched:
    """A kernel of the file `path` with its first launch, in the configuration `label` ("" where there is no choice)."""

    kernel: Kernel
    launch: Launch
    label: str
    path: str

    def option(self, name: str, default: int) -> int:
        """A compile option that is a positive number: what a program holds may be anything."""
        value = self.kernel.options.get(name)
        return value if type(value) is int and value > 0 else default


def facts(subject: Launched, compiled: Compiled, target: Target) -> Facts:
    """The facts of one kernel."""
    stages, text = compiled.stages, compiled.stages.get(target.assembly, "")
    asked_of = instructions(target.assembly, text, subject.path)
    code = instructions("sass", stages.get("sass", ""), subject.path) if target.assembly == "ptx" else asked_of
    registers, stack = usage(compiled.usage or text) or (None, 0)
    asked = subject.option("num_warps", DEFAULTS["num_warps"])
    warps = max(1, int(compiled.metadata.get("num_warps", asked)))
    shared = compiled.metadata.get("shared")
    verified = "ttir" in stages  # MLIR has read it: operations have the operands that they should have
    joined = _joined(subject, asked_of, code, warps * target.warp) if verified else {}
    return Facts(
        subject.kernel.name, subject.launch.kernel, subject.label, target,
        {name: subject.option(name, default) for name, default in DEFAULTS.items()}, subject.launch.grid, warps,
        asked, registers=registers, stack=stack, has_stack_array=".local " in text, shared=shared,
        occupancy=occupancy(target, warps=warps, registers=registers, shared=shared)
        if registers is not None and shared is not None else None,
        local=_local(code), error=compiled.error, failed=compiled.failed, **joined,
    )  # fmt: skip


DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
"""What Triton compiles with where a launch says nothing."""


def _joined(
    subject: Launched, asked: Sequence[Instruction], code: Sequence[Instruction], threads: int
) -> dict[str, Any]:
    try:
        module = parse(subject.kernel.ttir)
    except TTIRError:
        return {}
    return {
        "dots": tuple(_dot_uses(dots(module, subject.path), asked, code)),
        "accesses": tuple(_access_uses(accesses(module, subject.path), asked, threads)),
        "float64_lines": _float64_lines(module, code),
    }


# --- products ---------------------------------------------------------------------------------------------------------


def _dot_uses(wanted: Sequence[Dot], asked: Sequence[Instruction], code: Sequence[Instruction]) -> Iterable[DotUse]:
    lines = {dot.line for dot in wanted}
    products = [i for i in asked if i.kind == "product"]
    multiplied = {i.line for i in asked if i.kind == "multiply"}
    astray = any(i.line not in lines for i in products) or (not products and any(i.kind == "product" for i in code))
    for dot in dict.fromkeys(wanted):
        found = Counter(i.short for i in products if i.line == dot.line)
        alike = len({(d.left, d.right, d.precision) for d in wanted if d.line == dot.line}) == 1
        unclear = dot.line is None or not alike or not code or not found and (astray or dot.line not in multiplied)
        yield DotUse(dot, dict(found), None if unclear else bool(found))


# --- global memory ----------------------------------------------------------------------------------------------------


def _access_uses(wanted: Sequence[MemoryAccess], asked: Sequence[Instruction], threads: int) -> Iterable[AccessUse]:
    places = dict.fromkeys((a.line, a.kind) for a in wanted if a.line is not None)
    for line, kind in places:
        here = [a for a in wanted if (a.line, a.kind) == (line, kind)]
        found = [i for i in asked if (i.line, i.kind) == (line, kind)]
        if found:
            yield _access_use(here, found, threads)


def _access_use(here: Sequence[MemoryAccess], found: Sequence[Instruction], threads: int) -> AccessUse:
    largest = max(here, key=lambda access: access.elements)
    alike = len({(a.itemsize, a.elements, a.by_descriptor) for a in here}) == 1
    return AccessUse(
        largest, dict(Counter(i.short for i in found)), max(i.width for i in found) if alike else None,
        _possible(largest, threads), all(i.is_asynchronous for i in found),
    )  # fmt: skip


def _possible(access: MemoryAccess, threads: int) -> int:
    """Bytes of the tile that one thread holds if the tile is distributed evenly."""
    return min(WIDEST, max(1, access.elements // threads) * access.itemsize)


def _local(code: Sequence[Instruction]) -> tuple[LocalTraffic, ...]:
    loads = Counter(i.line for i in code if i.kind == "reload")
    stores = Counter(i.line for i in code if i.kind == "spill")
    lines = sorted(loads.keys() | stores.keys(), key=lambda n: -loads[n] - stores[n])
    return tuple(LocalTraffic(n, loads[n], stores[n]) for n in lines)


def _float64_lines(module: Module, code: Sequence[Instruction]) -> tuple[int, ...]:
    if any(has_float64(kind) for kind in module.entry.argument_types):
        return ()
    return tuple(sorted({i.line for i in code if i.line is not None and i.kind == "double"}))
