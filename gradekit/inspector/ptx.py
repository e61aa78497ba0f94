"""PTX read as far as products of matrices and accesses to global memory, each with its line. Pure functions of text.

The instructions that matter are in PTX what Triton wrote, beside the place that it wrote them for. In machine code they
are what counts, but ptxas moves the places about: a wgmma of line 49 may seem to come from line 47. So lines and widths
are read here, and figures there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:, function_name [^,]+, inlined_at (\d+) (\d+))?")
_OPCODE = re.compile(r"(?:^|[\s}{;])(?:@!?[%$]\w+\s+)?([a-z][a-z0-9_]*(?:(?:\.|::)\w+)+)\s")
_COPIED = re.compile(r"\], (0x[0-9a-f]+|\d+)")
_VECTOR = re.compile(r"\.v(\d)\b")
_BITS = re.compile(r"\.[bfsu](\d+)\b")
_PRODUCTS = ("mma.sync", "wgmma.mma_async", "tcgen05.mma")
_NOISE = re.compile(r"\.(?:sync|aligned|row|col)\b(?<!mma\.sync)")


@dataclass(frozen=True)
class PtxInstruction:
    """`opcode` in full, on `line` of the submission (None where it has none).

    `kind` is "load" or "store" of global memory, "product" of the tensor cores, or "multiply". A thread moves `width`
    bytes with it, 0 where a whole tile is moved. `is_asynchronous` copies go on while the program does.
    """

    kind: str
    opcode: str
    line: int | None
    width: int = 0
    is_asynchronous: bool = False

    @property
    def short(self) -> str:
        """The opcode without the parts that all instructions of its kind share."""
        return _NOISE.sub("", self.opcode)


def instructions(text: str, path: str) -> list[PtxInstruction]:
    """Those instructions of `text`, in order, each with the innermost line of the file `path` that it stands for."""
    return list(_instructions(text, path))


def _instructions(text: str, path: str) -> Iterator[PtxInstruction]:
    files = dict(_FILE.findall(text))
    line: int | None = None
    for row in text.splitlines():
        place = _LOC.match(row)
        if place is not None:
            line = _line(place, files, path)
        elif (found := _OPCODE.search(row)) is not None:
            yield from _instruction(found[1], row, line)


def _line(place: re.Match[str], files: dict[str, str], path: str) -> int | None:
    file, line, outer, outer_line = place.groups()
    if files.get(file) == path:
        return int(line)
    return int(outer_line) if outer is not None and files.get(outer) == path else None


def _instruction(opcode: str, row: str, line: int | None) -> Iterator[PtxInstruction]:
    name = opcode.partition(".")[0]
    if opcode.startswith(_PRODUCTS):
        yield PtxInstruction("product", opcode, line)
    elif opcode.startswith(("cp.async.bulk.tensor", "cp.reduce.async.bulk")):
        yield PtxInstruction("store" if ".global.shared" in opcode else "load", opcode, line, 0, True)
    elif opcode.startswith(("cp.async.ca", "cp.async.cg")):
        size = _COPIED.search(row)
        yield PtxInstruction("load", opcode, line, int(size[1], 0) if size else 0, True)
    elif name in ("ld", "st") and ".global" in opcode:
        yield PtxInstruction("load" if name == "ld" else "store", opcode, line, _width(opcode))
    elif name in ("fma", "mad", "mul", "dp4a"):
        yield PtxInstruction("multiply", opcode, line)


def _width(opcode: str) -> int:
    bits = _BITS.findall(opcode)
    return prod(map(int, _VECTOR.findall(opcode))) * int(bits[-1]) // 8 if bits else 0
