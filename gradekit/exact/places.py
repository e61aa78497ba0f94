"""Rounding as data: each operation of a kernel that rounds to a float of 16 bits, its line, and what becomes of it.

A place is a conversion, or arithmetic in the narrow type itself (an accumulator, a product, a reduction); or what host
code converts or computes. What follows tells its `use`, which an assignment allows or not (`rounding` in domain.toml):

    results         stored, and nothing else
    operands        a factor of tl.dot, and nothing else
    sums of inputs  the sum of two numbers as they were loaded
    saved results   stored as the result of a forward pass, whose backward pass reads it
    scratch         stored to other memory that the call allocates and reads again
    arithmetic      anything else
"""

import dataclasses
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence

import torch

from gradekit.engine.def_use import LOADS, DefUse
from gradekit.engine.kernel_facts import operations, parsed
from gradekit.engine.ttir import Function, Op, Region
from gradekit.engine.ttir_locations import line_of
from gradekit.inputs.spec import Input
from gradekit.inputs.value_kinds import CHOSEN
from gradekit.program import Aten, Descriptor, Launch, Program, Step, View, every_step, reads, writes

RESULTS, OPERANDS, SUMS, SAVED = "results", "operands", "sums of inputs", "saved results"
SCRATCH, ARITHMETIC = "scratch", "arithmetic"
NARROW = {"f16": "float16", "bf16": "bfloat16"}
_SAME = {
    "tt.trans", "tt.reshape", "tt.broadcast", "tt.expand_dims", "tt.splat", "tt.join", "tt.split", "tt.cat",
    "ttg.convert_layout", "arith.extf", "arith.select",
}  # fmt: skip
"""Operations that hand on the numbers that they get."""
_STORES = ("tt.store", "tt.descriptor_store")  # operations that store: their operands say where, and what
_NO_ROUNDING = _SAME | LOADS | {
    "arith.constant", "arith.negf", "math.absf", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf",
    "ub.poison", "tt.unsplat", "tt.gather", "scf.for", "scf.if", "scf.while", "scf.yield", "tt.call",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class RoundingPlace:
    """An operation of the kernel `ttir` that rounds to `dtype`, or without one a step; `line` is the submission's."""

    ttir: str
    number: int
    line: int | None
    dtype: str
    use: str


def rounding_places(program: Program, upstream: Input | View | None = None) -> list[RoundingPlace]:
    """All places of a program's kernels and host code that give no result; a tensor like `upstream` was saved."""
    found = dict.fromkeys(_of_host_code(program))
    for launch in (step for step in every_step(program.steps) if isinstance(step, Launch)):
        kernel = program.kernels[launch.kernel]
        for number, line, dtype, use, arguments in _of_kernel(kernel.unaligned, program.path):
            if use == RESULTS:
                use = _stored(program, launch, arguments, upstream)
            found[RoundingPlace(kernel.unaligned, number, line, dtype, use)] = None
    return list(found)


def _of_host_code(program: Program) -> Iterator[RoundingPlace]:
    results = {result.storage for result in program.results if isinstance(result, View)}
    for number, step in enumerate(program.steps):
        of = getattr(step, "origin", None)  # of a copy
        for view in writes(step) if isinstance(step, Aten) or (of and "float" in of.dtype) else ():
            if view.dtype in NARROW.values() and view.storage not in results and not (of and of.dtype == view.dtype):
                yield RoundingPlace("", number, step.source.line if step.source else None, view.dtype, SCRATCH)


def narrowing(program: Program, dtype: torch.dtype) -> set[str]:
    """The dtypes of fewer bits than `dtype` has to which a kernel rounds on the way, or host code casts."""
    found = {place.dtype for place in rounding_places(program)}
    return {one for one in found if torch.finfo(getattr(torch, one)).eps > torch.finfo(dtype).eps}


def kept_in_half(program: Program, upstream: View | None) -> bool:
    """Whether a kernel's numbers are kept in float16 and read again: they must not pass 65,504."""
    return any((place.use, place.dtype) == (SCRATCH, "float16") for place in rounding_places(program, upstream))


def rounded_down(dtype: str) -> str:
    """A kind of a few values that rounding to `dtype` makes smaller, all of them: their errors add up in a sum."""
    step = torch.finfo(getattr(torch, dtype)).eps
    return f"{CHOSEN}:cells:1:" + ";".join(repr(1 + (number + 0.375) * step) for number in (0, 37, 74, 101, 120))


def _stored(program: Program, launch: Launch, arguments: Collection[str], upstream: Input | View | None) -> str:
    """What is stored through these arguments of a kernel: results, also where nobody can say."""
    names = parsed(program.kernels[launch.kernel].unaligned).entry.arguments
    views = {name: view for name, view in zip(names, spread(launch), strict=False) if view}
    stored = [views[name] for name in arguments if name in views]
    results = {result.storage for result in program.results if isinstance(result, View)}
    later = [*_after(program, launch)]
    read = {view.storage for one in later for view in reads(one)} - results
    read |= {storage for one in later if isinstance(one, Launch) for storage in _updated(program, one)}
    again = [view for view in stored if view.storage in read]
    if not again:
        return RESULTS
    if upstream is not None and all((v.dtype, v.numel) == (upstream.dtype, upstream.numel) for v in again):
        return SAVED
    return SCRATCH


def _updated(program: Program, launch: Launch) -> set[int]:
    """The storages that a launch both loads and stores, such as that of a sum to which several launches add."""
    module = parsed(program.kernels[launch.kernel].unaligned)
    flow, views = DefUse(module.functions.values()), [*zip(module.entry.arguments, spread(launch), strict=False)]
    loaded, written = (
        flow.behind([op.operands[0] for op in flow.ops if op.name in names], sources=flow.pointed)
        for names in (LOADS, _STORES)
    )
    read, kept = ({view.storage for name, view in views if view and name in names} for names in (loaded, written))
    return read & kept


def _after(program: Program, launch: Launch) -> Iterator[Step]:
    steps = [*every_step(program.steps)]
    yield from steps[steps.index(launch) + 1 :]


def spread(launch: Launch) -> list[View | None]:
    """The tensor behind each argument of the kernel; a descriptor stands for several."""
    views: list[View | None] = []
    for argument in launch.args:
        if isinstance(argument, Descriptor):
            views += [argument.view, *([None] * (2 * len(argument.view.shape)))]
        else:
            views.append(argument if isinstance(argument, View) else None)
    return views


@functools.lru_cache(maxsize=256)
def _of_kernel(ttir: str, path: str) -> Sequence[tuple[int, int | None, str, str, frozenset[str]]]:
    """Number, line, dtype and use of each place, and the arguments that it is stored through."""
    found = []
    for function in parsed(ttir).functions.values():
        flow = _Flow(function)
        for op in operations(function.body):
            if len(op.results) == 1 and op.result_types[0].element in NARROW and op.name not in _NO_ROUNDING:
                use, through = flow.use(op)
                line = line_of(op.location, path)
                found.append((op.number, line, NARROW[op.result_types[0].element], use, frozenset(through)))
    return tuple(found)


class _Flow:
    """Who uses what, and where it comes from, in one function.

    Regions beside each other have values of one name in the text: here a value is its name and its operation's number.
    """

    def __init__(self, function: Function) -> None:
        self.makers: dict[str, Op] = {}
        self.users: dict[str, list[tuple[Op, int]]] = {}
        self.operands: dict[int, list[str]] = {}
        self.given: dict[int, Op] = {}
        self._enter(function.body, {}, None)

    def _enter(self, region: Region, outer: Mapping[str, str], owner: Op | None) -> None:
        """Reads a region of the operation `owner` in which the values of `outer` can be seen, by their names."""
        names = dict(outer)
        for block in region.blocks:
            names |= {name: name for name in block.arguments}
            for op in block.ops:
                self.operands[op.number] = [names.get(name, name) for name in op.operands]
                for place, value in enumerate(self.operands[op.number]):
                    self.users.setdefault(value, []).append((op, place))
                if op.name == "scf.yield" and owner is not None and owner.name == "scf.if":
                    self.given[op.number] = owner
                for inner in op.regions:
                    self._enter(inner, names, op)
                names |= {name: _value(op, name) for name in op.results}
                self.makers |= {_value(op, name): op for name in op.results}

    def use(self, op: Op) -> tuple[str, set[str]]:
        """The use of a place's result, and the arguments that it is stored through."""
        ends = list(self._ends(_value(op, op.results[0])))
        uses = {use for use, _ in ends}
        if uses == {RESULTS}:
            return RESULTS, {self._argument(through) for _, through in ends}
        if uses == {OPERANDS}:
            return OPERANDS, set()
        return (SUMS if self._is_sum(op) else ARITHMETIC), set()

    def _ends(self, value: str) -> Iterator[tuple[str, str]]:
        for user, place in self.users.get(value, ()):
            if user.name in _STORES and place == 1:
                yield RESULTS, self.operands[user.number][0]
            elif user.name == "tt.dot" and place < 2:
                yield OPERANDS, ""
            elif user.number in self.given:
                owner = self.given[user.number]
                yield from self._ends(_value(owner, owner.results[place]))
            elif user.name in _SAME and user.results:
                for result in user.results:
                    yield from self._ends(_value(user, result))
            else:
                yield ARITHMETIC, ""

    def _is_sum(self, op: Op) -> bool:
        """Whether it is a sum of loaded numbers, or a conversion of one."""
        made = op if op.name == "arith.addf" else self._made(op)
        if made is None or made.name != "arith.addf":
            return False
        terms = (self._behind(value) for value in self.operands[made.number])
        return all(source is not None and source.name in LOADS for source in terms)

    def _made(self, op: Op) -> Op | None:
        operands = self.operands[op.number]
        return self._behind(operands[0]) if operands else None

    def _behind(self, value: str) -> Op | None:
        """What made a value, behind what hands it on."""
        op = self.makers.get(value)
        while op is not None and op.name in _SAME and op.name != "arith.select":
            op = self.makers.get(self.operands[op.number][0])
        return op

    def _argument(self, value: str) -> str:
        """The argument of the kernel that an address begins with."""
        while (op := self.makers.get(value)) is not None and op.operands:
            value = self.operands[op.number][0]
        return value


def _value(op: Op, name: str) -> str:
    return f"{name} of {op.number}"
