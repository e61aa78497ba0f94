"""The text of a compilation stage as rows, each with the line of the submission that it comes from. Pure functions.

What only carries locations (location aliases, debug metadata, .loc) is left out of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gradekit.engine.ttir_locations import Location, Locations

Row = tuple[int | None, str]
"""A line of the submission, 1-based, or None; and a row of the stage's text."""

_MLIR_LOC = re.compile(r" loc\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")
_DEBUG = re.compile(r",? !dbg !(\d+)")
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(\w+)\((.*)\)$", re.MULTILINE)
_FIELD = re.compile(r'(\w+): (!\d+|\d+|"[^"]*")')
_SASS_PLACE = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_PTX_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_PTX_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:, function_name [^,]+, inlined_at (\d+) (\d+))?")
_AMD_PLACE = re.compile(r"([^\s@\[\]][^@\[\]]*):(\d+):\d+")


def rows(stage: str, text: str, path: str) -> list[Row]:
    """The rows of `text`, the stage called `stage`; lines are of the file `path`, innermost call first."""
    return list(_READERS[stage](text, path))


def _mlir(text: str, path: str) -> Iterator[Row]:
    locations = Locations(text)
    for row in text.splitlines():
        if row.startswith("#loc"):
            continue
        found = _MLIR_LOC.findall(row)
        yield (_line(locations.of(found[-1]), path) if found else None), _MLIR_LOC.sub("", row).rstrip()


def _line(location: Location, path: str) -> int | None:
    return next((line for file, line, _ in location if file == path), None)


def _llvm(text: str, path: str) -> Iterator[Row]:
    nodes = {number: dict(_FIELD.findall(fields)) for number, _, fields in _NODE.findall(text)}
    for row in text.splitlines():
        if row.startswith("!"):
            continue
        found = _DEBUG.search(row)
        yield (_llvm_line(nodes, found[1], path) if found else None), _DEBUG.sub("", row).rstrip()


def _llvm_line(nodes: dict[str, dict[str, str]], number: str, path: str) -> int | None:
    for location in _chain(nodes, number, "inlinedAt"):
        if _llvm_file(nodes, location.get("scope", "")[1:]) == path:
            return int(location.get("line", 0)) or None
    return None


def _llvm_file(nodes: dict[str, dict[str, str]], scope: str) -> str:
    found = (node["filename"].strip('"') for node in _chain(nodes, scope, "file", "scope") if "filename" in node)
    return next(found, "")


def _chain(nodes: dict[str, dict[str, str]], number: str, *fields: str) -> Iterator[dict[str, str]]:
    """A node, the one that the first of these fields names that it has, and so on; each once."""
    seen = set[str]()
    while number in nodes and number not in seen:
        seen.add(number)
        yield nodes[number]
        number = next((nodes[number][field][1:] for field in fields if field in nodes[number]), "")


def _ptx(text: str, path: str) -> Iterator[Row]:
    files = dict(_PTX_FILE.findall(text))
    line: int | None = None
    for row in text.splitlines():
        place = _PTX_LOC.match(row)
        if place is not None:
            line = _of(files.get(place[1]), place[2], files.get(place[3] or ""), place[4], path)
        elif row.strip().startswith(".section"):  # debug information follows, to the end
            return
        elif row.strip():
            yield line, row.rstrip()


def _amdgcn(text: str, path: str) -> Iterator[Row]:
    """LLVM says the place and what it is inlined into, innermost first, in a comment beside .loc."""
    line: int | None = None
    name = path.rpartition("/")[2]
    for row in text.splitlines():
        place, _, comment = row.partition(";")
        if place.strip().startswith(".loc"):
            line = next((int(n) for file, n in _AMD_PLACE.findall(comment) if file == name and int(n)), None)
        elif place.strip().startswith((".section", ".amdgpu_metadata")):  # debug information and figures follow
            return
        elif place.strip() and not place.strip().startswith((".file", ".cfi", ".Ltmp")):
            yield line, row.rstrip()


def _of(file: str | None, line: str, outer: str | None, outer_line: str | None, path: str) -> int | None:
    if file == path:
        return int(line)
    return int(outer_line) if outer == path and outer_line else None


def _sass(text: str, path: str) -> Iterator[Row]:
    line: int | None = None
    in_place = False
    for row in text.splitlines():
        place = _SASS_PLACE.search(row)
        if place is not None:
            found = _of(place[1], place[2], place[3], place[4], path)
            line = line if in_place and line is not None else found
            in_place = True
        elif row.strip():
            in_place = False
            yield line, row.rstrip()


_READERS: dict[str, Callable[[str, str], Iterator[Row]]] = {
    "ttir": _mlir,
    "ttgir": _mlir,
    "llir": _llvm,
    "ptx": _ptx,
    "sass": _sass,
    "amdgcn": _amdgcn,
}
