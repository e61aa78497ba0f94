"""The grader's side: every submission, however broken, ends in a result or a TraceError within its time."""

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gradekit import sandbox, wellformed, wire
from gradekit.findings import Cause
from gradekit.program import Kernel, Program, Scalar, View, encode
from gradekit.sandbox import Form, Limits, TraceError, Tracer, replies
from gradekit.sandbox.servers import RunQueue
from gradekit.sandbox.tracer import AHEAD

from .hostile.world import commanded
from .patience import GUARD, eventually
from .tracer.styles import VECTOR_ADD, Text
from .zygote import python_path

X = View(0, "float32", (100,), (1,))
ENTRY = "import torch\ndef entry(x):\n    return torch.empty_like(x)\n"
LIMITS = Limits()
QUICK = Limits(call_seconds=0.4, packages_seconds=0.4)
"""For a call that would never end."""


def load_error(text: str, limits: Limits = LIMITS) -> TraceError:
    with Tracer(Text(text), limits=limits) as tracer, pytest.raises(TraceError) as caught:
        tracer.load()
    return caught.value


def call_error(text: str, limits: Limits = LIMITS) -> TraceError:
    with Tracer(Text(text), limits=limits) as tracer:
        tracer.load()
        with pytest.raises(TraceError) as caught:
            tracer.trace("entry", [X])
    return caught.value


def test_where_nothing_can_be_loaded_no_submission_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose processes end, whatever they load, is at fault itself"""
    ask = Tracer._ask

    def ending(tracer: Tracer, request: dict[str, object], seconds: float) -> dict[str, object]:
        return ask(tracer, request | {"text": "import os; os._exit(1)"}, seconds)

    monkeypatch.setattr(Tracer, "_ask", ending)
    with (Tracer(Text(ENTRY)) as tracer, pytest.raises(sandbox.Unavailable, match="Not even an empty file")):
        tracer.load()


# --- time ------------------------------------------------------------------------------------------------------------


def test_an_endless_loop_at_import_ends_with_its_line() -> None:
    error = load_error("x = 1\nwhile True:\n    x += 1\n", Limits(import_seconds=1.0))
    assert error.cause is Cause.TIMEOUT and error.line in (2, 3)


SILENCE = "for n in (signal.SIGALRM, signal.SIGPROF): signal.signal(n, signal.SIG_IGN)"


@pytest.mark.parametrize(("text", "has_line"), [
    ("def entry(x):\n    while True:\n        pass\n", True),
    (f"import signal\ndef entry(x):\n    {SILENCE}\n    while True: pass\n", False),
    ("import time\ndef entry(x):\n    time.sleep(600)\n", False),
], ids=["an endless loop", "one that silences the child's own alarms", "blocking outside of Python"])
def test_a_call_that_does_not_end_is_ended(text: str, has_line: bool) -> None:
    error = call_error(text, QUICK)
    assert error.cause is Cause.TIMEOUT and (not has_line or error.line in (2, 3))


def test_calls_that_sleep_add_up_until_the_submission_is_too_slow() -> None:
    limits = Limits(total_seconds=0.5, more_seconds=0.01)
    sleeping = "import time\ndef entry(x):\n    time.sleep(0.2)\n    return x\n"
    with Tracer(Text(sleeping), limits=limits) as tracer:
        tracer.load()
        with pytest.raises(TraceError, match="Too slow") as caught:
            for _ in range(50):
                tracer.trace("entry", [X])
        asked = tracer._waits
        with pytest.raises(TraceError, match="Too slow"):
            tracer.trace("entry", [X])
    assert caught.value.cause is Cause.TIMEOUT and asked == tracer._waits < 50


def test_time_without_a_processor_is_not_the_submissions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which other programs run makes nobody too slow"""
    since = time.monotonic()
    monkeypatch.setattr(RunQueue, "seconds", lambda queue: time.monotonic() - since)
    with Tracer(
        Text("import time\ndef entry(x):\n    time.sleep(0.1)\n    return x\n"), limits=Limits(total_seconds=0.05)
    ) as tracer:
        tracer.load()
        for _ in range(3):
            tracer.trace("entry", [X])
    assert tracer._waited < 0.05


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not count")
def test_the_wait_for_processors_is_that_of_the_submissions_own_process() -> None:
    """Also where it lives in a process namespace, and has another number there than here"""
    busy = (
        "import os\nfor _ in range(2 * len(os.sched_getaffinity(0))):\n    if os.fork() == 0:\n"
        "        while True: pass\n"
    )
    spins = (
        "import time\ndef entry(x):\n    began = time.process_time()\n    while time.process_time() < began + "
        "0.4: pass\n"
    )
    with Tracer(Text(busy)) as other, Tracer(Text(spins)) as tracer:
        other.load()
        tracer.load()
        began, waited = time.monotonic(), tracer._run_queue.seconds()
        tracer.trace("entry", [X])
        took, waited = time.monotonic() - began, tracer._run_queue.seconds() - waited
    assert 0 < waited < took


# --- death -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("death", "said"), [
    ("os._exit(0)", "exit code 0"),
    ("os._exit(7)", "exit code 7"),
    ("os.kill(os.getpid(), 9)", "SIGKILL: most likely it took too much memory"),
    ("os.abort()", "SIGABRT"),
    ("ctypes.string_at(0)", "SIGSEGV"),
])
def test_a_process_that_dies_is_a_crash(death: str, said: str) -> None:
    error = call_error(f"import os, ctypes\ndef entry(x):\n    {death}\n")
    assert error.cause is Cause.CRASH and said in error.message


@pytest.mark.parametrize(("text", "line", "said"), [
    ("import sys\ndef entry(x):\n    sys.exit(1)\n", 3, "SystemExit"),
    ("def entry(x):\n    return entry(x)\n", 2, "RecursionError"),
])
def test_exit_and_endless_recursion_are_exceptions_like_any_other(text: str, line: int, said: str) -> None:
    error = call_error(text)
    assert (error.cause, error.line) == (Cause.EXCEPTION, line) and said in error.message


def test_an_exception_in_the_call_has_its_line_and_traceback() -> None:
    error = call_error("def helper(x):\n    return x.nothing\ndef entry(x):\n    return helper(x)\n")
    assert (error.cause, error.line) == (Cause.EXCEPTION, 2)
    assert "AttributeError" in error.message
    assert error.detail.splitlines()[0].startswith("line 4, in entry") and "gradekit" not in error.detail


@pytest.mark.parametrize(
    "code", ["raise ValueError('\\ud800' * 10**7)", "return 10**5000", "return torch.full((2,), 1j, device='cuda')"]
)
def test_what_no_message_can_hold_is_told(code: str) -> None:
    error = call_error(f"import torch\ndef entry(x):\n    {code}\n")
    assert error.cause is Cause.EXCEPTION and len(error.message) < 4000
    error.message.encode()


# --- memory and output -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "greed", ["[0] * 10**12", "torch.empty(10**12)", "torch.ones(10**12)", "bytearray(8 << 30)", "torch.zeros(1 << 31)"]
)
def test_too_much_memory_is_told(greed: str) -> None:
    error = call_error(f"import torch\ndef entry(x):\n    y = {greed}\n", Limits())
    assert (error.cause, error.line) == (Cause.OUT_OF_MEMORY, 3)


def test_output_is_kept_up_to_a_limit_and_away_from_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    text = (
        ENTRY
        + "import sys, os\nprint('hello')\nprint('there', file=sys.stderr)\nos.write(1, b'raw')\nprint('x' * 10**7)\n"
    )
    with Tracer(Text(text)) as tracer:
        tracer.load()
        assert tracer.output.startswith("hello\nthere\n") and len(tracer.output) <= 1 << 16
    assert capfd.readouterr() == ("", "")


# --- isolation of state ----------------------------------------------------------------------------------------------


def test_no_state_passes_from_one_submission_to_the_next() -> None:
    with Tracer(
        Text("import builtins, torch, os\nbuiltins.spoilt = 1\ntorch.empty = None\nos.environ['SPOILT'] = '1'\n")
    ) as first:
        first.load()
        with Tracer(
            Text(ENTRY + "import builtins, os\nassert not hasattr(builtins, 'spoilt') and 'SPOILT' not in os.environ\n")
        ) as second:
            assert second.load().notes == ()
            assert second.trace("entry", [X]).returned == "tensor"


def test_the_environment_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "abc")
    text = "import os\ndef entry(x):\n    return ' '.join(os.environ).find('SECRET')\n"
    with Tracer(Text(text)) as tracer:
        assert tracer.trace("entry", [X]).results == (Scalar(-1),)
    assert "SECRET_TOKEN" not in sandbox.clean_environment("/tmp")


def test_a_submission_can_ask_for_its_users_name() -> None:
    """As torch does for its caches: the user that it runs as has no name in the machine's list"""
    text = "import getpass\nNAME = getpass.getuser()\ndef entry(x):\n    return NAME == 'gradekit'\n"
    with Tracer(Text(text)) as tracer:
        assert tracer.trace("entry", [X]).results == (Scalar(True),)


def test_the_server_dies_with_the_grader() -> None:
    code = (
        "from gradekit import sandbox; import os, sys\n"
        "from types import SimpleNamespace as Text\n"
        "tracer = sandbox.Tracer(Text(text='x = 1')); tracer.load()\n"
        "print(sandbox.host.server().scratch, flush=True); os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": python_path()}
    )
    scratch = done.stdout.strip()
    assert scratch
    assert eventually(lambda: not commanded(scratch)), "a tracer outlived its grader"
    assert eventually(lambda: not Path(scratch).exists()), "the tracer's files outlived the grader"


IMPORTS = """
import gc, torch, triton
def entry(x):
    return [any(one is known for one in gc.get_objects()) for known in (entry, torch, triton)]
"""


def test_a_second_tracer_starts_from_the_warm_server() -> None:
    with Tracer(VECTOR_ADD) as first:
        first.load()
        server = sandbox.host.server()
        with Tracer(Text(IMPORTS)) as second:
            assert second.trace("entry", [X]).results == (Scalar(True), Scalar(False), Scalar(False))
        assert sandbox.host.server() is first._server is second._server is server


# --- calls that are asked for before they are wanted ------------------------------------------------------------------

COUNTS = """
import os, time
calls = 0
def entry(x, *others):
    global calls
    calls += 1
    print(calls)
    if x.shape[0] == 13:
        raise ValueError("thirteen")
    if x.shape[0] == 17:
        os._exit(3)
    return calls
"""


def form(size: int, *others: bool | float) -> Form:
    return Form("entry", (View(0, "float32", (size,), (1,)), *map(Scalar, others)))


def counted(tracer: Tracer, wanted: Form) -> object:
    """Which call of all it was."""
    (result,) = tracer.trace(wanted.entry, wanted.args).results
    assert isinstance(result, Scalar)
    return result.value


def test_calls_are_traced_before_they_are_wanted() -> None:
    with Tracer(Text(ENTRY)) as tracer:
        tracer.prefetch([form(100)])
        assert tracer._sock is not None and select.select([tracer._sock], [], [], GUARD)[0]
        assert tracer.trace("entry", [X]).returned == "tensor"


MANY = [form(size) for size in range(100, 100 + 3 * AHEAD)]
NUMBERS = [form(5, 1), form(5, True), form(5, 1.0)]


@pytest.mark.parametrize(("asked", "wanted", "numbers"), [
    (MANY, MANY[::-1], [*range(len(MANY), 0, -1)]),
    ([form(5), form(5), form(6)], [form(5), form(5)], [1, 3]),
    ([form(5), form(6)], [form(7), form(6), form(5)], [3, 2, 1]),
    (NUMBERS, NUMBERS[::-1], [3, 2, 1]),
    ([form(17), form(5)], [form(7)], [1]),
], ids=["more than at one time", "once each", "beside another call", "equal numbers", "after one that killed the process"])
def test_prefetched_calls_are_traced_in_order_and_given_once(
    asked: list[Form], wanted: list[Form], numbers: list[int]
) -> None:
    with Tracer(Text(COUNTS)) as tracer:
        tracer.prefetch(asked)
        assert [counted(tracer, one) for one in wanted] == numbers


def test_a_call_that_is_on_its_way_is_not_asked_for_again() -> None:
    """A check ended before it wanted the call, and the next expects it too: every
    answer still belongs to its question"""
    with Tracer(Text(COUNTS)) as tracer:
        tracer.prefetch([form(5), form(6), form(7)])
        tracer.forget_planned()
        tracer.prefetch([form(6), form(7), form(8)])
        assert [counted(tracer, wanted) for wanted in (form(6), form(7), form(8))] == [2, 3, 4]
        tracer.prefetch([form(5), form(9)])
        assert [counted(tracer, wanted) for wanted in (form(9), form(5))] == [5, 1]


def test_what_was_prefetched_may_be_forgotten() -> None:
    with Tracer(Text(COUNTS)) as tracer:
        tracer.prefetch([form(size) for size in range(100, 200)])
        tracer.forget_planned()
        assert counted(tracer, form(199)) == AHEAD + 1


def test_a_prefetched_call_that_fails_says_so_when_it_is_wanted() -> None:
    with Tracer(Text(COUNTS)) as tracer:
        tracer.prefetch([form(5), form(13), form(6)])
        assert (counted(tracer, form(5)), counted(tracer, form(6))) == (1, 3)
        with pytest.raises(TraceError, match="thirteen"):
            tracer.trace("entry", form(13).args)


def test_a_process_that_dies_over_a_prefetched_call_is_replaced() -> None:
    with Tracer(Text(COUNTS)) as tracer:
        tracer.prefetch([form(5), form(17), form(6), *[form(size) for size in range(100, 150)]])
        assert counted(tracer, form(5)) == 1
        with pytest.raises(TraceError) as caught:
            tracer.trace("entry", form(17).args)
        assert caught.value.cause is Cause.CRASH
        assert (counted(tracer, form(120)), counted(tracer, form(6))) == (1, 2)


def test_gradients_are_prefetched_too() -> None:
    text = "def entry(x):\n    return x * 2\n"
    asked = Form("entry", (X,), (0,), View(1, "float32", (100,), (1,)))
    with Tracer(Text(text)) as tracer:
        alone = tracer.trace("entry", [X], (0,), asked.upstream)
        tracer.prefetch([asked])
        assert tracer.trace("entry", [X], (0,), asked.upstream) == alone
        assert not tracer._ready and not tracer._asked


# --- answers that make no sense ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [
    "[]", "{}", '{"ok": 3}', '{"ok": {"program": 3}}', '{"error": {}}',
    '{"error": {"cause": "no such", "message": "", "line": 1, "detail": ""}}',
])
def test_an_answer_that_makes_no_sense_is_a_crash(answer: str) -> None:
    forged = f"""
import os, struct, sys
def entry(x):
    for fd in range(3, 20):
        try: os.write(fd, struct.pack("!I", {len(answer)}) + {answer.encode()!r})
        except OSError: pass
"""
    assert call_error(forged).cause is Cause.CRASH


def test_kernels_that_are_too_large_together_are_named_with_what_to_do() -> None:
    """Honest kernels may be as large, where loops are unrolled and configurations many"""
    kernel = Kernel("unrolled\nx", " " * (wellformed.MOST_TTIR * 5 // 8))
    large = encode(Program((X,), {0: 400}, (), (), "none", {"a": kernel, "b": kernel}))
    with pytest.raises(TraceError) as caught:
        replies.program({"program": large, "known": []}, [X], {})
    assert caught.value.cause is Cause.BUDGET_EXCEEDED
    assert "take 5.0 MiB as TTIR" in caught.value.message and "use range, or fewer steps" in caught.value.message
    assert "The largest is unrolled x: 2,560 KiB in one of the 2 versions" in caught.value.message
    one = encode(Program((X,), {0: 400}, (), (), "none", {"a": kernel}))
    assert replies.program({"program": one, "known": []}, [X], {}).kernels == {"a": kernel}


def test_a_kernel_that_was_refused_is_not_known_later() -> None:
    tile = Kernel("k", f"tensor<{wellformed.MOST_IN_A_TILE * 2}xf32>")
    with Tracer(Text(ENTRY)) as tracer:
        for kernels, known in (({"k": tile}, []), ({}, ["k"])):
            program = encode(Program((X,), {0: 400}, (), (), "none", kernels))
            with pytest.raises(TraceError, match="makes no sense"):
                tracer._program({"program": program, "known": known}, [X])


def test_what_a_submission_prints_when_it_is_loaded_again_is_told_once() -> None:
    with Tracer(Text("print('hello')\n" + ENTRY + "def dies(x):\n    import os\n    os._exit(0)\n")) as tracer:
        tracer.load()
        with pytest.raises(TraceError):
            tracer.trace("dies", [X])
        tracer.trace("entry", [X])
        assert tracer.output == "hello\n"


def test_a_kernel_of_an_answer_that_was_refused_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every later call that launches it would be refused, and the submission blamed"""
    forms = [Form("add", (X, View(1, "float32", (100,), (1,))), multiprocessors=n) for n in (132, 1)]
    with Tracer(VECTOR_ADD) as tracer:
        tracer.load()
        with monkeypatch.context() as patch, pytest.raises(TraceError, match="makes no sense"):
            patch.setattr(wellformed, "MOST_IN_A_TILE", 1)
            wellformed._kernel_text.cache_clear()  # another test may have seen the same kernel accepted
            tracer.trace_form(forms[0])
        assert [len(tracer.trace_form(form).kernels) for form in forms] == [1, 1]


def test_all_calls_together_have_a_limit_of_steps_and_results() -> None:
    limits = Limits(parts=30)
    with Tracer(Text("def entry(x):\n    return [x] * 12\n"), limits=limits) as tracer:
        for size in (1, 2, 3):
            tracer.trace("entry", [View(0, "float32", (size,), (1,))])
        with pytest.raises(TraceError) as caught:
            tracer.trace("entry", [View(0, "float32", (4,), (1,))])
    assert caught.value.cause is Cause.BUDGET_EXCEEDED
    assert "30 steps and results" in str(caught.value)


# --- what a process has answered before -------------------------------------------------------------------------------


def counts(text: str, sizes: Sequence[int], number: int | None = 0) -> tuple[list[object], bool]:
    """Which call of all each of these was, and whether a process was asked."""
    with Tracer(Text(text), number=number) as tracer:
        tracer.prefetch(map(form, sizes[:-1]))
        return [counted(tracer, form(size)) for size in sizes], tracer._sock is not None


@pytest.mark.usefixtures("keeping")
def test_a_text_that_is_asked_the_same_again_needs_no_process() -> None:
    assert counts(COUNTS, range(20, 35)) == (list(range(1, 16)), True)
    assert counts(COUNTS, range(20, 35)) == (list(range(1, 16)), False)


@pytest.mark.usefixtures("keeping")
def test_a_process_that_is_needed_late_is_asked_all_that_came_before() -> None:
    """So that it answers as one that was needed from the beginning"""
    counts(COUNTS, [5, 6, 7])
    assert counts(COUNTS, [5, 6, 9, 7]) == ([1, 2, 3, 4], True)


@pytest.mark.usefixtures("keeping")
def test_no_other_text_has_an_answer_of_this_one() -> None:
    counts(COUNTS, [5, 6])
    assert counts(COUNTS.replace("calls += 1", "calls += 10"), [5, 6]) == ([10, 20], True)
    assert counts(COUNTS + "# ours\n", [5, 6]) == ([1, 2], True)
    with Tracer(Text(COUNTS), calling={"entry": {"lists": [(0, 1)]}}, number=0) as tracer:
        tracer.load()
        assert tracer._sock is not None


@pytest.mark.usefixtures("keeping")
def test_whether_time_was_up_is_asked_again() -> None:
    """A busy machine's answer is no property of the text"""
    endless = Text("import time\ndef entry(x):\n    while True: time.sleep(0.01)\n")
    for known in (False, True):
        with Tracer(endless, limits=QUICK, number=0) as tracer:
            tracer.load()
            assert (tracer._sock is None) is known
            with pytest.raises(TraceError) as raised:
                tracer.trace("entry", [X])
            assert raised.value.cause is Cause.TIMEOUT and tracer._sock is not None


@pytest.mark.usefixtures("keeping")
def test_a_process_is_not_answered_for_by_another_of_its_grading() -> None:
    """Nor by one before it that has died: what it says in a new process may be another thing"""
    counts(COUNTS, [5, 6])
    assert counts(COUNTS, [6], number=1) == ([1], True)
    assert counts(COUNTS, [5], number=None) == ([1], True)
    with Tracer(Text(COUNTS), number=0) as tracer:
        assert counted(tracer, form(5)) == 1 and tracer._sock is None
        with pytest.raises(TraceError):
            tracer.trace_form(form(17))
        assert counted(tracer, form(6)) == 1 and tracer._sock is not None


@pytest.mark.usefixtures("keeping")
def test_a_kernel_is_known_to_whoever_asks_in_another_order() -> None:
    calls = [Form("add", (View(0, "float32", (n,), (1,)), View(1, "float32", (n,), (1,)))) for n in (100, 200)]
    with Tracer(VECTOR_ADD, number=0) as tracer:
        first = [tracer.trace_form(call) for call in calls]
    assert first[0].kernels == first[1].kernels
    with Tracer(VECTOR_ADD, number=0) as tracer:
        assert [tracer.trace_form(call) for call in reversed(calls)] == first[::-1] and tracer._sock is None


@pytest.mark.usefixtures("keeping")
def test_where_no_process_is_needed_no_server_is_started() -> None:
    counts(COUNTS, [5])
    sandbox.host.stop()
    with Tracer(Text(COUNTS), number=0) as tracer, Tracer(Text(COUNTS)) as other:
        assert counted(tracer, form(5)) == 1 and sandbox.host._server is None
        assert counted(other, form(5)) == 1 and sandbox.host._server is not None


# --- Messages between processes ---------------------------------------------------------------------------------------


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def soon() -> float:
    """A deadline for what never comes."""
    return time.monotonic() + 0.2


def someday() -> float:
    """A deadline for what comes."""
    return time.monotonic() + GUARD


def test_a_message_arrives_as_it_was_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    wire.send(pair[0], {"a": [1, None, "ä"]}, someday())
    assert wire.receive(pair[1], 1000, someday()) == {"a": [1, None, "ä"]}


@pytest.mark.parametrize(("sent", "error"), [
    (b"", wire.DeadlineExceeded),
    (b"\0\0", wire.DeadlineExceeded),
    (b"\0\0\0\5{}", wire.DeadlineExceeded),
    (b"\0\0\xff\xff{}", wire.WireError),
    (b"\0\0\0\2[[", wire.WireError),
    (b"\0\0\0\2\xff\xfe", wire.WireError),
    (b"\0\0\x03\xe8" + b"[" * 1000, wire.WireError),
], ids=["nothing", "half a length", "half a message", "too long", "not JSON", "not UTF-8", "nested too deep"])
def test_what_is_no_message_is_an_error(
    pair: tuple[socket.socket, socket.socket], sent: bytes, error: type[Exception]
) -> None:
    pair[0].sendall(sent)
    with pytest.raises(error) as caught:
        wire.receive(pair[1], 1000, soon() if error is wire.DeadlineExceeded else someday())
    assert caught.type is error


def test_the_end_of_the_other_side_is_told(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].close()
    with pytest.raises(wire.ConnectionClosed):
        wire.receive(pair[1], 1000, someday())


def test_a_reader_that_does_not_read_is_late(pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(wire.DeadlineExceeded):
        wire.send(pair[0], "x" * (1 << 24), soon())
