"""One submission in a process of its own, asked to load and to trace."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import socket
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from gradekit import framework, reuse, wire
from gradekit.findings import Cause
from gradekit.framework import Inspection
from gradekit.origins import Explored, Origins
from gradekit.program import Argument, Kernel, Program, View, encode, every_step
from gradekit.sandbox import replies
from gradekit.sandbox.replies import Loaded, TraceError, Unavailable, malformed
from gradekit.sandbox.servers import DEFAULT, ForkServer, Limits, RunQueue, host
from gradekit.submission import Submission

INSPECT_SECONDS = 60.0  # how long importing torch.compile's machinery and compiling a small model may take

GRACE_SECONDS = 2.0  # how much longer than its own alarm the child is given before it is killed

WAITING = 2.5  # how many times its seconds of computing a request may take by the clock

AHEAD = 8
"""How many calls a submission's process is given before the first of them is wanted: few enough for their requests to
lie in the socket's buffer, whatever the process is doing."""


T = TypeVar("T")


_ANSWERS: reuse.SharedCache[tuple[bytes, str, int], tuple[object, str]] = reuse.shared()
"""What processes answered, or why they did not, and what they printed."""


NO_SUBMISSION = Submission("", "", "")  # an empty submission, for a process that is to load none


Calling = Mapping[str, Mapping[str, Any]]
PLAINLY: Calling = {}


class Tracer(contextlib.AbstractContextManager["Tracer"]):
    """One submission in a process of its own, which starts with the first request. Use it as a context manager, or
    `close` it. `output` is what the submission has printed so far. `calling` says, by entry, which of its arguments
    are passed as "lists": (place of the first, how many), and which are "options", at times by name: (place, name).
    With a `number`, what it answers is remembered (see `_remembered`), and processes with the same `lowered` find there
    what each of them has lowered."""

    def __init__(
        self, submission: Submission, *, limits: Limits = DEFAULT, calling: Calling = PLAINLY,
        number: int | None = None, lowered: wire.ForkedCache | None = None,
    ) -> None:  # fmt: skip
        self.output = ""
        self._lowered = lowered
        self._calling = calling
        self._submission = submission
        self._limits = limits
        self._kernels: dict[str, Kernel] = {}
        self._loaded: Loaded | None = None
        self._has_loaded = False  # in this process or one before: then what it prints has been seen
        self._who = b""
        if number is not None and reuse.is_keeping():
            who = repr((submission.text, calling, limits, number))
            self._who = hashlib.sha256(who.encode()).digest()
        self._times = Counter[str]()  # of each question
        self._unasked: list[Callable[[], object]] | None = [] if self._who else None
        is_late = reuse.is_keeping() and (not self._who or self._is_known("load"))
        self._started: ForkServer | None = None if is_late else host.server()
        self._sock: socket.socket | None = None
        self._pid = 0
        self._run_queue = RunQueue()
        self._waited, self._waits, self._too_slow, self._parts, self._timed = 0.0, 0, False, 0, 0
        # by name
        self._planned: dict[str, Form] = {}  # that will be asked for, once fewer than AHEAD are
        self._asked: dict[str, Form] = {}  # in the order of the answers that are to come
        self._ready: dict[str, Program | TraceError] = {}  # what came before it was wanted

    def start(self) -> None:
        """Starts the process, and waits for nothing. Raises TraceError where it cannot be started."""
        if self._sock is None:
            told = self._lowered.readable if self._lowered else ()
            self._started, self._pid, self._sock, self._run_queue = host.fork(self._limits, told)

    def load(self) -> Loaded:
        """Runs the submission's top-level statements (once). Raises TraceError where it cannot be loaded."""
        if self._loaded is None:
            self._loaded = self._remembered("load", self._load)
        return self._loaded

    def _load(self) -> Loaded:
        printed = self.output
        request = {"do": "load", "text": self._submission.text, "calling": self._calling}
        answer = self._ask(request, self._limits.import_seconds)
        self.output, self._has_loaded = printed if self._has_loaded else self.output, True
        return replies.loaded(answer)

    def replace(self, submission: Submission) -> None:
        """Takes another text in the same process. What the first did may show: no verdict may rest on the second."""
        self._settle()
        self._ready.clear()
        self._submission, self._loaded, self._has_loaded = submission, None, False
        self._who, self._unasked = b"", None
        self._waited, self._waits, self._too_slow, self._parts, self._timed = 0.0, 0, False, 0, 0

    def trace(
        self, entry: str, args: Sequence[Argument], wanted: Sequence[int] = (), upstream: View | None = None
    ) -> Program:
        """The program of `entry(*args)`: tensors as views of storages that the caller numbers, numbers as Scalars.

        With the positions `wanted` of tensor arguments, of its backward pass too: the last input is the gradient of the
        result (laid out as `upstream` says, contiguous by default), and the results are the gradients of these
        arguments, None where there is none. Raises TraceError where the call or its backward pass fails, or is not one
        that can be traced.
        """
        return self.trace_form(Form(entry, tuple(args), tuple(wanted), upstream))

    def follow(self, form: Form) -> tuple[Program, Origins]:
        """The program of a call and the origins of its numbers: neither is to be trusted, run or judged. Raises
        TraceError where the call fails, or is not one that can be traced."""

        def ask() -> tuple[Program, Origins]:
            answer = self._told(form.following, self._limits.call_seconds)
            return self._program(answer, form.args), replies.part(answer, "origins", Origins)

        return self._remembered("follow " + form.name, ask)

    def explore(self, form: Form) -> Explored:
        """What host code compares in a call, whose kernels are not compiled: not to be trusted. Raises TraceError where
        there is no such entry, or the process was lost."""
        ask = lambda: replies.part(self._told(form.exploring, self._limits.call_seconds), "explored", Explored)
        return self._remembered("explore " + form.name, ask)

    def instructions(self, entry: str, args: Sequence[Argument]) -> int:
        """How many instructions of the submission a call of `entry` executes, without its kernels; 0 where it fails.
        Raises TraceError where there is no such entry, or the process was lost."""
        request = {"do": "instructions", "entry": entry, "args": [encode(arg) for arg in args]}
        ask = lambda: replies.count(self._told(request, self._limits.call_seconds), "instructions")
        return self._remembered(repr(request), ask)

    def prefetch(self, forms: Iterable[Form]) -> None:
        """Asks for calls before they are wanted: the submission's process traces them, in this order, while this one
        does something else. Each is then given, once, by `trace` or `trace_form`, errors too; wanting them in the same
        order keeps waiting short. Where the process is lost, the rest are forgotten, and traced when they are wanted.
        Raises TraceError where the submission cannot be loaded."""
        self.load()
        known = self._asked.keys() | self._ready.keys()  # for a check before, which then did not want it
        planned = {name: form for form in forms if (name := form.name) not in known}
        if not all(map(self._is_known, planned)):
            self._catch_up()
        if self._unasked is None:
            self._planned |= planned
            self._ask_ahead()

    def forget_planned(self) -> None:
        """Asks for no more of what was prefetched than has been asked for."""
        self._planned.clear()

    def inspect(self, entry: str, args: Sequence[Argument], wanted: Sequence[int] = (0,)) -> Inspection:
        """What torch makes of a model around `entry`, compiled for tensors like `args`, of which those at the positions
        `wanted` want gradients; takes some seconds. Raises TraceError for no such entry, or a lost process."""
        request = {"do": "inspect", "entry": entry, "args": [encode(arg) for arg in args], "wanted": list(wanted)}
        self._catch_up()
        found = replies.part(self._told(request, INSPECT_SECONDS), "inspection", Inspection)
        return framework.of_submission(found, self._submission.text)

    def signature(self, ttir: str) -> list[str]:
        """The types of the arguments of the kernel that `ttir` is, as Triton names them; nothing is loaded for it.
        Raises TraceError where MLIR or Triton do not accept the text, or break down over it."""
        self._settle()
        return replies.types(self._ask({"do": "signature", "ttir": ttir}, self._limits.call_seconds))

    def close(self) -> None:
        """Ends the process."""
        self._left(lambda: self._server.end(self._pid))

    def abandon(self) -> None:
        """As `close`, for where nothing may be asked of the server (the garbage collector calls at any time): the
        process ends by itself, and the server is told with the next request."""
        self._left(lambda: self._server.abandoned.append(self._pid))

    def _left(self, tell: Callable[[], object]) -> None:
        self._forget_ahead()
        if self._sock is not None:
            self._sock.close()
            self._sock = None
            self._run_queue.close()
            tell()

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- what was answered before ------------------------------------------------------------------------------------

    def _remembered(self, question: str, ask: Callable[[], T]) -> T:
        """What the process answers. A grader that keeps what it learns (see gradekit.reuse) keeps this, for a later
        grading, under all that the process can have made it from: the text, the limits, the question and how
        often it was asked before; versions and machine are those of this process. As long as it has the answers, it
        needs no process; from the first that it has not, one is asked everything from the beginning. The process of
        another `number`, which is another of the same grading, or one after one that was lost answers for itself.
        Raises TraceError as `ask` does."""
        key = self._key(question)
        self._times[question] += 1
        known: tuple[object, str] | None = self._known(key)
        if known is not None and self._unasked is not None:
            self._unasked.append(ask)
            self.output = (self.output + known[1])[: self._limits.output_bytes]
        else:
            self._catch_up()
            known = self._asked_now(ask)
            is_late = isinstance(known[0], TraceError) and known[0].cause is Cause.TIMEOUT  # the machine was busy
            if self._who and not is_late:
                _ANSWERS.put(key, known)
        if isinstance(known[0], TraceError):
            raise known[0].with_traceback(None)
        return cast(T, known[0])

    def _asked_now(self, ask: Callable[[], object]) -> tuple[object, str]:
        printed = len(self.output)
        try:
            return ask(), self.output[printed:]
        except TraceError as error:
            return error, self.output[printed:]

    def _key(self, question: str) -> tuple[bytes, str, int]:
        return self._who, question, self._times[question]

    def _is_known(self, question: str) -> bool:
        return self._known(self._key(question)) is not None

    def _known(self, key: tuple[bytes, str, int]) -> tuple[object, str] | None:
        return None if self._unasked is None else _ANSWERS.get(key)

    def _catch_up(self) -> None:
        unasked, self._unasked = self._unasked or (), None
        printed = self.output
        for ask in unasked:
            self._asked_now(ask)
        self.output = printed

    @property
    def _server(self) -> ForkServer:
        assert self._started is not None
        return self._started

    # --- requests and answers ----------------------------------------------------------------------------------------

    def _told(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        self._settle()
        self.load()
        return self._ask(request, seconds)

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        self._refuse_too_slow()
        self.start()
        try:
            self._send(request, seconds)
        except wire.WireError as error:
            raise self._lost(error, request) from None
        return self._receive(request, seconds)

    def _send(self, request: dict[str, Any], seconds: float) -> None:
        assert self._sock is not None
        own, patience = seconds * self._server.pace, self._limits.packages_seconds / seconds
        times = {"seconds": own, "wall_seconds": WAITING * own, "patience": patience}
        wire.send(self._sock, request | times, self._deadline(seconds))

    def _receive(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to `request`. All earlier requests have been answered, so the child is working on this one."""
        assert self._sock is not None
        began, idle = time.monotonic(), self._run_queue.seconds()
        try:
            answer = wire.receive(self._sock, self._limits.program_bytes, self._deadline(seconds))
        except wire.WireError as error:
            if isinstance(error, wire.DeadlineExceeded):
                self._count(time.monotonic() - began - (self._run_queue.seconds() - idle))
            raise self._lost(error, request) from None
        self._count(time.monotonic() - began - (self._run_queue.seconds() - idle))
        self._refuse_too_slow()
        return self._checked(answer)

    def _count(self, seconds: float) -> None:
        self._waited, self._waits = self._waited + max(seconds, 0.0), self._waits + 1
        limits = self._limits
        most = limits.total_seconds + self._waits * limits.more_seconds + self._timed * limits.timed_seconds
        if self._waited > most * self._server.pace:
            self._too_slow = True

    def _refuse_too_slow(self) -> None:
        if self._parts > self._limits.parts:
            most = f"{self._limits.parts:,} steps and results"
            raise TraceError(Cause.BUDGET_EXCEEDED, f"All calls together have more than {most}: do and return less.")
        if self._too_slow:
            allowed = f"{self._limits.total_seconds:g} s, and {self._limits.more_seconds:g} s for each call"
            message = f"Too slow: its Python code computes or sleeps for more than {allowed}, before any kernel runs."
            raise TraceError(Cause.TIMEOUT, message)

    def _seconds(self, form: Form) -> float:
        """Of computing, for one call: with another GPU than usual, the submission may have to be loaded anew for it."""
        loading = 0.0 if form.multiprocessors == MANY else self._limits.import_seconds
        return (self._limits.timed_seconds if form.is_timed else self._limits.call_seconds) + loading

    def _deadline(self, seconds: float) -> float:
        most = seconds + self._limits.packages_seconds
        return time.monotonic() + WAITING * most * self._server.pace + GRACE_SECONDS

    def _checked(self, answer: Any) -> dict[str, Any]:
        if not isinstance(answer, dict):
            raise malformed()
        self.output = (self.output + replies.text(answer.get("output", "")))[: self._limits.output_bytes]
        if "error" in answer:
            raise replies.error(answer["error"])
        if not isinstance(answer.get("ok"), dict):
            raise malformed()
        return answer["ok"]

    def _lost(self, error: wire.WireError, request: dict[str, Any]) -> TraceError:
        """End a child that has exited, does not answer, or sends nonsense; the next request gets a new one."""
        status = self._ended()
        if request["do"] == "load" and self._submission is not NO_SUBMISSION:
            _load_nothing()
        where = wire.activity(request)
        if isinstance(error, wire.DeadlineExceeded):
            return TraceError(Cause.TIMEOUT, f"Time is up {where}: does a loop never end?")
        if isinstance(error, wire.ConnectionClosed):
            return TraceError(Cause.CRASH, f"The submission's process ended {where} ({replies.ending(status)}).")
        return TraceError(Cause.CRASH, f"The submission's process sent no readable answer {where} ({error}).")

    def _ended(self) -> int:
        """Ends the child, and forgets what it has sent: the next request gets a new one. How the child ended."""
        sock, self._sock, self._loaded, self._who = self._sock, None, None, b""
        self._forget_ahead()
        self._kernels.clear()
        status = self._server.end(self._pid)
        if sock is not None:
            sock.close()
        self._run_queue.close()
        return status

    def _program(self, answer: dict[str, Any], args: Sequence[Argument]) -> Program:
        try:
            program = replies.program(answer, args, self._kernels)
        except TraceError:
            if self._sock is not None:
                self._ended()  # it takes the kernels of this answer for known from now on
            raise
        self._kernels |= program.kernels
        if self._lowered is not None:
            for key, value in replies.lowered(answer).items():
                self._lowered.put(key, value)
        self._parts += sum(1 for _ in every_step(program.steps)) + len(program.results)
        return program

    # --- calls that are not wanted yet -------------------------------------------------------------------------------

    def trace_form(self, form: Form) -> Program:
        """The program of a call, as `trace` gives it. Raises TraceError where it fails, or cannot be traced."""
        return self._remembered(form.name, lambda: self._trace(form))

    def _trace(self, form: Form) -> Program:
        name = form.name
        while name in self._planned or name in self._asked:
            self._ask_ahead()
            self._take()
        if name not in self._ready:
            self._settle()
            self.load()
            self._timed += form.is_timed
            return self._program(self._ask(form.request, self._seconds(form)), form.args + form.others)
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
                self._send(form.request, self._seconds(form))
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
            self._ready[name] = self._program(self._receive(form.request, self._seconds(form)), form.args + form.others)
        except TraceError as error:
            self._ready[name] = error

    def _settle(self) -> None:
        """Takes all answers that are to come: nothing else can be asked before."""
        while self._asked:
            self._take()

    def _forget_ahead(self) -> None:
        self._planned.clear()
        self._asked.clear()


def _load_nothing() -> None:
    """Losing a process by loading a submission counts against it if an empty one can be loaded; else Unavailable."""
    try:
        with Tracer(NO_SUBMISSION) as tracer:
            tracer.load()
    except TraceError as error:
        why = f"Not even an empty file can be loaded here ({error.message.rstrip('.')})"
        raise Unavailable(f"{why}: see `gradekit doctor`.") from None


# --- a call that is to be traced --------------------------------------------------------------------------------------


MANY, FEW = 132, (1, 3)
"""Multiprocessors of the GPU that a call is traced for: an H100's, or so few that each has several tiles to do."""

MOST_ELEMENTS = 1 << 16
"""The most elements of all arguments with which a call is traced for few, which do one thing after another."""


def multiprocessors_for(args: Sequence[Argument], key: str) -> int:
    """How many multiprocessors a call with these arguments is traced for, where nothing is timed: for
    two in three small calls few, so that loops over tiles run more than once. It depends on `key` alone,
    and so is the same for everybody."""
    elements = sum(arg.numel for arg in args if isinstance(arg, View))
    choices = (MANY, *FEW) if elements <= MOST_ELEMENTS else (MANY,)
    return choices[zlib.crc32(key.encode()) % len(choices)]


@dataclass(frozen=True)
class Form:
    """`entry(*args)`, and its backward pass where gradients are `wanted`, as `Tracer.trace` describes it; host
    code that asks is told that the GPU has so many `multiprocessors`. With `others`, `entry(*others)` is called
    before the backward pass, or with the same tensors before the call in the way that says so: its tensors are inputs
    of the program too, after those of `args`. Of many configurations
    of an autotuned launch some are recorded, which the form decides; all of them where it `is_timed`. It is called in
    the usual `way`, "", or in one of `gradekit.tracer.trace`. Its kernels are specialized as Triton would where it
    `is_exact`: of two forms that differ in no more, a submission is asked for one."""

    entry: str
    args: tuple[Argument, ...]
    wanted: tuple[int, ...] = ()
    upstream: View | None = None
    multiprocessors: int = MANY
    others: tuple[Argument, ...] = ()
    is_timed: bool = False
    way: str = ""
    is_exact: bool = field(default=True, repr=False)

    @functools.cached_property
    def name(self) -> str:
        """A key that tells apart calls which compare equal: 1 and True, 0.0 and -0.0."""
        return repr(self)

    @property
    def turn(self) -> int | None:
        """Which of many configurations the call records: see `gradekit.tracer.autotune`."""
        return None if self.is_timed else zlib.crc32(self.name.encode())

    @functools.cached_property
    def request(self) -> dict[str, Any]:
        """What the tracer is asked: worked out once, for a class makes the same calls. Not to be changed."""
        request = {
            "do": "trace", "entry": self.entry, "args": [encode(arg) for arg in self.args],
            "multiprocessors": self.multiprocessors, "turn": self.turn, "way": self.way,
            "exact": self.is_exact, "others": [encode(arg) for arg in self.others],
        }  # fmt: skip
        if not self.wanted:
            return request
        layout = None if self.upstream is None else encode(self.upstream)
        return request | {"wanted": list(self.wanted), "upstream": layout}

    @property
    def following(self) -> dict[str, Any]:
        """What the tracer is asked for the origins of the call's numbers; a gradient of the result is contiguous."""
        args = [encode(arg) for arg in self.args]
        return {"do": "follow", "entry": self.entry, "args": args, "wanted": list(self.wanted)}

    @property
    def exploring(self) -> dict[str, Any]:
        """What the tracer is asked for what host code compares in the call."""
        layout = None if self.upstream is None else encode(self.upstream)
        return self.following | {"do": "explore", "upstream": layout}
