"""What a forked child does: takes one submission, answers requests about it, and ends.

Requests: {"do": "load", "text": ..., "calling": ...}; {"do": "trace", "entry": ..., "args": [...], ...};
{"do": "signature", "ttir": ...} of a child that has loaded nothing, for TTIR that nobody trusts.
Answers: {"ok": ..., "output": ...} or {"error": {cause, message, line, detail}, "output": ...}.
"""

import contextlib
import dataclasses
import functools
import gc
import io
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import triton
import triton.language as tl

from gradekit import wire
from gradekit.compat.torch import keep_dynamo_out
from gradekit.compat.triton import ASTSource, lower, parse_once, signature, visit_loops_once, watch_jit_functions
from gradekit.program import Program, View, decode, encode
from gradekit.tracer import cuda, loading
from gradekit.tracer.errors import Refusal, TimeUp, printable, refusal
from gradekit.tracer.trace import CallTracer


class Child:
    """One submission and everything that is known of it, also what other processes of it were `told`."""

    def __init__(self, directory: Path, told: wire.ForkedCache | None = None) -> None:
        self.directory = directory
        self.tracer = CallTracer(str(directory / "submission.py"), told)
        self.modules: dict[int, loading.LoadedModule] = {}  # by the number of multiprocessors that they were told
        self.text = ""
        self.sent: set[str] = set()

    def answer(self, request: dict[str, Any]) -> Any:
        """The data that answers a request; where it is not to be `exact`, a kernel serves launches that differ in which
        integers are 1. Raises Refusal, which says why the submission cannot be loaded or traced."""
        every = ("load", "trace", "follow", "explore", "instructions", "signature", "inspect")
        actions: dict[str, Callable[..., Any]] = {name: getattr(self, name) for name in every}
        self.tracer.compiler.exact = request.pop("exact", True)
        for name in request.keys() & {"args", "others"}:
            request[name] = [decode(arg, object) for arg in request[name]]
        return actions[request.pop("do")](**request)

    def signature(self, ttir: str) -> Any:
        """The types of the arguments that a kernel takes."""
        file = self.directory / "kernel.ttir"
        file.write_text(ttir, encoding="utf-8")
        return {"types": signature(str(file))}

    def load(self, text: str, calling: dict[str, dict[str, Any]]) -> Any:
        """Runs the submission's statements, or those of another text in its place."""
        if self.modules:
            self.modules.clear()
            self.tracer.compiler.budget.renew()
        self.text = text
        cuda.multiprocessors.count, cuda.multiprocessors.asked = cuda.MANY, False
        self._load()
        loaded = self._loaded()
        loaded.calling = calling
        return {"functions": loaded.functions(), "notes": loaded.notes, "path": loaded.path}

    def trace(
        self, entry: str, args: list[Any], multiprocessors: int, turn: int | None, others: Sequence[Any] = (),
        way: str = "", wanted: Sequence[int] = (), upstream: Any = None,
    ) -> Any:  # fmt: skip
        """The program of one call (see `CallTracer.call`); kernels that were sent before are left out of it."""
        self.tracer.tuning.turn = turn
        layout = None if upstream is None else decode(upstream, View)
        call = lambda: self.tracer.call(self._loaded(), entry, args, wanted, layout, others, way)
        return self._program(self._on(multiprocessors, call))

    def follow(self, entry: str, args: list[Any], wanted: list[int]) -> Any:
        """The program of one call on a GPU with many multiprocessors, and the origins of its numbers."""
        self._usual()
        self.tracer.tuning.turn, self.tracer.tuning.for_proofs = None, True
        try:
            program, origins = self.tracer.follow(self._loaded(), entry, args, wanted)
        finally:
            self.tracer.tuning.for_proofs = False
        return self._program(program) | {"origins": encode(origins)}

    def explore(self, entry: str, args: list[Any], wanted: list[int], upstream: Any = None) -> Any:
        """What host code compares in one call."""
        self._usual()
        layout = None if upstream is None else decode(upstream, View)
        return {"explored": encode(self.tracer.explored(self._loaded(), entry, args, wanted, layout))}

    def instructions(self, entry: str, args: list[Any]) -> Any:
        """How many instructions of host code one call executes."""
        self._usual()
        return {"instructions": self.tracer.instructions(self._loaded(), entry, args)}

    def _usual(self) -> None:
        """Host code is told of many multiprocessors, and some configurations are tried."""
        self.tracer.tuning.turn = 0
        cuda.multiprocessors.count = cuda.MANY
        if self.text and self._multiprocessors not in self.modules:
            self._load_silently()

    def inspect(self, entry: str, args: list[Any], wanted: list[int]) -> Any:
        """What torch makes of a model around the entry."""
        from gradekit.tracer import compiled_model  # imports torch.compile's machinery, which few submissions need

        self._usual()
        return {"inspection": compiled_model.inspect(self._loaded(), entry, args, wanted)}

    def _on(self, multiprocessors: int, call: Callable[[], Program]) -> Program:
        """What `call` gives on a GPU with so many of them. A submission that asks for the number may keep it, in any
        call or while it is loaded: it is loaded once for each number, so that no call depends on those before it."""
        cuda.multiprocessors.count = multiprocessors
        if not cuda.multiprocessors.asked:
            try:
                program = call()
            except Refusal:
                if not cuda.multiprocessors.asked:
                    raise
            if not cuda.multiprocessors.asked:
                return program
            self.modules.clear()
        if multiprocessors not in self.modules:
            self._load_silently()
        return dataclasses.replace(call(), multiprocessors=multiprocessors)

    def _load_silently(self) -> None:
        """Loads the submission again: what it prints has been sent."""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self._load()

    def _load(self) -> None:
        with self.tracer.mask, self.tracer.steps:
            self.modules[self._multiprocessors] = loading.load(self.text, self.directory)

    @property
    def _multiprocessors(self) -> int:
        """The number of multiprocessors that the module in use is told; one module serves all, where none asks."""
        return cuda.multiprocessors.count if cuda.multiprocessors.asked else cuda.MANY

    def _loaded(self) -> loading.LoadedModule:
        return self.modules[self._multiprocessors]

    def _program(self, program: Program) -> Any:
        fresh = {key: kernel for key, kernel in program.kernels.items() if key not in self.sent}
        known = [key for key in program.kernels if key in self.sent]
        self.sent.update(fresh)
        elsewhere = self.tracer.compiler.elsewhere
        lowered, elsewhere.fresh = elsewhere.fresh, {}
        return {"program": encode(dataclasses.replace(program, kernels=fresh)), "known": known, "lowered": lowered}


PRINTED = 1 << 16  # the most characters of what is printed that one answer carries


class Output(io.TextIOBase):
    """Stands in for sys.stdout and sys.stderr; keeps the first PRINTED characters."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = PRINTED

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Keeps what still has room, and says that it took everything."""
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
        return len(text)

    def take(self) -> str:
        """What was written since the last time."""
        text, self._parts, self._room = "".join(self._parts), [], PRINTED
        return printable(text)


def serve(sock: socket.socket, told: wire.ForkedCache | None) -> None:
    """Answers requests until the other side closes. Never raises for what student code does."""
    cuda.install()
    with tempfile.TemporaryDirectory(prefix="gradekit-") as directory:
        child = Child(Path(directory), told)
        output = Output()
        while True:
            try:
                request = wire.receive(sock, wire.CAP)
            except wire.WireError:
                return
            _send(sock, _answer(child, request, output))


def _send(sock: socket.socket, answer: dict[str, Any]) -> None:
    try:
        wire.send(sock, answer)
    except (TypeError, ValueError, RecursionError) as error:  # before a byte was sent: JSON has no word for it
        why = Refusal("exception", f"The call makes something that no program can hold: {error}")
        wire.send(sock, {"error": why.as_data(), "output": ""})


def _answer(child: Child, request: dict[str, Any], output: Output) -> dict[str, Any]:
    seconds, wall_seconds, patience = (request.pop(name) for name in ("seconds", "wall_seconds", "patience"))
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            _alarm(seconds, wall_seconds, patience)
            try:
                answer = {"ok": child.answer(request)}
            finally:
                _alarm(0, 0)
    except Refusal as error:
        answer = {"error": error.as_data()}
    except BaseException as error:  # noqa: BLE001  (a submission may raise anything; or time is up while it is explained)
        answer = {"error": refusal(error, str(child.directory / "submission.py"), wire.activity(request)).as_data()}
    return answer | {"output": output.take()}


TICKS = 8  # the steps in which a time limit is counted down


def _alarm(seconds: float, wall_seconds: float, patience: float = 0) -> None:
    """TimeUp after so many seconds of computing, or of anything. Importing packages does not count, for how long that
    takes is up to the machine; but it may take `patience` times as long at most."""
    for number, timer, left in (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, wall_seconds),
    ):
        signal.signal(number, _Countdown(patience))
        signal.setitimer(timer, left / TICKS, left / TICKS)


class _Countdown:
    """Counts a timer's ticks. Each one beyond the limit raises TimeUp, since a submission may catch the first."""

    def __init__(self, patience: float) -> None:
        self._own, self._all = TICKS, TICKS * (1 + patience)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        package = _imported(frame)
        self._own, self._all = self._own - (not package), self._all - 1
        if min(self._own, self._all) <= 0:
            raise TimeUp(package)


def _imported(frame: FrameType | None) -> str:
    """The package that the submission's innermost line imports; "" where that does something else."""
    package = ""
    while frame is not None and frame.f_globals.get("__name__") != loading.MODULE:
        if frame.f_code.co_name == "_find_and_load":
            package = str(frame.f_locals.get("name"))
        frame = frame.f_back
    return package if frame is not None else ""


# --- what a server does before it forks, so that no child needs to: caches, one kernel through the compiler ----------


@triton.jit
def _kernel(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n)
    tl.store(x + offsets, value - tl.max(tl.exp(value), 0), mask=offsets < n)


@functools.cache
def warm_up() -> None:
    """Everything that every submission needs; done once, for all forks of a process that has done it."""
    keep_dynamo_out()
    watch_jit_functions()
    parse_once()
    visit_loops_once()
    lower(_source(), {})
    gc.collect()
    gc.freeze()  # so that collecting in a child does not copy these pages


def _source() -> ASTSource:
    return ASTSource(_kernel, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 16})


REFERENCE_SECONDS = 0.006
"""What `_kernel` takes through the compiler on the machine that the time limits were chosen on."""

SLOWEST = 8.0


@functools.cache
def pace() -> float:
    """How much slower than that machine this one is, from 1 to SLOWEST: the best of a few tries, in CPU seconds."""
    return min(max(min(_lowering_seconds() for _ in range(3)) / REFERENCE_SECONDS, 1.0), SLOWEST)


def _lowering_seconds() -> float:
    began = time.thread_time()
    lower(_source(), {})
    return time.thread_time() - began
