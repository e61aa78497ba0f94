"""PTX read as far as accesses to global memory: their lines and widths. Pure functions of text.

Machine code says the same and is what counts; PTX is there four times sooner, for the variants that `why` tries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:, function_name [^,]+, inlined_at (\d+) (\d+))?")
_PLAIN = re.compile(r"\b(ld|st)(?:\.volatile|\.relaxed\.\w+)?\.global((?:\.[\w:]+)*)")
_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global.*?\], (0x[0-9a-f]+|\d+)")
_VECTOR = re.compile(r"\.v(\d)\b")
_BITS = re.compile(r"\.[bfsu](\d+)\b")
_KINDS = {"ld": "load", "st": "store"}


@dataclass(frozen=True)
class Move:
    """An instruction of `kind` load or store that moves `width` bytes for each thread, on `line` of the submission."""

    kind: str
    line: int | None
    width: int


def moves(text: str, path: str) -> Iterator[Move]:
    """Every access to global memory that a thread makes for itself, with the innermost line of the file `path`."""
    files = dict(_FILE.findall(text))
    line: int | None = None
    for row in text.splitlines():
        place = _LOC.match(row)
        if place is not None:
            line = _line(place, files, path)
        elif (move := _move(row)) is not None:
            yield Move(move[0], line, move[1])


def _line(place: re.Match[str], files: dict[str, str], path: str) -> int | None:
    file, line, outer, outer_line = place.groups()
    if files.get(file) == path:
        return int(line)
    return int(outer_line) if outer is not None and files.get(outer) == path else None


def _move(row: str) -> tuple[str, int] | None:
    copied = _COPY.search(row)
    if copied is not None:
        return "load", int(copied[1], 0)
    plain = _PLAIN.search(row)
    if plain is None:
        return None
    vector, bits = _VECTOR.findall(plain[2]), _BITS.findall(plain[2])
    return _KINDS[plain[1]], prod(map(int, vector)) * int(bits[-1]) // 8 if bits else 0
