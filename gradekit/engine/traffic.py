"""What a program moves and computes, counted on a sample of each launch's programs: for sizes too large to run here.

The engine evaluates the sampled programs as ever, but their memory holds nothing: a load answers with zeros, a store is
counted and dropped. Only inputs whose values are given (indices, lengths) are read. Grids are sampled in equal strata,
one program from each, and scaled up; a grid of no more programs than the sample is counted exactly.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from gradekit.engine.atomics import Update
from gradekit.engine.budget import Budget, Limit, Meter
from gradekit.engine.frame import LaunchContext
from gradekit.engine.kernel_facts import facts, parsed
from gradekit.engine.lanes import Access, LaunchMemory
from gradekit.engine.launch import bind, run_programs
from gradekit.engine.memory import Storage, view_bytes
from gradekit.engine.values import Affine, Pointer, Value, dense
from gradekit.observations import Traffic
from gradekit.program import ADDRESS_GAP, ITEMSIZE, Allocate, Launch, Program, Step, View, reads, run_steps, writes


@dataclass
class Counted:
    """Bytes that active lanes load and store, and floating-point operations; `exact` unless a grid was sampled.

    `unwritten` are lines that read memory which nothing has written: they see what an earlier call left behind.
    """

    bytes_loaded: float = 0.0
    bytes_stored: float = 0.0
    flops: float = 0.0
    launches: int = 0
    exact: bool = True
    unwritten: list[int | None] = field(default_factory=list)

    @property
    def bytes_moved(self) -> float:
        """Bytes that the kernels and copies ask for, whether or not a cache has them."""
        return self.bytes_loaded + self.bytes_stored


def count(
    program: Program,
    inputs: Sequence[Tensor | None] = (),
    *,
    chosen: int | Sequence[int] = 0,
    budget: Budget | None = None,
) -> Counted:
    """What a run of `program` moves and computes in which choices take the options `chosen` (see `run_steps`). `inputs`
    are values for those inputs on which loops or addresses depend; None (or nothing at all) reads as zeros. Raises
    Unsupported where the engine does not know an operation, and OverBudget where the work of `budget` is used up."""
    return _Counter(program, chosen, Meter(budget or Budget())).run(inputs)


def least_bytes(program: Program) -> int:
    """The traffic of reading every element of the inputs once, whoever shares it, and writing every result once."""
    views = [*dict.fromkeys(program.inputs), *(r for r in program.results if isinstance(r, View))]
    return sum(_distinct(view) * ITEMSIZE[view.dtype] for view in views)


def _distinct(view: View) -> int:
    """How many elements of memory a view has: a stride of 0 repeats one."""
    return math.prod(size if step or size == 0 else 1 for size, step in zip(view.shape, view.stride, strict=True))


@dataclass
class _Counter:
    program: Program
    chosen: int | Sequence[int]
    meter: Meter
    storages: dict[int, Storage] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    counted: Counted = field(default_factory=Counted)
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def run(self, inputs: Sequence[Tensor | None]) -> Counted:
        """Counts every step of the program."""
        given = [*inputs, *[None] * (len(self.program.inputs) - len(inputs))]
        for view, tensor in zip(self.program.inputs, given, strict=True):
            self._place(view.storage, tensor)
        for step in run_steps(self.program.steps, self.chosen):
            self._step(step)
        return self.counted

    def _place(self, id: int, tensor: Tensor | None) -> None:
        data = torch.empty(0, dtype=torch.uint8) if tensor is None else view_bytes(tensor)
        address = self.program.addresses.get(id, (id + 1) * ADDRESS_GAP)
        self.storages[id] = Storage(id, data, address, is_input=id in self.program.storages)
        if id in self.program.storages:
            self.written.add(id)

    def _step(self, step: Step) -> None:
        if isinstance(step, Allocate):
            self._place(step.storage, None)
        elif isinstance(step, Launch):
            self._launch(step)
        else:
            self.counted.bytes_loaded += sum(view.numel * ITEMSIZE[view.dtype] for view in reads(step))
            self.counted.bytes_stored += sum(view.numel * ITEMSIZE[view.dtype] for view in writes(step))
            self.written.update(view.storage for view in writes(step))

    def _launch(self, step: Launch) -> None:
        kernel = self.program.kernels[step.kernel]
        module = parsed(kernel.unaligned)
        total = math.prod(step.grid)
        chosen = strata(total, Limit.SAMPLE, self.chance)
        traffic, before = Traffic(), self.meter.flops
        memory = CountingMemory(traffic, self.written, self.counted.unwritten)
        context = LaunchContext(
            module, facts(kernel.unaligned), step.grid, memory, self.meter, self.counted.launches, kernel.name,
            self.program.path
        )  # fmt: skip
        arguments = bind(module.entry, step.args, self)  # type: ignore[arg-type]  # it has `storages`, which is all
        run_programs(context, arguments, chosen)
        scale = total / max(len(chosen), 1)
        self.counted.launches += 1
        self.counted.exact &= scale == 1
        self.counted.bytes_loaded += traffic.loaded * scale
        self.counted.bytes_stored += traffic.stored * scale
        self.counted.flops += (self.meter.flops - before) * scale
        self.written |= memory.stored


def strata(total: int, sample: int, chance: random.Random) -> list[int]:
    """One program id from each of `sample` equal runs of `total` of them; all where there are no more."""
    if total <= sample:
        return list(range(total))
    return [chance.randrange(total * i // sample, total * (i + 1) // sample) for i in range(sample)]


@dataclass
class CountingMemory(LaunchMemory):
    """Memory access for one launch that is counted and not made, but for reads of storages that have data.

    `written` has the ids of storages that something wrote before this launch, `stored` those that this launch writes.
    """

    traffic: Traffic
    written: set[int]
    unwritten: list[int | None]
    stored: set[int] = field(default_factory=set)

    explains: ClassVar[bool] = True  # the line of what is read too early

    def load(self, access: Access, other: Value | None, dtype: torch.dtype) -> Tensor:
        """What is there, where the storage has data; else zeros, in the axes along which the address varies."""
        active = _active(access)
        self.traffic.loaded += active * dtype.itemsize
        storage, offset, shape = access.pointer.storage, access.pointer.offset, access.shape
        if storage is None:
            return _zeros(offset, dtype, shape)
        if active and storage.id not in self.written | self.stored:
            self.unwritten.append(access.site.site.line)
        if not storage.data.numel():
            return _zeros(offset, dtype, shape)
        flat, index = storage.typed(dtype), dense(offset, torch.int64, shape)
        return flat[index.clamp(0, flat.numel() - 1)]

    def store(self, access: Access, value: Tensor) -> None:
        """Counted."""
        self.traffic.stored += _active(access) * value.dtype.itemsize
        self._stores(access.pointer)

    def atomic(self, access: Access, change: Update, operands: tuple[Tensor, ...]) -> Tensor:
        """Counted, as a load and a store; the old values are zeros."""
        moved = _active(access) * operands[0].dtype.itemsize
        self.traffic.loaded += moved
        self.traffic.stored += moved
        self._stores(access.pointer)
        return torch.zeros([1], dtype=operands[0].dtype).expand(access.shape)

    def _stores(self, pointer: Pointer) -> None:
        if pointer.storage is not None:
            self.stored.add(pointer.storage.id)


def _active(access: Access) -> int:
    """The lanes for which the mask holds."""
    mask = dense(True if access.mask is None else access.mask, torch.bool, access.shape)
    return int(mask.sum()) * (math.prod(access.shape) // max(mask.numel(), 1))


def _zeros(offset: int | Affine | Tensor, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
    """Zeros, lazily broadcast as the values at `offset` would be."""
    sizes = [1] * len(shape)
    if isinstance(offset, Tensor):
        sizes = list(offset.shape)
    elif isinstance(offset, Affine):
        base = offset.base.shape if isinstance(offset.base, Tensor) else sizes
        sizes = [n if step or width > 1 else 1 for n, step, width in zip(shape, offset.steps, base, strict=True)]
    return torch.zeros([1], dtype=dtype).expand(sizes)
