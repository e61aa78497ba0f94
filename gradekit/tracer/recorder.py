"""Storages and steps, in the order in which the host made them: what a Program is built from.

Every tensor without data has a storage that this module knows by number. Steps made before the call (at import, or
in an earlier call, by a submission that keeps a buffer) are kept apart: a program that uses such a storage begins
with the steps that made it. What an earlier call computed from its own inputs is left out of them, so that no
result can depend on an earlier call.
"""

import contextlib
import heapq
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradekit.compat.torch import DisableTorchFunction, raw_storage, storage_id, storage_pointer, storage_uses
from gradekit.program import (
    ADDRESS_GAP,
    ITEMSIZE,
    Allocate,
    Choice,
    Kernel,
    Launch,
    Literal,
    Program,
    Scalar,
    Source,
    Step,
    View,
    every_step,
    replaced,
    run_steps,
    storages_of,
)
from gradekit.tracer.errors import DeferredOperation, Refusal, shortened

NAME = "submission.py"
"""What a program calls the file, wherever it stands, so that the same submission always gives the same program."""

ADDRESS_START = 1 << 62  # where the first storage lies: far from all numbers that are not addresses


@dataclass
class TracedStorage:
    """What is known of one storage: its number, size in bytes, and the address that `data_ptr()` answers from."""

    number: int
    nbytes: int
    address: int
    keep: Any  # torch's storage object: alive, so that its identity is not given to another


class Recorder:
    """Numbers storages, collects steps, and builds the program of one call at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.steps: list[Step] = []
        self.kernels: dict[str, Kernel] = {}
        self.empty_grids: list[Source | None] = []
        self._before: list[Step] = []
        self._known: dict[int, TracedStorage] = {}
        self._inputs: dict[int, int] = {}
        self._next_number = 0
        self._next_place, self._free = 0, list[int]()  # a heap: memory that is free again is used again, as on a GPU
        # is told of each launch and its parameters
        self.launched: Callable[[Launch, Sequence[Any]], None] | None = None

    # --- storages ---------------------------------------------------------------------------------------------------

    def storage(self, tensor: torch.Tensor) -> TracedStorage:
        """The storage of a tensor without data; one not seen before is recorded as allocated here."""
        raw = raw_storage(tensor)
        known = self._known.get(storage_id(raw))
        if known is None:
            known = self._number(raw)
            self.add(Allocate(known.number, known.nbytes, self.source()))
        return known

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor's storage has been met before."""
        return storage_id(raw_storage(tensor)) in self._known

    def _number(self, raw: Any) -> TracedStorage:
        nbytes = int(raw.nbytes())
        place = heapq.heappop(self._free) if self._free else self._next_place
        self._next_place += place == self._next_place
        storage = TracedStorage(self._next_number, nbytes, ADDRESS_START + place * ADDRESS_GAP, raw)
        self._next_number += 1
        self._known[storage_id(raw)] = storage
        return storage

    def address_of(self, raw: Any) -> int:
        """What `data_ptr()` of torch's own storage object answers."""
        if raw.device.type != "meta":
            return storage_pointer(raw)
        known = self._known.get(storage_id(raw))
        return known.address if known is not None and known.nbytes else 0

    def view(self, tensor: torch.Tensor) -> View:
        """The tensor as a view of its storage. Raises DeferredOperation where that holds something else."""
        with DisableTorchFunction():
            if tensor.is_neg() or tensor.is_conj():
                raise DeferredOperation("negated" if tensor.is_neg() else "conjugated")
            return View(
                self.storage(tensor).number, dtype_name(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()),
                int(tensor.storage_offset()),
            )  # fmt: skip

    def address(self, tensor: torch.Tensor) -> int:
        """What `tensor.data_ptr()` answers: honest about alignment and about which tensors overlap."""
        with DisableTorchFunction():
            if tensor.numel() == 0:
                return 0
            return self.storage(tensor).address + int(tensor.storage_offset()) * tensor.element_size()

    def view_at(self, address: int, dtype: str) -> View | None:
        """What lies at an address that `address` has told, as one number of a dtype; None where there is nothing."""
        for storage in self._known.values():
            if 0 <= address - storage.address < ADDRESS_GAP:
                return View(storage.number, dtype, (), (), (address - storage.address) // ITEMSIZE[dtype])
        return None

    # --- steps ------------------------------------------------------------------------------------------------------

    def add(self, step: Step) -> None:
        """Appends a step to the program (or to the branch) that is being recorded."""
        self.steps.append(step)

    def source(self) -> Source | None:
        """The innermost line of the submission that is executing now."""
        return executing(self.path)

    @contextlib.contextmanager
    def branch(self) -> Iterator[list[Step]]:
        """Steps recorded inside go to the list that it gives, and nowhere else."""
        outer, self.steps = self.steps, []
        try:
            yield self.steps
        finally:
            self.steps = outer

    def settle(self) -> None:
        """From now on, every choice that was recorded takes its first option."""
        self.steps[:] = list(run_steps(self.steps))

    # --- one call ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A call begins: steps so far belong to what was before it."""
        self._before.extend(self.steps)
        self.steps, self.kernels, self._inputs, self.empty_grids = [], {}, {}, []

    def input(self, tensor: torch.Tensor, number: int) -> None:
        """Declares that `tensor` is an input whose storage the caller calls `number`."""
        raw = raw_storage(tensor)
        storage = self._known.get(storage_id(raw)) or self._number(raw)
        self._inputs[storage.number] = number

    def program(
        self, inputs: Sequence[torch.Tensor], results: Sequence[Any], returned: str, kernels: dict[str, Kernel],
        notice: Callable[[Sequence[Step], Callable[[int], int]], None] | None = None,
    ) -> Program:  # fmt: skip
        """The program of the call that began last; `results` are Views and Scalars, `kernels` all that are known.
        `notice` is told the steps as they were recorded, and what their storages are called in the program."""
        prelude = self._prelude(results)
        steps = [*prelude, *self.steps]
        self._refuse_earlier_inputs(steps, results)
        pointed = self._pointed_at(steps)
        rename = self._renamer()
        sizes = {known.number: known.nbytes for known in self._known.values()}
        used = {step.kernel for step in every_step(steps) if isinstance(step, Launch)}
        if notice is not None:
            notice(steps, rename)
        return Program(
            inputs=tuple(map_views(self.view(tensor), rename) for tensor in inputs),
            storages={number: sizes[known] for known, number in self._inputs.items()},
            steps=tuple(map_views(step, rename) for step in steps),
            results=tuple(map_views(result, rename) for result in results), returned=returned,
            kernels={key: kernel for key, kernel in kernels.items() if key in used}, path=NAME,
            addresses={rename(storage.number): storage.address for storage in pointed}, kept=len(prelude),
            empty_grids=tuple(filter(None, self.empty_grids)),
        )  # fmt: skip

    def _refuse_earlier_inputs(self, steps: Sequence[Step], results: Sequence[Any]) -> None:
        """Raises Refusal where a storage is used that is neither given nor made: a kept input of an earlier call."""
        known = {*self._inputs, *(step.storage for step in every_step(steps) if isinstance(step, Allocate))}
        for step in (*every_step(steps), *results):
            if not isinstance(step, Choice) and not storages_of(step) <= known:
                line = step.source.line if getattr(step, "source", None) else None
                message = "Uses a tensor that was an argument of an earlier call."
                raise Refusal("depends-on-earlier-calls", message, line)

    def finish(self) -> None:
        """The call is over: keeps the steps that made storages which are still alive, forgets the rest."""
        tainted = set(self._inputs)
        for step in self.steps:
            touched = storages_of(step)
            if touched & tainted:
                tainted |= touched
            elif touched:  # a step without storages leaves nothing behind
                self._before.append(step)
        self.steps, self._inputs = [], {}
        self._forget_dead()

    def remembered(self, numbers: Container[int]) -> set[int]:
        """Which of these storages are still alive, once the calls that made them are over."""
        return {storage.number for storage in self._known.values() if storage.number in numbers}

    def _forget_dead(self) -> None:
        # one reference is the one in `keep`
        dead = [identity for identity in self._known if storage_uses(identity) <= 1]
        for identity in dead:
            heapq.heappush(self._free, (self._known.pop(identity).address - ADDRESS_START) // ADDRESS_GAP)
        alive = {known.number for known in self._known.values()}
        self._before = [step for step in self._before if storages_of(step) <= alive]

    def _prelude(self, results: Sequence[Any]) -> list[Step]:
        wanted = set().union(*map(storages_of, self.steps), *map(storages_of, results))
        wanted |= {storage.number for storage in self._pointed_at(self.steps)}
        kept: list[Step] = []
        for step in reversed(self._before):
            touched = storages_of(step)
            if touched & wanted:
                wanted |= touched
                kept.append(step)
        return kept[::-1]

    def _pointed_at(self, steps: Sequence[Step]) -> list[TracedStorage]:
        numbers = {value for step in steps for value in numbers_in(step) if value >= ADDRESS_START}
        return [
            storage
            for storage in self._known.values()
            if any(0 <= value - storage.address < ADDRESS_GAP for value in numbers)
        ]

    def _renamer(self) -> Callable[[int], int]:
        names = dict(self._inputs)
        first = max(names.values(), default=-1) + 1

        def rename(number: int) -> int:
            return names.setdefault(number, first + len(names) - len(self._inputs))

        return rename


def executing(path: str) -> Source | None:
    """The innermost line of the file `path` that is executing now."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != path:
        frame = frame.f_back
    return Source(frame.f_lineno, shortened(frame.f_code.co_name)) if frame is not None else None


def dtype_name(dtype: torch.dtype) -> str:
    """torch's name of a dtype without "torch."."""
    return str(dtype).removeprefix("torch.")


def numbers_in(value: Any) -> Iterator[int]:
    """The integers that a step hands to a kernel or writes to memory, those of every branch."""
    if isinstance(value, Literal) and value.target.dtype in ("int64", "uint64"):
        yield from value.values  # type: ignore[misc]
    elif isinstance(value, Scalar) and type(value.value) is int:
        yield value.value
    elif isinstance(value, (Launch, Choice, tuple)):
        parts = value.args if isinstance(value, Launch) else value.options if isinstance(value, Choice) else value
        for part in parts:
            yield from numbers_in(part)


def map_views(value: Any, rename: Callable[[int], int]) -> Any:
    """`value` with every storage number in it replaced."""

    def renamed(part: Any) -> Any:
        if type(part) is View:
            return View(rename(part.storage), part.dtype, part.shape, part.stride, part.offset)
        return Allocate(rename(part.storage), part.nbytes, part.source) if type(part) is Allocate else None

    return replaced(value, renamed)
