"""A traced call whose kernels are evaluated from their source.

It is run once as it is. Then it can be resumed at the first launch of a kernel, in many copies at a time that each have
another node somewhere in that kernel's source."""

import ast
import contextlib
import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.budget import STEP, Budget, Meter, OverBudget
from gradekit.engine.host import DTYPES as TORCH
from gradekit.engine.host import operation, read
from gradekit.engine.kernel_facts import parsed
from gradekit.engine.memory import Memory, view_bytes
from gradekit.interpreter import Limit
from gradekit.interpreter.host_walk import HostWalk, Launches
from gradekit.interpreter.kernel_walk import KernelWalk, parts_of
from gradekit.interpreter.tile_values import DTYPES, NotWalked, TileMemory, TilePointer, mapped, spread
from gradekit.interpreter.vocabulary import descriptor
from gradekit.interpreter.walk import Code, Names, Returned, Substitution, Watched, bound
from gradekit.program import (
    Allocate,
    Argument,
    Aten,
    Copy,
    Descriptor,
    Fill,
    Kernel,
    Launch,
    Literal,
    Program,
    Step,
    View,
    needed_for,
    run_steps,
)
from gradekit.submission.parsed_source import ParsedSource, called

WRONG = (
    NotWalked, OverBudget, ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip
"""What a walk may raise. Whatever it is, the call is not known, and nothing is said of it."""

_EFFECTS = {"store", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg"}


def code_of(source: ParsedSource) -> Code:
    """What the kernels of a source may refer to."""
    walk = HostWalk(source, Launches(Code({}, {}), {}, (), lenient=False), Meter(Budget(Limit.WORK)))
    try:
        constants = {name: _constant(value) for name, value in walk.module.items() if isinstance(value, _CONSTANTS)}
    except WRONG:
        constants = {}
    return Code({node.name: node for node in source.kernels}, constants)


_CONSTANTS = (int, float, str, tuple, torch.dtype)


def _constant(value: Any) -> Any:
    return DTYPES.get(str(value).removeprefix("torch."), value) if isinstance(value, torch.dtype) else value


@dataclass
class _Begun:
    """The first launch of a kernel: its number among the steps, storages and work before it, and what was met in it."""

    launch: Launch
    step: int
    memory: Memory
    work: int
    watched: Watched = field(default_factory=Watched)


@dataclass(frozen=True)
class Copies:
    """The `results` of a call in several copies, which come first among the dimensions of each; one that is not
    compared is None. `lost` are the copies that went out of bounds."""

    results: list[Tensor | None]
    lost: Tensor

    def of(self, number: int) -> list[Tensor | None] | None:
        """The results of one copy; None of one that went out of bounds."""
        return None if self.lost[number] else [None if one is None else one[number] for one in self.results]


class WalkedCall:
    """A program on its inputs, with the kernels of the source that it is of, and the torch operations that the
    assignment allows. Of its results, those whose numbers are `compared` (None: all) are asked for with changes, with
    which each element is to be stored by one program `alone`: if that is said, or is so as the source is. Call `run`
    once before `changed`."""

    def __init__(
        self, program: Program, inputs: Sequence[Tensor], code: Code, allow: Collection[str],
        compared: Collection[int] | None = None, alone: bool = False,
    ) -> None:  # fmt: skip
        self.program, self.code, self.allow, self.compared, self._must_be_alone = program, code, allow, compared, alone
        self._inputs = inputs
        self._steps = list(run_steps(program.steps))
        self.begun: dict[str, _Begun] = {}
        self.work = self.spent = self.longest = 0
        self.strays = False  # whether an element outside is touched, so that results are not known
        self._several = 0  # elements that several programs store
        self._stored: list[set[int]] = []  # by each step
        self._settled: dict[str, int] = {}
        self._alone: dict[str, KernelWalk] = {}
        self._after: dict[str, list[Step]] = {}

    def run(self, most: int = Limit.WORK) -> list[Tensor | None]:
        """The results as the source is, within `most` work.

        Raises: one of `WRONG`, where it cannot be walked.
        """
        memory, meter = Memory(self.program.addresses), Meter(Budget(most))
        for view, tensor in zip(self.program.inputs, self._inputs, strict=True):
            memory.place_input(view.storage, view_bytes(tensor))
        for number, step in enumerate(self._steps):
            if isinstance(step, Launch):
                name = self._kernel(step).name
                first = name not in self.begun
                if first:
                    self.begun[name] = _Begun(step, number, _copied(memory), meter.work)
                tiles = self._launch(step, memory, meter, Substitution(), self.begun[name] if first else None)
                self._stored.append(tiles.stored)
            else:
                run_step(step, memory, 1, self.allow)
                self._stored.append(set())
        self.work = meter.work + STEP * len(self._steps)
        return self._results(memory)

    def is_launched_once(self, kernel: str) -> bool:
        """Whether a call launches a kernel once: what its names are in one launch tells nothing of another."""
        return sum(isinstance(step, Launch) and self._kernel(step).name == kernel for step in self._steps) == 1

    def work_from(self, kernel: str) -> int:
        """The work of the call from the first launch of a kernel on."""
        return self.work - self.begun[kernel].work

    def changed(self, kernel: str, substitution: Substitution, first: int) -> Copies:
        """The call with each copy of a substitution in a `kernel` that is launched; `first` is the number of the
        kernel's first statement in which a node is substituted. Raises one of `WRONG`, where it cannot be walked, or
        every copy goes out of bounds."""
        begun, copies = self.begun[kernel], substitution.copies
        meter = Meter(Budget(2 * self.work * (4 + copies) + 50 * STEP))
        memory, steps = _copied(begun.memory, copies), self._steps_after(kernel)
        try:
            lost = self._resume(begun, memory, meter, substitution, first)
            for step in steps:
                if isinstance(step, Launch):
                    lost |= self._launch(step, memory, meter, substitution, None).lost
                else:
                    run_step(step, memory, copies, self.allow)
        finally:
            self.spent = meter.work + STEP * (2 + len(steps))
        results = [None if view is None else view_of_all(memory, view, copies) for view in self._compared]
        return Copies(results, lost)

    @property
    def _compared(self) -> list[View | None]:
        """The results that are compared, None in the place of any other."""
        return [
            result if isinstance(result, View) and (self.compared is None or number in self.compared) else None
            for number, result in enumerate(self.program.results)
        ]

    def _steps_after(self, kernel: str) -> list[Step]:
        """The steps after the first launch of a kernel that may decide what is compared."""
        if kernel not in self._after:
            at = self.begun[kernel].step + 1
            steps = self._steps[at:]
            wanted = {view.storage for view in self._compared if view is not None}
            needed = needed_for(wanted, steps, self._stored[at:])
            again = (isinstance(step, Launch) and self._kernel(step).name == kernel for step in steps)
            kept = zip(steps, needed, again, strict=True)
            self._after[kernel] = [step for step, is_needed, is_again in kept if is_needed or is_again]
        return self._after[kernel]

    def _resume(self, begun: _Begun, memory: Memory, meter: Meter, substitution: Substitution, first: int) -> Tensor:
        kernel = self._kernel(begun.launch).name
        body = self.code.functions[kernel].body
        reached = sum(one in begun.watched.names for one in body)
        at = min(first, self._settled_until(kernel), reached - 1)
        walk = self._walk(begun.launch, memory, meter, substitution, None)
        names = {name: _for_copies(value, walk) for name, value in begun.watched.names[body[at]].items()}
        with contextlib.suppress(Returned):
            walk.body(body[at:], names)
        return walk.memory.lost

    def _settled_until(self, name: str) -> int:
        """The number of a kernel's first statement that may store something, or end it."""
        if name not in self._settled:
            body = self.code.functions[name].body
            found = (at for at, one in enumerate(body) if has_effects(one, self.code))
            self._settled[name] = next(found, len(body))
        return self._settled[name]

    def alone(self, kernel: str) -> KernelWalk:
        """A walk of the first launch of a kernel, for single expressions."""
        if kernel not in self._alone:
            begun = self.begun[kernel]
            self._alone[kernel] = self._walk(begun.launch, begun.memory, Meter(Budget()), Substitution(), None)
        return self._alone[kernel]

    def most_copies(self, kernel: str) -> int:
        """Of a launch that are walked at a time, so that no tile becomes too large."""
        begun = self.begun[kernel]
        tiles = (one.numel() for one in begun.watched.values.values() if isinstance(one, Tensor))
        return max(min(Limit.COPIES, Limit.TILE_ELEMENTS // max([self.programs(begun.launch), *tiles])), 1)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _kernel(self, step: Launch) -> Kernel:
        return self.program.kernels[step.kernel]

    @staticmethod
    def programs(step: Launch) -> int:
        """The number of programs of a launch."""
        return step.grid[0] * step.grid[1] * step.grid[2]

    def _walk(
        self, step: Launch, memory: Memory, meter: Meter, substitution: Substitution, watched: Watched | None
    ) -> KernelWalk:
        is_changed, is_alone = substitution.copies > 0, self._must_be_alone or not self._several
        each = max(substitution.copies, 1), self.programs(step)
        tiles = TileMemory(memory, *each, lenient=not is_changed, alone=is_changed and is_alone)
        walk = KernelWalk(self.code, step.grid, tiles, meter, substitution, watched)
        if substitution.copies:
            walk.patience = 2 * self.longest + 8
        return walk

    def _launch(
        self, step: Launch, memory: Memory, meter: Meter, substitution: Substitution, begun: _Begun | None
    ) -> TileMemory:
        kernel = self._kernel(step)
        function = self.code.functions.get(kernel.name)
        if function is None or self.programs(step) > Limit.PROGRAMS:
            raise NotWalked("a kernel that is not seen, or too many programs")
        names = self._arguments(step, kernel, function)
        walk = self._walk(step, memory, meter, substitution, begun.watched if begun else None)
        walk.run(kernel.name, names)
        self.longest = max(self.longest, walk.longest)
        self.strays |= walk.memory.strays
        self._several += 0 if substitution.copies else walk.memory.in_vain[1]
        return walk.memory

    def _arguments(self, step: Launch, kernel: Kernel, function: ast.FunctionDef) -> Names:
        # without a descriptor's sizes and strides: Triton 3.6 calls them as itself, later ones add a dot and more
        expected = dict.fromkeys(name for name in parsed(kernel.ttir).entry.argument_names if "." not in name)
        values = [_argument(argument) for argument in step.args]
        constants = constants_of(kernel)
        return bound(function.args, (), constants | dict(zip(expected, values, strict=True)))

    def _results(self, memory: Memory) -> list[Tensor | None]:
        return [read(memory, one).clone() if isinstance(one, View) else None for one in self.program.results]


def constants_of(kernel: Kernel) -> dict[str, Any]:
    """The values of a kernel's parameters that are constants."""
    return {name: DTYPES.get(one, one) if isinstance(one, str) else one for name, one in kernel.constants.items()}


def _argument(argument: Argument) -> Any:
    if isinstance(argument, View):
        return TilePointer(argument.storage, TORCH[argument.dtype], argument.offset)
    if isinstance(argument, Descriptor):
        return descriptor(_argument(argument.view), argument.view.shape, argument.view.stride, argument.block)
    return argument.value


def _copied(memory: Memory, copies: int = 1) -> Memory:
    """The storages as they are now, once for each copy; inputs, which no kernel here stores to, are shared."""
    other = Memory()
    for id, storage in memory.storages.items():
        if storage.is_input:
            other.storages[id] = storage
        else:
            data = storage.typed(torch.uint8)
            other.storages[id] = one = copy.copy(storage)
            one.data, one._views = data.repeat(copies), {}
    return other


def _for_copies(value: Any, walk: KernelWalk) -> Any:
    if walk.copies == 1 or walk.programs == 1:
        return value

    def repeated(tile: Tensor) -> Tensor:
        is_own = tile.shape[0] == walk.programs
        return tile.repeat(walk.copies, *(1 for _ in tile.shape[1:])) if is_own else tile

    return mapped(value, repeated)


def has_effects(part: ast.AST, code: Code) -> bool:
    """Whether a statement or an expression may store something, or end the kernel."""
    ends = lambda node: isinstance(node, ast.Return) or isinstance(node, ast.Call) and _stores(called(node), code)
    return any(map(ends, parts_of(part)))


def _stores(name: str, code: Code) -> bool:
    own = code.functions.get(name)
    inside = [called(node) for node in parts_of(own)] if own is not None else []
    return any(one.rpartition(".")[2] in _EFFECTS for one in (name, *inside))


# --- the steps that are no launches, done at once in all copies of the memory -----------------------------------------


def view_of_all(memory: Memory, view: View, copies: int) -> Tensor:
    """A view in each of the copies, which are its first dimension; an input is the same in all of them."""
    storage = memory.storages[view.storage]
    flat = storage.typed(TORCH[view.dtype])
    each, rest = (0, 0) if storage.is_input else divmod(storage.data.numel() // copies, flat.dtype.itemsize)
    if rest and copies > 1:
        raise NotWalked("a storage of broken elements")
    return flat.as_strided((copies, *view.shape), (each, *view.stride), flat.storage_offset() + view.offset)


def run_step(step: Step, memory: Memory, copies: int, allow: Collection[str]) -> None:
    """Does a step that is no launch in all copies."""
    match step:
        case Allocate(storage=storage, nbytes=nbytes):
            memory.allocate(storage, nbytes * copies)
        case Fill(target=target, value=value):
            _to(memory, target, copies).copy_(torch.tensor(value))
        case Copy(target=target, origin=origin):
            _to(memory, target, copies).copy_(spread(view_of_all(memory, origin, copies), 1 + len(target.shape)))
        case Literal(target=target, values=values):
            _to(memory, target, copies).copy_(torch.tensor(values).view(target.shape))
        case Aten():
            _to(memory, step.outputs[0], copies).copy_(_computed(step, memory, copies, allow))


def _to(memory: Memory, target: View, copies: int) -> Tensor:
    if memory.storages[target.storage].is_input:
        raise NotWalked("a step that changes an input")
    return view_of_all(memory, target, copies)


def _computed(step: Aten, memory: Memory, copies: int, allow: Collection[str]) -> Tensor:
    def of_copy(number: int) -> Tensor:
        return operation(step, allow, lambda view: view_of_all(memory, view, copies)[number])()

    return torch.stack([of_copy(number) for number in range(copies)])
