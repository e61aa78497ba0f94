"""Progress is one line on a terminal, and nothing at all elsewhere."""

import contextlib
import io
import signal
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gradekit.findings import Check, Kind, Outcome
from gradekit.progress import interruptible, line, reading, shown
from gradekit.submission import NoSuchSubmission, SubmissionError


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


def test_each_result_stands_above_what_is_going_on_until_the_report_takes_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    with shown(stream, "Reading a.py") as screen:
        screen("Agrees", 0, 2)
        screen.failing("Agrees", "At [3]: wrong.\nsecond line")
        screen.failing("Agrees", "At [2]: wrong.")
        screen.ended(Check("test_agrees", "Agrees", Kind.CORRECTNESS, Outcome.FAILED, 0, 5, "At [1]: wrong."))
        screen.ended(Check("test_other", "Other", Kind.CORRECTNESS, Outcome.FAILED, 0, 5, "At [0]: wrong."))
        so_far = stream.getvalue()
    assert so_far.count("\n") == 5
    assert "  x Agrees\x1b[K\n\r      At [3]: wrong.\x1b[K\n" in so_far
    assert so_far.endswith("  x Other\x1b[K\n\r      At [0]: wrong.\x1b[K\n\r[0/2] Agrees\x1b[K")
    assert stream.getvalue() == so_far + "\x1b[5A\x1b[J\r\x1b[K"


def test_the_line_is_erased_also_when_the_work_breaks() -> None:
    stream = Terminal()
    with pytest.raises(ValueError, match="oh"), shown(stream, "begin"):
        raise ValueError("oh")
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_title_is_cut_to_the_width_and_cleaned() -> None:
    assert line("Agrees\x1b[2J with torch everywhere", 1, 9, 24) == "[1/9] Agrees\\x1b[2J w..."


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT means what it does in a terminal, also where a shell that put the tests into the background had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_what_takes_it_for_an_outcome() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible(), contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with interruptible():
        pass


@pytest.mark.parametrize(
    ("wrong", "ends_with", "code"),
    [(NoSuchSubmission("there is no file a.py"), click.UsageError, 2), (SubmissionError("It cannot be read."), click.exceptions.Exit, 1)],
)
def test_a_command_says_what_it_reads_until_something_is_wrong(
    wrong: SubmissionError, ends_with: type[Exception], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    with pytest.raises(ends_with) as ended, reading(Path("a.py")):
        assert stream.getvalue() == "\rReading a.py\x1b[K"
        raise wrong
    assert ended.value.exit_code == code  # type: ignore[attr-defined]
    assert stream.getvalue().startswith("\rReading a.py\x1b[K\r\x1b[K")


def test_what_breaks_in_a_command_itself_is_no_sentence_about_the_submission() -> None:
    with pytest.raises(KeyError), reading(Path("a.py")):
        raise KeyError("of ours")
