"""What a submission prints: kept, up to a limit, and away from the terminal of the grader."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Self

LIMIT = 1 << 16
"""The most characters that one answer to the grader carries."""


class Output(io.TextIOBase):
    """Stands in for sys.stdout and sys.stderr inside a `with`; keeps the first LIMIT characters."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = LIMIT
        self._stack: contextlib.ExitStack | None = None

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Keeps what still has room, and says that it took everything."""
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
        return len(text)

    def take(self) -> str:
        """What was written since the last time."""
        text, self._parts, self._room = "".join(self._parts), [], LIMIT
        return printable(text)

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(contextlib.redirect_stdout(self))
        self._stack.enter_context(contextlib.redirect_stderr(self))
        return self

    def __exit__(self, *exception: object) -> None:
        if self._stack is not None:
            self._stack.close()


LONGEST_NAME = 1_000
"""Characters of a name that travels; Python takes names of any length, and what reads programs does not."""


def shortened(name: str) -> str:
    """The name, or its beginning where it is longer than LONGEST_NAME."""
    return name[:LONGEST_NAME]


def printable(text: str) -> str:
    """The text with what no encoding can carry (lone surrogates) replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


@contextlib.contextmanager
def spoken() -> Iterator[Callable[[], str]]:
    """Catches what C++ writes to the standard error descriptor; call what it gives to read it."""
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: _content(file)
        finally:
            os.dup2(before, 2)
            os.close(before)


def _content(file: Any) -> str:
    file.seek(0)
    return file.read(LIMIT).decode(errors="replace")
