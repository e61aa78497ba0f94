"""Where the time of a default check of a right submission goes: for each phase, seconds by the clock and on the CPU,
cold (a process that has imported nothing), again (the next check in that process, which keeps what it learned, as one
that a server forks does), and after an edit of every kernel (a barrier is put before its first statement).

    python benchmarks/where.py [ASSIGNMENT ...]

A few hundred times a second a signal interrupts the grader, and the time since the last one goes to the first phase of
PHASES that has a part of its name on the stack, and to the innermost function of gradekit or of the assignment: the
PLACES that take most of a cold check are a table of their own. CPU seconds are the grader's own process. What the
submission's process computes is measured there: `tracing`, and `lowering` inside Triton's front end. While the grader
waits for it, the clock counts as `waiting`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
ASSIGNMENTS = tuple(sorted(path.parent.name for path in ROOT.glob("solutions/*/solution.py")))
PULSE_SECONDS = 0.003

PHASES = {
    "imports": ("importlib._bootstrap_external>.exec_module", "importlib._bootstrap_external>.create_module"),
    "solver": ("gradekit/prove/", "gradekit/proving.py", "/z3/"),
    "waiting": ("gradekit/wire.py",),
    "engine": ("gradekit/engine/",),
    "references": ("judge/reference",),
    "further inputs": ("gradekit/unseen/", "plugin/further"),
    "relations": ("gradekit/relations.py", "plugin/beside_examples.py"),
    "judge": ("gradekit/judge/",),
    "drawing": ("gradekit/inputs/", "/hypothesis/", "plugin/design.py", "plugin/example"),
    "report": ("gradekit/report/", "plugin/check_results.py"),
    "calls": ("gradekit/subject/", "gradekit/sandbox/"),
}
"""What a frame's file and function say, by phase; the first phase that is anywhere on the stack counts."""

OURS, PLACES = ("gradekit/", "assignments/"), 10
REST, TRACING, LOWERING, OTHERS = "pytest and the rest", "tracing", "lowering", "other processes"
KERNELS = "kernels lowered"


class Sampler:
    """Counts seconds of this process by phase, as (clock, CPU), and CPU seconds by place, until `stop`."""

    def __init__(self) -> None:
        self.spent: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        self.places: dict[str, float] = defaultdict(float)
        self._names: dict[CodeType, str] = {}
        self._before = time.perf_counter(), time.thread_time()
        signal.signal(signal.SIGALRM, self._look)
        signal.setitimer(signal.ITIMER_REAL, PULSE_SECONDS, PULSE_SECONDS)

    def _look(self, number: int, frame: FrameType | None) -> None:
        now = time.perf_counter(), time.thread_time()
        names = [self._name(one.f_code) for one, _ in traceback.walk_stack(frame)]
        phase = next((phase for phase, parts in PHASES.items() if any(p in n for p in parts for n in names)), REST)
        wall, cpu = self.spent[phase]
        self.spent[phase] = wall + now[0] - self._before[0], cpu + now[1] - self._before[1]
        self.places[next((n for n in names if n.startswith(OURS)), REST)] += now[1] - self._before[1]
        self._before = time.perf_counter(), time.thread_time()

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _name(self, code: CodeType) -> str:
        if code not in self._names:
            self._names[code] = f"{code.co_filename.removeprefix(f'{ROOT}/')}.{code.co_name}"
        return self._names[code]


# --- the submission's process -----------------------------------------------------------------------------------------


def trace() -> None:
    """`python -m gradekit.tracer.supervisor` that says in each answer what its process has computed so far."""
    from gradekit.compat import triton

    lower, lowered = triton.lower, [0.0, 0]

    def counted(*arguments: Any) -> Any:
        began = time.process_time()
        try:
            return lower(*arguments)
        finally:
            lowered[0] += time.process_time() - began
            lowered[1] += 1

    triton.lower = counted
    from gradekit.tracer import child

    answer, began = child._answer, [0.0]

    def telling(*arguments: Any) -> dict[str, Any]:
        if not began[0]:
            began[0], lowered[:] = time.process_time(), [0.0, 0]
        said = answer(*arguments)
        return said | {"spent": [os.getpid(), time.process_time() - began[0], *lowered]}

    child._answer = telling
    runpy.run_module("gradekit.tracer.supervisor", run_name="__main__", alter_sys=True)


def listen() -> dict[int, list[float]]:
    """Makes tracers start as above; gives CPU seconds, those of lowering, and kernels, by process."""
    from gradekit.processes import Command
    from gradekit.sandbox.tracer import Tracer

    start, checked, said = Command.start, Tracer._checked, dict[int, list[float]]()

    def started(command: Command) -> subprocess.Popen[bytes]:
        if command.module != "gradekit.tracer.supervisor":
            return start(command)
        code = f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import where; where.trace()"
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code, *command.arguments], pass_fds=command.descriptors, cwd=command.folder,
            stdin=subprocess.DEVNULL, stdout=command.stdout, stderr=command.stderr, env=dict(command.environment),
            start_new_session=True,
        )  # fmt: skip

    def heard(tracer: Tracer, answer: Any) -> Any:
        if isinstance(answer, dict) and "spent" in answer:
            pid, *spent = answer.pop("spent")
            said[pid] = spent
        return checked(tracer, answer)

    Command.start, Tracer._checked = started, heard  # type: ignore[method-assign]
    return said


# --- one check --------------------------------------------------------------------------------------------------------


def edited(text: str) -> str:
    """The submission with a barrier before the first statement of each kernel that is launched or called."""
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in node.decorator_list):
            first = node.body[0]
            lines.insert(first.lineno - 1, " " * first.col_offset + "tl.debug_barrier()")
    return "\n".join(lines)


def measured(path: Path, assignment: str) -> tuple[list[dict[str, tuple[float, float]]], dict[str, float]]:
    """Seconds by phase of a first check in this process, of a second, and of one after an edit; CPU seconds of the first
    by place."""
    places: dict[str, float] = {}
    found: list[dict[str, tuple[float, float]]] = []
    said: dict[int, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / path.name
        changed.write_text(edited(path.read_text()))
        for file in (path, path, changed):
            sampler, began, before = Sampler(), time.perf_counter(), _children()
            said = said if found else listen()
            said.clear()
            _check(file, assignment)
            sampler.stop()
            places = places or dict(sampler.places)
            traced, lowered, kernels = (sum(one[place] for one in said.values()) for place in range(3))
            others = max(_children() - before - traced, 0.0)
            spent = dict(sampler.spent) | {TRACING: (0.0, traced - lowered), OTHERS: (0.0, others)}
            spent["all"] = time.perf_counter() - began, sum(cpu for _, cpu in spent.values()) + lowered
            found.append(spent | {LOWERING: (0.0, lowered), KERNELS: (0.0, kernels)})
    return found, places


def _check(file: Path, assignment: str) -> None:
    from gradekit import checking, reuse
    from gradekit.request import GradingOptions
    from gradekit.sandbox import host

    reuse.keep_between_submissions()
    checking.check(file, assignment, GradingOptions(jobs=1, device="cpu"))
    host.stop()  # so that what its processes took is counted


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


RUNS = ("cold", "again", "edited")


def table(assignment: str, runs: Sequence[Mapping[str, Sequence[float]]]) -> str:
    """Rows of a Markdown table, the largest CPU share of the check after an edit first."""
    names = " | ".join(f"{run}: s | CPU s | share" for run in RUNS)
    lines = [f"| {assignment} | {names} |", "|---" * (3 * len(runs) + 1) + "|"]
    for phase in sorted(
        {name for run in runs for name in run} - {KERNELS}, key=lambda name: -_spent(runs[-1], name)[1]
    ):
        cells = [(*_spent(run, phase), _spent(run, phase)[1] / run["all"][1]) for run in runs]
        lines.append(
            f"| {phase} | " + " | ".join(f"{s:.2f} | {cpu:.2f} | {share:.0%}" for s, cpu, share in cells) + " |"
        )
    counts = " | ".join(f"| {_spent(run, KERNELS)[1]:.0f} |" for run in runs)
    return "\n".join([*lines, f"| {KERNELS} | {counts} |"])


def _spent(run: Mapping[str, Sequence[float]], phase: str) -> tuple[float, float]:
    clock, cpu = run.get(phase, (0.0, 0.0))
    return clock, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description="Where the time of a default check goes.")
    parser.add_argument("assignments", nargs="*", default=ASSIGNMENTS, metavar="ASSIGNMENT")
    parser.add_argument("--one", type=Path, metavar="FILE", help="measure this submission in this process, as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.assignments[0])))
        return
    for name in options.assignments:
        solution = ROOT / "solutions" / name / "solution.py"
        command = [sys.executable, __file__, name, "--one", str(solution)]
        runs, places = json.loads(subprocess.check_output(command, cwd=ROOT))
        print(table(name, runs), "\n", flush=True)
        for place in sorted(places, key=lambda one: -places[one])[:PLACES]:
            print(f"{places[place]:.2f} CPU s: {place}", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
