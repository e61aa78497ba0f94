"""What a terminal shows while a check runs: a line for each result that is known, and one for what is going on. All of
it disappears when the report is there; off a terminal there is nothing."""

import contextlib
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from gradekit.findings import Check, Outcome
from gradekit.report.text import one_line, shortened
from gradekit.report.translation import say
from gradekit.sandbox import TraceError
from gradekit.submission import NoSuchSubmission, SubmissionError

MARKS = {Outcome.PASSED: "+", Outcome.FAILED: "x", Outcome.PENDING: ".", Outcome.FAULT: "!"}
MOST_MESSAGE = 4  # lines of a failed check's message: the report has all of it


class Screen:
    """What is on the terminal `stream`; None: nothing is, and nothing is written."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._lines = 0
        self._failing: set[str] = set()
        self._going_on: tuple[str, int, int] | None = None
        self._lock = threading.Lock()  # what failed last time is looked at beside the rest

    def __call__(self, title: str, done: int, total: int) -> None:
        """A check begins: `done` of `total` have ended (0: not known yet)."""
        with self._lock:
            self._going_on = title, done, total
            self._draw("")

    def ended(self, check: Check) -> None:
        """A check has ended."""
        if check.outcome is Outcome.FAILED and check.title in self._failing:
            return  # the report tells the rest
        message = check.message if check.outcome in (Outcome.FAILED, Outcome.FAULT) else ""
        self._add(f"  {MARKS[check.outcome]} {one_line(say(check.title))}", say(message))

    def failing(self, title: str, message: str) -> None:
        """An example of a check has failed; a simpler one, and the cause, are yet to be looked for."""
        if title not in self._failing:
            self._failing.add(title)
            self._add(f"  x {one_line(say(title))}", say(message))

    def clear(self) -> None:
        """Takes everything away that is still in sight."""
        with self._lock:
            self._going_on = None
            in_sight = self._lines < shutil.get_terminal_size().lines
            self._draw(f"\x1b[{self._lines}A\x1b[J" if self._lines and in_sight else "")
            self._lines = 0

    def _add(self, first: str, message: str) -> None:
        lines = [first, *(f"      {line}" for line in message.splitlines()[:MOST_MESSAGE])]
        with self._lock:
            self._lines += len(lines)
            self._draw("".join(f"\r{shortened(line, _width())}\x1b[K\n" for line in lines))

    def _draw(self, text: str) -> None:
        """Writes `text`, and after it what is going on; whatever else stood on that line is erased."""
        last = line(*self._going_on, _width()) if self._going_on else ""
        if self._stream is not None:
            with contextlib.suppress(OSError, UnicodeEncodeError):
                self._stream.write(f"{text}\r{last}\x1b[K")
                self._stream.flush()


@contextlib.contextmanager
def shown(stream: TextIO, begin: str) -> Iterator[Screen]:
    """The screen of `stream` while the context is open, `begin` at first; nothing is written off a terminal."""
    screen = Screen(stream if stream.isatty() else None)
    screen(begin, 0, 0)
    try:
        yield screen
    finally:
        screen.clear()


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """A terminal shows that `path` is being read; what is wrong ends the command with a sentence, and 2 or 1."""
    try:
        with shown(sys.stderr, f"Reading {path}"):
            yield
    except Exception as error:
        from gradekit.plugin import NoSuchCheck

        if isinstance(error, (NoSuchSubmission, NoSuchCheck)):
            raise click.UsageError(str(error)) from None
        if isinstance(error, (SubmissionError, TraceError)):
            click.echo(say(error.message) + (say(f" (line {error.line})") if error.line else ""), err=True)
            raise click.exceptions.Exit(1) from None
        raise


def line(title: str, done: int, total: int, width: int) -> str:
    """("Agrees with torch", 3, 12) -> "[ 3/12] Agrees with torch", in at most `width` columns."""
    counted = f"[{done:>{len(str(total))}}/{total}] " if total else ""
    return shortened(counted + one_line(say(title)), width)


def _width() -> int:
    return shutil.get_terminal_size().columns - 1


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends what runs inside, also where it is taken for an outcome there, as pytest does."""
    heard: list[int] = []

    def hear(number: int, frame: Any) -> None:
        heard.append(number)
        if callable(before):
            before(number, frame)

    before = signal.getsignal(signal.SIGINT)
    if callable(before) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is hear:
            signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt
