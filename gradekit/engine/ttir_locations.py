"""Where in the source an operation comes from: MLIR's `loc(...)`, read into (file, line, column) frames.

Frames stand innermost call first. Aliases (`#loc5 = loc(...)`) may be defined after their use, so they are collected
from the whole text first and resolved on demand, each once.
"""

import itertools
import re

from gradekit.engine.budget import Limit

Location = tuple[tuple[str, int, int], ...]
"""(file, line, column) for the operation and for each call around it, innermost first; () where unknown."""

_DEFINITION = re.compile(r"^#(\w+) = loc\((.*)\)[ \t]*$", re.MULTILINE)
_FILE = re.compile(r'"((?:[^"\\]|\\.)*+)":(\d{1,9}):(\d{1,9})(?: to (?:\d{1,9})?:\d{1,9})?')
_NAME = re.compile(r'"(?:[^"\\]|\\.)*+"')
_ALIAS = re.compile(r"#(\w+)")


def line_of(location: Location, path: str) -> int | None:
    """The innermost line of the file `path` in a location."""
    return next((line for file, line, _ in location if file == path), None)


class Locations:
    """The locations of one module: `of(text)` is the location that the inside of a `loc(...)` means."""

    def __init__(self, text: str) -> None:
        self._definitions = dict(_DEFINITION.findall(text))
        self._known: dict[str, Location] = {}

    def of(self, text: str, depth: int = 0) -> Location:
        """The location that the inside of a `loc(...)` means, as far as understood; () for an alias without any."""
        if text not in self._known:
            self._known[text] = ()  # what a definition in terms of itself sees
            self._known[text] = self._read(text, depth)
        return self._known[text]

    def _read(self, text: str, depth: int) -> Location:
        file, alias, name = _FILE.fullmatch(text), _ALIAS.fullmatch(text), _NAME.match(text)
        if file is not None:
            return ((file[1], int(file[2]), int(file[3])),)
        if depth > Limit.NESTING:
            return ()
        if alias is not None:
            return self.of(self._definitions.get(alias[1], "unknown"), depth + 1)
        if text.startswith("callsite("):
            callee, caller = _halves(text[len("callsite(") : -1])
            return (self.of(callee, depth + 1) + self.of(caller, depth + 1))[: Limit.NESTING]
        if text.startswith("fused"):
            return next((location for part in _parts(text) if (location := self.of(part, depth + 1))), ())
        return self.of(text[name.end() + 1 : -1], depth + 1) if name and text[name.end() :].startswith("(") else ()


def name_in(text: str) -> str | None:
    """The variable that a `"name"(...)` location names, or None."""
    name = _NAME.match(text)
    if name is None or text[name.end() :].startswith(":"):
        return None
    return name[0][1:-1]


def _halves(text: str) -> tuple[str, str]:
    """The two sides of the ` at ` of a callsite that stands outside strings and parentheses."""
    for at in _outside(text, " "):
        if text.startswith(" at ", at):
            return text[:at], text[at + 4 :]
    return text, "unknown"


def _parts(text: str) -> list[str]:
    """The locations inside `fused<...>[a, b]`."""
    inside = text[text.find("[") + 1 : text.rfind("]")]
    cuts = [-1, *_outside(inside, ","), len(inside)]
    return [inside[start + 1 : end].strip() for start, end in itertools.pairwise(cuts)][: Limit.NESTING]


def _outside(text: str, wanted: str) -> list[int]:
    """The positions of the character `wanted` outside of strings and brackets."""
    found, depth = [], 0
    for piece in re.finditer(r'"(?:[^"\\]|\\.)*+"|[(\[<]|[)\]>]|[ ,]', text):
        if piece[0] in "([<":
            depth += 1
        elif piece[0] in ")]>":
            depth -= 1
        elif piece[0] == wanted and depth == 0:
            found.append(piece.start())
    return found
