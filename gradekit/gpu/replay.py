"""A program as a row of actions on the device: what the worker runs, checks and times.

    replay = Replay(program, machine, allow=("aten::sum",))
    ran = replay.run(inputs)            # once, carefully: red zones, poison, the card awaited after each step
    bound = replay.bind(inputs)         # bound() does it again and again; nothing is decided or allocated in a call

Worker side; knows nothing of cards (`machine` does) and of expected values.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gradekit.engine.host import operation
from gradekit.engine.memory import view_bytes
from gradekit.gpu.device_memory import DeviceMemory, RedZoneWrite
from gradekit.gpu.faults import CardFault, fault_of
from gradekit.program import (
    Allocate,
    Argument,
    Aten,
    Copy,
    Fill,
    Kernel,
    Launch,
    Literal,
    Program,
    ProgramError,
    Scalar,
    Step,
    View,
    run_steps,
    storages_of,
)

if TYPE_CHECKING:
    from gradekit.gpu.cpu_emulation import CpuMachine
    from gradekit.gpu.cuda_machine import CudaMachine

    Machine = CudaMachine | CpuMachine

Call = Callable[[], Any]
Watch = Callable[[str, str, int | None], None]
"""Is told what is done now ("compile", "run", "time"), by which kernel and for which line, before it begins."""


@dataclass(frozen=True)
class Action:
    """One thing that the host asks of the device: a launch of `kernel`, or a step of torch's ("" then)."""

    call: Call
    kernel: str = ""
    line: int | None = None


@dataclass(frozen=True)
class CaughtWrite:
    """A write, and the launch that was seen to do it."""

    write: RedZoneWrite
    launch: int
    kernel: str
    line: int | None


@dataclass(frozen=True)
class ReplayResult:
    """What one careful run gave: its tensors (None for other results), and stores into red zones."""

    results: list[Tensor | None]
    caught: list[CaughtWrite]


class BoundProgram:
    """A program with its memory: calling it runs all actions and gives the result tensors, the same ones every time."""

    def __init__(self, actions: Sequence[Action], memory: DeviceMemory, results: Sequence[Argument]) -> None:
        self.actions, self.memory = tuple(actions), memory
        self.results = [memory.view(result) if isinstance(result, View) else None for result in results]
        self._calls = tuple(action.call for action in actions)

    def __call__(self) -> list[Tensor | None]:
        for call in self._calls:
            call()
        return self.results


class Replay:
    """One program on one machine. `allow` names the torch operations that it may compute with."""

    def __init__(self, program: Program, machine: Machine, allow: Collection[str] = ()) -> None:
        self.program, self.machine, self.allow = program, machine, allow
        self._spare: dict[tuple[int, int], Tensor] = {}

    def run(
        self, inputs: Sequence[Tensor], option: int = 0, watch: Watch = lambda what, kernel, line: None
    ) -> ReplayResult:
        """One run on copies of the inputs, with that option (modulo its number) of each choice. Raises CardFault."""
        chosen = tuple(option % len(choice.options) for choice in self.program.choices())
        watch("compile", self.only_kernel(chosen), None)
        bound = self._bound([_with_storage(t, self.machine.device) for t in inputs], chosen, careful=True)
        return ReplayResult(bound.results, self.awaited(bound, watch))

    def awaited(self, bound: BoundProgram, watch: Watch) -> list[CaughtWrite]:
        """One call of `bound` in which the device is awaited after each action; the stores into red zones. Raises
        CardFault with the kernel and the line of the action that went wrong."""
        launches = 0
        caught: list[CaughtWrite] = []
        for action in bound.actions:
            watch("run", action.kernel, action.line)
            self._do(action)
            caught += [CaughtWrite(t, launches, action.kernel, action.line) for t in bound.memory.red_zone_writes()]
            launches += bool(action.kernel)
        return caught

    def bind(self, inputs: Sequence[Tensor], chosen: Sequence[int] = ()) -> BoundProgram:
        """The program on tensors of the device, taking option `chosen[k]` of the k-th choice (else 0). Memory that is
        no result is shared by all that this replay binds: their calls follow one another on one stream. Raises
        CardFault where a kernel cannot be compiled, or memory is short."""
        return self._bound(inputs, chosen, careful=False)

    def compile(self, chosen: Sequence[int] = ()) -> None:
        """Makes the kernels of these options ready. Raises CardFault of the first that cannot be."""
        launches = [step for step in run_steps(self.program.steps, chosen) if isinstance(step, Launch)]
        faults = self.machine.compile([self._kernel(launch) for launch in launches])
        for fault in faults.values():
            lines = [_line(launch) for launch in launches if self._kernel(launch).name == fault.kernel]
            raise CardFault(fault.kind, fault.message, fault.kernel, next(iter(lines), None))

    # --- planning ----------------------------------------------------------------------------------------------------

    def _bound(self, inputs: Sequence[Tensor], chosen: Sequence[int], *, careful: bool) -> BoundProgram:
        self.compile(chosen)
        memory = DeviceMemory(self.machine.device, self.program.addresses, self.machine.address, careful=careful)
        for number, tensor in _by_storage(self.program, inputs).items():
            memory.put(number, view_bytes(tensor))
        steps = list(run_steps(self.program.steps, chosen))
        kept = {result.storage for result in self.program.results if isinstance(result, View)}
        for step in steps:
            self._allocate(step, memory, kept)
        actions = [self._action(step, memory) for step in steps if not isinstance(step, Allocate)]
        return _sound(lambda: BoundProgram(actions, memory, self.program.results))

    def _allocate(self, step: Step, memory: DeviceMemory, kept: set[int]) -> None:
        if not isinstance(step, Allocate):
            return
        key = (step.storage, step.nbytes)
        if key in self._spare and not memory.careful:
            memory.take(step.storage, self._spare[key])
            return
        _sound(lambda: memory.allocate(step.storage, step.nbytes), "", _line(step))
        if step.storage not in kept and not memory.careful:
            self._spare[key] = memory.storages[step.storage]

    def _action(self, step: Step, memory: DeviceMemory) -> Action:
        kernel = self._kernel(step).name if isinstance(step, Launch) else ""
        call = _sound(lambda: self._call(step, memory), kernel, _line(step))
        return Action(call, kernel, _line(step))

    def _call(self, step: Step, memory: DeviceMemory) -> Call:
        match step:
            case Fill(target=target, value=value):
                return functools.partial(memory.view(target).fill_, value)
            case Copy(target=target, origin=origin):
                return functools.partial(memory.view(target).copy_, memory.view(origin))
            case Literal(target=target, values=values):
                numbers = torch.tensor([memory.relocated(value) for value in values])
                constant = numbers.view(target.shape).to(self.machine.device)
                return functools.partial(memory.view(target).copy_, constant)
            case Aten():
                return _computed(step, self.allow, memory)
            case Launch(grid=grid, args=args):
                moved = [replace(a, value=memory.relocated(a.value)) if isinstance(a, Scalar) else a for a in args]
                return self.machine.launch(self._kernel(step), grid, moved, memory)
        raise ProgramError(f"a step of the kind {type(step).__name__}")

    def only_kernel(self, chosen: Sequence[int]) -> str:
        """The name of the kernel, where all launches are of one."""
        names = {self._kernel(step).name for step in run_steps(self.program.steps, chosen) if isinstance(step, Launch)}
        return names.pop() if len(names) == 1 else ""

    def _kernel(self, launch: Launch) -> Kernel:
        if launch.kernel not in self.program.kernels:
            raise CardFault("crash", f"the program has no kernel {launch.kernel!r}", line=_line(launch))
        return self.program.kernels[launch.kernel]

    def _do(self, action: Action) -> None:
        try:
            action.call()
            self.machine.synchronize()
        except Exception as error:
            fault = fault_of(error, action.kernel, action.line)
            raise CardFault(fault.kind, fault.message, action.kernel, action.line) from error


def _sound(action: Callable[[], Any], kernel: str = "", line: int | None = None) -> Any:
    try:
        return action()
    except Exception as error:
        raise fault_of(error, kernel, line) from error


def _line(step: Step) -> int | None:
    return step.source.line if step.source else None


def _computed(step: Aten, allow: Collection[str], memory: DeviceMemory) -> Call:
    compute, target = operation(step, allow, memory.view), memory.view(step.outputs[0])
    if memory.careful or step.op.endswith("_"):
        return lambda: target.copy_(compute())
    return _without_copy(compute, target)


def _without_copy(compute: Callable[..., Tensor], target: Tensor) -> Call:
    """torch writes to `target` itself where it can, as it does in a direct call; else its result is copied."""
    assert isinstance(compute, functools.partial)
    whole = compute.func in (torch.sum, torch.mean) and len(compute.args) == 1 and not compute.keywords
    direct = functools.partial(compute, dim=tuple(range(compute.args[0].dim()))) if whole else compute
    with contextlib.suppress(TypeError):  # where it has no such form
        sample = compute()
        if (sample.shape, sample.dtype) == (target.shape, target.dtype):
            direct(out=target)
            return functools.partial(direct, out=target)
    return lambda: target.copy_(compute())


# --- what a program is, before anything runs -------------------------------------------------------------------------


def peak_bytes(steps: Sequence[Step], results: Sequence[Argument]) -> int:
    """The most bytes allocated at a time, if each is freed after its last use: a program does not say when."""
    last = {number: position for position, step in enumerate(steps) for number in storages_of(step)}
    last |= {number: len(steps) for result in results for number in storages_of(result)}
    alive: dict[int, int] = {}
    peak = 0
    for position, step in enumerate(steps):
        if isinstance(step, Allocate):
            alive[step.storage] = step.nbytes
            peak = max(peak, sum(alive.values()))
        alive = {number: nbytes for number, nbytes in alive.items() if last[number] > position}
    return peak


def touched_bytes(program: Program) -> int:
    """Bytes of the inputs and of everything that is allocated."""
    allocated = sum(step.nbytes for step in run_steps(program.steps) if isinstance(step, Allocate))
    return sum(program.storages.values()) + allocated


# --- tensors and their storages --------------------------------------------------------------------------------------


def _with_storage(tensor: Tensor, device: torch.device) -> Tensor:
    if tensor.device == device:
        return tensor
    whole = view_bytes(tensor).to(device)
    empty = torch.empty(0, dtype=tensor.dtype, device=device)
    return empty.set_(whole.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


def _by_storage(program: Program, inputs: Sequence[Tensor]) -> dict[int, Tensor]:
    """A tensor for each storage of the inputs. Raises CardFault where they do not fit the program's inputs."""
    if len(inputs) != len(program.inputs):
        raise CardFault("crash", f"the program takes {len(program.inputs)} tensors, {len(inputs)} were given")
    for view, tensor in zip(program.inputs, inputs, strict=True):
        _fits(view, tensor)
    return {view.storage: tensor for view, tensor in reversed(list(zip(program.inputs, inputs, strict=True)))}


def _fits(view: View, tensor: Tensor) -> None:
    given = (str(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset()))
    if given != (f"torch.{view.dtype}", view.shape, view.stride, view.offset):
        raise CardFault("crash", f"an input is laid out as {given} where the program was made for {view}")
