"""What a kernel asks for, read from its TTIR: products of matrices and accesses to memory, each with its line.

Pure functions of text. What the machine code made of them is for `facts` to join.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from gradekit.engine.def_use import LOADS, DefUse
from gradekit.engine.kernel_facts import every_operation, operations
from gradekit.engine.ttir import Function, Module, Op, Type

ITEMSIZE = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "ptr": 8}
"""Bytes of an element in memory; types of eight bits that are not listed have one."""

_LOADS = {
    "tt.load": "load",
    "tt.descriptor_load": "load",
    "tt.descriptor_gather": "load",
    "tt.store": "store",
    "tt.descriptor_store": "store",
}
_DOTS = ("tt.dot", "tt.dot_scaled")
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
    feeds_dot: bool
    pointer: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()


def dtype_name(element: str) -> str:
    """torch's name of a TTIR element type: f16 -> float16, i8 -> int8."""
    return _NAMES.get(element, re.sub(r"^i(\d+)$", r"int\1", element))


def line_of(op: Op, path: str) -> int | None:
    """The innermost line of the file `path` that the operation comes from."""
    return next((line for file, line, _ in op.location if file == path), None)


def dots(module: Module, path: str) -> list[Dot]:
    """The products of every function, in order."""
    return [_dot(op, path) for op in every_operation(module) if op.name in _DOTS]


def _dot(op: Op, path: str) -> Dot:
    left, right = op.operand_types[:2]
    m, k = left.shape[-2:]
    precision = str(op.attributes.get("inputPrecision", "ieee")) if op.name == "tt.dot" else "scaled"
    one, other, result = (dtype_name(kind.element) for kind in (left, right, op.result_types[0]))
    return Dot(line_of(op, path), one, other, result, m, right.shape[-1], k, precision)


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
        if op.name in _LOADS:
            pointer, mask = (behind(names) for names in _addressed(op))
            value = op.result_types[0] if _LOADS[op.name] == "load" else op.operand_types[1]
            yield MemoryAccess(
                line_of(op, path), _LOADS[op.name], dtype_name(value.element), itemsize(value), prod(value.shape),
                op.name.startswith("tt.descriptor"), bool(feeding & set(op.results)),
                tuple(name for name in function.arguments if name in pointer),
                tuple(name for name in function.arguments if name in mask),
            )  # fmt: skip


def _addressed(op: Op) -> tuple[Sequence[str], Sequence[str]]:
    """The operands that say where an access goes, and which lanes do; a descriptor has no mask."""
    first = 1 if _LOADS[op.name] == "load" else 2
    return op.operands[:1], () if op.name.startswith("tt.descriptor") else op.operands[first : first + 1]


def itemsize(kind: Type) -> int:
    """Bytes of one element."""
    return ITEMSIZE.get(kind.element, 1)


def has_float64(kind: Type) -> bool:
    """Whether a value of this type is a double, or points to doubles."""
    return kind.element == "f64" or (kind.pointee is not None and has_float64(kind.pointee))


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
