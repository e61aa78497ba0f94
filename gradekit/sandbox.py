"""The grader's side of the tracer: starts it, limits it, speaks with it, and trusts nothing that it says.

One server process per grader imports torch and triton once; each `Tracer` is a child that it forks, holding one
submission. Every wait has a time limit, every message a size limit, and a child that dies or stays silent is a
`TraceError`, never an exception of another kind.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

from gradekit import framework, wellformed, wire
from gradekit.confine import Means, identity
from gradekit.findings import Cause
from gradekit.framework import Inspection
from gradekit.program import Argument, Kernel, Program, ProgramError, View, decode, encode
from gradekit.tracer import requests

START_SECONDS = 120.0
"""How long importing torch and triton may take, on a cold disk."""

CONTROL_CAP = 1 << 16

MOST_TEXT, MOST_NAMES = 1 << 16, 10_000
"""The longest text that is taken from a submission's process, and how many functions and notes it may have."""

INSPECT_SECONDS = 60.0
"""How long importing torch.compile's machinery and compiling a small model may take."""

GRACE_SECONDS = 2.0
"""How much longer than its own alarm the child is given before it is killed."""

CLOSED = 2
"""The level from which on the filesystem, and so /proc, is out of a submission's sight."""

WAITING = 2.5

CONFINE_SECONDS = 30.0
"""How long a fork and its confinement may take on a machine that is busy beyond reason."""

AHEAD = 8
"""How many calls a submission's process is given before the first of them is wanted: few enough for their requests to
lie in the socket's buffer, whatever the process is doing."""

STOP_SECONDS = 10.0
"""How long the end of all submissions may take before the warden itself is killed."""


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Seconds are those of computing, for loading and for one call, on the machine that they were chosen on: a slower one
    gets more (`pace`). A submission that waits, or has to wait for others on a busy machine, gets WAITING times as many
    by the clock. `cpu_seconds` are those of all calls together; `memory_bytes` counts beyond what torch and triton take themselves; `file_bytes` is the size of one file; `processes` are those it
    may have at one time, threads included; of what it prints, `output_bytes` are kept; a program, as it comes over the
    wire, has at most `program_bytes`.
    """

    import_seconds: float = 8.0
    call_seconds: float = 8.0
    cpu_seconds: int = 1200
    memory_bytes: int = 4 << 30
    file_bytes: int = 64 << 20
    processes: int = 32
    output_bytes: int = 1 << 20
    program_bytes: int = 16 << 20

    def of_process(self) -> dict[str, int]:
        """Those that the kernel watches over."""
        names = ("memory_bytes", "file_bytes", "cpu_seconds", "processes")
        return {name: getattr(self, name) for name in names}


class TraceError(Exception):
    """The submission was not loaded or traced: why, at which of its lines, and what Triton or Python itself said."""

    def __init__(self, cause: Cause, message: str, line: int | None = None, detail: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.line = line
        self.detail = detail


class Unavailable(Exception):
    """The tracer's own process cannot be started on this machine: a fault of the grader, whatever the submission."""


@dataclass(frozen=True)
class Loaded:
    """`functions`: how many parameters each requires and takes (-1: any number); `notes`: what was left out, and why."""

    functions: dict[str, tuple[int, int]]
    notes: tuple[str, ...]


class HasText(Protocol):
    """What the tracer needs of a submission."""

    @property
    def text(self) -> str:
        """One Python source text."""


@dataclass(frozen=True)
class Form:
    """A call that is to be traced: `entry(*args)`, and its backward pass where gradients are `wanted`, as
    `Tracer.trace_gradient` describes it."""

    entry: str
    args: tuple[Argument, ...]
    wanted: tuple[int, ...] = ()
    upstream: View | None = None

    @functools.cached_property
    def name(self) -> str:
        """What tells it from others, also from equal ones: 1 is True, and 0.0 is -0.0."""
        return repr(self)

    @functools.cached_property
    def request(self) -> dict[str, Any]:
        """What the child is asked: worked out once, for a class is called in the same forms. Not to be changed."""
        request = {"do": "trace", "entry": self.entry, "args": [encode(arg) for arg in self.args]}
        if not self.wanted:
            return request
        layout = None if self.upstream is None else encode(self.upstream)
        return request | {"do": "gradient", "wanted": list(self.wanted), "upstream": layout}


class Tracer:
    """One submission in a process of its own. Use it as a context manager, or `close` it."""

    def __init__(self, submission: HasText, *, limits: Limits = Limits()) -> None:
        self.output = ""  # what the submission has printed so far
        self._submission = submission
        self._limits = limits
        self._kernels: dict[str, Kernel] = {}
        self._loaded: Loaded | None = None
        self._sock: socket.socket | None = None
        self._pid = 0
        self._home = _server()
        # by name
        self._planned: dict[str, Form] = {}  # that will be asked for, once fewer than AHEAD are
        self._asked: dict[str, Form] = {}  # in the order of the answers that are to come
        self._ready: dict[str, Program | TraceError] = {}  # what came before it was wanted

    def load(self) -> Loaded:
        """Runs the submission's top-level statements (once).

        Raises:
            TraceError: it cannot be loaded.
        """
        if self._loaded is None:
            answer = self._ask({"do": "load", "text": self._submission.text}, self._limits.import_seconds)
            self._loaded = _loaded(answer)
        return self._loaded

    def trace(self, entry: str, args: Sequence[Argument]) -> Program:
        """The program of `entry(*args)`: tensors as views of storages that the caller numbers, numbers as Scalars.

        Raises:
            TraceError: the call fails, or is not one that can be traced.
        """
        return self._traced(Form(entry, tuple(args)))

    def trace_gradient(
        self, entry: str, args: Sequence[Argument], wanted: Sequence[int], upstream: View | None = None
    ) -> Program:
        """The program of `entry(*args)` and its backward pass; the last input is the gradient of the result (laid out
        as `upstream` says, contiguous by default), and the results are the gradients of the tensor arguments at the
        positions `wanted`, None where there is none.

        Raises:
            TraceError: the call or its backward pass fails, or is not one that can be traced.
        """
        return self._traced(Form(entry, tuple(args), tuple(wanted), upstream))

    def prefetch(self, forms: Iterable[Form]) -> None:
        """Asks for calls before they are wanted: the submission's process traces them, in this order, while this one does
        something else. Each is then given, once, by `trace` or `trace_gradient`, errors too; wanting them in the same
        order keeps waiting short. Where the process is lost, the rest are forgotten, and traced when they are wanted.

        Raises:
            TraceError: the submission cannot be loaded.
        """
        self.load()
        known = self._asked.keys() | self._ready.keys()  # for a check before, which then did not want it
        self._planned |= {name: form for form in forms if (name := form.name) not in known}
        self._ask_ahead()

    def forget_planned(self) -> None:
        """Asks for no more of what was prefetched than has been asked for."""
        self._planned.clear()

    def inspect(self, entry: str, args: Sequence[Argument]) -> Inspection:
        """What torch makes of a model around `entry`, compiled for tensors like `args`; takes some seconds.

        Raises:
            TraceError: there is no such entry, or the process was lost.
        """
        self._settle()
        self.load()
        request = {"do": "inspect", "entry": entry, "args": [encode(arg) for arg in args]}
        try:
            return framework.parse(self._ask(request, INSPECT_SECONDS), self._submission.text)
        except ValueError as error:
            raise _nonsense(str(error)) from None

    def signature(self, ttir: str) -> list[str]:
        """The types of the arguments of the kernel that `ttir` is, as Triton names them; nothing is loaded for it.

        Raises:
            TraceError: MLIR or Triton do not accept the text, or break down over it.
        """
        self._settle()
        types = self._ask({"do": "signature", "ttir": ttir}, self._limits.call_seconds).get("types")
        if not isinstance(types, list):
            raise _nonsense()
        return [_text(kind) for kind in types]

    def close(self) -> None:
        """Ends the process."""
        self._forget_ahead()
        if self._sock is not None:
            self._sock.close()
            self._sock = None
            self._home.end(self._pid)

    def abandon(self) -> None:
        """As `close`, for where nothing may be asked of the server (the garbage collector calls at any time): the process
        ends by itself, and the server is told with the next question."""
        self._forget_ahead()
        if self._sock is not None:
            self._sock.close()
            self._sock = None
            self._home.abandoned.append(self._pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        if self._sock is None:
            self._home = _server()
            self._pid, self._sock = self._home.fork(self._limits)
        try:
            self._send(request, seconds)
        except wire.WireError as error:
            raise self._lost(error, request) from None
        return self._receive(request, seconds)

    def _send(self, request: dict[str, Any], seconds: float) -> None:
        assert self._sock is not None
        times = {"seconds": seconds * self._home.pace, "wall_seconds": WAITING * seconds * self._home.pace}
        wire.send(self._sock, request | times, self._deadline(seconds))

    def _receive(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to `request`, all of whose predecessors were answered: so the child is at it by now."""
        assert self._sock is not None
        try:
            answer = wire.receive(self._sock, self._limits.program_bytes, self._deadline(seconds))
        except wire.WireError as error:
            raise self._lost(error, request) from None
        return self._checked(answer)

    def _deadline(self, seconds: float) -> float:
        return time.monotonic() + WAITING * seconds * self._home.pace + GRACE_SECONDS

    # --- calls that are not wanted yet -------------------------------------------------------------------------------

    def _traced(self, form: Form) -> Program:
        name = form.name
        while name in self._planned or name in self._asked:
            self._ask_ahead()
            self._take()
        if name not in self._ready:
            self._settle()
            self.load()
            return self._program(self._ask(form.request, self._limits.call_seconds), form.args)
        found = self._ready.pop(name)
        self._ask_ahead()
        if isinstance(found, TraceError):
            raise found
        return found

    def _ask_ahead(self) -> None:
        while self._planned and len(self._asked) < AHEAD and self._sock is not None:
            name = next(iter(self._planned))
            form = self._planned.pop(name)
            try:
                self._send(form.request, self._limits.call_seconds)
            except wire.WireError:  # the child has ended: its last answers may still be there to be read
                self._planned.clear()
                return
            self._asked[name] = form

    def _take(self) -> None:
        """Keeps the next answer until its form is wanted. Where none is to come, there is no process to ask."""
        if not self._asked:
            return self._planned.clear()
        name = next(iter(self._asked))
        form = self._asked.pop(name)
        try:
            self._ready[name] = self._program(self._receive(form.request, self._limits.call_seconds), form.args)
        except TraceError as error:
            self._ready[name] = error

    def _settle(self) -> None:
        """Takes all answers that are to come: nothing else can be asked before."""
        while self._asked:
            self._take()

    def _forget_ahead(self) -> None:
        self._planned.clear()
        self._asked.clear()

    def _checked(self, answer: Any) -> dict[str, Any]:
        if not isinstance(answer, dict):
            raise _nonsense()
        self.output = (self.output + _text(answer.get("output", "")))[: self._limits.output_bytes]
        if "error" in answer:
            raise _trace_error(answer["error"])
        if not isinstance(answer.get("ok"), dict):
            raise _nonsense()
        return answer["ok"]

    def _lost(self, error: wire.WireError, request: dict[str, Any]) -> TraceError:
        """The child is gone, silent or senseless: it is ended, and the next request gets a new one."""
        sock, self._sock, self._loaded = self._sock, None, None
        self._forget_ahead()
        self._kernels.clear()
        status = self._home.end(self._pid)
        if sock is not None:
            sock.close()
        if request["do"] == "load" and not isinstance(self._submission, Nothing):
            _load_nothing()
        where = requests.activity(request)
        if isinstance(error, wire.DeadlineExceeded):
            return TraceError(Cause.TIMEOUT, f"Time is up {where}: does a loop never end?")
        if isinstance(error, wire.ConnectionClosed):
            return TraceError(Cause.CRASH, f"The submission's process ended {where} ({_ending(status)}).")
        return TraceError(Cause.CRASH, f"The submission's process sent no readable answer {where} ({error}).")

    def _program(self, answer: dict[str, Any], args: Sequence[Argument]) -> Program:
        try:
            program = decode(answer["program"])
            known = {key: self._kernels[key] for key in answer["known"]}
            program = replace(program, kernels=program.kernels | known)
            wellformed.check(program, [arg for arg in args if isinstance(arg, View)], known)
        except (ProgramError, KeyError, TypeError, RecursionError) as error:
            raise _nonsense(_text(str(error))) from None
        self._kernels |= program.kernels
        return program


@dataclass(frozen=True)
class Nothing:
    """A submission without a line, for a process that is to load none."""

    text: str = ""


def _load_nothing() -> None:
    """A process that was lost in loading a submission is held against it where one without a line can be loaded.

    Raises:
        Unavailable: it cannot.
    """
    try:
        with Tracer(Nothing()) as tracer:
            tracer.load()
    except TraceError as error:
        why = f"Not even an empty file can be loaded here ({error.message.rstrip('.')})"
        raise Unavailable(f"{why}: see `gradekit doctor`.") from None


def signature(ttir: str) -> list[str] | None:
    """The types of the arguments of a kernel, read by Triton itself in a clean process; None where that refuses it."""
    try:
        with Tracer(Nothing()) as tracer:
            return tracer.signature(ttir)
    except TraceError:
        return None


def prepare() -> None:
    """Starts the server, if it is not running, without waiting for it: call it early, to import torch meanwhile."""
    _server()


class _Server:
    """The process that imports torch and triton once, and forks."""

    def __init__(self) -> None:
        self.scratch = _scratch()
        self.control, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "gradekit.tracer", str(theirs.fileno()), self.scratch, *_without],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self.scratch,
                env=environment(self.scratch),
                start_new_session=True,
            )
        self.owner = os.getpid()
        self.means: Means | None = None
        self.pace = 1.0
        self.lock = threading.Lock()
        self.abandoned: list[int] = []

    def isolation(self) -> Means:
        """By what means submissions are confined here.

        Raises:
            Unavailable: the server cannot be started.
        """
        try:
            with self.lock:
                return self._wait(time.monotonic() + START_SECONDS)
        except (wire.WireError, OSError, ValueError) as error:
            raise _not_started(error) from None

    def fork(self, limits: Limits) -> tuple[int, socket.socket]:
        """A new child: its process id, and the socket to it."""
        while self.abandoned:
            self.end(self.abandoned.pop())
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as failed:
            failed.callback(ours.close)
            answer = self._ask({"do": "fork", "limits": limits.of_process()}, [theirs.fileno()])
            theirs.close()
            self._await_confinement(answer["pid"], ours)
            failed.pop_all()
        return answer["pid"], ours

    def _await_confinement(self, pid: int, sock: socket.socket) -> None:
        """The child's first word, before it has met a submission: that it is confined as was promised."""
        try:
            wire.receive(sock, CONTROL_CAP, time.monotonic() + CONFINE_SECONDS)
        except wire.WireError as error:
            self.end(pid)
            raise Unavailable(
                f"A submission's process could not be confined ({error}): see `gradekit doctor`."
            ) from None

    def end(self, pid: int) -> int:
        """Kills a child, by the number that `fork` gave, and all that it started; its wait status."""
        if self is _current:  # of a server before this one, nothing is left
            with contextlib.suppress(TraceError, Unavailable):
                return self._ask({"do": "end", "pid": pid}, [])["status"]
        return 0

    def stop(self) -> None:
        """Ends the server and every child, whatever they may be doing: the warden sees to it, and removes their files."""
        if os.getpid() != self.owner:
            return
        self.control.close()
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def alive(self) -> bool:
        """Whether it still runs, and is this process's own."""
        return os.getpid() == self.owner and self.process.poll() is None

    def _wait(self, deadline: float) -> Means:
        """What the server says of its place, once it has imported everything."""
        if self.means is None:
            said = wire.receive(self.control, CONTROL_CAP, deadline)
            self.means, self.pace = Means.of(said["means"]), float(said["pace"])
            if self.means.level < CLOSED:
                identity.close_to_others()
        return self.means

    def _ask(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        deadline = time.monotonic() + START_SECONDS
        try:
            with self.lock:
                _insist(self._wait(deadline))
                wire.send_descriptors(self.control, descriptors)
                wire.send(self.control, request, deadline)
                return wire.receive(self.control, CONTROL_CAP, deadline)
        except (wire.WireError, OSError, ValueError) as error:
            if self.means is None:  # no submission has run in it yet
                raise _not_started(error) from None
            raise TraceError(Cause.CRASH, f"The tracer's process has ended ({error}).") from None


def _scratch() -> str:
    """A new folder; as root, one that other users can get to, since submissions run as one of them."""
    folders = (tempfile.gettempdir(), "/tmp", "/var/tmp")
    fit = (folder for folder in folders if os.geteuid() or _is_open(Path(folder)))
    return tempfile.mkdtemp(prefix="gradekit-tracer-", dir=next(fit, None))


def _is_open(folder: Path) -> bool:
    real = folder.resolve()
    return real.is_dir() and all(part.stat().st_mode & 0o001 for part in (real, *real.parents))


def _not_started(error: Exception) -> Unavailable:
    return Unavailable(f"The tracer could not be started ({error}): see `gradekit doctor`.")


# --- how strongly submissions are confined ---------------------------------------------------------------------------

_required = 0
_without: tuple[str, ...] = ()


def isolation() -> Means:
    """By what means submissions are confined on this machine; its `level` is from 0 to 3.

    Raises:
        Unavailable: the tracer cannot be started.
    """
    return _server().isolation()


def pace() -> float:
    """How much slower this machine is than the one that limits of seconds were chosen on: 1 or more, 1 until known."""
    return 1.0 if _current is None else _current.pace


def require(level: int) -> None:
    """From now on, no submission runs in this process's tracers below that level of isolation.

    Raises:
        Unavailable: this machine does not reach it, now or whenever a tracer starts later.
    """
    global _required
    _required = level
    _insist(isolation())


def required() -> int:
    """The level that was last required."""
    return _required


def do_without(*means: str) -> None:
    """Starts the server anew without the named means (fields of Means): to see what is left where a machine has less."""
    global _without, _current
    if _current is not None:
        _current.stop()
    _without, _current = means, None


def _insist(means: Means) -> None:
    if means.level < _required:
        missing = "; ".join(means.missing())
        raise Unavailable(
            f"Submissions are isolated at level {means.level} here, where level {_required} is required ({missing}). "
            "See `gradekit doctor`."
        )


_current: _Server | None = None


def _server() -> _Server:
    global _current
    if _current is None or not _current.alive():
        if _current is not None:
            _current.stop()  # it has died: what it left is cleared away
        atexit.unregister(_stop)
        atexit.register(_stop)
        _current = _Server()
    return _current


def _stop() -> None:
    if _current is not None:
        _current.stop()


def environment(scratch: str) -> dict[str, str]:
    """All that the tracer's process sees of the environment: nothing of the user's but where the packages are."""
    places = [_package_parent(name) for name in ("gradekit", "torch", "triton")]
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": scratch,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(place for place in places if place)),
        "PYTHONUNBUFFERED": "1",
        "TRITON_CACHE_DIR": str(Path(scratch, "triton")),
        "TRITON_DEFAULT_FP_FUSION": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",  # a thread in the server would not survive the fork
        "MKL_NUM_THREADS": "1",
        "TORCHDYNAMO_DISABLE": "1",  # torch.compile in a submission runs its function as it stands
    }


def _package_parent(name: str) -> str:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return ""
    return str(Path(spec.origin).parent.parent)


def _loaded(answer: dict[str, Any]) -> Loaded:
    functions, notes = answer.get("functions"), answer.get("notes")
    if not isinstance(functions, dict) or not isinstance(notes, list) or len(functions) + len(notes) > MOST_NAMES:
        raise _nonsense()
    return Loaded({_text(name): _counts(counts) for name, counts in functions.items()}, tuple(map(_text, notes)))


def _counts(data: Any) -> tuple[int, int]:
    if (
        isinstance(data, list)
        and len(data) == 2
        and all(type(count) is int and -1 <= count < 1 << 16 for count in data)
    ):
        return data[0], data[1]
    raise _nonsense()


def _trace_error(data: Any) -> TraceError:
    try:
        line = data["line"]
        if line is not None and (type(line) is not int or not 0 <= line < 1 << 31):
            return _nonsense()
        return TraceError(Cause(data["cause"]), _text(data["message"]), line, _text(data["detail"]))
    except (KeyError, TypeError, ValueError):
        return _nonsense()


def _text(data: Any) -> str:
    """Text from the wire, without what no encoding can carry, and not too long."""
    if not isinstance(data, str):
        raise _nonsense()
    return data[:MOST_TEXT].encode("utf-8", "replace").decode()


def _nonsense(why: str = "") -> TraceError:
    return TraceError(
        Cause.CRASH, "The submission's process sent an answer that makes no sense." + (f" ({why})" if why else "")
    )


_REASONS = {
    signal.SIGKILL: ": most likely it took too much memory",
    signal.SIGXFSZ: ": it wrote more into files than it may",
    signal.SIGXCPU: ": it computed for longer than it may",
}


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = signal.Signals(os.WTERMSIG(status))
        return f"killed by {number.name}{_REASONS.get(number, '')}"
    return f"exit code {os.WEXITSTATUS(status)}"
