"""Progress is one line on a terminal, and nothing at all elsewhere."""

from __future__ import annotations

import io

import pytest

from gradekit.progress import line, shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_off_a_terminal_nothing_is_written() -> None:
    stream = io.StringIO()
    with shown(stream, "begin") as progress:
        progress("a check", 1, 2)
    assert stream.getvalue() == ""


def test_on_a_terminal_the_line_is_replaced_and_then_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    with shown(stream, "Reading a.py") as progress:
        progress("Agrees with torch", 3, 12)
    assert stream.getvalue() == "\rReading a.py\x1b[K\r[ 3/12] Agrees with torch\x1b[K\r\x1b[K"


def test_the_line_is_erased_also_when_the_work_breaks() -> None:
    stream = Terminal()
    with pytest.raises(ValueError, match="oh"), shown(stream, "begin"):
        raise ValueError("oh")
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_title_is_cut_to_the_width_and_cleaned() -> None:
    assert line("Agrees\x1b[2J with torch everywhere", 1, 9, 24) == "[1/9] Agrees\\x1b[2J w..."
