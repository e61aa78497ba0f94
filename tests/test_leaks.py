"""What tests may not do: leave their process changed, or warn; and how their modules and processes are made."""

import builtins
import gc
import signal
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
from hypothesis import settings
from triton.runtime.autotuner import Autotuner

from gradekit.sandbox import host
from tests import rewriting, zygote

from . import conftest
from .leaks import Process
from .sampling import put_off

ROOT = Path(__file__).parents[1]

PATCHES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "triton.compile": lambda patch: patch.setattr(triton, "compile", len),
    "Autotuner.run": lambda patch: patch.setattr(Autotuner, "run", len),
    "UntypedStorage.data_ptr": lambda patch: patch.setattr(torch.UntypedStorage, "data_ptr", len),
    "torch.cuda.is_available": lambda patch: patch.setattr(torch.cuda, "is_available", len),
    "Triton's driver": lambda patch: patch.setattr(triton.runtime.driver, "_active", len),
    "builtins.min": lambda patch: patch.setattr(builtins, "min", len),
    "builtins.ascii": lambda patch: patch.delattr(builtins, "ascii"),
    "builtins.added": lambda patch: patch.setattr(builtins, "added", 1, raising=False),
    "sys.modules['bisect']": lambda patch: patch.setitem(sys.modules, "bisect", types.ModuleType("another")),
    "os.environ['ADDED']": lambda patch: patch.setenv("ADDED", "1"),
    "os.environ['PATH']": lambda patch: patch.delenv("PATH"),
    "working directory": lambda patch: patch.chdir("/"),
    "sys.path": lambda patch: patch.setattr(sys, "path", [*sys.path, "/"]),
}
"""Things that a test can replace, by the names under which they are found."""

PROFILE = settings.get_current_profile_name()

SWITCHES: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "signal handlers": (
        lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN), lambda: signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    ),
    "timers": (
        lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 999), lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    ),
    "garbage collector": (gc.disable, gc.enable),
    "Hypothesis's profile": (lambda: settings.load_profile("default"), lambda: settings.load_profile(PROFILE)),
    "torch's matmul precision": (
        lambda: torch.set_float32_matmul_precision("high"), lambda: torch.set_float32_matmul_precision("highest")
    ),
    "torch's gradient mode": (lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)),
}  # fmt: skip
"""Settings of the process, by the names under which they are found: how to change one, and how to put it back."""


@pytest.mark.parametrize("name", PATCHES)
def test_what_is_replaced_is_named_once(name: str) -> None:
    process = Process()
    with pytest.MonkeyPatch.context() as patch:
        PATCHES[name](patch)
        assert process.changes() == [name]
        assert process.changes() == []
    assert process.changes() == [name]


@pytest.mark.parametrize("name", SWITCHES)
def test_a_setting_that_is_changed_is_named_once(name: str) -> None:
    change, put_back = SWITCHES[name]
    process = Process()
    change()
    try:
        assert process.changes() == [name]
        assert process.changes() == []
    finally:
        put_back()
    assert process.changes() == [name]


def test_random_numbers_without_a_generator_of_their_own_are_noticed() -> None:
    process = Process()
    with torch.random.fork_rng(devices=[]):
        torch.rand(1)
        assert process.changes() == ["torch's random generator"]


def test_what_a_module_may_change_for_its_tests_is_named_once_at_its_end() -> None:
    process = Process()
    with host.requiring(0), host.without("apart"):
        assert process.changes() == []
        assert process.changes(module_ends=True) == ["isolation that the tracer's host asks for"]
        assert process.changes(module_ends=True) == []


def test_imports_are_no_change_but_what_they_brought_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    monkeypatch.setitem(sys.modules, "just_imported", types.ModuleType("just_imported"))
    assert process.changes() == []
    monkeypatch.setitem(sys.modules, "just_imported", types.ModuleType("just_imported"))
    assert process.changes() == ["sys.modules['just_imported']"]


def test_the_test_that_leaves_something_fails_and_no_other(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a fixture puts back is not left."""
    monkeypatch.setenv("LEFT", "0")
    pytester.makeconftest(Path(conftest.__file__).read_text())
    pytester.makepyfile(
        """
        import os, pytest

        def test_before(monkeypatch):
            monkeypatch.setenv("LEFT", "1")

        @pytest.mark.parametrize("value", ["1", "2"])
        def test_leaves(value):
            os.environ["LEFT"] = value

        def test_after():
            assert os.environ["LEFT"]

        @pytest.fixture
        def broken():
            yield
            os.environ["LEFT"] = "3"
            raise LookupError

        def test_breaks(broken):
            pass

        def test_last():
            pass
        """
    )
    result = pytester.runpytest_inprocess("--disable-plugin-autoload")
    result.assert_outcomes(passed=6, errors=3)
    result.stdout.fnmatch_lines([
        "*test_leaves?1? leaves the process changed: os.environ?'LEFT'?",
        "*test_leaves?2? leaves the process changed: os.environ?'LEFT'?",
        "*LookupError*",
    ])  # fmt: skip
    result.stdout.no_fnmatch_line("*test_last leaves*")


class Warns:
    """A plugin such as any machine may have."""

    def pytest_configure(self) -> None:
        warnings.warn("Benchmarks are disabled.", stacklevel=1)


def test_a_plugin_that_warns_ends_nothing_but_a_test_that_warns_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml((ROOT / "pyproject.toml").read_text())
    pytester.makeconftest(Path(conftest.__file__).read_text())
    pytester.makepyfile(
        """
        import warnings

        def test_quiet():
            pass

        def test_warns():
            warnings.warn("mind the gap")
        """
    )
    with pytest.warns(UserWarning, match="Benchmarks are disabled"):
        result = pytester.runpytest_inprocess("--disable-plugin-autoload", str(pytester.path), plugins=[Warns()])
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*UserWarning: mind the gap*"])


# --- test modules are rewritten by one worker for all -----------------------------------------------------------------


@pytest.mark.parametrize(("worker", "names"), [("gw0", ["test_a.py", "test_c.py"]), ("gw1", ["test_b.py"]), ("", [])])
def test_workers_share_the_modules_below_the_folders_that_are_asked_for(
    worker: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("test_a.py", "test_b.py", "test_c.py", "helper.py"):
        (tmp_path / name).touch()
    monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    asked = SimpleNamespace(args=[str(tmp_path), str(tmp_path / "test_a.py")])
    assert [path.name for path in rewriting.share_of_worker(asked)] == names  # type: ignore[arg-type]


# --- A process that is forked from one with torch ends as a Python that is started anew -------------------------------


ENDS = {
    "pass": (0, ""), "sys.exit()": (0, ""), "sys.exit(3)": (3, ""), "sys.exit('too few')": (1, "too few"),
    "1 / 0": (1, "ZeroDivisionError: division by zero"), "os.kill(os.getpid(), 9)": (-signal.SIGKILL, ""),
}


@pytest.mark.parametrize("text", ENDS)
def test_the_end_of_a_program_is_pythons(text: str) -> None:
    code, said = ENDS[text]
    done = zygote.ran(["-c", f"import os, sys\nprint('begun', flush=True)\n{text}"])
    assert (done.returncode, done.stdout) == (code, "begun\n")
    assert done.stderr.strip().endswith(said) and bool(done.stderr) is bool(said)


def test_threads_and_exit_handlers_come_to_their_end_and_all_that_is_printed_arrives() -> None:
    text = (
        "import atexit, threading, time\n"
        "atexit.register(print, 'handler')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\n"
        "print('end')"
    )
    assert zygote.ran(["-c", text]).stdout.split() == ["end", "thread", "handler"]


# --- Samples of long lists --------------------------------------------------------------------------------------------


class Case:
    """What of a parametrized test's case is asked for."""

    def __init__(self, name: str, **marks: int) -> None:
        self.nodeid, self.marks = f"tests/test_a.py::test_b[{name}]", {key: getattr(pytest.mark, key)(value).mark for key, value in marks.items()}

    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.marks[marker.name] = marker.mark


@pytest.mark.parametrize(("count", "names"), [(2, "abcde"), (1, "abc"), (3, "abcdefg"), (4, "abc")])
def test_each_turn_tries_so_many_of_each_group_and_all_turns_try_all(count: int, names: str) -> None:
    seen = set[str]()
    for turn in range(len(names)):
        cases = [Case(f"{group}/{name}", sample=count) for group in ("one", "other") for name in names]
        put_off(cases, turn)  # type: ignore[arg-type]
        tried = [case.nodeid for case in cases if "slow" not in case.marks]
        assert sum("one/" in each for each in tried) == sum("other/" in each for each in tried) == min(count, len(names))
        seen.update(tried)
    assert len(seen) == 2 * len(names)


def test_of_tests_that_belong_together_one_is_tried() -> None:
    cases = [Case("", sample=1) for _ in range(3)]
    for number, case in enumerate(cases):
        case.nodeid, case.marks["sample"] = f"tests/test_{number}.py::test_a", pytest.mark.sample(1, of="containers").mark
    put_off(cases, 2)  # type: ignore[arg-type]
    assert sum("slow" not in case.marks for case in cases) == 1


def test_what_is_not_marked_or_slow_anyway_is_no_part_of_a_sample() -> None:
    cases = [Case("a/b/c d"), Case("c", slow=1, sample=1), Case("d", sample=1)]
    put_off(cases, 7)  # type: ignore[arg-type]
    assert [("slow" in case.marks) for case in cases] == [False, True, False]
