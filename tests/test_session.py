"""A notebook is checked by what its session knows: the latest definitions, at the places that the student sees."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import gradekit
from gradekit import session
from gradekit.session import NOTE, Shown, check, current, load_ipython_extension
from gradekit.submission import notebook
from tests import zygote

from .report.samples import FAILED, PASSED, record

SOLUTION = (Path(__file__).parents[1] / "solutions" / "vector_add" / "solution.py").read_text()


# --- which cells are current ------------------------------------------------------------------------------------------


def test_a_later_definition_takes_the_place_of_an_earlier_one() -> None:
    first, other, second = "def f():\n    return 1", "y = 2", "def f():\n    return 2"
    assert current([first, other, second]) == ["", other, second]


def test_a_cell_stays_as_long_as_one_of_its_names_is_current() -> None:
    cells = ["import torch\ndef f():\n    pass", "def f():\n    return 1"]
    assert current(cells) == cells


def test_a_cell_that_python_could_not_read_did_not_run() -> None:
    assert current(["def f():\n    pass", "def f(:\n    pass"]) == ["def f():\n    pass", ""]


def test_the_code_below_a_magic_of_ours_counts() -> None:
    assert current(["def f():\n    pass", "%%gradekit softmax\ndef f():\n    return 1"])[0] == ""


def test_numbers_of_cells_are_those_of_in() -> None:
    book = notebook.read(json.dumps(session._notebook(["", "x = 1", "def f():\n    pass"])))
    assert [(cell.number, cell.text) for cell in book.cells] == [(1, ""), (2, "x = 1"), (3, "def f():\n    pass")]


# --- asking from within a session -------------------------------------------------------------------------------------


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Callable[..., SimpleNamespace]:
    """Stands in for a running IPython in which the given cells ran."""

    def make(*cells: str) -> SimpleNamespace:
        shell = SimpleNamespace(history_manager=SimpleNamespace(input_hist_raw=["", *cells]), executed=[], magics={})

        def run_cell(text: str) -> SimpleNamespace:
            shell.executed.append(text)
            return SimpleNamespace(success="raise" not in text)

        shell.run_cell = run_cell
        shell.register_magic_function = lambda function, magic_kind, magic_name: shell.magics.update(
            {magic_name: function}
        )
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        return shell

    return make


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of each check, none of which is run; its report is a fixed one."""
    words: list[list[str]] = []

    def run(given: list[str]) -> Shown:
        words.append(given)
        replay = {"inputs": [], "replay": f"gradekit check {given[0]} -a softmax -k test_memory --seed 7"}
        facts = {"path": given[0], "sha256": "", "cells": []}
        data = record(PASSED, FAILED, submission=facts, notes=("Left out cell 1.", "b"))
        data["checks"][1]["counterexample"] = replay
        return Shown(data)

    monkeypatch.setattr(session, "_run", run)
    return words


def test_a_notebook_is_graded_by_the_command_line_for_real(ran: Callable[..., SimpleNamespace]) -> None:
    ran("def add(x, y):\n    return None", "def add(:", SOLUTION)
    shown = gradekit.check("vector_add", keyword="test_empty", quick=True)
    assert shown.record is not None, str(shown)
    assert [check["outcome"] for check in shown.record["checks"]] == ["passed"]
    assert shown.record["submission"]["path"] == "this notebook"
    assert "this notebook" in str(shown)
    assert "this notebook" in (shown._repr_html_() or "")


def test_the_report_speaks_of_the_notebook(ran: Callable[..., SimpleNamespace], asked: list[list[str]]) -> None:
    ran("x = 1")
    shown = check("softmax", keyword="a or b", seed=3, quick=True)
    assert asked[0][1:] == ["-a", "softmax", "--keyword=a or b", "--seed=3", "--quick"]
    assert shown.record is not None
    assert shown.record["checks"][1]["counterexample"]["replay"] == "%gradekit softmax -k test_memory --seed 7"
    assert shown.record["notes"] == [NOTE, "b"]
    assert not Path(asked[0][0]).exists()


def test_outside_of_a_notebook_a_file_is_checked_that_must_be_named(
    asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    check("softmax", "mine/submission.py")
    assert asked == [["mine/submission.py", "-a", "softmax"]]
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert "name the file" in str(check("softmax"))


def test_wrong_usage_is_a_sentence_and_not_a_traceback(ran: Callable[..., SimpleNamespace]) -> None:
    ran("def f():\n    pass")
    shown = check("sofmax")
    assert "did you mean softmax?" in repr(shown)
    assert shown._repr_html_() is None


# --- the magics -------------------------------------------------------------------------------------------------------


def test_the_line_magic_takes_the_assignment_first(ran: Callable[..., SimpleNamespace], asked: list[list[str]]) -> None:
    shell = ran("x = 1")
    load_ipython_extension(shell)
    shell.magics["gradekit"]("softmax -k 'a or b'")
    assert (asked[0][1:], shell.executed) == (["-a", "softmax", "-k", "a or b"], [])


def test_the_cell_magic_runs_its_cell_first(ran: Callable[..., SimpleNamespace], asked: list[list[str]]) -> None:
    shell = ran("%%gradekit softmax\nx = 1")
    load_ipython_extension(shell)
    assert shell.magics["gradekit"]("softmax", "x = 1") is not None
    assert shell.executed == ["x = 1"]


def test_a_cell_that_fails_is_not_checked(ran: Callable[..., SimpleNamespace], asked: list[list[str]]) -> None:
    shell = ran("%%gradekit softmax\nraise")
    load_ipython_extension(shell)
    assert shell.magics["gradekit"]("softmax", "raise") is None
    assert asked == []


# --- a call step by step ----------------------------------------------------------------------------------------------


def test_a_step_view_is_shown_in_a_frame_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def answer(words: list[str]) -> SimpleNamespace:
        asked.append(words)
        return SimpleNamespace(returncode=0, stdout='<p title="x">steps</p>', stderr="")

    monkeypatch.setattr(session, "_gradekit", answer)
    shown = session.view("softmax", tmp_path / "a.py", program="3,0", quick=True)
    assert asked == [["view", str(tmp_path / "a.py"), "-a", "softmax", "--program=3,0", "--quick", "--output=-"]]
    framed = shown._repr_html_()
    assert framed is not None and "&lt;p title=&quot;x&quot;&gt;" in framed and 'sandbox="allow-scripts"' in framed


def test_a_step_view_that_cannot_be_made_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    outside = session.view("softmax")
    assert "Not in a notebook" in repr(outside) and outside._repr_html_() is None
    monkeypatch.setattr(session, "_gradekit", lambda words: zygote.ran(["-m", "gradekit.cli", *words]))
    missing = session.view("softmax", tmp_path / "gone.py")
    assert "gone.py" in repr(missing) and missing._repr_html_() is None


def test_a_cell_shows_what_the_check_does_and_keeps_what_it_says_at_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.openpty()
    os.write(writer, b"\rReading /tmp/gradekit-x/session.ipynb\x1b[K\r[ 1/12] Adds\x1b[K\r\x1b[KError: no such check\n")
    os.close(writer)
    monkeypatch.setattr(session, "_session", lambda: ["x = 1"])
    assert session._watched(reader) == "Error: no such check\n"
    os.close(reader)
    shown = capsys.readouterr().out
    assert shown.endswith("\r" + " " * 80 + "\r") and "/tmp/" not in shown
