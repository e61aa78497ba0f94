"""Whatever happens to the worker's process, the grader gets a result or a fault, in time: on the CPU stand-in."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit import wire
from gradekit.engine.executor import run
from gradekit.findings import Cause
from gradekit.gpu import shared_memory, worker, worker_process
from gradekit.gpu.device_memory import RedZoneWrite
from gradekit.gpu.faults import CardFault, fault_of
from gradekit.gpu.replay import CaughtWrite
from gradekit.gpu.worker import Worker
from gradekit.inputs.as_text import decoded, encoded
from gradekit.program import Allocate, Launch, Literal, View
from gradekit.subject.device import Device
from tests.patience import eventually
from tests.server.forking import forked_tracers
from tests.zygote import python_path

from .programs import (
    AUTOTUNED,
    COPY,
    ENDLESS,
    FAR_AWAY,
    SECOND_TIME,
    answers_awaited_once_it_runs,
    entry,
    normal,
    program,
)


@pytest.fixture(scope="module")
def standin() -> Iterator[Worker]:
    with Worker(None) as found:
        yield found


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def copies(found: Worker) -> bool:
    """Whether an honest kernel runs as it should."""
    made, tensors = entry(COPY, normal(8))
    return torch.equal(found.run(made, tensors).results[0], tensors[0])


def fault_in(found: Worker, body: str, seconds: float = 20.0) -> CardFault:
    made, tensors = entry(body, normal(8))
    with pytest.raises(CardFault) as caught:
        found.run(made, tensors, seconds=seconds)
    return caught.value


# --- what comes back -------------------------------------------------------------------------------------------------


def test_a_run_gives_what_the_engine_gives(standin: Worker) -> None:
    made, tensors = entry(COPY, normal(5, 40))
    ran = standin.run(made, tensors)
    assert torch.equal(ran.results[0], run(made, tensors).results[0])
    assert ran.findings == () and ran.seconds > 0


def test_every_option_can_be_asked_for(standin: Worker) -> None:
    made, tensors = entry(AUTOTUNED, normal(5, 40))
    for option in range(3):
        assert torch.equal(standin.run(made, tensors, option=option).results[0], tensors[0] * 2)


def test_results_without_elements_travel(standin: Worker) -> None:
    empty = View(1, "float32", (0, 3), (3, 1))
    ran = standin.run(program([Allocate(1, 0)], [empty]), [])
    assert ran.results[0].shape == (0, 3)


def test_the_fastest_option_is_kept_and_named(standin: Worker) -> None:
    made, _ = entry(AUTOTUNED, normal(5, 40))
    prepared = standin.prepare(made, [normal(5, 40)])
    assert len(prepared.choices) == 3
    assert prepared.option_label == min(prepared.choices, key=prepared.choices.__getitem__)
    assert "BLOCK=" in prepared.option_label
    standin.forget(prepared.id)


def test_what_the_timed_calls_wrote_can_be_had(standin: Worker) -> None:
    made, _ = entry(AUTOTUNED, normal(5, 40))
    prepared = standin.prepare(made, [normal(5, 40)])
    turn = standin.turn(prepared.id, milliseconds=1)
    first, second = standin.results(prepared.id)
    assert min(turn.seconds) > 0 and first[0].shape == (5, 40)
    assert not torch.equal(first[0], second[0])  # the sets differ
    assert (prepared.launches, prepared.peak_bytes) == (1, 5 * 40 * 4)
    standin.forget(prepared.id)


def test_a_timed_call_finds_nothing_of_an_earlier_one(standin: Worker) -> None:
    made, _ = entry(SECOND_TIME, normal(5, 40))
    prepared = standin.prepare(made, [normal(5, 40)])
    standin.turn(prepared.id, milliseconds=5)
    for (found,) in standin.results(prepared.id):
        assert isinstance(found, torch.Tensor) and not (found == 7).any()
    standin.forget(prepared.id)


def test_what_was_forgotten_cannot_be_timed(standin: Worker) -> None:
    made, _ = entry(COPY, normal(5, 40))
    prepared = standin.prepare(made, [normal(5, 40)])
    standin.forget(prepared.id)
    with pytest.raises(CardFault, match="gone"):
        standin.turn(prepared.id, milliseconds=1)


def test_specs_that_are_one_object_stay_one() -> None:
    x, y = normal(4), normal(4)
    first, number, second, third = decoded(encoded([x, 3, x, y]))
    assert first is second and first == third and first is not third and number == 3


def test_red_zones_are_told_in_the_students_words() -> None:
    made = program([], [View(1, "float32", (4,), (1,))], [View(0, "float32", (4,), (1,))])
    caught = CaughtWrite(RedZoneWrite(1, "after", 8, 0), 0, "k", 12)
    finding = worker._finding(caught, made, ["x"])
    assert finding.cause is Cause.OUT_OF_BOUNDS_STORE
    assert finding.message == "k wrote right after the memory of the result, on the card."
    assert (finding.line, finding.kernel, finding.count) == (12, "k", 8)


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_an_illegal_access_names_the_kernel_and_ends_the_process(standin: Worker) -> None:
    fault = fault_in(standin, FAR_AWAY)
    assert (fault.kind, fault.kernel) == ("illegal-access", "far_away") and fault.line
    assert standin.pid is None


def test_after_a_fault_the_next_request_gets_a_new_process(standin: Worker) -> None:
    fault_in(standin, FAR_AWAY)
    assert copies(standin)


@pytest.mark.sample(3, of="ends of workers")
def test_a_kernel_that_does_not_end_is_killed(standin: Worker) -> None:
    assert copies(standin)
    pid = standin.pid
    with answers_awaited_once_it_runs(standin, "endless"):
        fault = fault_in(standin, ENDLESS, seconds=1.0)
    assert (fault.kind, fault.kernel) == ("hang", "endless") and fault.line
    assert pid and gone(pid)


def test_a_process_that_dies_is_a_crash(standin: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    assert copies(standin)
    send = wire.send

    def send_and_kill(*message: Any) -> None:
        os.kill(standin.pid, signal.SIGSTOP)  # or it might have answered by the time that it is killed
        send(*message)
        os.kill(standin.pid, signal.SIGKILL)

    monkeypatch.setattr(wire, "send", send_and_kill)
    with pytest.raises(CardFault) as caught:
        copies(standin)
    assert caught.value.kind == "crash"


def test_a_process_that_something_else_kills_once_costs_nothing(
    standin: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel does where memory runs out"""
    assert copies(standin)
    send, killed = wire.send, []

    def send_and_kill_once(*message: Any) -> None:
        if not killed:
            killed.append(standin.pid)
            os.kill(standin.pid, signal.SIGKILL)
        send(*message)

    monkeypatch.setattr(wire, "send", send_and_kill_once)
    assert copies(standin)
    assert killed and standin.pid not in killed


def test_what_was_prepared_is_gone_with_its_process(standin: Worker) -> None:
    made, tensors = entry(COPY, normal(8))
    prepared = standin.prepare(made, [normal(8)])
    fault_in(standin, FAR_AWAY)
    standin.run(made, tensors)
    with pytest.raises(CardFault, match="gone"):
        standin.turn(prepared.id, milliseconds=1)


def test_a_program_that_makes_no_sense_harms_nobody(standin: Worker) -> None:
    assert copies(standin)
    pid = standin.pid
    with pytest.raises(CardFault):
        standin.run(program([Launch("nothing", (1, 1, 1), ())], []), [])
    assert copies(standin) and standin.pid == pid


def test_a_message_that_is_too_long_is_refused(standin: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process.wire, "CAP", 4)
    with pytest.raises(CardFault):
        standin.run(program([Allocate(1, 4), Literal(View(1, "float32", (1,), (1,)), (1.0,))], []), [])


def test_an_answer_is_never_taken_for_another(standin: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted while it waits, the grader ends the process instead of reading the late answer next time"""
    assert copies(standin)

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(wire, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            copies(standin)
    assert standin.pid is None
    assert copies(standin)


# --- what is left behind ---------------------------------------------------------------------------------------------


@pytest.mark.sample(3, of="ends of workers")
def test_nothing_is_left_when_it_is_closed() -> None:
    found = Worker(None)
    assert copies(found)
    folder, pid = found._process.folder, found.pid
    assert folder and pid
    found.close()
    assert not folder.exists() and gone(pid)


def test_nothing_is_started_before_it_is_needed() -> None:
    assert Worker(None).pid is None


def test_a_process_begins_before_its_grader_has_imported_torch() -> None:
    check = "import sys, gradekit.gpu.worker_process; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_a_process_that_has_begun_is_the_workers() -> None:
    early = worker_process.WorkerProcess("cpu")
    with Worker(None, early) as found:
        assert copies(found) and found.pid == early.pid
    assert gone(early.pid)


@pytest.mark.sample(3, of="ends of workers")
def test_a_process_that_has_begun_for_no_card_is_ended() -> None:
    early = worker_process.WorkerProcess("cpu")
    Device("cpu", early=early).close()
    assert gone(early.pid)


@pytest.mark.parametrize(("device", "torch_version", "visible", "begins"), [
    ("auto", "2.13.0", None, "cuda:0"), ("cuda:1", "2.11.0+cu130", "0,1", "cuda:1"), ("auto", "2.13.0", "", None),
    ("auto", "2.13.0+cpu", None, None), ("cpu", "2.13.0", None, None), ("standin", "2.13.0", None, None),
])
def test_a_process_begins_where_there_seems_to_be_a_card(
    device: str, torch_version: str, visible: str | None, begins: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "DRIVER", Path(__file__))
    monkeypatch.setattr(worker_process, "version", lambda name: torch_version)
    monkeypatch.setattr(worker_process, "WorkerProcess", lambda device: device)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert worker_process.start_early(device) == begins


STARTER = """
import sys, time
from gradekit.gpu.worker import Worker
from gradekit.inputs.as_text import decoded, encoded
worker = Worker(None)
worker.start()
print(worker.pid, worker._process.folder, flush=True)
time.sleep(600)
"""


@pytest.mark.sample(3, of="ends of workers")
def test_it_never_outlives_the_grader() -> None:
    environment = os.environ | {"PYTHONPATH": python_path(), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", STARTER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as grader:
        pid, folder = grader.stdout.readline().split()
        grader.kill()
    assert eventually(lambda: gone(int(pid)))
    for file in Path(folder).iterdir():
        file.unlink()
    Path(folder).rmdir()


def test_it_sees_little_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("SECRET", "s")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    seen = worker_process.environment(tmp_path, "cuda:0")
    assert "SECRET" not in seen and "TRITON_INTERPRET" not in seen
    assert seen["CUDA_VISIBLE_DEVICES"] == "1"
    assert seen["TRITON_CACHE_DIR"].startswith(str(tmp_path))


# --- files -----------------------------------------------------------------------------------------------------------


def test_memory_is_shared() -> None:
    memory = shared_memory.shared([16, 0, 5])
    first, last = memory.tensor(0), memory.tensor(2)
    shared_memory.mapped(memory.descriptor, memory.pieces[0]).fill_(7)
    memory.close()
    assert first.tolist() == [7] * 16 and last.tolist() == [0] * 5


def test_nobody_can_take_a_part_of_it_back() -> None:
    """To read a page that is gone would end the grader"""
    memory = shared_memory.shared([16])
    with pytest.raises(PermissionError):
        os.ftruncate(memory.descriptor, 0)
    memory.close()


def test_a_worker_forked_from_a_process_with_torch_is_as_confined_as_any(standin: Worker) -> None:
    """And answers alike"""
    made, tensors = entry(COPY, normal(5, 40))
    with forked_tracers(), Worker(None) as forked:
        assert forked.means == standin.means
        assert torch.equal(forked.run(made, tensors).results[0], standin.run(made, tensors).results[0])
        assert b"gradekit.gpu" not in Path(f"/proc/{forked.pid}/cmdline").read_bytes()


@pytest.mark.sample(3, of="ends of workers")
def test_a_forked_worker_ends_where_nobody_asks_it_any_more() -> None:
    """A grader that was killed ends nothing itself"""
    with forked_tracers():
        left = Worker(None)
        left.start()
        pid = left.pid
        assert pid is not None and not gone(pid)
    assert eventually(lambda: gone(pid))
    left.close()


# --- Faults -----------------------------------------------------------------------------------------------------------


class OutOfResources(Exception):
    """As Triton's."""


@pytest.mark.parametrize(("error", "kind"), [
    (RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with"), "illegal-access"),
    (RuntimeError("Triton Error [CUDA]: misaligned address"), "illegal-access"),
    (RuntimeError("CUDA error: device-side assert triggered"), "illegal-access"),
    (RuntimeError("Triton Error [CUDA]: out of memory"), "out-of-memory"),
    (RuntimeError("Triton Error [CUDA]: invalid argument"), "resources"),
    (OutOfResources("out of resource: shared memory"), "resources"),
    (RuntimeError("CUDA error: the launch timed out and was terminated"), "hang"),
    (RuntimeError("something else"), "crash"),
    (KeyError(3), "crash"),
])
def test_an_error_has_a_kind(error: Exception, kind: str) -> None:
    assert fault_of(error).kind == kind


def test_only_a_kernel_that_broke_the_rules_ends_the_process() -> None:
    assert fault_of(RuntimeError("CUDA error: an illegal memory access was encountered")).deadly
    assert not fault_of(RuntimeError("CUDA out of memory. Tried to allocate")).deadly


ASSEMBLER = ("PTXAS error: codegen error", "`ptxas` stderr:", "ptxas fatal   : Insufficient registers (64)", "Repro")


@pytest.mark.parametrize(
    ("lines", "words"),
    [(("CUDA error: misaligned address", "CUDA kernel errors might be reported later"), "misaligned address"), (ASSEMBLER, ASSEMBLER[2])],
)
def test_the_words_are_the_first_line_without_the_speaker_or_what_the_assembler_says(lines: tuple[str, ...], words: str) -> None:
    assert fault_of(RuntimeError("\n".join(lines))).message == words


def test_a_fault_travels_as_json() -> None:
    fault = CardFault("hang", "endless", "kernel", 7)
    again = CardFault.from_json(fault.to_json())
    assert (again.kind, again.message, again.kernel, again.line) == ("hang", "endless", "kernel", 7)


@pytest.mark.parametrize("data", [None, {}, {"kind": "mystery"}, [1]])
def test_what_is_no_fault_is_a_crash(data: object) -> None:
    assert CardFault.from_json(data).kind == "crash"
