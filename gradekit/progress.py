"""One line on a terminal that says what is going on, and disappears when it is over."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from typing import TextIO

from gradekit.report.text import one_line, shortened

Progress = Callable[[str, int, int], None]
"""Called with what begins now, how many are done, and how many there are (0: not known yet)."""


@contextlib.contextmanager
def shown(stream: TextIO, begin: str) -> Iterator[Progress]:
    """A function that shows progress on `stream` while the context is open, `begin` at first; silent off a terminal."""
    if not stream.isatty():
        yield lambda title, done, total: None
        return

    def show(title: str, done: int, total: int) -> None:
        _draw(stream, line(title, done, total, shutil.get_terminal_size().columns - 1))

    show(begin, 0, 0)
    try:
        yield show
    finally:
        _draw(stream, "")


def line(title: str, done: int, total: int, width: int) -> str:
    """("Agrees with torch", 3, 12) -> "[ 3/12] Agrees with torch", in at most `width` columns."""
    counted = f"[{done:>{len(str(total))}}/{total}] " if total else ""
    return shortened(counted + one_line(title), width)


def _draw(stream: TextIO, text: str) -> None:
    """Replace the line: back to its start, the text, and whatever stood after it erased."""
    with contextlib.suppress(OSError, UnicodeEncodeError):
        stream.write(f"\r{text}\x1b[K")
        stream.flush()
