"""The line of a TOML file at which a place of its data stands: tomllib, which reads the file, does not tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradekit.schemas.check import Place, Problem

_WORD = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")


def line_of(text: str, place: Place) -> int:
    """The line, from 1, of the key or the header at `place`, or of the nearest around it."""
    names = [str(part) for part in place]
    best, line = 0, 1
    for number, path in _keys(text):
        if path == names[: len(path)] and len(path) > best:
            best, line = len(path), number
    return line


def located(path: object, text: str, problem: Problem) -> str:
    """The problem as one sentence, with the file, the line and the place: "domain.toml:7: f.sizes.N has no most"."""
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.place).lstrip(".")
    return f"{path}:{line_of(text, problem.place)}: {f'{named} {problem.message}'.lstrip()}"


def _keys(text: str) -> Iterator[tuple[int, list[str]]]:
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEADER.match(line):
            table = _split(match[1])
            yield number, table
        elif match := _KEY.match(line):
            yield number, [*table, *_split(match[1])]


def _split(dotted: str) -> list[str]:
    return [word.strip("\"'") for word in re.findall(_WORD, dotted)]
