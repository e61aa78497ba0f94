"""What kernels decide on, which ways of it there are, and what it is computed from."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.engine import Module, Op, Unsupported
from gradekit.engine.branch_coverage import CLAMP, FALSE, NEVER, ONCE, SEVERAL, TRUE
from gradekit.engine.def_use import MOVED, DefUse
from gradekit.engine.frame import dtype_of
from gradekit.engine.kernel_facts import parsed
from gradekit.engine.mask_coverage import MASKED, NOTHING, PART, WHOLE, ways_of
from gradekit.engine.ttir import Type

_TILES = {WHOLE: "true for a whole tile", NOTHING: "false for a whole tile", PART: "true for a part of a tile"}
_TURNS = {NEVER: "no times", ONCE: "once", SEVERAL: "several times"}
_WHAT = {
    "arith.select": "the condition of a choice",
    "scf.if": "the condition of an if",
    "cf.cond_br": "the condition of an if",
}


_MOVED = frozenset({*MOVED, "arith.extf", "arith.truncf", "arith.extsi"})


@dataclass(frozen=True)
class KernelBranch:
    """An operation of a kernel that decides something, and a way of it. It is the same one in each specialization: the
    operation is the `place`-th of its `name` on its line. `dtypes` are those of its pointers, where that matters."""

    kernel: str
    line: int | None
    name: str
    place: int
    way: int
    dtypes: tuple[str, ...] = ()

    @property
    def never(self) -> str:
        """That no run has gone the way, as the end of a sentence."""
        return self._said("never ")

    @property
    def gone(self) -> str:
        """That a call goes the way."""
        return self._said("")

    def _said(self, never: str) -> str:
        if self.name == "scf.for":
            return f"a loop {never}runs {_TURNS[self.way]}"
        if self.name in MASKED:
            return f"the mask of a {self.name.removeprefix('tt.')} is {never}{_TILES[self.way]}"
        if self.name == CLAMP:
            return f"a clamped value is {never}{'below' if self.way == TRUE else 'above'} its range"
        what = _WHAT.get(self.name, "a comparison")
        if self.name.startswith(("arith.min", "arith.max")):
            what = "the first operand of a minimum or maximum being less"
        elif self.name in ("arith.andi", "arith.ori", "arith.xori"):
            what = "a condition"
        return f"{what} is {never}{'true' if self.way == TRUE else 'false'}"


class KernelText:
    """A kernel's operations by number, and what each value comes from. `path` names the submission in its locations."""

    def __init__(self, name: str, ttir: str, path: str) -> None:
        self.name, self.path = name, path
        self.module: Module = parsed(ttir)
        self.flow = DefUse(self.module.functions.values())
        self.ops, self.made = self.flow.ops, self.flow.made
        self.arguments = dict(zip(self.module.entry.arguments, self.module.entry.argument_names, strict=True))
        self._branches: dict[int, tuple[KernelBranch, ...]] = {}
        self.behind = functools.cache(self._behind)

    def line(self, op: Op) -> int | None:
        """The innermost line of the submission that the operation comes from."""
        return next((line for file, line, _ in op.location if file == self.path), None)

    @functools.cached_property
    def places(self) -> list[tuple[int | None, str, int]]:
        """For each operation its line, its name, and how many of that name stand before it on that line."""
        counted: dict[tuple[int | None, str], int] = {}
        found = []
        for op in self.ops:
            key = self.line(op), op.name
            found.append((*key, counted.get(key, 0)))
            counted[key] = counted.get(key, 0) + 1
        return found

    def branches(self, ways: Mapping[int, int]) -> Iterator[tuple[KernelBranch, int, bool]]:
        """The ways of the operations that a run has come by, each with its number and whether a run has gone it."""
        for number, way in ways.items():
            for branch in self._branches_of(number):
                yield branch, number, bool(way & branch.way)

    def _branches_of(self, number: int) -> tuple[KernelBranch, ...]:
        if number not in self._branches and 0 <= number < len(self.ops):
            line, name, place = self.places[number]
            ways = _ways(self.ops[number])
            self._branches[number] = tuple(KernelBranch(self.name, line, name, place, w, self.dtypes) for w in ways)
        return self._branches.get(number, ())

    @functools.cached_property
    def dtypes(self) -> tuple[str, ...]:
        """torch's names for the dtypes of what the kernel's pointers point to, in order."""
        return tuple(_named(type.pointee) for type in self.module.entry.argument_types if type.pointee is not None)

    def _behind(self, names: tuple[str, ...]) -> list[Op]:
        """The operations that values depend on, of what a loop carries only what it begins as."""
        return self.flow.makers(self.flow.behind(names, sources=self.flow.entering))

    def number(self, name: str) -> float | None:
        """The number that a value is, as a tile or in another precision; None where it is none."""
        op = self.made.get(name)
        while op is not None and op.name in _MOVED:
            op = self.made.get(op.operands[0])
        value: Any = op.attributes.get("value") if op is not None and op.name == "arith.constant" else None
        return value if type(value) in (int, float) and math.isfinite(value) else None

    def computed_from(self, names: Sequence[str]) -> frozenset[str]:
        """The names of the operations that values depend on, also of those in loops and branches that have ended."""
        return frozenset(op.name for op in self.flow.makers(self.flow.behind(names)))


def _named(type: Type) -> str:
    try:
        return str(dtype_of(type)).removeprefix("torch.")
    except Unsupported:
        return type.element


def _ways(op: Op) -> tuple[int, ...]:
    if op.name in MASKED:
        return ways_of(op)
    return (NEVER, ONCE, SEVERAL) if op.name == "scf.for" else (TRUE, FALSE)


def numbers_in(ops: Sequence[Op], floating: bool) -> list[Any]:
    """The constants among operations, in order, each once."""
    found: dict[Any, None] = {}
    for op in ops:
        value: Any = op.attributes.get("value") if op.name == "arith.constant" else None
        is_float = op.name == "arith.constant" and op.result_types[0].element[0] in "fb"
        if type(value) in (int, float) and is_float == floating and math.isfinite(value):
            found[float(value) if floating else value] = None
    return list(found)


@functools.lru_cache(maxsize=64)
def kernel_text(name: str, ttir: str, path: str) -> KernelText:
    """The kernel with this text."""
    return KernelText(name, ttir, path)
