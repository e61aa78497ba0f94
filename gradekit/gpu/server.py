"""The worker's process: it replays programs on one card, for whoever holds the other end of its socket.

It is given programs, specs of inputs and inputs, never an expected value, and imports nothing that judges. Requests
and answers are JSON of limited size; tensors lie in memory whose descriptor comes with one byte before the request. A
fault of the card ends the process, after it has said so: the next request gets a new one.

    {"do": "run", "program", "inputs": [[start, nbytes], ...], "option", "allow", "results": [...]}
    {"do": "prepare", "id", "program", "arguments": [...], "kinds": [...], "allow"}
    {"do": "turn", "id", "milliseconds"}
    {"do": "fetch", "id", "set", "results": [...]}
    {"do": "close", "id"}

"kinds" has the texts of the assignment's modules that make its own kinds of values. "results" has [start, nbytes] for
each tensor that is to be written, and null for other results. An answer is {"ok": {...}} or {"fault": {...}}; the
first, sent unasked, says by which means the process is confined.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gradekit import wire
from gradekit.confine import Means, confinement
from gradekit.gpu import Limit, sandboxing, shared_memory
from gradekit.gpu.card import find
from gradekit.gpu.faults import fault_of
from gradekit.gpu.inputs import make_set
from gradekit.gpu.preparation import Preparation, Prepared
from gradekit.gpu.replay import Replay, peak_bytes, touched_bytes
from gradekit.inputs import value_kinds
from gradekit.inputs.as_text import decoded
from gradekit.inputs.spec import Input
from gradekit.program import Launch, Program, View, decode, encode, run_steps

if TYPE_CHECKING:
    from gradekit.gpu.replay import Machine


def serve(descriptor: int, progress: int, folder: Path, device: str, means: Means) -> None:
    """Serves the socket that `descriptor` names until its other end closes. `device` is "cpu" or "cuda:<index>"; who
    kills this process can tell from the file `progress` what it was at; `means` are in force."""
    confinement.lower({resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: Limit.FILE_BYTES})
    sock = socket.socket(fileno=descriptor)
    server = Server(progress, _machine(device, folder))
    sandboxing.close(means)
    confinement.lower(
        {resource.RLIMIT_DATA: _data_bytes() + Limit.MEMORY_BYTES}
    )  # not of addresses: CUDA maps far more than it uses
    wire.send(sock, {"ok": {"means": means.as_data()}})
    with contextlib.suppress(wire.WireError, ValueError):  # a request without its memory is none
        while not server.ended:
            (server.memory,) = wire.receive_descriptors(sock)
            wire.send(sock, server.answer(wire.receive(sock, wire.CAP)))
            os.close(server.memory)
    os._exit(0)  # sooner than taking torch and CUDA apart


def _data_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(status.partition("VmData:")[2].split()[0]) << 10


def _machine(device: str, folder: Path) -> Machine:
    card = find(device)
    if card is None:
        from gradekit.gpu.cpu_emulation import CpuMachine

        return CpuMachine()
    from gradekit.gpu.cuda_machine import CudaMachine

    return CudaMachine(card, folder)


class Server:
    """Answers requests, one at a time, with tensors in `memory`; `ended` once the card is lost to this process."""

    def __init__(self, progress: int, machine: Machine) -> None:
        self.ended = False
        self.memory = -1
        self._progress, self._machine = progress, machine
        self._prepared: dict[int, Preparation] = {}
        self._libc = ctypes.CDLL(None)
        self._requests: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "run": self._run, "prepare": self._prepare, "turn": self._turn, "fetch": self._fetch, "close": self._close,
        }  # fmt: skip

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What is to be sent back: {"ok": ...}, or {"fault": ...} for whatever goes wrong."""
        try:
            return {"ok": self._requests[request["do"]](request)}
        except Exception as error:  # noqa: BLE001  # a program may make anything fail, and the next one may be well
            fault = fault_of(error)
            self.ended = fault.deadly or not self._well()
            return {"fault": fault.to_json()}
        finally:
            self._libc.fflush(None)  # what kernels print is in a buffer of C's
            self._watch("idle", "", None)

    def _well(self) -> bool:
        try:
            self._machine.synchronize()
        except RuntimeError:
            return False
        return True

    def _watch(self, what: str, kernel: str, line: int | None) -> None:
        data = json.dumps({"what": what, "kernel": kernel, "line": line}).encode()
        os.ftruncate(self._progress, 0)
        os.write(self._progress, data)

    # --- requests ----------------------------------------------------------------------------------------------------

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        program = decode(request["program"])
        replay = Replay(program, self._machine, request["allow"])
        inputs = [self._input(view, entry) for view, entry in zip(program.inputs, request["inputs"], strict=True)]
        began = time.perf_counter()
        ran = replay.run(inputs, request["option"], self._watch)
        seconds = time.perf_counter() - began
        self._write(ran.results, request["results"])
        return {"seconds": seconds, "caught": [encode(caught) for caught in ran.caught]}

    def _prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        program = decode(request["program"])
        replay = Replay(program, self._machine, request["allow"])
        value_kinds.add_from(request["kinds"])
        sets = self._sets(program, decoded(request["arguments"]))
        preparation = Preparation(replay, sets)
        clock = preparation.make_ready(self._watch)
        self._prepared[request["id"]] = preparation
        steps = list(run_steps(program.steps, preparation.chosen))
        prepared = Prepared(
            request["id"], preparation.label, tuple(preparation.chosen), preparation.tuned,
            sum(isinstance(step, Launch) for step in steps), peak_bytes(steps, program.results),
            len(sets), clock.how, clock.why, time.perf_counter() - began,
        )  # fmt: skip
        return dict(encode(prepared))

    def _turn(self, request: dict[str, Any]) -> dict[str, Any]:
        preparation = self._prepared[request["id"]]
        self._watch("time", preparation.replay.only_kernel(preparation.chosen), None)
        return dict(encode(preparation.turn(request["milliseconds"])))

    def _fetch(self, request: dict[str, Any]) -> dict[str, Any]:
        self._write(self._prepared[request["id"]].bounds[request["set"]].results, request["results"])
        return {}

    def _close(self, request: dict[str, Any]) -> dict[str, Any]:
        preparation = self._prepared.pop(request["id"], None)
        if preparation is not None:
            preparation.close()
        return {}

    # --- tensors -----------------------------------------------------------------------------------------------------

    def _input(self, view: View, entry: Sequence[Any]) -> Tensor:
        data = shared_memory.mapped(self.memory, entry)
        empty = torch.empty(0, dtype=getattr(torch, view.dtype))
        return empty.set_(data.untyped_storage(), view.offset, view.shape, view.stride)

    def _write(self, results: Sequence[Tensor | None], entries: Sequence[Any]) -> None:
        for result, entry in zip(results, entries, strict=True):
            if result is not None and entry[1]:
                data = shared_memory.mapped(self.memory, entry)
                data.view(result.dtype).view(result.shape).copy_(result)

    def _sets(self, program: Program, arguments: Sequence[Any]) -> list[list[Tensor]]:
        count = self._machine.sets_for(touched_bytes(program))
        made = (make_set(arguments, number, self._machine.device) for number in range(count))
        return [[value for value in one if isinstance(value, Tensor)] for one in made]


def kinds_of(arguments: Sequence[Any]) -> list[str]:
    """The texts of the modules without which these arguments could not be made in another process."""
    return value_kinds.sources(a.profile for a in arguments if isinstance(a, Input))
