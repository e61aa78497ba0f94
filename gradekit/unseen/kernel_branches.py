"""What kernels decide on, which ways of it there are, and what it is computed from."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradekit.engine.branch_coverage import CLAMP, MASKED, NEVER, NOTHING, ONCE, PART, SEVERAL, TRUE, WHOLE, ways_of
from gradekit.engine.budget import Unsupported
from gradekit.engine.def_use import ATOMICS, CONTROL, LOADS, MOVED, STORES, DefUse
from gradekit.engine.frame import dtype_of
from gradekit.engine.kernel_facts import operations, parsed
from gradekit.engine.ttir import Function, Module, Op, Type
from gradekit.engine.ttir_locations import line_of
from gradekit.engine.values import FLOAT
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_values import OTHER, SymbolicPointer, Value
from gradekit.prove.terms import ZERO, Atom, Term, Truth, atoms, free, of_atom, var
from gradekit.prove.value_of import Evaluation, Numbers, Undefined, divided
from gradekit.prove.walk import TooLong, Walk, turn_of
from gradekit.unseen import Limit

_TILES = {WHOLE: "true for a whole tile", NOTHING: "false for a whole tile", PART: "true for a part of a tile"}
_TURNS = {NEVER: "no times", ONCE: "once", SEVERAL: "several times"}
_WHAT = {
    "arith.select": "the condition of a choice",
    "scf.if": "the condition of an if",
    "cf.cond_br": "the condition of an if",
    **dict.fromkeys(("arith.andi", "arith.ori", "arith.xori"), "a condition"),
}


_OF_DTYPES = re.compile(r"arith\.(constant|(ext|trunc)[sufi]{1,2}|[suf]itofp|fpto[su]i|bitcast)|tt\.(fp_to_fp|splat)")
"""Operations that a kernel has for some dtypes and not for others, though its source makes no difference."""

_NUMBERS = re.compile(r"(?<=arith\.)(add|sub|mul|div|cmp)(f|s?i)$")

_NEAR = frozenset({*MOVED, "arith.extf", "arith.truncf", "arith.addf", "arith.subf", "arith.negf"})
"""Operations that leave a constant's distance from another value as it is."""

_MOVED = frozenset({*MOVED, "arith.extf", "arith.truncf", "arith.extsi"})

_WHOLE_AGAIN = ("arith.fptosi", "arith.fptoui")

_ADDED = frozenset({"arith.addf", "tt.reduce", "tt.histogram"})
_WHOLE = _ADDED | _MOVED | CONTROL | {"arith.constant", "arith.select", "arith.sitofp", "arith.uitofp", "arith.subf"}
"""What makes a float of whole numbers one of these too."""


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
    def order(self) -> tuple[Any, ...]:
        """Sorts ways by lines."""
        return self.line or 0, self.place, self.name, self.way, self.dtypes

    @property
    def is_chance(self) -> bool:
        """Whether no call need go it: few grids have programs with nothing to do, and what is right for several turns
        of a loop is so for few."""
        return (self.name in MASKED and self.way == NOTHING) or (self.name == "scf.for" and self.way != SEVERAL)

    def says(self) -> str:
        """That a call goes the way, as a sentence."""
        if self.name == "scf.for":
            return f"a loop runs {_TURNS[self.way]}"
        if self.name in MASKED:
            return f"the mask of a {self.name.removeprefix('tt.')} is {_TILES[self.way]}"
        if self.name == CLAMP:
            return f"a clamped value is {'below' if self.way == TRUE else 'above'} its range"
        what = _WHAT.get(self.name, "a comparison")
        if self.name.startswith(("arith.min", "arith.max")):
            what = "the first operand of a minimum or maximum being less"
        return f"{what} is {'true' if self.way == TRUE else 'false'}"


class KernelText:
    """A kernel's operations by number, and what each value comes from. `path` names the submission in its locations."""

    def __init__(self, name: str, ttir: str, path: str) -> None:
        self.name, self.ttir, self.path = name, ttir, path
        self.module: Module = parsed(ttir)
        self.flow = DefUse(self.module.functions.values())
        self.ops, self.made = self.flow.ops, self.flow.made
        self.arguments = dict(zip(self.module.entry.arguments, self.module.entry.argument_names, strict=True))
        # the operations that values depend on, of what a loop carries only what it begins as
        self.behind = functools.cache(lambda names: self.flow.makers(self.flow.behind(names, (), self.flow.entering)))

    def branches(self, ways: Mapping[int, int]) -> Iterator[tuple[KernelBranch, int, bool]]:
        """The ways of the operations that a run has come by, each with its number and whether a run has gone it."""
        for number, way in ways.items():
            for branch in self.ways_of[number] if 0 <= number < len(self.ops) else ():
                yield branch, number, bool(way & branch.way)

    @functools.cached_property
    def ways_of(self) -> list[list[KernelBranch]]:
        """The ways of each operation, which is known by how many of its name stand before it on its line."""
        counted, found = Counter[tuple[int | None, str]](), []
        for op in self.ops:
            key = line_of(op.location, self.path), op.name
            ways = [way for way in ways_of(op) if self._may_go(op, way)]
            found.append([KernelBranch(self.name, *key, counted[key], way, self.dtypes) for way in ways])
            counted[key] += 1
        return found

    @functools.cached_property
    def dtypes(self) -> tuple[str, ...]:
        """torch's names for the dtypes of what the kernel's pointers point to, in order."""
        return tuple(_named(type.pointee) for type in self.module.entry.argument_types if type.pointee is not None)

    @functools.cached_property
    def structure(self) -> int:
        """Equal for texts of a kernel that differ in dtypes, numbers and casts alone."""
        kept = ((op.name, len(op.results)) for op in self.ops if not _OF_DTYPES.match(op.name))
        return hash(tuple((_NUMBERS.sub(r"\1", name), count) for name, count in kept))

    @functools.cached_property
    def few_bits(self) -> dict[int, int]:
        """With how few bits some numbers have to do, by lines: sums in memory of 16; whole numbers that are added in 8
        or 16 or cut to these, are or become a float of few, are added up as floats in memory, or share an integer."""
        each = ((line_of(op.location, self.path), self._bits(op)) for op in reversed(self.ops))
        return {line: bits for line, bits in each if line and bits}

    @functools.cached_property
    def at_constants(self) -> frozenset[int]:
        """The numbers of comparisons of floats of which one side is a constant, or is that far from another value."""
        compared = (op for op in self.ops if op.name == "arith.cmpf")
        return frozenset(op.number for op in compared if any(map(self._is_at_constant, op.operands)))

    def _is_at_constant(self, name: str, depth: int = 4) -> bool:
        op = self.made.get(name)
        if op is None or not depth or op.name not in _NEAR:
            return bool(self.number(name))
        return any(self._is_at_constant(one, depth - 1) for one in op.operands)

    @functools.cached_property
    def rounded(self) -> dict[int, frozenset[str]]:
        """The operations, by number, that make whole numbers of floats that were made of whole numbers of sizes, with
        the names of all that these come from."""
        each = {op.number: self.flow.behind(op.operands) for op in self.ops if op.name in _WHOLE_AGAIN}
        behind = {number: {op.name for op in self.flow.makers(names)} for number, names in each.items()}
        is_of_sizes = lambda one: one & {"arith.sitofp", "arith.uitofp"} and one.isdisjoint(LOADS | ATOMICS)
        return {number: names for number, names in each.items() if is_of_sizes(behind[number])}

    def _bits(self, op: Op) -> int:
        """With how few bits the numbers of an operation have to do; 0 where these are many."""
        result = op.result_types[0].element if op.result_types else ""
        is_narrowed = op.name in ("arith.sitofp", "arith.uitofp") and result in ("f16", "bf16")
        adds = op.attributes.get("kind") == "fadd"
        counts = adds and result in ("f16", "bf16") or (adds or op.name == "tt.store") and self._counts(op, adds)
        if counts or op.name in _WHOLE_AGAIN or is_narrowed and op.operand_types[0].element != "i1":
            floats = op.operand_types[1] if counts else op.result_types[0] if is_narrowed else op.operand_types[0]
            return 1 - round(math.log2(torch.finfo(dtype_of(floats)).eps))
        if op.name == "arith.shli" and self.computed_from(op.operands[:1]) & {"tt.histogram", "tt.reduce"}:
            return int(self.number(op.operands[1]) or 0)
        return int(result[1:]) if op.name in ("arith.addi", "arith.trunci") and result in ("i8", "i16") else 0

    def _counts(self, op: Op, adds: bool) -> bool:
        """Whether what is stored, or where it `adds` is added to memory, is a float, and a sum of whole numbers."""
        behind = self.flow.makers(self.flow.behind(op.operands[1:2]))
        floats = [one for one in behind if one.result_types and one.result_types[0].element in FLOAT]
        numbers = [self.number(one.results[0]) or 0 for one in floats if one.name == "arith.constant"]
        is_sum = adds and any(numbers) or any(one.name in _ADDED for one in behind)
        is_whole = {one.name for one in floats} <= _WHOLE and not any(number % 1 for number in numbers)
        return op.operand_types[1].element in FLOAT and bool(floats) and is_sum and is_whole

    def _may_go(self, op: Op, way: int) -> bool:
        """Whether an operation's constants leave a way to it: the ends of a loop, or infinity as that of a clamp."""
        if op.name == "scf.for" and None not in (ends := [*map(self.number, op.operands[:3])]):
            count = len(range(*map(int, ends)))  # type: ignore[arg-type]
            return way == (NEVER, ONCE, SEVERAL)[min(count, 2)]
        return op.name != CLAMP or self._constant(op.operands[1 if way == TRUE else 2]) not in (math.inf, -math.inf)

    def number(self, name: str) -> float | None:
        """The number that a value is, as a tile or in another precision; None where it is none."""
        value = self._constant(name)
        return value if type(value) in (int, float) and math.isfinite(value) else None

    def _constant(self, name: str) -> Any:
        op = self.made.get(name)
        while op is not None and op.name in _MOVED:
            op = self.made.get(op.operands[0])
        return op.attributes.get("value") if op is not None and op.name == "arith.constant" else None

    def computed_from(self, names: Sequence[str]) -> frozenset[str]:
        """The names of the operations that values depend on, also of those in loops and branches that have ended."""
        return frozenset(op.name for op in self.flow.makers(self.flow.behind(names)))


def _named(type: Type) -> str:
    try:
        return str(dtype_of(type)).removeprefix("torch.")
    except Unsupported:
        return type.element


def numbers_in(ops: Sequence[Op], floating: bool) -> list[Any]:
    """The constants among operations, in order, each once."""
    found: dict[Any, None] = {}
    for op in ops:
        value: Any = op.attributes.get("value") if op.name == "arith.constant" else None
        is_float = op.name == "arith.constant" and op.result_types[0].element[0] in "fb"
        if type(value) in (int, float) and is_float == floating and math.isfinite(value):
            found[float(value) if floating else value] = None
    return list(found)


@functools.lru_cache(maxsize=256)
def kernel_text(name: str, ttir: str, path: str) -> KernelText:
    """The kernel with this text."""
    return KernelText(name, ttir, path)


def dtype_groups(texts: Iterable[KernelText]) -> dict[tuple[str, tuple[str, ...]], tuple[str, ...]]:
    """For each kernel and each of its dtypes, the first dtypes that it treats like these, becoming the same operations,
    casts aside; () where it treats all that have been seen alike. A kernel that asks for the dtype of a pointer is
    another one for each answer, and what one has been tried on says nothing of the other."""
    structures: dict[str, dict[tuple[str, ...], set[int]]] = {}
    for text in texts:
        structures.setdefault(text.name, {}).setdefault(text.dtypes, set()).add(text.structure)
    found: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
    for kernel, of_dtypes in structures.items():
        groups: list[tuple[list[tuple[str, ...]], set[int]]] = []
        for dtypes, own in of_dtypes.items():
            alike = [group for group in groups if group[1] & own]
            together = ([one for group in alike for one in group[0]] + [dtypes], own.union(*(g[1] for g in alike)))
            groups = [group for group in groups if group not in alike] + [together]
        for members, _ in groups:
            found |= {(kernel, one): min(members) if len(groups) > 1 else () for one in members}
    return found


# --- what follows from sizes alone: formulas of a symbolic walk, for many calls or all programs at once ---------------

AXES = "xyz"


class _ByRanges(Solver):
    def follows(self, hypotheses: Sequence[Truth], goal: Truth) -> bool:
        return goal.op == "true"


class _FormulaWalk(Walk):
    """Follows all integers of a kernel. `met` has the operands, the results, and at the end the condition of coming by
    each operation, by its number, in a turn of its loops that could be any; `loops` where they start, where they stop,
    and their steps."""

    def __init__(self, text: KernelText) -> None:
        self.met: dict[int, list[Value]] = {}
        self.loops: dict[str, list[Value]] = {}
        self.floats = frozenset().union(*text.rounded.values())
        entry = text.module.entry
        named = zip(entry.argument_names, entry.argument_types, strict=True)
        arguments = [_argument(*one, bool(text.rounded)) for one in named]
        grid = [var(f"grid {axis}", 0) for axis in AXES]
        try:
            super().__init__(text.module, text.path, arguments, grid, (), _ByRanges())
        except TooLong:
            self.met.clear()

    def followed(self, function: Function) -> frozenset[str]:
        return frozenset(name for op in operations(function.body) for name in op.results)

    def require(self, op: Op, value: Term, low: int | None, high: int | None) -> None: ...

    def op(self, op: Op) -> None:
        operands = [*map(self.get, op.operands)]
        if op.name == "scf.for":
            ((turn,),) = turn_of(self, op).parts
            self.loops[turn.key] = operands[:3]
        super().op(op)
        self.met[op.number] = [*operands, *map(self.get, op.results), self.path]

    def _results(self, op: Op) -> Sequence[Value]:
        if op.name == "tt.atomic_rmw" and op.attributes.get("kind") == "add":
            amount = self.get(op.operands[1])
            if isinstance(amount, Term):  # a sum that began at 0, and that each program before has added to once
                return [amount * var("programs before", 0)]
        if op.name in LOADS and (kind := op.result_types[0].element) in ("i32", "i64"):
            return [var(f"loaded {kind} {op.number}")]
        if op.name in LOADS | STORES | ATOMICS:
            return [self.unknown(type) for type in op.result_types]
        if op.name in OF_FLOATS and not self.floats.isdisjoint((*op.operands, *op.results)):
            element, operands = op.result_types[0].element, [*map(self.get, op.operands)]
            number = [op.attributes.get("value")] if op.name == "arith.constant" else []
            if all(isinstance(one, Term) for one in operands) and (element in FLOAT or not number):
                return [of_atom(Atom("real", (op.name, element, *operands, *number)))]
        found = super()._results(op)
        large = (isinstance(value, Term) and len(value.parts) > Limit.PARTS for value in found)
        return [self.unknown(type) for type in op.result_types] if any(large) else found


def _argument(name: str, type: Any, of_floats: bool) -> Value:
    if type.pointee is not None:
        return SymbolicPointer(0, ZERO, 1)
    if type.element == "i1":
        return free(name)
    return var(f"argument {name}") if type.element[0] == "i" or of_floats else OTHER


formulas = functools.lru_cache(maxsize=64)(_FormulaWalk)
"""Those of a kernel."""


@dataclass(frozen=True)
class Place:
    """Where in a launch values are asked for: the ids of one `program` or of several, the first or the `last_lane` of
    tiles, or one for each program, and the first or the `last_turn` of loops (None: what differs among them has no
    value). `grid` has three sizes, `names` the whole numbers that the kernel gets, `before` how many programs have been
    there, `loaded` what loads give, by the dtype: of elements that ascend, `apart` in memory, the steps from each to
    the next, from 0 on. Where it `is_exact`, floats on the way to whole numbers are not rounded."""

    grid: Sequence[Numbers | None]
    names: Mapping[str, Numbers | None]
    program: Sequence[Any]
    last_lane: bool | torch.Tensor | None = None
    last_turn: bool | None = None
    before: Any = None
    loaded: Mapping[str, Any] = field(default_factory=dict)
    apart: int = 0
    is_exact: bool = False
    known: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)  # at all corners of a launch

    def operands(self, text: KernelText, number: int, first: int, end: int | None = None) -> list[Any]:
        """What these operands of an operation are, its results after them and whether it is come by, int64 or bool for
        many calls or programs or one for all; None where that does not follow from sizes."""
        if len(self.known) > Limit.KEPT_VALUES:
            self.known.clear()
        return [*map(_Worked(self, text).value, formulas(text).met.get(number, ())[first:end])]


class _Worked(Evaluation):
    """Terms as columns, at a place; what was worked out at other corners of the launch is known."""

    def __init__(self, place: Place, text: KernelText) -> None:
        super().__init__({})
        self.place, self.text = place, text
        program, lane = id(place.program), place.last_lane
        self._corner = {"program": program, "programs": program, "lane": lane, "turn": (program, lane, place.last_turn)}

    def atom(self, atom: Atom) -> Any:
        """See Evaluation: once for all corners among which it does not differ."""
        known, key = self.place.known, (self.text, atom, *(self._corner[kind] for kind in _differs(atom)))
        if key not in known:
            known[key] = self._atom(atom)
        return known[key]

    def _atom(self, atom: Atom) -> Any:
        if atom.op != "real":
            return super()._atom(atom)
        name, element, *operands = atom.args
        worked = (self.term(one) if isinstance(one, Term) else one for one in operands)
        return _of_floats(name, element, self.place.is_exact, *worked)

    def value(self, value: Value) -> Any:
        value = value.offset if isinstance(value, SymbolicPointer) else value
        try:
            return self.term(value) if isinstance(value, Term) else self.truth(value)  # type: ignore[arg-type]
        except (Undefined, AttributeError):
            return None

    def given(self, atom: Atom) -> Any:
        found = self._at(atom)
        if found is None:
            raise Undefined(atom.key)
        return found

    def _at(self, atom: Atom) -> Any:
        name, place = str(atom.args[0]), self.place
        kind, _, which = name.partition(" ")
        if atom.op == "var" and kind == "argument":
            return place.names.get(which)
        if atom.op == "var" and kind in ("program", "grid"):
            return (place.program if kind == "program" else place.grid)[AXES.index(which)]
        if atom.op == "var" and kind == "programs":
            return place.before
        if atom.op == "var" and kind == "loaded":
            return self._loaded(*which.split())
        if kind.startswith("@") and place.last_lane is not None:
            lane = place.last_lane if isinstance(place.last_lane, torch.Tensor) else -int(place.last_lane)
            return lane % int(kind.partition("/")[2])
        if atom.op == "var" and kind == "turn" and place.last_turn is not None:
            loop = formulas(self.text).loops.get(atom.key, (OTHER,) * 3)  # a `while` ends where no size tells
            count = turns(*map(self.value, loop)) if place.last_turn else 1
            return None if count is None else count - 1
        return None

    def _loaded(self, dtype: str, number: str) -> Any:
        found, pointer = self.place.loaded.get(dtype), self.text.ops[int(number)].operands[:1]
        if found is None or not self.place.apart:
            return found
        is_first = self.text.computed_from(pointer).isdisjoint(LOADS)  # and not what is read where these say
        at = self.value(formulas(self.text).met[int(number)][0]) if is_first else None
        return None if at is None else at // self.place.apart * found


OF_FLOATS: dict[str, Callable[..., torch.Tensor]] = {
    **dict.fromkeys(("arith.constant", "arith.sitofp", "arith.uitofp", "arith.extf", "arith.truncf"), torch.clone),
    **dict.fromkeys(_WHOLE_AGAIN, torch.trunc), "math.floor": torch.floor, "math.ceil": torch.ceil,
    "arith.negf": torch.neg, "arith.addf": torch.add, "arith.subf": torch.sub, "arith.mulf": torch.mul,
    "arith.divf": torch.div, "tt.precise_divf": torch.div,
}  # fmt: skip
"""What is followed of floats between whole numbers, by the operation's name."""


def _of_floats(name: str, element: str, is_exact: bool, *operands: Any) -> torch.Tensor:
    """What an operation gives; where it `is_exact`, in float64, of which what is all but a whole number is one."""
    is_whole = name in _WHOLE_AGAIN
    dtype = torch.float64 if is_exact else FLOAT.get(element, torch.float64)
    values = [torch.as_tensor(one, dtype=dtype) for one in operands]
    if is_exact and (is_whole or name in ("math.floor", "math.ceil")):
        values = [torch.where((one - one.round()).abs() < one.abs() * 2.0**-40, one.round(), one) for one in values]
    found = OF_FLOATS[name](*values)
    return found.long() if is_whole else found


@functools.lru_cache(1 << 12)
def _differs(atom: Atom) -> tuple[str, ...]:
    """Among what a value may be another: programs, lanes, turns, of which there may be others in another program."""
    told = [str(one.args[0]) for one in atoms(of_atom(atom)).values() if one.op in ("var", "read")]
    kinds = {"lane" if one[0] == "@" else one.partition(" ")[0] for one in told}
    return ("turn",) if "loaded" in kinds else tuple(sorted(kinds & {"program", "programs", "lane", "turn"}))


def turns(start: Any, stop: Any, step: Any) -> Any:
    """How often a loop runs; None where that is not known."""
    if start is None or stop is None or step is None:
        return None
    found = divided(stop - start + step - 1, step)
    return max(found, 0) if isinstance(found, int) else found.clamp(min=0)


def corners(grid: tuple[Numbers | None, ...], names: Mapping[str, Numbers | None]) -> list[Place]:
    """The first and the last program, lane and turn of a launch, in all combinations."""
    last = [None if size is None else size - 1 for size in grid]
    before = None if None in grid else math.prod(grid) - 1  # type: ignore[arg-type]
    ends, known = (False, True), dict[Hashable, Any]()
    return [
        Place(grid, names, last if program else (0, 0, 0), lane, turn, before if program else 0, known=known)
        for program in ends for lane in ends for turn in ends
    ]  # fmt: skip


def goes(text: KernelText, number: int, branch: KernelBranch, place: Place) -> Any:
    """Where the branch goes the way that it asks for; None where that does not follow from sizes."""
    op = text.ops[number]
    if op.name == "scf.for":
        count = turns(*place.operands(text, number, 0, 3) or [None] * 3)
        if count is None:
            return None
        return count == 0 if branch.way == NEVER else count == 1 if branch.way == ONCE else count > 1
    if op.name in MASKED:
        return _left(text, op, branch.way, place)
    condition = _decides(text, op, place)
    return None if condition is None else condition if branch.way == TRUE else condition ^ True


def _left(text: KernelText, op: Op, way: int, place: Place) -> Any:
    """Where a mask keeps that `way` (all, nothing, a part) of a tile, by its first and last elements."""
    position = 1 if op.name == "tt.load" else 2
    if len(op.operands) <= position or place.last_lane:  # each tile once
        return None if len(op.operands) <= position else False
    each = (place, replace(place, last_lane=True))
    ends = [end.operands(text, op.number, position, position + 1) for end in each]
    if not all(ends) or None in (ends[0][0], ends[1][0]):
        return None
    first, last = (torch.as_tensor(end).bool() for (end,) in ends)
    return first & last if way == WHOLE else ~first & ~last if way == NOTHING else first ^ last


def _decides(text: KernelText, op: Op, place: Place) -> Any:
    if op.name.startswith(("arith.min", "arith.max")):
        both = place.operands(text, op.number, 0, 2)
        return both[0] <= both[1] if both and None not in both else None
    first = 0 if op.name in ("arith.select", "scf.if", "cf.cond_br") else len(op.operands)
    return next(iter(place.operands(text, op.number, first, first + 1)), None)


def off_line(text: KernelText, grid: Sequence[int], names: Mapping[str, Any]) -> int | None:
    """The line of an operation that gives some program of a launch another whole number than without rounding."""
    ids = torch.arange(min(math.prod(grid), Limit.RANGE))
    program = (ids % grid[0], ids // grid[0] % grid[1], ids // grid[0] // grid[1])
    lanes: tuple[Any, ...] = (False, True, torch.randperm(len(ids), generator=torch.Generator().manual_seed(1)))
    for number, lane, turn in itertools.product(text.rounded, lanes, (False, True)):
        place = Place(grid, names, program, lane, turn)
        exactly = replace(place, is_exact=True, known={})
        usual, exact = (next(iter(one.operands(text, number, 1, 2)), None) for one in (place, exactly))
        if usual is not None and exact is not None and bool((torch.as_tensor(usual) != exact).any()):
            return line_of(text.ops[number].location, text.path)
    return None


def edges(text: KernelText, number: int, place: Place, among: torch.Tensor) -> list[int]:
    """Where a comparison, or the count of a loop's turns, becomes another, of ascending numbers that a place loads:
    those on both sides. Nothing where it does not depend on what is loaded."""
    if (op := text.ops[number]).name == "scf.for":
        found = turns(*place.operands(text, number, 0, 3) or [None] * 3)
    else:
        found = _decides(text, op, place)
    if not isinstance(found, torch.Tensor) or found.numel() != len(among):
        return []
    turning = (found[1:] != found[:-1]).nonzero().view(-1)
    ends = torch.cat([turning[: Limit.EDGES], turning[-Limit.EDGES :]])
    return among[torch.cat([ends, ends + 1])].tolist()
