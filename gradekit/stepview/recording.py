"""Looks on while the chosen programs of a grid run, and keeps their steps: what each line made, and what it touched."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.budget import Unsupported
from gradekit.engine.def_use import LOADS
from gradekit.engine.explain import Namer
from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.memory import Memory, index_in
from gradekit.engine.observer import TouchedElements, touched
from gradekit.engine.ttir import Op, Type
from gradekit.judge.compare import show
from gradekit.judge.result_map import MOST_COLUMNS, MOST_ROWS, evenly
from gradekit.program import ITEMSIZE, Program, View
from gradekit.stepview import Limit

_SILENT = frozenset(
    {"arith.constant", "tt.splat", "tt.expand_dims", "tt.broadcast", "tt.reshape", "tt.make_range", "arith.extsi",
     "arith.extui", "arith.index_cast", "scf.for", "scf.while", "scf.if"}
)  # fmt: skip
"""Operations that make no value which a student has in mind, unless they give it a name."""

_SUFFIX = re.compile(r"_\d+$|#\d+$")


@dataclass
class PlayedProgram:
    """One program while it is recorded; `steps` are data for the page, the first and the last of `count`."""

    launch: int
    program: int
    steps: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    line: int = 0

    def begin(self, step: dict[str, Any]) -> dict[str, Any]:
        """Begin a step."""
        step["number"] = self.count
        self.count += 1
        self.steps.append(step)
        del self.steps[Limit.FIRST_STEPS : -Limit.LAST_STEPS]
        return step


@dataclass
class PlayRecorder:
    """Records the programs in `chosen`: launches with linear ids; `wrong` marks a storage's wrong elements."""

    chosen: Sequence[tuple[int, int]]
    tensors: Tensors
    wrong: Mapping[int, Tensor] = field(default_factory=dict)
    programs: dict[tuple[int, int], PlayedProgram] = field(default_factory=dict)

    def launch(self, context: LaunchContext, memory: Memory) -> Observe | None:
        """A launch begins; with launch 0, everything does."""
        if context.launch == 0:
            self.programs.clear()
        mine = {id: PlayedProgram(launch, id) for launch, id in self.chosen if launch == context.launch}
        if not mine:
            return None
        self.programs |= {(context.launch, program): played for program, played in mine.items()}

        def observe(frame: Frame, op: Op) -> None:
            if frame.loops is None:
                return
            loops = [[frame.context.line(loop) or 0, turn] for loop, turn in frame.loops]
            for position, program in enumerate(frame.programs().tolist()):
                if program in mine:
                    self._note(_Ended(frame, op, position, memory), mine[program], loops)

        return observe

    def _note(self, ended: _Ended, played: PlayedProgram, loops: list[list[int]]) -> None:
        played.line = ended.frame.context.line(ended.op) or played.line
        value = self._value(ended)
        if value is None:
            return
        step = played.steps[-1] if played.steps else None
        if step is None or (step["line"], step["loops"]) != (played.line, loops):
            step = played.begin({"line": played.line, "loops": loops, "values": []})
        step["values"] = [*_kept(step["values"], value), value]

    def _value(self, ended: _Ended) -> dict[str, Any] | None:
        op = ended.op
        try:
            access = touched(ended.frame, op, ended.memory)
            if access is not None:
                return self._accessed(ended, access)
            if not op.results or op.result_types[0].element in ("ptr", "tensordesc"):
                return None
            found = _named(op, op.results[0])
            if op.name in _SILENT and (not found["name"] or op.name.startswith("scf.")):
                return None
            return found | tile_data(ended.frame.tile(op.results[0], op.result_types[0], ended.position))
        except Unsupported:  # a type that torch cannot hold: there is nothing to draw
            return None

    def _accessed(self, ended: _Ended, access: TouchedElements) -> dict[str, Any]:
        op, kind = ended.op, _kind(ended.op)
        shows_result = bool(op.results) and (kind != "atomic" or len(op.operands) < 2 or op.name == "tt.atomic_load")
        name = op.results[0] if shows_result else op.operands[1]
        type = op.result_types[0] if shows_result else op.operand_types[1]
        found = _named(op, name) | {"access": kind}
        if type.element != "ptr":
            found |= tile_data(ended.frame.tile(name, type, ended.position))
        number, active = self.tensors.number(access), access.active[ended.position]
        if number is None:
            return found | {"tensor": None, "active": int(active.sum())}
        found |= {"tensor": number} | access_data(access, ended.position, self.tensors.drawn[number])
        found |= {} if bool(active.all()) else {"mask": _cells(active, type)}  # the lanes that take part
        return found | self._wrong(access, ended, kind, type)

    def _wrong(self, access: TouchedElements, ended: _Ended, kind: str, type: Type) -> dict[str, Any]:
        """Which cells hold what ends up wrong in the result."""
        marked = self.wrong.get(access.storage.id) if access.storage is not None and kind != "load" else None
        if marked is None:
            return {}
        index, active = access.index[ended.position], access.active[ended.position]
        inside = active & (index >= 0) & (index < marked.numel())
        lanes = inside & marked[index.clamp(0, marked.numel() - 1)]
        return {"wrong": int(lanes.sum()), "wrong_cells": _cells(lanes, type)} if bool(lanes.any()) else {}


@dataclass(frozen=True)
class _Ended:
    """An operation that has ended, for the program at `position` of its frame."""

    frame: Frame
    op: Op
    position: int
    memory: Memory


def _kind(op: Op) -> str:
    return "load" if op.name in LOADS else "atomic" if "atomic" in op.name or "reduce" in op.name else "store"


def _named(op: Op, name: str) -> dict[str, Any]:
    """The student's name of a value, where the text has it, and the operation."""
    plain = _SUFFIX.sub("", name)
    return {"name": "" if plain.isdigit() or plain.startswith("cst") else plain, "op": op.name.partition(".")[2]}


def _kept(old: Sequence[dict[str, Any]], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The values of a line without those on the way to the next; what memory holds and reductions stay."""
    for value in old:
        if "access" in value or value["name"] not in ("", new["name"]):
            yield value
        elif value["op"] == "reduce":
            yield value | {"name": ""}


def _cells(lanes: Tensor, type: Type) -> str:
    if lanes.numel() <= 1 or not type.shape:
        return levels(lanes)
    whole = lanes.view(-1, type.shape[-1])
    rows, columns = chosen_cells(whole.shape)
    return levels(whole[rows][:, columns])


# --- what a page draws: tensors with the elements that an access touches, and values as few characters and numbers ----


@dataclass(frozen=True)
class Drawn:
    """A storage as a tensor: what the student calls it, and the view of it that is drawn."""

    name: str
    view: View

    def as_data(self) -> dict[str, Any]:
        """Name, dtype and shape; all dimensions but the last are rows."""
        shape = self.view.shape
        columns = shape[-1] if shape else 1
        return {
            "name": self.name, "dtype": self.view.dtype, "shape": list(shape),
            "rows": math.prod(shape[:-1]), "columns": columns,
        }  # fmt: skip

    def flat(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Elements of the storage (int64, 1-D) as places in the tensor, row-major, and which of them it has at all."""
        index, inside = index_in(self.view, positions)
        weights = [math.prod(self.view.shape[axis + 1 :]) for axis in range(len(index))]
        places = (along * weight for along, weight in zip(index, weights, strict=True))
        return sum(places, torch.zeros_like(positions)), inside


class Tensors:
    """The tensors of one run, by storage, in the order in which the page names them."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        self._namer = Namer(program, names)
        self.drawn: list[Drawn] = []
        self._places: dict[int, int] = {}

    def number(self, touched: TouchedElements) -> int | None:
        """The number of the tensor that was touched; None where the access is to no storage."""
        storage = touched.storage
        if storage is None:
            return None
        if storage.id not in self._places:
            dtype = {1: "uint8", 2: "float16", 4: "float32", 8: "int64"}[touched.itemsize]
            buffer = View(storage.id, dtype, (storage.count(touched.itemsize),), (1,))
            self._places[storage.id] = len(self.drawn)
            self.drawn.append(Drawn(self._namer.storage(storage.id), self._namer.views.get(storage.id, buffer)))
        return self._places[storage.id]


def access_data(touched: TouchedElements, program: int, drawn: Drawn) -> dict[str, Any]:
    """Elements that a program of the frame touches, as row-major runs of [first, how many], and lanes that do not."""
    assert touched.storage is not None
    index, active = touched.index[program], touched.active[program]
    chosen = index[active]
    count = touched.storage.count(touched.itemsize)
    before, after = int((chosen < 0).sum()), int((chosen >= count).sum())
    within = chosen[(chosen >= 0) & (chosen < count)]
    if ITEMSIZE[drawn.view.dtype] != touched.itemsize:
        within = within * touched.itemsize // ITEMSIZE[drawn.view.dtype]
    places, inside = drawn.flat(within)
    runs, boxed = _runs(places[inside].unique())
    found: dict[str, Any] = {"lanes": index.numel(), "active": int(active.sum()), "runs": runs}
    found |= {"boxed": True} if boxed else {}
    found |= {"between": int((~inside).sum())} if not bool(inside.all()) else {}
    if before or after:
        worst = chosen[(chosen < 0) | (chosen >= count)]
        found["outside"] = {"before": before, "after": after, "first": int(worst[0]), "size": count}
    return found


def _runs(places: Tensor) -> tuple[list[list[int]], bool]:
    """Sorted places as runs; where there are too many, as one, with True."""
    if not places.numel():
        return [], False
    cuts = (places.diff() != 1).nonzero().view(-1) + 1
    if cuts.numel() >= Limit.DRAWN:
        return [[int(places[0]), int(places[-1] - places[0]) + 1]], True
    pieces = places.tensor_split(cuts)
    return [[int(piece[0]), piece.numel()] for piece in pieces], False


# --- values -----------------------------------------------------------------------------------------------------------

LEVELS = "abcdefghijklmnopqrs"
"""Levels from the largest magnitude below zero ("a") over zero ("j") to the largest above it ("s"); beside them "N" is
NaN, "P" and "M" are the infinities, "1" and "0" a boolean."""

MIDDLE = len(LEVELS) // 2


def tile_data(value: Tensor) -> dict[str, Any]:
    """What a page shows of one value: shape, dtype, extremes, how many are NaN or infinite, a strip of levels."""
    shape, flat = list(value.shape), value.reshape(-1)
    found: dict[str, Any] = {"shape": shape, "dtype": str(value.dtype).removeprefix("torch.")}
    if value.dtype is torch.bool:
        found["true"] = int(flat.sum())
    else:
        found |= _extremes(flat)
    if value.numel() == 1:
        found["number"] = show(flat[0], 4)
        return found
    cells = value.reshape(-1, shape[-1]) if shape else value.view(1, 1)
    rows, columns = chosen_cells(cells.shape)
    cells = cells[rows][:, columns]
    found |= {"rows": len(rows), "columns": len(columns), "levels": levels(cells)}
    if cells.numel() < value.numel():
        found |= {"at_rows": rows.tolist(), "at_columns": columns.tolist()}
    if cells.numel() <= Limit.DRAWN and value.dtype is not torch.bool:
        found["numbers"] = [show(each, 4) for each in cells.reshape(-1)]
    return found


def chosen_cells(shape: torch.Size) -> tuple[Tensor, Tensor]:
    """Which rows and columns of a tile are drawn: all, or some at even distances from first to last."""
    rows, columns = shape
    most = Limit.ROW if rows == 1 else MOST_COLUMNS
    return evenly(rows, MOST_ROWS), evenly(columns, most)


def _extremes(flat: Tensor) -> dict[str, Any]:
    if not flat.dtype.is_floating_point:
        return {"low": str(int(flat.min())), "high": str(int(flat.max()))} if flat.numel() else {}
    number = flat.double()
    finite = number[number.isfinite()]
    found: dict[str, Any] = {}
    if finite.numel():
        found |= {"low": f"{float(finite.min()):.4g}", "high": f"{float(finite.max()):.4g}"}
    nan, inf = int(number.isnan().sum()), int(number.isinf().sum())
    return found | ({"nan": nan} if nan else {}) | ({"inf": inf} if inf else {})


def levels(cells: Tensor) -> str:
    """One character for each cell, row by row."""
    flat = cells.reshape(-1)
    if flat.dtype is torch.bool:
        return "".join("1" if bit else "0" for bit in flat.tolist())
    number = flat.double()
    finite = number[number.isfinite()]
    most = float(finite.abs().max()) if finite.numel() else 0.0
    return "".join(_level(each, most) for each in number.tolist())


def _level(number: float, most: float) -> str:
    if math.isnan(number):
        return "N"
    if math.isinf(number):
        return "P" if number > 0 else "M"
    if not number:
        return LEVELS[MIDDLE]
    step = math.ceil(abs(number) / most * MIDDLE)
    return LEVELS[MIDDLE + (step if number > 0 else -step)]
