"""The worker as the grader sees it: programs are run and timed in another process, which may die at any moment.

    with Worker(card.find()) as worker:
        ran = worker.run(program, tensors)                       # what the card computes, as CPU tensors
        prepared = worker.prepare(program, specs)                # compiled, tuned, inputs made on the card
        turn = worker.turn(prepared.id, milliseconds=5)          # one turn of the clock
        outputs = worker.results(prepared.id)                    # what the timed calls wrote

Whatever a program does to the process or to the card, the grader gets a result or a CardFault within the time limit,
and the next request meets a new process.
"""

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from gradekit import wire
from gradekit.confine import Means
from gradekit.engine.explain import Namer
from gradekit.engine.memory import view_bytes
from gradekit.findings import Cause, Finding
from gradekit.gpu import Limit, shared_memory
from gradekit.gpu.card import Card
from gradekit.gpu.faults import CardFault
from gradekit.gpu.inputs import Argument
from gradekit.gpu.preparation import Prepared
from gradekit.gpu.replay import CaughtWrite
from gradekit.gpu.server import kinds_of
from gradekit.gpu.timing import Turn
from gradekit.gpu.worker_process import LostWorker, WorkerProcess
from gradekit.inputs.as_text import encoded
from gradekit.program import ITEMSIZE, Program, Scalar, View, decode, encode

__all__ = ["CardFault", "CardRun", "Prepared", "Worker"]

CPU = torch.device("cpu")

P = ParamSpec("P")
R = TypeVar("R")

Result = Tensor | int | float | bool | str | None


@dataclass(frozen=True)
class CardRun:
    """What the card made of one call: `results` in order, on the CPU; wall `seconds` with compilation; what kernels
    printed; `findings` of stores beside a tensor."""

    results: list[Result]
    seconds: float
    prints: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def _again_if_killed(request: Callable[P, R]) -> Callable[P, R]:
    """The request, made a second time where something else killed the worker: no program can do that, so that nobody
    loses a point for what the machine had too little memory for at that moment."""

    @functools.wraps(request)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return request(*args, **kwargs)
        except LostWorker as lost:
            if not lost.killed:
                raise
        return request(*args, **kwargs)

    return made


class Worker(contextlib.AbstractContextManager["Worker"]):
    """Programs on a card, or for None on the CPU emulation, by a process that starts at the first request unless it was
    started `early`. A context manager for one thread: the process ends with the thread that started it."""

    def __init__(self, card: Card | None, early: WorkerProcess | None = None) -> None:
        self.device = "cpu" if card is None or card.device.type == "cpu" else f"cuda:{card.index}"
        self._process = early
        self._without: tuple[str, ...] = ()
        self._next = 0

    # --- requests ----------------------------------------------------------------------------------------------------

    @_again_if_killed
    def run(
        self, program: Program, inputs: Sequence[Tensor], *, option: int = 0, allow: Collection[str] = (),
        seconds: float = 20.0, names: Sequence[str] = (),
    ) -> CardRun:  # fmt: skip
        """What `program` computes from CPU tensors laid out as `program.inputs`, every choice taking that option.
        `names` are the student's for the inputs; `seconds` limit the wall time, with compilation. Raises CardFault."""
        with self._shared(program, inputs) as (memory, given, wanted, tensors):
            answer = self._ask({
                "do": "run", "program": encode(program), "inputs": given, "option": option, "allow": sorted(allow),
                "results": wanted,
            }, seconds, memory)  # fmt: skip
            results = _results(program, tensors)
        assert self._process is not None
        with _sensible():
            findings = tuple(_finding(decode(one, CaughtWrite), program, names) for one in answer["caught"])
            return CardRun(results, float(answer["seconds"]), self._process.printed(), findings)

    @_again_if_killed
    def prepare(
        self, program: Program, specs: Sequence[Argument], *, allow: Collection[str] = (), seconds: float = 120.0,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> Prepared:  # fmt: skip
        """Makes `program` ready to be timed: inputs from `specs`, the fastest options, a clock. `meanwhile` is called
        in that time, and leaves the card alone where there are options. Raises CardFault, also after `seconds`."""
        self._next += 1
        request = {
            "do": "prepare", "id": self._next, "program": encode(program), "arguments": encoded(specs),
            "kinds": kinds_of(specs), "allow": sorted(allow),
        }  # fmt: skip
        answer = self._ask(request, seconds, meanwhile=meanwhile)
        assert self._process is not None
        with _sensible():
            prepared: Prepared = decode(answer, Prepared)
            _check_chosen(program, prepared.chosen)
            self._process.prepared[self._next] = program, prepared.sets
            return replace(prepared, id=self._next)

    def turn(self, id: int, *, milliseconds: float) -> Turn:
        """A turn of the clock under `id`, of about that long. Raises CardFault where its process is gone."""
        self._prepared(id)
        request = {"do": "turn", "id": id, "milliseconds": milliseconds}
        answer = self._ask(request, Limit.ANSWER_SECONDS + milliseconds / 1e3)
        with _sensible():
            return decode(answer, Turn)

    def results(self, id: int, device: torch.device = CPU) -> Iterator[list[Result]]:
        """For each set of inputs, the results of the timed calls. Raises CardFault where their process is gone."""
        program, sets = self._prepared(id)
        with self._shared(program, ()) as (memory, _, wanted, tensors):
            for number in range(sets):
                self._ask({"do": "fetch", "id": id, "set": number, "results": wanted}, Limit.ANSWER_SECONDS, memory)
                yield _results(program, tensors, device)

    def forget(self, id: int) -> None:
        """Gives back the memory of what was prepared under `id`."""
        if self._process is not None and self._process.prepared.pop(id, None) is not None:
            self._ask({"do": "close", "id": id}, Limit.ANSWER_SECONDS)

    # --- the process -------------------------------------------------------------------------------------------------

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process and removes its files; a later request would start a new one."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    @property
    def pid(self) -> int | None:
        """The process, if one runs."""
        return None if self._process is None else self._process.pid

    @property
    def means(self) -> Means:
        """By what means the process, started for that, is confined. Raises CardFault where it does not start."""
        return self._ready().means or Means()

    def start(self) -> None:
        """Starts the process if it does not run, without waiting for it: call it early, to import torch meanwhile."""
        if self._process is None or not self._process.child.is_alive():
            self.close()
            self._process = WorkerProcess(self.device, self._without)

    def _ask(
        self, request: dict[str, Any], seconds: float, memory: int | None = None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> dict[str, Any]:  # fmt: skip
        """The answer to a request with tensors in `memory`; `meanwhile` is called once the process works on it."""
        process = self._ready()
        try:
            return process.ask(request, seconds, memory, meanwhile)
        except CardFault as fault:
            if fault.deadly or isinstance(fault, LostWorker):
                self.close()
            raise
        except BaseException:  # interrupted: the answer would be taken for that of the next request
            self.close()
            raise

    def _ready(self) -> WorkerProcess:
        """The process, once it has met the card. Where it cannot, it is started anew with an open filesystem, before
        any program comes near it: a driver may need what nobody thought of. What it lacks then counts for `means`."""
        while True:
            self.start()
            assert self._process is not None
            try:
                self._process.ready()
                return self._process
            except (wire.WireError, ValueError) as error:
                last = " ".join(self._process.said().strip().splitlines()[-1:])
                self.close()
                if self.device == "cpu" or self._without or isinstance(error, wire.DeadlineExceeded):
                    raise CardFault("crash", f"the worker could not be started ({error}) {last}".strip()) from None
                self._without = ("landlock",)

    def _prepared(self, id: int) -> tuple[Program, int]:
        if self._process is None or id not in self._process.prepared:
            raise CardFault("crash", "the worker that had prepared this is gone")
        return self._process.prepared[id]

    # --- tensors -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _shared(self, program: Program, inputs: Sequence[Tensor]) -> Iterator[tuple[int, Any, Any, list[Tensor]]]:
        """Memory with the inputs, and room for the results: its descriptor, their places, the results' bytes."""
        whole = [view_bytes(tensor) for tensor in inputs]
        room = [result.numel * ITEMSIZE[result.dtype] for result in program.results if isinstance(result, View)]
        try:
            memory = shared_memory.shared([*(data.numel() for data in whole), *room])
        except OSError as error:
            raise CardFault("out-of-memory", f"no room for tensors: {error.strerror}") from None
        with contextlib.closing(memory):
            for number, data in enumerate(whole):
                memory.tensor(number).copy_(data)
            given, kept = memory.pieces[: len(whole)], iter(memory.pieces[len(whole) :])
            wanted = [next(kept) if isinstance(result, View) else None for result in program.results]
            yield memory.descriptor, given, wanted, [memory.tensor(len(whole) + n) for n in range(len(room))]


def _results(program: Program, tensors: Sequence[Tensor], device: torch.device = CPU) -> list[Result]:
    """The results in the program's order, copied out of the memory to which the worker may still write."""
    data = iter(tensors)

    def result(one: Any) -> Result:
        if isinstance(one, View):
            return next(data).to(device, copy=True).view(getattr(torch, one.dtype)).view(one.shape)
        return one.value if isinstance(one, Scalar) else None

    return list(map(result, program.results))


def _finding(caught: CaughtWrite, program: Program, names: Sequence[str]) -> Finding:
    write = caught.write
    tensor = Namer(program, names).storage(write.storage)
    away = "right" if write.distance == 0 else f"{write.distance} bytes"
    message = f"{caught.kernel or 'A torch operation'} wrote {away} {write.side} the memory of {tensor}, on the card."
    facts = {"side": write.side, "bytes": write.nbytes, "distance": write.distance}
    return Finding(
        Cause.OUT_OF_BOUNDS_STORE, message, caught.line, caught.kernel, caught.launch, tensor,
        count=write.nbytes, facts=facts,
    )  # fmt: skip


def _check_chosen(program: Program, chosen: Sequence[int]) -> None:
    pairs = zip(chosen, program.choices(), strict=True)
    if not all(0 <= number < len(choice.options) for number, choice in pairs):
        raise ValueError("options that the program does not have")


@contextlib.contextmanager
def _sensible() -> Iterator[None]:
    """An answer that makes no sense is a fault, whatever it holds: the process has met kernels."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise CardFault("crash", "the worker sent an answer that makes no sense") from None
