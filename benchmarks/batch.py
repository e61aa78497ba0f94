"""Throughput of grading a class: submissions a minute of `gradekit grade`, beside nbgrader's on the same machine.

    python benchmarks/batch.py --count 200 --nbgrader /path/to/python

Half of the submissions are of vector_add and half of softmax: right and wrong ones in turn. Each has kernels of its
own, so that nothing is known of one from another; with --alike, those of one style are told apart by a comment alone.
gradekit runs its full default checks (hundreds of examples each), with the sandbox on. nbgrader runs an equivalent
notebook, in which each submission makes 16 example calls under Triton's interpreter; the Python named must have
nbgrader, ipykernel, torch, numpy and triton. Both are cold at the start.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from gradekit.assignment import get
from gradekit.course.mistakes import all_of, bases
from gradekit.versions import environment
from tests import right

ROOT = Path(__file__).parents[1]
IDS = ("vector_add", "softmax")

CALLS = {
    "vector_add": "x = torch.randn({n}); y = torch.randn({n})\nassert torch.allclose(add(x, y), x + y)",
    "softmax": "x = torch.randn(8, {n})\nassert torch.allclose(softmax(x), torch.softmax(x, -1), atol=1e-5)",
}
SIZES = (1, 2, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 500)


def sources(id: str, count: int, alike: bool = False) -> list[str]:
    """`count` distinct submissions: right and wrong in turn; with `alike`, those of one
    style differ in a comment only."""
    files = [ROOT / f"solutions/{id}/solution.py", *bases(get(id)), *right.files(id)]
    kinds = ([path.read_text() for path in files], [mistake.text for mistake in all_of(get(id))])
    texts = [kinds[n % 2][n // 2 % len(kinds[n % 2])] for n in range(count)]
    return [f"{text if alike else another(text, n)}\n# student {n}\n" for n, text in enumerate(texts)]


def another(text: str, number: int) -> str:
    """The same submission with kernels of its own, by name, by place and by what Triton makes of them."""
    lines = text.split("\n")
    kernels = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and _is_kernel(node)]
    for kernel in reversed(kernels):
        first = kernel.body[ast.get_docstring(kernel) is not None]
        own = f"tl.assume(tl.program_id(0) > -{number + 1})"  # passes into the TTIR, and changes nothing
        lines.insert(first.lineno - 1, " " * first.col_offset + own)
    made = "\n".join(["\n" * (number % 7), *lines])
    for kernel in kernels:
        made = re.sub(rf"\b{kernel.name}\b", f"{kernel.name}_{number}", made)
    return made


def _is_kernel(function: ast.FunctionDef) -> bool:
    is_jit = any(ast.unparse(decorator).endswith("jit") for decorator in function.decorator_list)
    return is_jit and "tl.store" in ast.unparse(function)


Spent = tuple[float, float]
"""Seconds by the clock, and of computing by the whole machine, which should have nothing else to do."""


def with_gradekit(id: str, texts: list[str], folder: Path, workers: int) -> Spent:
    """What `gradekit grade` takes for all of them with so many graders."""
    for number, text in enumerate(texts):
        (folder / f"in/s{number:03d}").mkdir(parents=True)
        (folder / f"in/s{number:03d}/submission.py").write_text(text)
    command = [sys.executable, "-u", "-m", "gradekit", "grade", str(folder / "in"), "-a", id, "-o", str(folder / "out")]
    told: list[tuple[float, str]] = []
    with Watched(workers) as watched:
        known = os.environ | {"GRADEKIT_ASSIGNMENTS": str(ROOT / "assignments")}
        spent = _timed(
            [*command, "--workers", str(workers)], folder, known, lambda line: told.append((time.time(), line))
        )
    print(f"{id}: {watched}; {estimate(told, len(texts))}", flush=True)
    return spent


def estimate(told: list[tuple[float, str]], count: int) -> str:
    """What was said after a tenth of the time that was left, beside what it then took."""
    results = [(when, line) for when, line in told if line.startswith("[")]
    if len(results) < count or count < 30:
        return f"{len(results)} results, too few for an estimate"
    when, line = results[count // 10]
    return f"after a tenth: {line[: line.index(']')]}], then {results[-1][0] - when:.0f} s"


class Watched(threading.Thread):
    """While open, looks now and then how much memory the graders take, with the process that they are forked from and the
    submissions' own processes: what they share counts once (PSS)."""

    def __init__(self, workers: int) -> None:
        super().__init__(daemon=True)
        self.most, self.largest, self._workers, self._ended = 0, 0, workers, threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def __str__(self) -> str:
        return f"at most {self.most} MiB of PSS in all, {self.most // self._workers} a worker; {self.largest} the largest"

    def run(self) -> None:
        """Look until it is closed."""
        while not self._ended.wait(10):
            sizes = [_pss(file) for file in Path("/proc").glob("[0-9]*/cmdline")]
            self.most, self.largest = max(self.most, sum(sizes)), max(self.largest, *sizes)


def _pss(cmdline: Path) -> int:
    """MiB of a grader; 0 of another process."""
    try:
        if b"gradekit.batch.grader" in cmdline.read_bytes():
            found = re.search(r"^Pss:\s+(\d+)", (cmdline.parent / "smaps_rollup").read_text(), re.MULTILINE)
            return int(found[1]) >> 10 if found else 0
    except OSError:
        pass
    return 0


def with_nbgrader(id: str, texts: list[str], folder: Path, python: str) -> Spent:
    """What `nbgrader autograde` takes for all of them."""
    _write(folder / f"source/{id}/{id}.ipynb", _notebook(id, "raise NotImplementedError()"))
    for number, text in enumerate(texts):
        _write(folder / f"submitted/s{number:03d}/{id}/{id}.ipynb", _notebook(id, text))
    quiet = os.environ | {"TRITON_INTERPRET": "1", "PYTHONWARNINGS": "ignore"}
    quiet["PATH"] = f"{Path(python).parent}:{quiet['PATH']}"  # nbgrader calls alembic by its name
    nbgrader = [python, "-m", "nbgrader"]
    _timed([*nbgrader, "generate_assignment", id, f"--course-dir={folder}"], folder, quiet)
    spent = _timed([*nbgrader, "autograde", id, f"--course-dir={folder}"], folder, quiet)
    done = len(list(folder.glob(f"autograded/*/{id}/{id}.ipynb")))
    assert done == len(texts), f"nbgrader graded {done} of {len(texts)}: {(folder / 'log.txt').read_text()[-2000:]}"
    return spent


def _notebook(id: str, text: str) -> nbformat.NotebookNode:
    head = "import torch\nimport triton\nimport triton.language as tl"
    cells = [new_code_cell(head), _cell("solution", text, grade=False)]
    cells += [_cell(f"call{n}", CALLS[id].format(n=size), grade=True) for n, size in enumerate(SIZES)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _cell(name: str, text: str, *, grade: bool) -> nbformat.NotebookNode:
    facts = {
        "schema_version": 3,
        "grade": grade,
        "solution": not grade,
        "locked": grade,
        "task": False,
        "grade_id": name,
    }
    return new_code_cell(text, metadata={"nbgrader": facts | ({"points": 1} if grade else {})})


def _write(path: Path, notebook: nbformat.NotebookNode) -> None:
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def _timed(
    command: list[str], folder: Path, environment: dict[str, str], said: Callable[[str], object] = lambda line: None
) -> Spent:
    began, before = time.perf_counter(), _computed()
    with (
        (folder / "log.txt").open("a") as log,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            said(line)
            log.write(line)
    return time.perf_counter() - began, _computed() - before


def _computed() -> float:
    """Seconds that all cores together have worked so far, for whatever process: those that end with their parent, as
    confined ones do, are in nobody's account of children."""
    user, nice, system, _idle, _waiting, interrupts, soft = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print submissions a minute of both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="submissions for gradekit")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="graders at a time")
    parser.add_argument("--nbgrader", metavar="PYTHON", help="a Python that has nbgrader; without, gradekit alone")
    parser.add_argument("--alike", action="store_true", help="submissions of one style have the same kernels")
    parser.add_argument("--nbgrader-count", type=int, default=10, help="submissions for nbgrader")
    given = parser.parse_args()
    rates: dict[str, dict[str, dict[str, float]]] = {"gradekit": {}, "nbgrader": {}}
    with tempfile.TemporaryDirectory() as scratch:
        for id in IDS:
            half = given.count // 2
            spent = with_gradekit(id, sources(id, half, given.alike), _made(Path(scratch, "g", id)), given.workers)
            rates["gradekit"][id] = _rate(half, spent)
            if given.nbgrader:
                few = given.nbgrader_count // 2
                spent = with_nbgrader(id, sources(id, few, given.alike), _made(Path(scratch, "n", id)), given.nbgrader)
                rates["nbgrader"][id] = _rate(few, spent)
            _show(id, rates)
    told = {"rates": rates, "alike": given.alike, "cores": os.cpu_count(), "machine": platform.machine()}
    print(json.dumps(told | environment()))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _rate(count: int, spent: Spent) -> dict[str, float]:
    """Submissions a minute by the clock, and the seconds of computing of the whole machine that each took."""
    return {"a_minute": round(60 * count / spent[0], 2), "cpu_seconds": round(spent[1] / count, 3)}


def _show(id: str, rates: dict[str, dict[str, dict[str, float]]]) -> None:
    ours, theirs = rates["gradekit"][id], rates["nbgrader"].get(id)
    text = f"{id}: gradekit {ours['a_minute']:.0f} a minute, {ours['cpu_seconds']:.2f} CPU s each"
    if theirs:
        text += f"; nbgrader {theirs['a_minute']:.1f} a minute, {theirs['cpu_seconds']:.1f} CPU s each"
        text += f": {ours['a_minute'] / theirs['a_minute']:.1f} times as many, "
        text += f"{theirs['cpu_seconds'] / ours['cpu_seconds']:.1f} times less computing"
    print(text, flush=True)


if __name__ == "__main__":
    main()
