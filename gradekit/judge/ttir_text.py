"""Reads off a program's TTIR text which lines load and store, with or without a mask, and which operations it uses.

The engine has a full reader; the judge needs these two facts only, and a text that it does not understand gives none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gradekit.program import Program, View

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_ACCESS = re.compile(r"\btt\.(load|store) ([^:{\n]*)(.*)$", re.MULTILINE)
_PLACE = re.compile(r'"([^"\n]*)":(\d+):\d+')
_LABEL = re.compile(r"#loc\d*")
_FLOATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
_OPERANDS_WITHOUT_MASK = {"load": 1, "store": 2}


@dataclass(frozen=True)
class Access:
    """A load or store, of a tile unless it `is_scalar`: the submission's lines that it stands in (its own, and those of
    calls around it)."""

    kind: str
    masked: bool
    is_scalar: bool
    lines: frozenset[int]


def accesses(program: Program) -> list[Access]:
    """Every load and store of every kernel of `program`; a bounds check of a block pointer counts as a mask."""
    found = []
    for text in (kernel.ttir for kernel in program.kernels.values()):
        aliases = dict(_ALIAS.findall(text))
        for match in _ACCESS.finditer(text):
            lines = frozenset(_lines(match[3], aliases, program.path))
            found.append(Access(match[1], _is_masked(match), "tensor<" not in match[3], lines))
    return found


def narrow_lines(program: Program, pattern: str) -> list[tuple[str, frozenset[int]]]:
    """For each operation that matches `pattern`: the floating dtype that it names, and the lines it stands in."""
    return [
        (_FLOATS[match[1]], frozenset(_lines(match.string[match.end() :].split("\n", 1)[0], aliases, program.path)))
        for text in (kernel.ttir for kernel in program.kernels.values())
        for aliases in [dict(_ALIAS.findall(text))]
        for match in re.finditer(pattern, text)
    ]


def largest_range(program: Program) -> int:
    """The length of the longest `tl.arange`, 0 where there is none: the block size of a kernel in one dimension."""
    texts = "\n".join(kernel.ttir for kernel in program.kernels.values())
    return max((int(end) for end in re.findall(r"tt\.make_range \{end = (\d+)", texts)), default=0)


def uses(program: Program, operation: str) -> bool:
    """Whether some kernel has `operation`, such as "math.exp", as a whole word."""
    word = re.compile(rf"{re.escape(operation)}\b")
    return any(word.search(kernel.ttir) for kernel in program.kernels.values())


def unread_storages(program: Program) -> set[int]:
    """The storages that every launch which is given them takes for an argument that its kernel does not use."""
    given: dict[int, bool] = {}
    for launch in program.launches():
        head, _, body = program.kernels[launch.kernel].ttir.partition("tt.func public @")[2].partition(" attributes ")
        names = re.findall(r"(%\w+): ", head)
        for name, argument in zip(names, launch.args, strict=False):
            if isinstance(argument, View):
                used = re.search(rf"{re.escape(name)}\b", body) is not None
                given[argument.storage] = given.get(argument.storage, False) or used
    return {storage for storage, used in given.items() if not used}


def _is_masked(match: re.Match[str]) -> bool:
    checked = re.search(r"boundaryCheck = array<i32: \d", match[3]) is not None
    return checked or match[2].count("%") > _OPERANDS_WITHOUT_MASK[match[1]]


def _lines(text: str, aliases: dict[str, str], path: str, depth: int = 0) -> set[int]:
    """The lines in file `path` that a location names, directly or through its aliases."""
    found = {int(line) for file, line in _PLACE.findall(text) if file == path or not path}
    for label in _LABEL.findall(text):
        if depth < 8:  # locations nest as deep as calls do
            found |= _lines(aliases.get(label, ""), aliases, path, depth + 1)
    return found
