"""One launch: the programs of a grid, a chunk of them at a time, through a kernel's entry."""

import collections
import functools
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from gradekit.engine import libdevice, ops_arith, ops_effects, ops_memory, ops_reduce, ops_tile  # noqa: F401
from gradekit.engine.blocks import begin_block, compile_function, finish_block
from gradekit.engine.budget import Limit
from gradekit.engine.conditions import Order
from gradekit.engine.control import call
from gradekit.engine.frame import PROGRAM, Frame, LaunchContext, Scope, dtype_of, itemsize_of
from gradekit.engine.kernel_facts import KernelFacts, meets_others
from gradekit.engine.memory import Memory
from gradekit.engine.ttir import Function, Type
from gradekit.engine.values import Affine, Pointer, TensorDescriptor, constant, wrap
from gradekit.program import ITEMSIZE, Descriptor, Scalar, View


def run_programs(context: LaunchContext, arguments: Sequence[Any], programs: Sequence[int] | None = None) -> None:
    """Runs the launch's programs, or those alone with these linear ids; `arguments` are the values of its kernel."""
    if programs is not None:
        parts = torch.tensor(programs, dtype=torch.int64).split(programs_at_once(context.facts))
        _run(context, arguments, ((ids, ids.numel()) for ids in parts))
        context.memory.finish()
        return
    context.meter.check_bytes(context.facts.peak)
    if context.facts.waits and 1 < math.prod(context.grid) <= Limit.IN_TURNS:
        _run_in_turns(context, arguments)
    elif context.facts.waits:  # too many to take turns come in order, for each may wait for those before it
        for body in _bodies(context, arguments, Order.ASCENDING):
            body()
    else:
        order = context.conditions.order
        apart = context.facts.mixed and order is not Order.ASCENDING  # in a chunk, one branch runs before the other
        _run(context, arguments, chunks(context.grid, 1 if apart else programs_at_once(context.facts), order))
    context.memory.finish()


def _run_in_turns(context: LaunchContext, arguments: Sequence[Any]) -> None:
    """Programs that wait for each other: one after another where they can, or each as far as its next atomic."""
    order = context.conditions.order
    bodies = list(_bodies(context, arguments, order))
    turns = Turns(bodies, patience=0 if order is Order.SHUFFLED else Limit.PATIENCE)
    context.pause = turns.pause
    turns.run()


def _bodies(context: LaunchContext, arguments: Sequence[Any], order: Order) -> Iterator[Callable[[], None]]:
    """What runs each program of the launch, one by one but for what they do before they can meet."""
    together = max(programs_that_fit(context.facts), 1) if head_length(context.module.entry) else 1
    for ids, count in chunks(context.grid, together, order):
        if together == 1:
            yield functools.partial(_run, context, arguments, [(ids, 1)])
        else:
            yield from _with_head(context, ids, count, arguments)


def _run(context: LaunchContext, arguments: Sequence[Any], parts: Iterable[tuple[Any, int]]) -> None:
    """Runs programs a part at a time, given by ids and count: in the frame of those before, where they are as many."""
    frame = Frame(context, 0)
    for ids, count in parts:
        again = frame.count == count
        frame = frame if again else Frame(context, count)
        frame.values[PROGRAM] = ids
        call(frame, context.module.entry, arguments, again)


# --- which programs are evaluated together, and in which order --------------------------------------------------------


def chunks(grid: tuple[int, int, int], size: int, order: Order = Order.ASCENDING) -> Iterator[tuple[Any, int]]:
    """The ids of programs that run together, and how many; ascending, inside one row of the grid where it is long."""
    total = math.prod(grid)
    if order is Order.SHUFFLED and total <= Limit.SHUFFLED:
        ids = torch.randperm(total, generator=torch.Generator().manual_seed(total))
        yield from ((part, part.numel()) for part in ids.split(size))
        return
    for first, count in _runs(grid, size):
        yield (_ids(first, count, 1) if order is Order.ASCENDING else _ids(total - 1 - first, count, -1)), count


def _ids(first: int, count: int, step: int) -> int | Affine:
    """So many ids along the program axis."""
    ends = first, first + step * (count - 1)
    return first if count == 1 else Affine(first, (step,), min(ends), max(ends))


def _runs(grid: tuple[int, int, int], size: int) -> Iterator[tuple[int, int]]:
    width, total = grid[0], math.prod(grid)
    if 1 < width and width * Limit.FEW_ROWS >= size:
        for row in range(0, total, width):
            yield from ((row + x, min(size, width - x)) for x in range(0, width, size))
        return
    size = max(size // max(width, 1), 1) * width
    yield from ((first, min(size, total - first)) for first in range(0, total, size))


def programs_at_once(kernel: KernelFacts) -> int:
    """How many programs of a kernel are evaluated together; one at a time where they may wait for each other, and never
    one alone where atomics order them: what lies between the atomics of two programs shows only if they overlap. Where
    they read what others write meanwhile, they come one by one, for together all take their branches in one order."""
    if kernel.waits or kernel.volatile:
        return 1
    return max(programs_that_fit(kernel), 2 if kernel.ordered else 1)


def programs_that_fit(kernel: KernelFacts) -> int:
    """How many programs of a kernel can be evaluated together, by the size of their tiles; 0 where none can."""
    return min(Limit.LANES // kernel.tile, Limit.LIVE_BYTES // max(kernel.peak, 1))


# --- arguments --------------------------------------------------------------------------------------------------------


def bind(function: Function, arguments: Sequence[View | Scalar | Descriptor], memory: Memory) -> list[Any]:
    """The values of a kernel's TTIR arguments; a host-side descriptor fills those that Triton expands it to."""
    types = list(function.argument_types)
    values: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Descriptor):
            values += _descriptor(argument, memory)
            if len(types) - len(values) < 0 or types[len(values) - 1].element == "tensordesc":
                del values[-2 * len(argument.block) :]
        else:
            values.append(_argument(argument, types[len(values)], memory))
    if len(values) != len(types):
        raise ValueError(f"{function.name} takes {len(types)} arguments, the launch has {len(values)}")
    return values


def _argument(argument: View | Scalar, type: Type, memory: Memory) -> Any:
    if isinstance(argument, View):
        return _pointer(argument, itemsize_of(type.pointee) if type.pointee else 1, memory)
    value = argument.value
    if type.element == "i1":
        return bool(value)
    if type.element.startswith(("f", "bf")):
        return constant(float(value), dtype_of(type), 1)  # type: ignore[arg-type]
    return wrap(int(value), int(type.element[1:]))  # type: ignore[arg-type]


def _pointer(view: View, itemsize: int, memory: Memory) -> Pointer:
    offset = view.offset * ITEMSIZE[view.dtype]
    return Pointer(memory.storages[view.storage], offset // itemsize, itemsize)


def _descriptor(argument: Descriptor, memory: Memory) -> list[Any]:
    view = argument.view
    base = _pointer(view, ITEMSIZE[view.dtype], memory)
    described = TensorDescriptor(base, view.shape, view.stride, argument.block, argument.padding)
    return [described, *view.shape, *view.stride]


# --- programs that wait for each other: one at a time, each in a thread of its own, they take turns at their atomics --


class _Abandoned(Exception):
    """Another program has failed."""


class Turns:
    """Runs `bodies` one at a time, the first alive; who calls `pause` more often than `patience` lets another on."""

    def __init__(self, bodies: Sequence[Callable[[], None]], patience: int) -> None:
        self._bodies, self._patience = bodies, patience
        self._batons = [threading.Semaphore(0) for _ in bodies]
        self._stopped = threading.Semaphore(0)
        self._alive = collections.deque(range(len(bodies)))
        self._paused, self._inference = 0, torch.is_inference_mode_enabled()
        self._error: BaseException | None = None

    def run(self) -> None:
        """Runs all bodies to their ends; raises what the first of them raised that failed."""
        threads: dict[int, threading.Thread] = {}
        while self._alive:
            number, self._paused = self._alive[0], 0
            if number in threads:
                self._batons[number].release()
            elif self._error is None:
                threads[number] = threading.Thread(target=self._work, args=(number,), daemon=True)
                threads[number].start()
            else:
                self._alive.popleft()
                continue
            self._stopped.acquire()
        for thread in threads.values():
            thread.join()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Called by the body that runs, where another may have to go on before it can."""
        self._paused += 1
        if self._paused <= self._patience or len(self._alive) == 1:
            return
        mine = self._alive[0]
        self._alive.rotate(-1)
        self._stopped.release()
        self._batons[mine].acquire()
        if self._error is not None:
            raise _Abandoned

    def _work(self, number: int) -> None:
        try:
            with torch.inference_mode(self._inference):
                self._bodies[number]()
        except _Abandoned:
            pass
        except BaseException as error:  # noqa: BLE001  # `run` raises it, in the thread that asked for this
            self._error = error
        self._alive.popleft()
        self._stopped.release()


# --- what they do before they can meet --------------------------------------------------------------------------------


def _with_head(context: LaunchContext, ids: Any, count: int, arguments: Sequence[Any]) -> Iterator[Callable[[], None]]:
    """What runs each of the `count` programs with the linear `ids`. What they do before they can meet another is
    evaluated for all of them together when the first of them begins, which is as legal as one after another."""
    entry = context.module.entry
    block, begun = entry.body.blocks[0], head_length(entry)

    @functools.cache
    def head() -> tuple[Scope, int]:
        frame = Frame(context, count)
        frame.values[PROGRAM] = ids
        for names in (entry.arguments, block.arguments):
            frame.values.update(zip(names, arguments, strict=False))
        made = begin_block(frame, block, begun)
        return frame.values, made

    def go_on(position: int) -> None:
        values, made = head()
        finish_block(Frame(context, 1, Scope(values, torch.tensor([position]))), block, begun, made)

    return (functools.partial(go_on, position) for position in range(count))


def head_length(function: Function) -> int:
    """How many of a kernel's evaluated steps are its head; 0 where it branches between blocks, or has none."""
    body = function.body
    if len(body.blocks) != 1:
        return 0
    compile_function(function)
    steps = body.blocks[0].compiled.steps
    return next((number for number, (op, *_) in enumerate(steps) if meets_others(op)), 0)
