"""The text of a compilation stage as rows, each with the submission's line, and the instructions that matter in PTX, in
NVIDIA's machine code and in AMD's assembly.

Pure functions of text. In PTX instructions are what Triton wrote, beside the place that it wrote them for. In machine
code they are what counts, but ptxas moves the places about: a wgmma of line 49 may seem to come from line 47. So lines
and widths are read in PTX, and figures in machine code. AMD's assembly is written by LLVM, and serves for both.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from gradekit.engine.ttir_locations import Locations, line_of

_PTX = re.compile(r"(?:^|[\s}{;])(?:@!?[%$]\w+\s+)?([a-z][a-z0-9_]*(?:(?:\.|::)\w+)+)\s")
_SASS = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)")
_AMDGCN = re.compile(r"\s+([a-z]\w+)")
_NOISE = re.compile(r"\.(?:sync|aligned|row|col)\b(?<!mma\.sync)")


@dataclass(frozen=True)
class Instruction:
    """`opcode` in full, on `line` of the submission (None where it has none).

    `kind` is "load", "store" or "atomic" (of global memory), "product" of matrices, "multiply", "spill" (a store to
    local memory), "reload" (a load from there), "double" (arithmetic in float64) or "". A thread moves `width` bytes
    with it, 0 where a whole tile is moved or nobody says. `is_asynchronous` copies go on while the program does.
    """

    opcode: str
    line: int | None
    kind: str = ""
    width: int = 0
    is_asynchronous: bool = False

    @property
    def short(self) -> str:
        """The opcode without the parts that all instructions of its kind share."""
        return _NOISE.sub("", self.opcode)


def instructions(stage: str, text: str, path: str) -> list[Instruction]:
    """Those of `text`, which is the stage "ptx", "sass" or "amdgcn", in order, with lines of the file `path`."""
    pattern, read = _READERS[stage]
    found = ((line, row, pattern.search(row)) for line, row in rows(stage, text, path))
    return [Instruction(opcode[1], line, *read(opcode[1], row)) for line, row, opcode in found if opcode]


_COPIED = re.compile(r"\], (0x[0-9a-f]+|\d+)")
_VECTOR = re.compile(r"\.v(\d)\b")
_BITS = re.compile(r"\.[bfsu](\d+)\b")


def _ptx(opcode: str, row: str) -> tuple[str, int, bool]:
    name = opcode.partition(".")[0]
    if opcode.startswith(("mma.sync", "wgmma.mma_async", "tcgen05.mma")):
        return "product", 0, False
    if opcode.startswith(("cp.async.bulk.tensor", "cp.reduce.async.bulk")):
        return "store" if ".global.shared" in opcode else "load", 0, True
    if opcode.startswith(("cp.async.ca", "cp.async.cg")):
        size = _COPIED.search(row)
        return "load", int(size[1], 0) if size else 0, True
    if name in ("ld", "st") and ".global" in opcode:
        bits = _BITS.findall(opcode)
        width = prod(map(int, _VECTOR.findall(opcode))) * int(bits[-1]) // 8 if bits else 0
        return "load" if name == "ld" else "store", width, False
    return "multiply" if name in ("fma", "mad", "mul", "dp4a") else "", 0, False


_SASS_KINDS = {
    "LDG": "load", "LDGSTS": "load", "UTMALDG": "load", "UBLKCP": "load", "STG": "store", "UTMASTG": "store",
    "ATOMG": "atomic", "ATOM": "atomic", "RED": "atomic", "REDG": "atomic", "UTMAREDG": "atomic",
    "LDL": "reload", "STL": "spill", "DADD": "double", "DMUL": "double", "DFMA": "double",
}  # fmt: skip
_TENSOR_CORE = re.compile(r"(?:[BDHIOQ]G?MMA|UTC[A-Z]*MMA)$")
"""HMMA and similar instructions run on one warp, HGMMA (wgmma) on a warp group, UTCHMMA (tcgen05) on a block."""


def _sass(opcode: str, row: str) -> tuple[str]:
    name = opcode.partition(".")[0]
    return ("product" if _TENSOR_CORE.match(name) else _SASS_KINDS.get(name, ""),)


_AMDGCN_MEMORY = re.compile(
    r"(global|buffer|flat|scratch)_(load|store|atomic)(?:_lds)?_(d?word|u?short|[us]?byte)?(?:x(\d))?"
)
_BYTES = {"word": 2, "short": 2, "ushort": 2, "byte": 1, "ubyte": 1, "sbyte": 1, "dword": 4}


def _amdgcn(opcode: str, row: str) -> tuple[str, int, bool]:
    """A load marked "lds" goes to shared memory (LDS) by itself."""
    memory = _AMDGCN_MEMORY.match(opcode)
    if memory is not None:
        space, kind, unit, count = memory.groups()
        local = {"load": "reload", "store": "spill"}.get(kind, kind)
        to_shared = "_lds" in opcode or row.rstrip().endswith(" lds")
        return local if space == "scratch" else kind, _BYTES.get(unit, 0) * int(count or 1), to_shared
    if opcode.startswith(("v_mfma_", "v_smfmac_", "v_wmma_")):
        return "product", 0, False
    if re.match(r"v_(add|mul|fma)_f64", opcode):
        return "double", 0, False
    return "multiply" if re.match(r"v_(pk_)?(fma|fmac|mac|mad|mul|dot\d)", opcode) else "", 0, False


_READERS: dict[str, tuple[re.Pattern[str], Callable[[str, str], tuple[str, int, bool] | tuple[str]]]] = {
    "ptx": (_PTX, _ptx), "sass": (_SASS, _sass), "amdgcn": (_AMDGCN, _amdgcn),
}  # fmt: skip


# --- registers --------------------------------------------------------------------------------------------------------

_USAGE = re.compile(r"\b(REG|STACK|LOCAL):(\d+)")
_AMD_USAGE = re.compile(r"^\s*\.(vgpr_count|private_segment_fixed_size):\s+(\d+)$", re.MULTILINE)


def usage(text: str) -> tuple[int, int] | None:
    """A thread's registers, and bytes in local memory, as `cuobjdump -res-usage` or AMD's metadata says; or None."""
    found = {name: int(value) for name, value in [*_USAGE.findall(text), *_AMD_USAGE.findall(text)]}
    if "vgpr_count" in found:
        return found["vgpr_count"], found.get("private_segment_fixed_size", 0)
    return (found["REG"], found.get("STACK", 0) + found.get("LOCAL", 0)) if "REG" in found else None


# --- rows -------------------------------------------------------------------------------------------------------------


Row = tuple[int | None, str]  # a line of the submission, 1-based, or None; and a row of the stage's text

_MLIR_LOC = re.compile(r" loc\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")
_SASS_PLACE = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_PTX_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_PTX_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:, function_name [^,]+, inlined_at (\d+) (\d+))?")
_AMD_PLACE = re.compile(r"([^\s@\[\]][^@\[\]]*):(\d+):\d+")


def rows(stage: str, text: str, path: str) -> list[Row]:
    """The rows of `text`, the stage called `stage`; lines are of the file `path`, innermost call first."""
    return list(_ROWS[stage](text, path))


def _mlir_rows(text: str, path: str) -> Iterator[Row]:
    locations = Locations(text)
    for row in text.splitlines():
        if row.startswith("#loc"):
            continue
        found = _MLIR_LOC.findall(row)
        yield (line_of(locations.of(found[-1]), path) if found else None), _MLIR_LOC.sub("", row).rstrip()


def _ptx_rows(text: str, path: str) -> Iterator[Row]:
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


def _amdgcn_rows(text: str, path: str) -> Iterator[Row]:
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


def _sass_rows(text: str, path: str) -> Iterator[Row]:
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


_ROWS: dict[str, Callable[[str, str], Iterator[Row]]] = {
    "ttir": _mlir_rows, "ttgir": _mlir_rows, "ptx": _ptx_rows, "sass": _sass_rows, "amdgcn": _amdgcn_rows,
}  # fmt: skip
