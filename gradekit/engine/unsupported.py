"""What the engine raises where it does not know an operation or a type."""

from __future__ import annotations


class Unsupported(Exception):
    """The engine does not know `op`: the check is pending, never a zero."""

    def __init__(self, op: str, line: int | None = None) -> None:
        super().__init__(f"{op} is not known to the CPU engine")
        self.op, self.line = op, line
