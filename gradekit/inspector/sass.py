"""Machine code as nvdisasm prints it, read into instructions that know the submission's line. Pure functions of text.

nvdisasm puts the place above the instructions that come from it, innermost call first:

    //## File "/.../standard.py", line 43 inlined at "submission.py", line 17
    //## File "submission.py", line 17 inlined at "submission.py", line 34
    //## File "submission.py", line 34
        /*0540*/              @P0 LDG.E.128 R4, desc[UR12][R6.64] ;
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PLACE = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)")
_USAGE = re.compile(r"\b(REG|STACK|LOCAL):(\d+)")

TENSOR_CORE = re.compile(r"(?:[BDHIOQ]G?MMA|UTC[A-Z]*MMA)$")
"""HMMA and similar instructions run on one warp, HGMMA (wgmma) on a warp group, UTCHMMA (tcgen05) on a block."""

_GLOBAL = {
    "LDG": "load",
    "STG": "store",
    "LDGSTS": "load",
    "ATOMG": "atomic",
    "ATOM": "atomic",
    "RED": "atomic",
    "REDG": "atomic",
}
_BULK = {"UTMALDG": "load", "UTMASTG": "store", "UTMAREDG": "atomic", "UBLKCP": "load"}
_LOCAL = {"LDL": "load", "STL": "store"}


@dataclass(frozen=True)
class SassInstruction:
    """`opcode` with its modifiers ("LDG.E.128"); `line` of the submission, or None where it has none."""

    opcode: str
    line: int | None

    @property
    def name(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def uses_tensor_cores(self) -> bool:
        """Whether it multiplies matrices."""
        return TENSOR_CORE.match(self.name) is not None

    @property
    def memory(self) -> str:
        """ "load", "store" or "atomic" for an access to global memory; "" for anything else."""
        return _GLOBAL.get(self.name) or _BULK.get(self.name, "")

    @property
    def local(self) -> str:
        """ "load" or "store" for an access to local memory, where registers are spilled to."""
        return _LOCAL.get(self.name, "")


def instructions(text: str, path: str) -> list[SassInstruction]:
    """All instructions of `text`, each with the innermost line of the file `path` that it comes from."""
    return list(_instructions(text, path))


def _instructions(text: str, path: str) -> Iterator[SassInstruction]:
    line: int | None = None
    in_place = False
    for row in text.splitlines():
        place = _PLACE.search(row)
        if place is not None:
            line = line if in_place and line is not None else _line(place, path)
            in_place = True
        elif (found := _INSTRUCTION.search(row)) is not None:
            in_place = False
            yield SassInstruction(found[1], line)


def _line(place: re.Match[str], path: str) -> int | None:
    """The line of `path` that a place names, itself or as what it is inlined into."""
    file, line, outer, outer_line = place.groups()
    if file == path:
        return int(line)
    return int(outer_line) if outer == path else None


@dataclass(frozen=True)
class Usage:
    """Of one thread: `registers`, and bytes of `stack` in local memory, where spilled registers go."""

    registers: int
    stack: int


def usage(text: str) -> Usage | None:
    """What `cuobjdump -res-usage` says of the kernel; None where it says nothing."""
    found = {name: int(value) for name, value in _USAGE.findall(text)}
    return Usage(found["REG"], found.get("STACK", 0) + found.get("LOCAL", 0)) if "REG" in found else None
