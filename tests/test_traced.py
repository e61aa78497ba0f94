"""What a process has answered about a text is not asked of another: but about that text alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gradekit import sandbox, traced
from gradekit.findings import Cause
from gradekit.program import View
from gradekit.sandbox import Form, TraceError, Tracer
from gradekit.shelf import Shelf
from gradekit.submission import read
from gradekit.traced import Traces, without_comments

ROOT = Path(__file__).parents[1]
X, Y = View(0, "float32", (100,), (1,)), View(0, "float32", (7,), (1,))


class Text:
    """A submission's."""

    def __init__(self, text: str) -> None:
        self.text = text


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "_SHELF", Shelf(traced.MOST_BYTES, Traces.weight))


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The processes that were started."""
    started: list[int] = []
    fork = sandbox._Server.fork

    def noted(self: sandbox._Server, limits: sandbox.Limits) -> object:
        started.append(1)
        return fork(self, limits)

    monkeypatch.setattr(sandbox._Server, "fork", noted)
    yield started


COUNTS = "import torch\ncalls = []\ndef entry(x):\n    calls.append(1)\n    return torch.empty(len(calls) * x.shape[0], device='cuda')\n"


def test_a_copy_with_another_comment_needs_no_process(forks: list[int]) -> None:
    with Tracer(Text(f"# Ann\n{COUNTS}# 1\n"), remembers=True) as first:
        loaded, program = first.load(), first.trace("entry", [X])
    with Tracer(Text(f"# Bob\n{COUNTS}"), remembers=True) as second:
        assert second.load() == loaded and second.trace("entry", [X]) == program
        second.prefetch([Form("entry", (Y,))])
        assert len(forks) == 2  # one for what nobody has asked yet
        assert second.trace("entry", [Y]).results[0].shape == (7,)  # type: ignore[union-attr]


def test_a_call_made_again_is_told_as_its_repetition(forks: list[int]) -> None:
    for _ in range(2):
        with Tracer(Text(COUNTS), remembers=True) as tracer:
            sizes = [tracer.trace("entry", [X]).results[0].shape[0] for _ in range(3)]  # type: ignore[union-attr]
        assert sizes == [100, 200, 300]
    assert len(forks) == 1


def test_errors_are_remembered_but_those_of_the_machine(forks: list[int]) -> None:
    text = "import os\ndef entry(x):\n    x.item() if x.shape[0] == 7 else os._exit(3)\n"
    for number in (1, 2):
        with Tracer(Text(text), remembers=True) as tracer:
            for view, cause in ((Y, Cause.READS_VALUES), (X, Cause.CRASH)):
                with pytest.raises(TraceError) as caught:
                    tracer.trace("entry", [view])
                assert caught.value.cause is cause
        assert len(forks) == number


def test_a_text_that_cannot_be_loaded_is_loaded_once(forks: list[int]) -> None:
    for _ in range(2):
        with Tracer(Text("def entry(x:\n"), remembers=True) as tracer, pytest.raises(TraceError) as caught:
            tracer.load()
        assert caught.value.cause is Cause.SYNTAX_ERROR and caught.value.line == 1
    assert len(forks) == 1


def test_another_line_of_code_is_another_text(forks: list[int]) -> None:
    for text in (COUNTS, COUNTS.replace("len(calls)", "2"), f"\n{COUNTS}"):
        with Tracer(Text(text), remembers=True) as tracer:
            tracer.trace("entry", [X])
    assert len(forks) == 3


def test_nothing_is_remembered_unless_asked_for(forks: list[int]) -> None:
    for _ in range(2):
        with Tracer(Text(COUNTS)) as tracer:
            tracer.trace("entry", [X])
    assert len(forks) == 2


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("# Ann\nx = 1  # one\n\n# two\n", "\nx = 1  # one\n"),
        ("@f\n# kept\ndef g():\n# kept\n    # kept\n    pass\n# gone\n", "@f\n# kept\ndef g():\n# kept\n    # kept\n    pass\n"),
        ('x = """\n# kept\n"""\n', 'x = """\n# kept\n"""\n'),
        ("# coding: latin-1\nx = 1\n", "# coding: latin-1\nx = 1\n"),
        ("x = (\n# Python cannot read this\n", "x = (\n# Python cannot read this\n"),
        ("x = 1\r# a line of its own\r", "x = 1\r# a line of its own\r"),
        ("# a\r\nx = 1\r\n", "\nx = 1\n"),
    ],
)  # fmt: skip
def test_only_comments_between_statements_are_left_out(text: str, left: str) -> None:
    assert without_comments(text) == left


def test_the_lines_of_code_of_a_submission_stay_where_they_are() -> None:
    text = read(ROOT / "solutions/softmax/solution.py").text
    lines, left = text.splitlines(), without_comments(text).splitlines()
    assert [line or old for line, old in zip(left, lines, strict=False)] == lines[: len(left)]


def test_what_was_asked_for_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "_SHELF", Shelf(3 * traced._BYTES_OF_ANSWER, Traces.weight))
    for name in ("a", "b"):
        traces = traced.recall(name)
        traces.keep("call", 0, "answer")
        traces.keep("call", 1, "answer")
        traced.keep(name, traces)
    assert traced.recall("a").answer("call", 0) is None and traced.recall("b").answer("call", 1) == "answer"
