"""The steps of a traced call, with its kernels walked as source: first as they are, then again and again from the first
launch of one of them on, with one node of its source swapped for another."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.budget import STEP, Budget, Meter, OverBudget
from gradekit.engine.host import DTYPES as TORCH
from gradekit.engine.host import compute, read, write, write_values
from gradekit.engine.kernel_facts import parsed
from gradekit.engine.memory import Memory, view_bytes
from gradekit.program import Allocate, Aten, Copy, Fill, Kernel, Launch, Literal, Program, Step, View, run_steps
from gradekit.program import Scalar as Number
from gradekit.screening.tile_memory import TileMemory
from gradekit.screening.tiles import DTYPES, NotWalked, TilePointer
from gradekit.screening.walk import Code, Names, Returned, Swap, Walk, Watched, bound
from gradekit.submission.parsed_source import ParsedSource, called

MOST_PROGRAMS = 4096
"""Of one launch."""

MOST_WORK = 60_000_000
"""Of one call, in the engine's units."""

WRONG = (NotWalked, OverBudget, ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""How a walk can fail: whatever it is, nothing is said."""

_EFFECTS = {"store", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg"}


class NoEffect(Exception):
    """A change leaves a statement's values as they were."""


def code_of(source: ParsedSource) -> Code:
    """What the kernels of a source may refer to."""
    constants: dict[str, Any] = {}
    alone = Walk(Code({}, constants), (1, 1, 1), TileMemory(Memory()), Meter(Budget()))
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and called(value).endswith("constexpr") and value.args:
                value = value.args[0]
            try:
                constants[node.targets[0].id] = alone.value(value, {})
            except WRONG:
                continue
    return Code({node.name: node for node in source.kernels}, constants)


@dataclass
class _Begun:
    """The first launch of a kernel: its step's number, the storages before it, and the names before each statement."""

    step: int
    memory: Memory
    watched: Watched = field(default_factory=Watched)
    names: list[Names] = field(default_factory=list)


class Replay:
    """A program on its inputs; `run` it once before anything is swapped.

    Args:
        program: a traced call of the source.
        inputs: its tensors.
        code: the source's kernels.
        allow: the torch operations that the assignment allows.
    """

    def __init__(self, program: Program, inputs: Sequence[Tensor], code: Code, allow: Collection[str]) -> None:
        self.program, self.code, self.allow = program, code, allow
        self._inputs = inputs
        self._steps = list(run_steps(program.steps))
        self.begun: dict[str, _Begun] = {}
        self.work = self.spent = 0
        self._settled: dict[str, int] = {}

    def run(self) -> list[Tensor | None]:
        """The results as the source is.

        Raises: one of `WRONG`, where it cannot be walked.
        """
        memory, meter = Memory(self.program.addresses), Meter(Budget(MOST_WORK))
        for view, tensor in zip(self.program.inputs, self._inputs, strict=True):
            memory.place_input(view.storage, view_bytes(tensor), "", None, 1)
        for number, step in enumerate(self._steps):
            if isinstance(step, Launch):
                name = self._kernel(step).name
                first = name not in self.begun
                if first:
                    self.begun[name] = _Begun(number, _copied(memory))
                self._launch(step, memory, meter, Swap(), self.begun[name] if first else None)
            else:
                self._host(step, memory)
        self.work = meter.work + STEP * len(self._steps)
        return self._results(memory)

    def changed(self, kernel: str, swap: Swap, statement: ast.stmt | None, work: int) -> tuple[list[Tensor | None], int]:
        """The results with a swap in a `kernel`, and the work that it took.

        Args:
            kernel: one that is launched.
            swap: what changes.
            statement: the statement of the kernel's body that the change is in; None where it is in a function that
                the kernel calls.
            work: the most that it may take.

        Raises:
            NoEffect: the values of the statement are as they were.
            One of `WRONG`: it cannot be walked, or goes out of bounds.
        """
        begun, meter = self.begun[kernel], Meter(Budget(work))
        memory = _copied(begun.memory)
        try:
            self._resume(begun, memory, meter, swap, statement)
            for step in self._steps[begun.step + 1 :]:
                if isinstance(step, Launch):
                    self._launch(step, memory, meter, replace(swap), None)
                else:
                    self._host(step, memory)
        finally:
            self.spent = meter.work + STEP * (2 + len(self._steps) - begun.step)
        return self._results(memory), self.spent

    def _resume(self, begun: _Begun, memory: Memory, meter: Meter, swap: Swap, statement: ast.stmt | None) -> None:
        step = self._steps[begun.step]
        assert isinstance(step, Launch)
        name = self._kernel(step).name
        body = self.code.functions[name].body
        number = body.index(statement) if statement is not None else 0
        settled = self._settled.get(name)
        if settled is None:
            settled = next((at for at, one in enumerate(body) if _has_effects(one, self.code)), len(body))
            self._settled[name] = settled
        at = min(number, settled, len(begun.names) - 1)
        walk = Walk(self.code, step.grid, TileMemory(memory), meter, replace(swap))
        names = dict(begun.names[at])
        try:
            for place in range(at, len(body)):
                walk.statement(body[place], names)
                if place == number < settled and statement is not None and place + 1 < len(begun.names):
                    if _same(names, begun.names[place + 1]):
                        raise NoEffect
        except Returned:
            pass

    # --- steps --------------------------------------------------------------------------------------------------------

    def _kernel(self, step: Launch) -> Kernel:
        return self.program.kernels[step.kernel]

    def _launch(self, step: Launch, memory: Memory, meter: Meter, swap: Swap, begun: _Begun | None) -> None:
        kernel = self._kernel(step)
        function = self.code.functions.get(kernel.name)
        if function is None or step.grid[0] * step.grid[1] * step.grid[2] > MOST_PROGRAMS:
            raise NotWalked("a kernel that is not seen, or too many programs")
        names = self._arguments(step, kernel, function)
        walk = Walk(self.code, step.grid, TileMemory(memory), meter, swap, begun.watched if begun else None)
        if not walk.count:
            return
        try:
            for statement in function.body:
                if begun is not None:
                    begun.names.append(dict(names))
                walk.statement(statement, names)
        except Returned:
            pass

    def _arguments(self, step: Launch, kernel: Kernel, function: ast.FunctionDef) -> Names:
        expected = parsed(kernel.ttir).entry.argument_names
        values = [_argument(argument) for argument in step.args]
        constants = {name: DTYPES.get(v, v) if isinstance(v, str) else v for name, v in kernel.constants.items()}
        return bound(function, [], constants | dict(zip(expected, values, strict=True)))

    def _host(self, step: Step, memory: Memory) -> None:
        match step:
            case Allocate(storage=storage, nbytes=nbytes):
                memory.allocate(storage, nbytes, "", None)
            case Fill(target=target, value=value):
                write(memory, target, torch.tensor(value), None)
            case Copy(target=target, origin=origin):
                write_values(memory, target, origin, None)
            case Literal(target=target, values=values):
                write(memory, target, torch.tensor(values).view(target.shape), None)
            case Aten():
                compute(memory, step, self.allow)

    def _results(self, memory: Memory) -> list[Tensor | None]:
        return [read(memory, one).clone() if isinstance(one, View) else None for one in self.program.results]


def _argument(argument: Any) -> Any:
    if isinstance(argument, View):
        return TilePointer(argument.storage, TORCH[argument.dtype], argument.offset)
    if not isinstance(argument, Number):
        raise NotWalked("a descriptor")
    return argument.value


def _copied(memory: Memory) -> Memory:
    """The storages as they are now; inputs, which no kernel here stores to, are shared."""
    other = Memory()
    for id, storage in memory.storages.items():
        if storage.is_input:
            other.storages[id] = storage
        else:
            other.storages[id] = one = copy.copy(storage)
            one.data, one._views = storage.data.clone(), {}
    return other


def _has_effects(statement: ast.stmt, code: Code) -> bool:
    """Whether a statement may store something, or end the kernel."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Return):
            return True
        name = called(node)
        if name.rpartition(".")[2] in _EFFECTS:
            return True
        if name in code.functions and any(called(n).rpartition(".")[2] in _EFFECTS for n in ast.walk(code.functions[name])):
            return True
    return False


def _same(names: Names, others: Names) -> bool:
    return names.keys() == others.keys() and all(_alike(value, others[name]) for name, value in names.items())


def _alike(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, TilePointer) and isinstance(other, TilePointer):
        return one.storage == other.storage and one.dtype == other.dtype and _alike(one.offset, other.offset)
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        both = isinstance(one, Tensor) and isinstance(other, Tensor)
        return both and one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return type(one) is type(other) and bool(one == other)
