"""What the compiler made of one kernel: its TTIR and its machine code, joined by the submission's lines.

Pure functions of texts. Whatever cannot be joined for certain, such as two different
loads on one line, is left unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.engine.ttir import Module, TTIRError, parse
from gradekit.inspector.compile import Compiled
from gradekit.inspector.instructions import Instruction, Usage, instructions, usage
from gradekit.inspector.operations import Dot, MemoryAccess, accesses, dots, has_float64
from gradekit.inspector.targets import Occupancy, Target, occupancy
from gradekit.program import Kernel, Launch

WIDEST = 16
"""Bytes that one thread can move at once, on every architecture."""


@dataclass(frozen=True)
class DotUse:
    """A product, and how often each tensor-core instruction of PTX stands on its line.

    `uses` is None where that cannot be told: such instructions stand where no product
    is, or this line computes nothing.
    """

    dot: Dot
    instructions: dict[str, int]
    uses: bool | None


@dataclass(frozen=True)
class AccessUse:
    """The loads or stores of one line: the instructions of PTX that they became, by opcode.

    `width` is the most bytes that one thread moves at once, 0 where whole tiles are moved, None where several accesses
    of different kinds share the line; `possible` is what the size of the tile would allow.
    """

    access: MemoryAccess
    instructions: dict[str, int]
    width: int | None
    possible: int
    is_asynchronous: bool

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
    used = usage(compiled.usage or text)
    asked = subject.option("num_warps", 4)
    warps = max(1, int(compiled.metadata.get("num_warps", asked)))
    shared = compiled.metadata.get("shared")
    verified = "ttir" in stages  # MLIR has read it: operations have the operands that they should have
    joined = _joined(subject, asked_of, code, warps * target.warp) if verified else {}
    return Facts(
        subject.kernel.name, subject.launch.kernel, subject.label, target, _asked(subject), subject.launch.grid, warps,
        asked,
        registers=used.registers if used else None,
        stack=used.stack if used else 0,
        has_stack_array=".local " in text,
        shared=shared,
        occupancy=_occupancy(target, warps, used, shared),
        local=_local(code),
        error=compiled.error,
        failed=compiled.failed,
        **joined,
    )  # fmt: skip


def _asked(subject: Launched) -> dict[str, int]:
    return {
        name: subject.option(name, default) for name, default in (("num_warps", 4), ("num_stages", 3), ("num_ctas", 1))
    }


def _occupancy(target: Target, warps: int, used: Usage | None, shared: int | None) -> Occupancy | None:
    if used is None or shared is None:
        return None
    return occupancy(target, warps=warps, registers=used.registers, shared=shared)


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
        unclear = dot.line is None or not alike or not code
        yield DotUse(dot, dict(found), None if unclear else _uses(bool(found), astray, dot.line in multiplied))


def _uses(found: bool, astray: bool, multiplied: bool) -> bool | None:
    if found:
        return True
    return False if multiplied and not astray else None


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
        largest,
        dict(Counter(i.short for i in found)),
        max(i.width for i in found) if alike else None,
        _possible(largest, threads),
        all(i.is_asynchronous for i in found),
    )


def _possible(access: MemoryAccess, threads: int) -> int:
    """Bytes of the tile that one thread holds if the tile is distributed evenly."""
    return min(WIDEST, max(1, access.elements // threads) * access.itemsize)


def _local(code: Sequence[Instruction]) -> tuple[LocalTraffic, ...]:
    """Most traffic first."""
    loads = Counter(i.line for i in code if i.kind == "reload")
    stores = Counter(i.line for i in code if i.kind == "spill")
    lines = sorted(loads.keys() | stores.keys(), key=lambda n: -loads[n] - stores[n])
    return tuple(LocalTraffic(n, loads[n], stores[n]) for n in lines)


def _float64_lines(module: Module, code: Sequence[Instruction]) -> tuple[int, ...]:
    """Lines that compute with doubles, in a kernel to which no double was passed."""
    if any(has_float64(kind) for kind in module.entry.argument_types):
        return ()
    return tuple(sorted({i.line for i in code if i.line is not None and i.kind == "double"}))
