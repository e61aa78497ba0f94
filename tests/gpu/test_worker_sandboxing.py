"""Who breaks the compiler by hostile TTIR commands the worker's process, and finds nothing there: see captured.py."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit import wire
from gradekit.confine import landlock, seccomp
from gradekit.gpu import card, shared_memory, worker, worker_process
from gradekit.gpu.worker import CardFault, Worker
from gradekit.gpu.worker_process import WorkerProcess
from gradekit.program import Allocate, Kernel, Launch, View
from gradekit.sandbox import host
from gradekit.subject.device import NeedsCard, judged
from tests.beside import beside
from tests.hostile.world import World, opened

from .programs import COPY, entry, normal, program

CASES = beside(__file__)

pytestmark = pytest.mark.skipif(not seccomp.available(), reason="no seccomp here")
CARD = pytest.param("cuda", marks=pytest.mark.gpu)
needs_landlock = pytest.mark.skipif(not landlock.version(), reason="no Landlock here")


def on(device: str) -> Worker:
    return Worker(card.find() if device == "cuda" else None)


@pytest.fixture(scope="module", params=["cpu", CARD])
def captured(request: pytest.FixtureRequest) -> Iterator[Worker]:
    with on(request.param) as found:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker_process, "MODULE", "tests.gpu.captured")
            assert found.means.seccomp
        yield found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(opened(tmp_path_factory.mktemp("world"))) as made:
        yield made


def said(found: Worker, order: str) -> str:
    """What Python, run in the worker's process, left in `got`."""
    text = f"import ctypes, os, signal, socket, subprocess, sys\n{order}\n".encode()
    memory = shared_memory.shared([1 << 16])
    memory.tensor(0)[: len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    try:
        return str(json.loads(found._ask({"do": "run"}, 30.0, memory.descriptor)["got"]))
    finally:
        memory.close()


SHUT = CASES["shut"]
CLOSED = CASES["closed"]


def assert_harmless(found: Worker, world: World, order: str) -> None:
    heard = said(found, order.format(**world.names()))
    assert list(world.wounds(heard)) == []


@needs_landlock
@pytest.mark.parametrize("order", SHUT.values(), ids=SHUT)
def test_of_files_it_has_none_but_its_own(captured: Worker, world: World, order: str) -> None:
    assert_harmless(captured, world, order)


@pytest.mark.parametrize("order", CLOSED.values(), ids=CLOSED)
def test_what_reaches_out_of_it_is_refused(captured: Worker, world: World, order: str) -> None:
    assert_harmless(captured, world, order)


def test_on_an_old_kernel_what_reaches_out_is_refused_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are open then, and its level says so"""
    monkeypatch.setattr(worker_process, "MODULE", "tests.gpu.captured")
    with Worker(None) as found:
        found._without = ("landlock",)
        assert found.means.level <= 1  # as root 0, where root alone may read Python
        for order in CLOSED.values():
            assert_harmless(found, world, order)


def test_its_own_work_it_can_do(captured: Worker) -> None:
    """Files in its folder, a C compiler where there is one, ptxas, threads, and packages that it had not imported"""
    order = (
        "import threading, sqlite3, glob, shutil, triton\nopen('a.c', 'w').write('int f(void) { return 7; }')\n"
        "thread = threading.Thread(target=print); thread.start(); thread.join()\n"
        "ptxas = glob.glob(triton.__path__[0] + '/backends/nvidia/bin/ptxas')[0]\n"
        "got = [subprocess.run([ptxas, '--version']).returncode]\n"
        "if shutil.which('gcc'):\n    subprocess.run(['gcc', '-O3', '-shared', '-fPIC', 'a.c', '-o', 'a.so'], "
        "check=True)\n"
        "    got.append(ctypes.CDLL(folder + '/a.so').f())"
    )
    assert said(captured, order) in ("[0, 7]", "[0]")


def test_every_thread_of_it_is_shut_in(captured: Worker) -> None:
    """Also those that the driver started before the first program came"""
    said(captured, "")
    for task in Path(f"/proc/{captured.pid}/task").iterdir():
        state = dict(re.findall(r"(\w+):\s+(\S+)", (task / "status").read_text()))
        assert (state["Seccomp"], state["NoNewPrivs"]) == ("2", "1")
        assert int(state["CapEff"], 16).bit_count() <= 1  # the one that reads, where root alone may read Python


def test_as_root_it_is_nobody_that_there_is(captured: Worker) -> None:
    if os.geteuid():
        pytest.skip("not root")
    assert int(said(captured, "got = os.getuid()")) > 60_000


@pytest.mark.parametrize("device", ["cpu", CARD])
def test_the_next_process_finds_nothing_that_this_one_has_left(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above all no machine code in Triton's cache"""
    monkeypatch.setattr(worker_process, "MODULE", "tests.gpu.captured")
    with on(device) as found:
        said(found, "os.makedirs('triton', exist_ok=True); open('triton/spoilt', 'w'); open('spoilt', 'w')")
        folder = said(found, "got = [folder, os.path.exists(folder + '/triton/spoilt')]")
        found.close()
        left = said(found, "got = [folder, os.path.exists('spoilt') or os.path.exists('triton/spoilt')]")
    assert folder.endswith(", True]") and left.endswith(", False]") and folder.split(",")[0] != left.split(",")[0]


# --- levels -----------------------------------------------------------------------------------------------------------


@needs_landlock
@pytest.mark.usefixtures("real_start")
@pytest.mark.parametrize("device", ["cpu", CARD])
def test_it_reaches_the_level_that_staff_ask_for(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "required", 3)  # of which it can have all but a network of its own
    made, tensors = entry(COPY, normal(8))
    with on(device) as found:
        assert torch.equal(found.run(made, tensors).results[0], tensors[0])
        assert found.means.level == 2


def test_below_the_level_that_is_asked_for_it_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody loses a point by it"""
    monkeypatch.setattr(host, "required", 2)
    made, tensors = entry(COPY, normal(8))
    with Worker(None) as found:
        found._without = ("landlock",)
        with pytest.raises(
            CardFault, match=r"level [01] here, where level 2 is required \(.*the filesystem is open"
        ) as caught:
            found.run(made, tensors)
    assert isinstance(judged(caught.value, "entry", "card"), NeedsCard)


def test_a_card_that_cannot_be_met_behind_walls_is_met_with_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any program is near, and the level says so"""
    tried: list[Any] = []

    def started(device: str, without: Any) -> WorkerProcess:
        tried.append(without)
        monkeypatch.setattr(worker_process, "MODULE", "gradekit.gpu" if without else "gradekit.nothing")
        return WorkerProcess("cpu", without)

    monkeypatch.setattr(worker, "WorkerProcess", started)
    with Worker(None) as found:
        found.device = "cuda:0"
        assert found.means.level <= 1
    assert tried == [(), ("landlock",)]


# --- what it says, and what it is given -------------------------------------------------------------------------------


def test_an_answer_that_makes_no_sense_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    made, tensors = entry(COPY, normal(8))
    with Worker(None) as found:
        found.run(made, tensors)
        answers = iter([{}, {"seconds": "x", "caught": []}, {"seconds": 1.0, "caught": [{"write": 1}]}])
        monkeypatch.setattr(wire, "receive", lambda *a: {"ok": next(answers)})
        for _ in range(3):
            with pytest.raises(CardFault, match="makes no sense"):
                found.run(made, tensors)


HOSTILE = {
    "nothing": "", "not TTIR": "MZ\0\1" * 100, "deep": "module {" + "scf.if " * 20_000, "deep brackets": "(" * 300_000,
    "huge tensors": 'module { tt.func public @k(%a: tensor<1099511627776x1099511627776xf32>) { tt.return } }',
    "no end": "module {\n  tt.func public @k() {\n" + "  %0 = arith.constant 1 : i32\n" * 50_000,
    "an operation of LLVM's": 'module { tt.func public @k() { llvm.call @system() : () -> () tt.return } }',
}  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", CARD])
def test_hostile_ttir_is_a_fault(device: str) -> None:
    """Each is refused, and an honest kernel runs afterwards"""
    made, tensors = entry(COPY, normal(8))
    with on(device) as found:
        for name, ttir in HOSTILE.items():
            steps = [Allocate(1, 32), Launch("k", (1, 1, 1), ())]
            bad = replace(program(steps, [View(1, "float32", (8,), (1,))]), kernels={"k": Kernel("k", ttir)})
            with pytest.raises(CardFault):
                pytest.fail(f"{name}: {found.run(bad, [], seconds=30)}")
            assert torch.equal(found.run(made, tensors).results[0], tensors[0])
