"""The worker as the grader sees it: programs are run and timed in another process, which may die at any moment.

    with Worker(card.find()) as worker:
        ran = worker.run(program, tensors)                       # what the card computes, as CPU tensors
        prepared = worker.prepare(program, specs)                # compiled, tuned, inputs made on the card
        turn = worker.turn(prepared.id, milliseconds=5)          # one turn of the clock
        outputs = worker.results(prepared.id)                    # what the timed calls wrote

Whatever a program does to the process or to the card, the grader gets a result or a CardFault within the time limit,
and the next request meets a new process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from gradekit import sandbox
from gradekit.engine.explain import Namer
from gradekit.findings import Cause, Finding
from gradekit.gpu import files
from gradekit.gpu.card import Card, Reading
from gradekit.gpu.faults import CardFault, Kind
from gradekit.gpu.inputs import Argument
from gradekit.gpu.replay import bytes_of
from gradekit.gpu.server import CAP, PROGRESS, arguments_to
from gradekit.gpu.timing import Turn
from gradekit.program import ITEMSIZE, Program, Scalar, View, encode
from gradekit.tracer import wire

__all__ = ["CardFault", "CardRun", "Prepared", "Worker"]

START_SECONDS = 120.0
"""How long importing torch and Triton and meeting the card may take."""

TURN_SECONDS = 60.0
"""How long one turn may take, or fetching the results of one set."""

END_SECONDS = 10.0
KEPT = 64 << 10
"""Bytes of what is printed, by kernels and by compilers, that are read."""

_PASSED_ON = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX",
              "TRITON_LIBCUDA_PATH", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")  # fmt: skip
"""What the process sees of the grader's environment, beside PATH: where the driver and a C compiler are."""

Result = Tensor | int | float | bool | str | None


@dataclass(frozen=True)
class CardRun:
    """What the card made of one call: `results` in the program's order, tensors on the CPU; wall `seconds`, compilation
    included; the lines that kernels printed; and `findings`: stores next to a tensor."""

    results: list[Result]
    seconds: float
    prints: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A program that is ready to be timed.

    `option_label` is the fastest configuration ("" where there is nothing to choose) and `choices` what a call took
    with each, in seconds. `launches` and `peak_bytes` are of one call; `sets` of inputs are in rotation. `how` is
    "graph", or "stream" where the calls could not be captured, and `why` then says why.
    """

    id: int
    option_label: str
    choices: dict[str, float]
    launches: int
    peak_bytes: int
    sets: int
    how: str = "graph"
    why: str = ""


@dataclass
class _Process:
    """A running worker."""

    popen: subprocess.Popen[bytes]
    sock: socket.socket
    ready: bool = False
    prepared: dict[int, tuple[Program, int]] = field(default_factory=dict)  # with how many sets there are
    owner: int = field(default_factory=os.getpid)


class Worker:
    """Programs on a card, or without one (`card` None) on the CPU stand-in. It starts at the first request.

    Use it as a context manager, or `close` it; in one thread, for the process ends with the thread that started it.
    """

    def __init__(self, card: Card | None) -> None:
        self.device = "cpu" if card is None or card.device.type == "cpu" else f"cuda:{card.index}"
        self._folder: Path | None = None
        self._process: _Process | None = None
        self._next = 0

    # --- requests ----------------------------------------------------------------------------------------------------

    def run(
        self,
        program: Program,
        inputs: Sequence[Tensor],
        *,
        option: int = 0,
        allow: Collection[str] = (),
        seconds: float = 20.0,
        names: Sequence[str] = (),
    ) -> CardRun:
        """What `program` computes from CPU tensors laid out as `program.inputs`, every choice taking that option.

        `names` are what the student calls the inputs, for findings; `seconds` limits the wall time, compilation
        included (starting the process is not).

        Raises:
            CardFault: it could not be run.
        """
        with self._shared(program, inputs) as (given, wanted, tensors):
            answer = self._ask({
                "do": "run", "program": encode(program), "inputs": given, "option": option, "allow": sorted(allow),
                "results": wanted,
            }, seconds)  # fmt: skip
            results = _results(program, tensors)
        findings = tuple(_finding(caught, program, names) for caught in answer["caught"])
        return CardRun(results, float(answer["seconds"]), self._printed(), findings)

    def prepare(
        self, program: Program, specs: Sequence[Argument], *, allow: Collection[str] = (), seconds: float = 120.0
    ) -> Prepared:
        """Makes `program` ready to be timed: inputs from `specs` on the card, the fastest options, a clock.

        Raises:
            CardFault: it cannot be run, or that took more than `seconds`.
        """
        self._next += 1
        request = {
            "do": "prepare", "id": self._next, "program": encode(program), "arguments": arguments_to(specs),
            "allow": sorted(allow),
        }  # fmt: skip
        answer = self._ask(request, seconds)
        assert self._process is not None
        self._process.prepared[self._next] = program, answer["sets"]
        return Prepared(
            self._next, answer["label"], dict(answer["choices"]), answer["launches"], answer["peak_bytes"],
            answer["sets"], answer["how"], answer["why"],
        )  # fmt: skip

    def turn(self, id: int, *, milliseconds: float) -> Turn:
        """One turn of the clock of what was prepared under `id`, of about that long.

        Raises:
            CardFault: the process that had prepared it is gone.
        """
        self._prepared(id)
        answer = self._ask({"do": "turn", "id": id, "milliseconds": milliseconds}, TURN_SECONDS + milliseconds / 1e3)
        return Turn(tuple(answer["seconds"]), _reading(answer["before"]), _reading(answer["after"]))

    def results(self, id: int) -> list[list[Result]]:
        """For each set of inputs, what the timed calls wrote: results in the program's order, on the CPU.

        Raises:
            CardFault: the process that had prepared it is gone.
        """
        return [self._results_of(id, number) for number in range(self._prepared(id)[1])]

    def _results_of(self, id: int, number: int) -> list[Result]:
        program, _ = self._prepared(id)
        with self._shared(program, ()) as (_, wanted, tensors):
            self._ask({"do": "fetch", "id": id, "set": number, "results": wanted}, TURN_SECONDS)
            return _results(program, tensors)

    def forget(self, id: int) -> None:
        """Gives back the memory of what was prepared under `id`."""
        if self._process is not None and self._process.prepared.pop(id, None) is not None:
            self._ask({"do": "close", "id": id}, TURN_SECONDS)

    # --- the process -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process and removes its files; a later request would start a new one."""
        ours = self._process is None or self._process.owner == os.getpid()
        self._end()
        if self._folder is not None and ours:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    @property
    def pid(self) -> int | None:
        """The process, if one runs."""
        return None if self._process is None else self._process.popen.pid

    @property
    def said(self) -> str:
        """The end of what the process has said on its standard error during the last request."""
        return "" if self._folder is None else _tail(self._folder / "said")

    def start(self) -> None:
        """Starts the process if it does not run, without waiting for it: call it early, to import torch meanwhile."""
        if self._process is not None and self._process.popen.poll() is None:
            return
        self._end()
        if self._folder is None:
            self._folder = files.private_folder()
        self._process = _started(self._folder, self.device)
        _living.add(self)

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        self.start()
        assert self._process is not None and self._folder is not None
        try:
            self._wait_until_ready()
            for name in ("said", "printed"):
                os.truncate(self._folder / name, 0)
            deadline = time.monotonic() + seconds
            wire.send(self._process.sock, request, deadline)
            answer = wire.receive(self._process.sock, CAP, deadline)
        except wire.WireError as error:
            raise self._lost(error, seconds) from None
        except BaseException:  # interrupted: the answer would be taken for that of the next request
            self._end()
            raise
        return self._checked(answer)

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        if not self._process.ready:
            wire.receive(self._process.sock, CAP, time.monotonic() + START_SECONDS)
            self._process.ready = True

    def _checked(self, answer: Any) -> dict[str, Any]:
        if isinstance(answer, dict) and isinstance(answer.get("ok"), dict):
            return answer["ok"]
        fault = CardFault.from_json(answer.get("fault") if isinstance(answer, dict) else None)
        fault = self._told(fault)
        if fault.deadly:
            self._end()
        raise fault

    def _told(self, fault: CardFault) -> CardFault:
        """The fault with what the compiler itself said, and where."""
        lines = [line for line in self.said.splitlines() if "error:" in line][:3] if fault.kind == "compile" else []
        if not lines:
            return fault
        where = re.match(r"[^:]+\.py:(\d+):", lines[0])
        line = int(where[1]) if where else fault.line
        return CardFault(fault.kind, "\n".join([fault.message, *lines])[:2000], fault.kernel, line)

    def _lost(self, error: wire.WireError, seconds: float) -> CardFault:
        """The process is gone, silent or senseless: what it was at is to blame."""
        assert self._process is not None
        if not self._process.ready:
            said, _ = self.said.strip().splitlines()[-1:], self._end()
            return CardFault("crash", f"the worker could not be started ({error}) {' '.join(said)}".strip())
        at, status = self._progress(), self._end()
        late = isinstance(error, wire.Late)
        message = f"not done after {seconds:g} seconds" if late else f"the worker's process ended ({_ending(status)})"
        kind: Kind = "hang" if late else "crash"
        if at["what"] == "compile":
            kind, message = "compile", f"the compiler: {message}"
        return CardFault(kind, message, str(at["kernel"]), at["line"] if type(at["line"]) is int else None)

    def _progress(self) -> dict[str, Any]:
        assert self._folder is not None
        try:
            told = json.loads(_tail(self._folder / PROGRESS))
            return {"what": told["what"], "kernel": told["kernel"], "line": told["line"]}
        except (ValueError, KeyError, TypeError):
            return {"what": "", "kernel": "", "line": None}

    def _end(self) -> int:
        """Kills the process and all that it started; its exit code as subprocess gives it."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.sock.close()
        if process.owner != os.getpid():  # this process was forked from the one that it belongs to
            return 0
        gone = process.popen.poll()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.popen.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # the driver may still be busy with it
            process.popen.wait(END_SECONDS)
        return -signal.SIGKILL if gone is None else gone

    def _prepared(self, id: int) -> tuple[Program, int]:
        if self._process is None or id not in self._process.prepared:
            raise CardFault("crash", "the worker that had prepared this is gone")
        return self._process.prepared[id]

    def _printed(self) -> tuple[str, ...]:
        assert self._folder is not None
        return tuple(_tail(self._folder / "printed").splitlines())

    # --- tensors -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _shared(self, program: Program, inputs: Sequence[Tensor]) -> Iterator[tuple[Any, Any, list[Tensor]]]:
        """The files of the inputs and of the results, for as long as the request takes: [name, bytes] each, and the
        results' bytes."""
        self.start()
        assert self._folder is not None
        folder, names = self._folder, list[str]()
        try:
            given = [_written(folder, names, tensor) for tensor in inputs]
            tensors = [_room(folder, names, result) for result in program.results if isinstance(result, View)]
            kept = iter(names[len(given) :])
            sizes = iter(tensors)
            wanted = [[next(kept), next(sizes).numel()] if isinstance(r, View) else None for r in program.results]
            yield given, wanted, tensors
        except OSError as error:
            raise CardFault("out-of-memory", f"no room for tensors in {folder.parent}: {error.strerror}") from None
        finally:
            for name in names:
                (folder / name).unlink(missing_ok=True)


def _written(folder: Path, names: list[str], tensor: Tensor) -> list[Any]:
    data = bytes_of(tensor)
    names.append(f"in-{len(names)}")
    files.make(folder / names[-1], data.numel()).copy_(data)
    return [names[-1], data.numel()]


def _room(folder: Path, names: list[str], result: View) -> Tensor:
    names.append(f"out-{len(names)}")
    return files.make(folder / names[-1], result.numel * ITEMSIZE[result.dtype])


def _results(program: Program, tensors: Sequence[Tensor]) -> list[Result]:
    """The results with their bytes copied out of the files, in the program's order."""
    data = iter(tensors)
    return [
        next(data).clone().view(getattr(torch, result.dtype)).view(result.shape)
        if isinstance(result, View)
        else result.value
        if isinstance(result, Scalar)
        else None
        for result in program.results
    ]


def _finding(caught: Any, program: Program, names: Sequence[str]) -> Finding:
    """A store into a red zone, in the student's words."""
    trespass = caught["trespass"]
    number, side, distance = trespass["storage"], trespass["side"], trespass["distance"]
    tensor = Namer(program, names).storage(number)
    away = "right" if distance == 0 else f"{distance} bytes"
    message = f"{caught['kernel'] or 'A torch operation'} wrote {away} {side} the memory of {tensor}, on the card."
    facts = {"side": side, "bytes": trespass["nbytes"], "distance": distance}
    return Finding(
        Cause.OUT_OF_BOUNDS_STORE, message, caught["line"], caught["kernel"], caught["launch"], tensor,
        count=trespass["nbytes"], facts=facts,
    )  # fmt: skip


def _reading(data: Any) -> Reading | None:
    return None if data is None else Reading(**data | {"reasons": tuple(data["reasons"])})


def _tail(path: Path) -> str:
    """The last bytes of a file that the worker may be writing to."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - KEPT, 0))
            return stream.read(KEPT).decode("utf-8", "replace")
    except OSError:
        return ""


def _ending(status: int) -> str:
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"


# --- starting one ----------------------------------------------------------------------------------------------------


def _started(folder: Path, device: str) -> _Process:
    ours, theirs = socket.socketpair()
    append = os.O_CREAT | os.O_WRONLY | os.O_APPEND  # so that it can be emptied between requests
    said, printed = (os.open(folder / name, append, 0o600) for name in ("said", "printed"))
    command = [sys.executable, "-P", "-m", "gradekit.gpu", str(theirs.fileno()), str(folder), device, str(os.getpid())]
    try:
        popen = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=said,
            cwd=folder,
            env=environment(folder, device),
            start_new_session=True,
        )
    finally:
        theirs.close()
        os.close(said)
        os.close(printed)
    return _Process(popen, ours)


def environment(folder: Path, device: str) -> dict[str, str]:
    """All that the worker sees of the environment; Triton's cache is in its own folder, where no submission can be."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} if device != "cpu" else {}
    base = sandbox.environment(str(folder))
    if device != "cpu":
        base.pop("CUDA_VISIBLE_DEVICES", None)
    return base | {"PATH": os.environ.get("PATH", base["PATH"])} | kept


_living: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for worker in list(_living):
        worker.close()
