"""What a submission has over all its processes and files is added up, and whoever has too much is ended."""

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradekit import sandbox
from gradekit.program import Launch
from gradekit.tracer import children
from gradekit.tracer.errors import BeyondBudget, refusal
from gradekit.tracer.kernels import MOST, Compiler, LoweringBudget
from tests import zygote
from tests.patience import eventually

from .helpers import X, kinds, only, submission, tensor, traced

HOG = """
import mmap, os, sys, threading, time
os.setsid()
kept = mmap.mmap(-1, 64 << 20) if sys.argv[1] == "shared" else bytearray(1)
def start():
    if os.fork() == 0:
        own = bytearray(b"x") * (40 << 20) if sys.argv[1] == "own" else None
        if own is None: kept.write(b"x" * (64 << 20))
        time.sleep(600)
for _ in range(2): start()
thread = threading.Thread(target=start); thread.start(); thread.join()
time.sleep(600)
"""
SERVER = "import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', sys.argv[1], sys.argv[2]])"


@pytest.fixture(params=["own", "shared"])
def server(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process with one submission, which has started three more: 120 MiB of their own, or 192 that they share."""
    with subprocess.Popen([sys.executable, "-S", "-W", "ignore", "-c", SERVER, HOG, request.param]) as started:
        yield started
        for process in children._below(started.pid):
            children.end_process(process)
        started.kill()


def test_the_memory_of_all_processes_is_added_up(server: subprocess.Popen[bytes]) -> None:
    """Also of those that a thread started, and whoever has too much is ended with all that it started"""
    assert eventually(lambda: len(children.over_memory(server.pid, 100 << 20)) == 4)
    found = children.over_memory(server.pid, 100 << 20)
    assert len({process.session for process in found}) == 1
    assert children.over_memory(server.pid, 1 << 30) == []
    for process in found:
        children.end_process(process)
    assert eventually(lambda: server.poll() is not None)


def test_a_number_that_means_another_process_by_now_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"]) as other:
        children.end_process(children.Process(other.pid, other.pid + 1, 0))
        other.terminate()
        assert other.wait() == -signal.SIGTERM  # SIGKILL, had it been sent, would have come first


def test_files_are_added_up(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / "a" / str(number)).mkdir(parents=True)
        (tmp_path / "a" / str(number) / "b").write_bytes(b"x" * (1 << 20))
    assert children.too_much(str(tmp_path), 2 << 20) and not children.too_much(str(tmp_path), 4 << 20)
    assert children.too_much(str(tmp_path), most_files=6) and not children.too_much(str(tmp_path), most_files=7)
    assert not children.too_much(str(tmp_path / "gone"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root looks into every folder")
def test_a_folder_that_nobody_may_look_into_is_too_much(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0)
    assert children.too_much(str(tmp_path))


# --- what Triton's front end may do for one submission, counted in nodes of syntax ------------------------------------


class Names(ast.NodeVisitor):
    """Gathers names."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Name(self, node: ast.Name) -> None:
        self.found.append(node.id)


def test_every_node_counts_and_is_visited_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ast.NodeVisitor, "visit", ast.NodeVisitor.visit)
    budget, names = LoweringBudget(), Names()
    budget.install()
    names.visit(ast.parse("a + b * c"))
    assert names.found == ["a", "b", "c"]
    # Module, Expr, BinOp, a, Add, BinOp, b, Mult, c
    assert budget.nodes == 9


def test_a_used_up_budget_refuses_the_next_kernel_by_name() -> None:
    budget = LoweringBudget()
    budget.spend()
    budget.nodes = MOST + 1
    with pytest.raises(BeyondBudget) as caught:
        budget.spend()
    told = refusal(caught.value, "submission.py")
    assert told.cause == "budget-exceeded" and "Compiling 1 kernels" in told.message
    budget.renew()
    budget.spend()


def test_the_compiler_keeps_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    source: Any = SimpleNamespace(fn=SimpleNamespace(src=""), signature={}, constants={}, attrs={})
    compiler = Compiler(SimpleNamespace(path="submission.py"))  # type: ignore[arg-type]
    lowered = ("text", [], None)
    monkeypatch.setattr("gradekit.tracer.kernels._lower", lambda source, options, begin: lowered)
    assert compiler._lower(source, {}) == lowered
    compiler.budget.nodes = MOST + 1
    with pytest.raises(BeyondBudget):
        compiler._lower(source, {})


# --- registers, stack and shared memory of a kernel are those that Triton and NVIDIA's tools tell ---------------------


def compared(step: int, cache: Path) -> dict[str, Any]:
    """What tests/tracer/compiled.py says."""
    words = [Path(__file__).with_name("compiled.py"), str(step)]
    done = zygote.ran(words, environment=sandbox.clean_environment(str(cache)))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("step", "least"), [(150, 4), pytest.param(1, 285, marks=pytest.mark.slow)])
def test_kernels_have_the_figures_of_triton_and_cuobjdump(step: int, least: int, tmp_path: Path) -> None:
    found = compared(step, tmp_path)
    assert found["compared"] > least and found["spilled"] > 0 and found["different"] == []


OCCUPANCY = """
    def entry(x):
        out = torch.empty_like(x)
        kernel = copy_kernel.warmup(x, out, 100, BLOCK=128, grid=(1,))
        programs = 132 * min(65536 // (kernel.n_regs * 128), 16)
        kernel[(min(programs, x.shape[0]), 1, 1)](x, out, 100, 128)
        return out
    """


@pytest.mark.parametrize(("rows", "programs"), [(100, 100), (132, 132), (5000, 132 * 16)])
def test_a_grid_that_depends_on_registers_is_that_of_a_gpu(rows: int, programs: int) -> None:
    assert only(traced(OCCUPANCY, tensor(0, rows)).steps, Launch).grid == (programs, 1, 1)


def test_a_kernels_registers_may_be_an_argument_or_a_size() -> None:
    body = """
        def entry(x):
            kernel = copy_kernel.warmup(x, x, 100, BLOCK=128, grid=(1,))
            copy_kernel[(1,)](x, torch.empty(x.shape[0] + kernel.n_regs, device="cuda"), kernel.n_regs, BLOCK=128)
        """
    with sandbox.Tracer(submission(body)) as tracer:
        program = tracer.trace("entry", [X])
        assert kinds(program.steps) == ["Allocate", "Launch"]
    registers = only(program.steps, Launch).args[2].value
    assert 8 <= registers <= 255 and only(program.steps, Launch).args[1].shape == (100 + registers,)
