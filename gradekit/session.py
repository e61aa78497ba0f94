"""Checks what stands in a notebook: the code of its running session, graded by the command line in another process.

`gradekit.check("softmax")` and `%gradekit softmax` grade what the session knows: the cells in the order in which they
ran, a later definition in place of an earlier one, as a notebook whose cell k is In [k], so that a report's "cell 7,
line 2" is a place that the student sees. IPython is asked where it runs already, and never imported.
"""

import contextlib
import json
import os
import re
import shlex
import subprocess
import symtable
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradekit.report import steps, terminal
from gradekit.submission.notebook import Cell, NotebookError, code_of

HERE = "this notebook"
_WIDE = 80  # columns of what a cell shows while a check runs
NOTE = "Checked are the definitions that ran in this session, the latest of each name; cell k is In [k]."


@dataclass(frozen=True)
class Shown:
    """A report, or why there is none (`message`): Jupyter shows it as HTML, `print` as text."""

    record: dict[str, Any] | None
    message: str = ""

    def __str__(self) -> str:
        return self.message if self.record is None else terminal.render(self.record)

    def _repr_html_(self) -> str | None:
        return None if self.record is None else terminal.as_html(self.record)

    __repr__ = __str__


def check(assignment: str | None = None, path: str | Path | None = None, **options: Any) -> Shown:
    """The report on `assignment` (an id; by default, as the code tells) for this notebook, or the file at `path`.
    `options` are those of `gradekit check` by their long names: keyword="dtype", seed=7, quick=True."""
    words = [str(path)] if path is not None else []
    return command([*words, *(["-a", assignment] if assignment else []), *_words(options)])


@dataclass(frozen=True)
class StepPage:
    """A step view, or why there is none (`message`): Jupyter shows it in a frame of its own."""

    page: str
    message: str = ""

    def _repr_html_(self) -> str | None:
        return steps.framed(self.page) if self.page else None

    def __repr__(self) -> str:
        return self.message or "A step view: a notebook shows it."


def view(assignment: str | None = None, path: str | Path | None = None, **options: Any) -> StepPage:
    """A call of this notebook's code, or of the file at `path`, played step by step: see `gradekit view`, whose
    `options` it takes by their long names: program="3,0", keyword="dtype", quick=True."""
    words = [*(["-a", assignment] if assignment else []), *_words(options), "--output=-"]
    if path is not None:
        return _viewed([str(path), *words])
    with _session_file() as file:
        if not file:
            return StepPage("", _NO_NOTEBOOK.format("view"))
        shown = _viewed([file, *words])
        return StepPage(shown.page.replace(file, HERE), shown.message.replace(file, HERE))


def _viewed(words: Sequence[str]) -> StepPage:
    done = _gradekit(["view", *words])
    return StepPage(done.stdout) if done.returncode == 0 else StepPage("", done.stderr.strip())


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    """The options as `gradekit check` takes them: seed=7 is --seed=7, quick=True is --quick."""
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        if value is True:
            yield word
        elif value is not None and value is not False:
            yield f"{word}={value}"


def command(words: Sequence[str]) -> Shown:
    """What `gradekit check` makes of these words; without a file among them, of this notebook."""
    if any(Path(word).suffix in (".py", ".ipynb") for word in words):
        return _run(words)
    with _session_file() as file:
        return _here(_run([file, *words]), file) if file else Shown(None, _NO_NOTEBOOK.format("check"))


_NO_NOTEBOOK = 'Not in a notebook: name the file, as in gradekit.{}("softmax", "submission.py").'


@contextlib.contextmanager
def _session_file() -> Iterator[str]:
    """A file of what the session knows, while open; "" outside of one."""
    with tempfile.TemporaryDirectory(prefix="gradekit-") as folder:
        file, cells = Path(folder) / "session.ipynb", _session()
        if cells is not None:
            file.write_text(json.dumps(_notebook(current(cells))), encoding="utf-8")
        yield "" if cells is None else str(file)


def _here(shown: Shown, file: str) -> Shown:
    """The report with the notebook in place of its copy, and commands as they are typed in a cell."""
    text = json.dumps(shown.record).replace(f"gradekit check {file} -a", "%gradekit").replace(file, HERE)
    record = json.loads(text)
    if record:  # what holds no definitions is left out of every session, and needs no note
        record["notes"] = [NOTE, *(note for note in record["notes"] if not note.startswith("Left out"))]
    return Shown(record, shown.message.replace(file, HERE))


def _run(words: Sequence[str]) -> Shown:
    done = _gradekit(["check", *words, "--json", "-"])
    try:
        return Shown(json.loads(done.stdout))
    except ValueError:
        return Shown(None, done.stderr.strip() or "gradekit ended without a word")


def _gradekit(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own: what the session has imported, patched or set does not reach it."""
    parent = str(Path(__file__).parents[1])
    path = os.pathsep.join([parent, os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": str(_WIDE)}
    program = [sys.executable, "-P", "-m", "gradekit.cli", *words]
    reader, writer = os.openpty()  # on a terminal, it shows what it is doing
    try:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
            child = subprocess.Popen(program, env=environment, stdout=out, stderr=writer)
            os.close(writer)
            try:
                said = _watched(reader)
                code = child.wait()
            except BaseException:
                child.kill()
                child.wait()
                raise
            out.seek(0)
            return subprocess.CompletedProcess(program, code, out.read(), said)
    finally:
        os.close(reader)


_ERASED = re.compile(r"\x1b\[\d*[AJK]")


def _watched(terminal: int) -> str:
    """What a process says on a terminal until it has ended; meanwhile, a cell shows what it is doing."""
    said, in_cell = b"", _session() is not None
    with contextlib.suppress(OSError):  # nobody writes there any more
        while piece := os.read(terminal, 1 << 16):
            said += piece
            if in_cell:
                doing = re.split(r"[\r\n]", _ERASED.sub("", said.decode(errors="replace")))[-1]
                doing = re.sub(r"\S*/session\.ipynb", HERE, doing)
                print(f"\r{doing[:_WIDE]:<{_WIDE}}", end="", flush=True)
    if in_cell:
        print(f"\r{'':<{_WIDE}}", end="\r", flush=True)
    return _ERASED.split(said.decode(errors="replace").replace("\r", ""))[-1]


# --- what the session knows -------------------------------------------------------------------------------------------


def _session() -> list[str] | None:
    """The texts of the cells that ran in this session, by their numbers; None outside of one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return None if shell is None else list(shell.history_manager.input_hist_raw)[1:]


def current(cells: Sequence[str]) -> list[str]:
    """The cells, empty where nothing is left of one: what did not run, and what later cells have all defined again."""
    kept, defined = [], set[str]()
    for number in range(len(cells), 0, -1):
        names = _names(Cell(number, cells[number - 1]))
        superseded = names is None or (bool(names) and names <= defined)
        kept.append("" if superseded else cells[number - 1])
        defined |= names or set()
    return kept[::-1]


def _names(cell: Cell) -> set[str] | None:
    """The names that the cell binds; None where Python could not read it, so that it did not run either."""
    try:
        table = symtable.symtable(code_of(cell), "cell", "exec")
    except NotebookError:
        return None
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}


def _notebook(cells: Sequence[str]) -> dict[str, Any]:
    rest: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    code = [rest | {"source": text} for text in cells]
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": code}


# --- Jupyter's own way to ask -----------------------------------------------------------------------------------------


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext gradekit`: the session then knows `%gradekit ID`, and `%%gradekit ID`, which runs its cell first."""
    shell.register_magic_function(_magic(shell), magic_kind="line_cell", magic_name="gradekit")


def _magic(shell: Any) -> Any:
    def gradekit(line: str, cell: str | None = None) -> Shown | None:
        """Check this notebook: `%gradekit softmax`, with the options of `gradekit check`."""
        if cell is not None and not shell.run_cell(cell).success:
            return None
        return command(_ordered(shlex.split(line)))

    return gradekit


def _ordered(words: list[str]) -> list[str]:
    """The first word that is neither an option nor a file is the assignment: `softmax -k dtype`."""
    return ["-a", *words] if words and re.fullmatch(r"[A-Za-z_]\w*", words[0]) else words
