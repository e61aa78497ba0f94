"""What a kernel asks for, read from its TTIR: products of matrices and accesses to memory, each with its line.

Pure functions of text. What the machine code made of them is for `facts` to join.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from gradekit.engine.ttir import Function, Module, Op, Region, Type

ITEMSIZE = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "ptr": 8}
"""Bytes of an element in memory; types of eight bits that are not listed have one."""

_LOADS = {
    "tt.load": "load",
    "tt.descriptor_load": "load",
    "tt.descriptor_gather": "load",
    "tt.store": "store",
    "tt.descriptor_store": "store",
}
_NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
}
_DIVISIBLE = "tt.divisibility = 16 : i32"


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
    in_loop: bool


@dataclass(frozen=True)
class MemoryAccess:
    """A load or store of a tile on `line`: `elements` of `itemsize` bytes, by tensor descriptor or by pointers.

    `pointer` and `mask` name the arguments of the kernel that the addresses and the mask depend on. `feeds_dot` tells a
    load in a loop whose values reach a product there.
    """

    line: int | None
    kind: str
    dtype: str
    itemsize: int
    elements: int
    by_descriptor: bool
    in_loop: bool
    feeds_dot: bool
    pointer: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()


def dtype_name(element: str) -> str:
    """torch's name of a TTIR element type: f16 -> float16, i8 -> int8."""
    return _NAMES.get(element, re.sub(r"^i(\d+)$", r"int\1", element))


def walk(region: Region, loops: int = 0) -> Iterator[tuple[Op, int]]:
    """Every operation of `region`, outermost first, with the number of loops around it."""
    for block in region.blocks:
        for op in block.ops:
            yield op, loops
            for inner in op.regions:
                yield from walk(inner, loops + (op.name in ("scf.for", "scf.while")))


def line_of(op: Op, path: str) -> int | None:
    """The innermost line of the file `path` that the operation comes from."""
    return next((line for file, line, _ in op.location if file == path), None)


def dots(module: Module, path: str) -> list[Dot]:
    """The products of every function, in order."""
    found = [pair for function in module.functions.values() for pair in walk(function.body)]
    return [_dot(op, path, loops) for op, loops in found if op.name in ("tt.dot", "tt.dot_scaled")]


def _dot(op: Op, path: str, loops: int) -> Dot:
    left, right = op.operand_types[:2]
    m, k = left.shape[-2:]
    precision = str(op.attributes.get("inputPrecision", "ieee")) if op.name == "tt.dot" else "scaled"
    return Dot(
        line_of(op, path), dtype_name(left.element), dtype_name(right.element), dtype_name(op.result_types[0].element),
        m, right.shape[-1], k, precision, loops > 0,
    )  # fmt: skip


def accesses(module: Module, path: str) -> list[MemoryAccess]:
    """The loads and stores of every function, in order."""
    return [access for function in module.functions.values() for access in _accesses(function, path)]


def _accesses(function: Function, path: str) -> Iterator[MemoryAccess]:
    origins = ValueOrigins(function)
    feeding = origins.feeding_dots()
    for op, loops in walk(function.body):
        if op.name in _LOADS:
            yield _access(op, path, loops, origins, bool(feeding & set(op.results)))


def _access(op: Op, path: str, loops: int, origins: ValueOrigins, feeds_dot: bool) -> MemoryAccess:
    by_descriptor = op.name.startswith("tt.descriptor")
    kind = _LOADS[op.name]
    value = op.result_types[0] if kind == "load" else op.operand_types[1]
    mask = op.operands[(1 if kind == "load" else 2) :][:1]
    return MemoryAccess(
        line_of(op, path), kind, dtype_name(value.element), itemsize(value), prod(value.shape), by_descriptor,
        loops > 0, feeds_dot and loops > 0, origins.arguments(op.operands[:1]),
        () if by_descriptor else origins.arguments(mask),
    )  # fmt: skip


def itemsize(kind: Type) -> int:
    """Bytes of one element."""
    return ITEMSIZE.get(kind.element, 1)


def has_float64(kind: Type) -> bool:
    """Whether a value of this type is a double, or points to doubles."""
    return kind.element == "f64" or (kind.pointee is not None and has_float64(kind.pointee))


class ValueOrigins:
    """Where the values of a function come from: a walk backwards through operations, loops and branches.

    What is loaded from memory has no origin here: no argument says anything about it.
    """

    def __init__(self, function: Function) -> None:
        self._names = dict(zip(function.arguments, function.argument_names, strict=True))
        self._from: dict[str, set[str]] = {}
        self._loads: set[str] = set()
        self._dots: list[Op] = []
        for op, _ in walk(function.body):
            self._note(op)

    def arguments(self, values: Iterable[str]) -> tuple[str, ...]:
        """The function's arguments that `values` depend on, by their SSA names, in the order of the function."""
        reached = self._reached(values)
        return tuple(name for name in self._names if name in reached)

    def feeding_dots(self) -> set[str]:
        """The loaded values that reach a product."""
        return self._reached(value for op in self._dots for value in op.operands[:2]) & self._loads

    def _reached(self, values: Iterable[str]) -> set[str]:
        waiting, seen = list(values), set[str]()
        while waiting:
            value = waiting.pop()
            if value not in seen:
                seen.add(value)
                waiting.extend(self._from.get(value, ()))
        return seen

    def _note(self, op: Op) -> None:
        if op.name in ("tt.load", "tt.descriptor_load", "tt.descriptor_gather"):
            self._loads.update(op.results)
            return
        if op.name in ("tt.dot", "tt.dot_scaled"):
            self._dots.append(op)
        for result in op.results:
            self._depends(result, op.operands)
        for region in op.regions:
            self._note_region(op, region)

    def _note_region(self, op: Op, region: Region) -> None:
        """A loop carries each value by its place; other regions are taken as mixing all that they get."""
        for block in region.blocks[:1]:
            carried = op.name == "scf.for"
            ends = block.ops[-1].operands if block.ops else ()
            for place, argument in enumerate(block.arguments):
                self._depends(argument, _carried(op.operands, ends, place) if carried else (*op.operands, *ends))
            for place, result in enumerate(op.results):
                self._depends(result, ends[place : place + 1] if len(ends) == len(op.results) else ends)

    def _depends(self, value: str, on: Iterable[str]) -> None:
        self._from.setdefault(value, set()).update(on)


def _carried(operands: tuple[str, ...], ends: tuple[str, ...], place: int) -> tuple[str, ...]:
    """What argument `place` of a loop's body begins with and is set to: its counter stands first."""
    return operands[:3] if place == 0 else (*operands[2 + place : 3 + place], *ends[place - 1 : place])


# --- what is known of the arguments -----------------------------------------------------------------------------------


def unknown_arguments(text: str, function: Function) -> dict[str, Type]:
    """The integers and pointers among the arguments that are not known to be multiples of 16, by their SSA names."""
    header = _header(text)
    return {
        name: kind
        for name, kind in zip(function.arguments, function.argument_types, strict=True)
        if kind.element in ("i32", "i64", "ptr") and not kind.shape and _DIVISIBLE not in _attributes(header, name)
    }


def with_divisible(text: str, names: Iterable[str]) -> str:
    """The kernel as if the arguments `names` were known to be multiples of 16."""
    header = changed = _header(text)
    for name in names:
        changed = _argument(name).sub(rf"\1 {{{_DIVISIBLE}}}\3", changed, count=1)
    return text.replace(header, changed, 1)


def with_one(text: str, name: str) -> str:
    """The kernel as if the integer argument `name` were the constant 1."""
    header = _header(text)
    found = _argument(name).search(header)
    if found is None:
        return text
    kind = found[1].rpartition(": ")[2].strip()
    renamed = header.replace(f"%{name}:", f"%{name}_as_given:", 1)
    return text.replace(header, f"{renamed}\n    %{name} = arith.constant 1 : {kind} loc(unknown)", 1)


def _header(text: str) -> str:
    """The line on which the kernel's arguments stand."""
    return next((line for line in text.splitlines() if line.lstrip().startswith("tt.func public")), "")


def _argument(name: str) -> re.Pattern[str]:
    return re.compile(rf"(%{re.escape(name)}: [^,{{}}()]*?)( \{{[^{{}}]*\}})?( loc\(|, |\))")


def _attributes(header: str, name: str) -> str:
    found = _argument(name).search(header)
    return (found[2] or "") if found else ""
