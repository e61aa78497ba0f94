"""Runs a program on the CPU: host steps one after another, each launch for many programs of its grid at once.

A run first goes at full speed (`fast`). Where that finds anything that it cannot prove right, the run is done again
from the start with every lane examined (`checked`), and what is seen becomes findings. Both give the same results for
a program without findings.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.branch_coverage import Ways
from gradekit.engine.budget import LAUNCH, PARTS_OF_BUDGET, Budget, Limit, Meter, OverBudget, Unsupported
from gradekit.engine.checked import CheckedMemory
from gradekit.engine.conditions import USUAL, Conditions
from gradekit.engine.explain import Namer, explain, unwritten
from gradekit.engine.fast import FastMemory, Suspicion
from gradekit.engine.frame import LaunchContext
from gradekit.engine.host import ForbiddenOp, compute, is_whole, read, write
from gradekit.engine.kernel_facts import KernelFacts, facts, parsed
from gradekit.engine.launch import bind, run_programs
from gradekit.engine.memory import Memory, covered, everywhere, view_bytes
from gradekit.engine.observer import Observer
from gradekit.engine.promises import misaligned_arguments
from gradekit.engine.ttir import Module
from gradekit.findings import Cause, Finding
from gradekit.observations import Counters, Incident, Site, Traffic
from gradekit.program import (
    ITEMSIZE,
    Allocate,
    Aten,
    Choice,
    Copy,
    Descriptor,
    Fill,
    Kernel,
    Launch,
    Literal,
    Program,
    Scalar,
    Step,
    View,
    run_steps,
)


@dataclass
class Variant:
    """Other results of the call, under conditions that a card leaves open: `circumstance`, which begins a sentence."""

    circumstance: str
    results: list[Any]


@dataclass
class RunResult:
    """What came of a run: `results` in the order of Program.results, and what was seen on the way.

    `in_place` says that a launch loaded from what it stored to, `begins_anew` that elements which a kernel promises to
    be contiguous may have begun anew within a group (see promises.py). `variants` are results under other conditions
    that differ from these (see trials.py). `ways` is the branch coverage of its kernels.
    """

    results: list[Tensor | int | float | bool | str | None]
    findings: list[Finding]
    counters: Counters
    prints: list[str] = field(default_factory=list)
    in_place: bool = False
    variants: list[Variant] = field(default_factory=list)
    ways: Ways = field(default_factory=dict)
    begins_anew: bool = False


Reader = Callable[[Kernel], tuple[Module, KernelFacts]]
"""Gives the module that a launch of a kernel evaluates, and its facts."""


def as_compiled(kernel: Kernel) -> tuple[Module, KernelFacts]:
    """The kernel as its text has it."""
    return parsed(kernel.unaligned), facts(kernel.unaligned)


@dataclass(frozen=True)
class Setup:
    """What a run is given: a program, and CPU tensors of the dtypes, shapes, strides and offsets of its inputs.

    option: which configuration every autotuned launch takes, modulo how many it has.
    allow: torch operations ("aten::sum") that the assignment allows besides allocation, copies and fills.
    names: what the student calls the inputs, for findings.
    conditions: what a card would leave open.
    observer: sees each operation of the launches that it asks for.
    reader: gives other modules for kernels than their own.
    programs: of the launches whose numbers it has, those programs alone run. What the others would have written is
        missing in the results, and no finding; an `Owners` (observer.py) tells what those that ran wrote.
    """

    program: Program
    inputs: Sequence[Tensor]
    option: int = 0
    allow: Collection[str] = ()
    names: Sequence[str] = ()
    conditions: Conditions = USUAL
    observer: Observer | None = None
    reader: Reader = as_compiled
    programs: Mapping[int, Sequence[int]] | None = None


def run(program: Program, inputs: Sequence[Tensor], *, budget: Budget | None = None, **given: Any) -> RunResult:
    """As `run_setup`, of a Setup with what is `given`."""
    return run_setup(Setup(program, inputs, **given), budget)


def run_setup(setup: Setup, budget: Budget | None = None) -> RunResult:
    """Runs a program once. Raises Unsupported for an operation that the engine does not know, OverBudget where `budget`
    is used up or a program waits for one left out, and ForbiddenOp for torch's computations that are not allowed."""
    meter = Meter(budget := budget or Budget())
    found = _attempt(setup, meter, careful=False)
    if isinstance(found, Suspicion):
        found = _attempt(setup, meter, careful=True)
    elif isinstance(found, OverBudget) and found.resource == "work":  # a loop may run to what lies in a gap
        seen = _attempt(setup, Meter(Budget(budget.work // PARTS_OF_BUDGET, budget.bytes)), careful=True)
        found = seen if isinstance(seen, OverBudget) and seen.findings else found
    if isinstance(found, Exception):
        raise found
    return found


def _attempt(setup: Setup, meter: Meter, careful: bool) -> RunResult | Exception:
    """What comes of a run, or the error that stopped it: without a traceback, which would keep all tensors."""
    execution = _Execution(setup, meter, careful)
    try:
        return execution.run()
    except (ForbiddenOp, OverBudget, Suspicion, Unsupported) as error:
        if isinstance(error, OverBudget):
            error.findings = execution.explained()
        error.__context__ = None
        return error.with_traceback(None)


def option_count(program: Program) -> int:
    """How many runs it takes to see every configuration of every autotuned launch."""
    return max((len(choice.options) for choice in program.choices()), default=1)


class _Execution:
    def __init__(self, setup: Setup, meter: Meter, careful: bool) -> None:
        self.setup, self.program, self.meter, self.careful = setup, setup.program, meter, careful
        self.memory, self.traffic = Memory(self.program.addresses, self.program.folds), Traffic()
        self.incidents: list[Incident] = []
        meter.incidents = self.incidents
        self.prints, self.counters = list[str](), Counters()
        self.grids: list[tuple[int, int, int]] = []
        self.in_place = self.begins_anew = False
        self.ways: Ways = {}
        meter.flops = 0

    def run(self) -> RunResult:
        """Runs every step of the program; without what torch keeps for gradients, where no observer keeps tensors."""
        self._check_size()
        earlier = self.setup.conditions.earlier
        inputs = earlier() if earlier else self.setup.inputs
        with torch.inference_mode(self.setup.observer is None):
            self._place(inputs)
            for step in self._steps():
                self._step(step)
        for storage in self.memory.storages.values():  # so that results are tensors like others
            storage.data, storage._views = view_bytes(storage.data), {}
        self._uses = Counter(one.storage for one in self.program.results if isinstance(one, View))
        results = [self._result(result) for result in self.program.results]
        findings = self.explained()
        if self.setup.programs is None:
            findings += unwritten(self.program, self.memory, Namer(self.program, self.setup.names))
        counters, meter = self.counters, self.meter
        counters.bytes_loaded, counters.bytes_stored = self.traffic.loaded, self.traffic.stored
        counters.flops, counters.work, counters.bytes_allocated = meter.flops, meter.work, self.memory.allocated
        return RunResult(
            results, findings, counters, self.prints, self.in_place, ways=self.ways, begins_anew=self.begins_anew
        )

    def explained(self) -> list[Finding]:
        """What the incidents so far were, in the student's words."""
        return explain(self.incidents, Namer(self.program, self.setup.names), self.grids)

    def _check_size(self) -> None:
        """Raises OverBudget before anything is made, where the call allocates and returns more than it may."""
        total, line = 0, None
        for step in run_steps(self.program.steps, self.setup.option):
            if isinstance(step, Allocate):
                total, line = total + step.nbytes, step.source.line if step.source else None
                self.meter.check_bytes(total, line)
        views = [result for result in self.program.results if isinstance(result, View)]
        self.meter.check_bytes(total + sum(view.numel * ITEMSIZE[view.dtype] for view in views), line)

    def _steps(self) -> Iterator[Step]:
        """The steps in order; where the autotuner is tuning, each choice is preceded by all of its options, unless it
        has a first call among them, with the tuner's own hooks."""
        conditions = self.setup.conditions
        for step in self._of_calls():
            if conditions.tuning and isinstance(step, Choice) and step.tuning is None:
                for option in step.options:
                    yield from run_steps(option)
            yield from run_steps([step], self.setup.option)

    def _of_calls(self) -> Iterator[Step]:
        """The steps of the call; where another comes before it, first those of that, whose incidents are dropped."""
        yield from self.program.steps
        if self.setup.conditions.earlier:
            self._place(self.setup.inputs)
            self.incidents.clear()
            yield from self.program.steps[self.program.kept :]

    def _place(self, inputs: Sequence[Tensor]) -> None:
        groups: dict[int, list[tuple[View, Tensor]]] = {}
        for view, tensor in zip(self.program.inputs, inputs, strict=True):
            groups.setdefault(view.storage, []).append((view, tensor))
        for id, tensors in groups.items():
            data = view_bytes(tensors[0][1])
            itemsize = min(ITEMSIZE[view.dtype] for view, _ in tensors)
            self.memory.place_input(id, data, _seen(data, itemsize, tensors), itemsize)

    def _result(self, result: View | Scalar | Descriptor) -> Any:
        if isinstance(result, View):
            storage, found = self.memory.storages[result.storage], read(self.memory, result)
            kept = is_whole(storage, result) and not storage.is_input and self._uses[result.storage] == 1
            return found if kept else found.clone()
        return result.value if isinstance(result, Scalar) else None

    # --- host steps --------------------------------------------------------------------------------------------------

    def _step(self, step: Step) -> None:
        line = step.source.line if step.source else None
        match step:
            case Allocate(storage=storage, nbytes=nbytes):
                self._allocate(storage, nbytes)
            case Fill(target=target, value=value):
                dtype = torch.float64 if isinstance(value, float) else None  # with all its bits, whatever it becomes
                self._write(target, torch.tensor(value, dtype=dtype), line)
            case Copy(target=target, origin=origin):
                self._write(target, origin, line)
            case Literal(target=target, values=values):
                self._write(target, torch.tensor(values).view(target.shape), line)
            case Aten():
                self.incidents += compute(self.memory, step, self.setup.allow)
            case Launch():
                self._launch(step, line)

    def _allocate(self, storage: int, nbytes: int) -> None:
        self.meter.spend(1, nbytes)
        self.memory.allocate(storage, nbytes)
        self.counters.allocations += 1

    def _write(self, target: View, value: Tensor | View, line: int | None) -> None:
        self.meter.spend(1, target.numel)
        if isinstance(value, View):
            self.traffic.loaded += value.numel * ITEMSIZE[value.dtype]
        self.incidents += write(self.memory, target, value, line)
        self.traffic.stored += target.numel * ITEMSIZE[target.dtype]

    # --- launches ----------------------------------------------------------------------------------------------------

    def _launch(self, step: Launch, line: int | None) -> None:
        kernel = self.program.kernels[step.kernel]
        module, known = self.setup.reader(kernel)
        total = math.prod(step.grid)
        if total > Limit.PROGRAMS:
            raise OverBudget("programs", Limit.PROGRAMS, line)
        self.meter.spend(LAUNCH)
        if known.narrow and total > 1 and not self.careful:
            raise Suspicion("an atomic that keeps no other program apart")
        launch = self.counters.launches
        self.counters.launches += 1
        self.grids.append(step.grid)
        waits = kernel.atomics_wait
        memory = self._checked(total, known.volatile, waits, line) if self.careful else FastMemory(self.traffic)
        context = LaunchContext(
            module, known, step.grid, memory, self.meter, launch, kernel.name, self.program.path,
            self.prints, self.incidents, self.setup.conditions, ways=self.ways,
        )  # fmt: skip
        for name in misaligned_arguments(kernel.ttir, step.args):
            promise = f"that {name} is a multiple of 16, as it was when the kernel was compiled"
            site = Site(line, launch, kernel.name)
            self.incidents.append(Incident(Cause.BROKEN_PROMISE, site, None, 1, [], [0], total, promise))
        arguments = bind(module.entry, step.args, self.memory)
        if self.setup.observer is not None:
            context.observe = self.setup.observer.launch(context, self.memory)
        run_programs(context, arguments, (self.setup.programs or {}).get(launch))
        self.in_place |= memory.in_place
        self.begins_anew |= context.begins_anew

    def _checked(self, total: int, stores_publish: bool, atomics_wait: bool, line: int | None) -> CheckedMemory:
        held = 0

        def claim(nbytes: int) -> None:
            nonlocal held
            held += nbytes
            self.meter.check_bytes(held, line)

        storages = self.memory.at_gaps()
        return CheckedMemory(self.traffic, self.incidents, storages, total, stores_publish, atomics_wait, claim)


def _seen(data: Tensor, itemsize: int, tensors: Sequence[tuple[View, Tensor]]) -> Tensor | None:
    """Which units of `itemsize` bytes any of the views of a storage has; None for all."""
    seen: Tensor | None = None
    for view, _ in tensors:
        size = ITEMSIZE[view.dtype]
        mine = covered(data.numel(), size, view.shape, view.stride, view.offset)
        if mine is None:
            return None
        mine = mine.repeat_interleave(size // itemsize)
        seen = mine if seen is None else seen | mine
    return None if seen is None or everywhere(seen) else seen
