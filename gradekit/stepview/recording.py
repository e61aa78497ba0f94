"""Looks on while the chosen programs of a grid run, and keeps their steps: what each line made, and what it touched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from gradekit.engine.budget import Unsupported
from gradekit.engine.def_use import LOADS
from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.memory import Memory
from gradekit.engine.observer import TouchedElements, touched
from gradekit.engine.ttir import Op, Type
from gradekit.stepview import Limit
from gradekit.stepview.drawing import Tensors, access_data, chosen_cells, levels, tile_data

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
    """An observer that records the programs in `chosen`: launches with linear ids. `wrong` has for a storage which of
    its elements end up wrong: bool [elements]."""

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
        """What the page shows of an operation; None for nothing."""
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
    """Lanes of a tile as the levels of its cells."""
    if lanes.numel() <= 1 or not type.shape:
        return levels(lanes)
    whole = lanes.view(-1, type.shape[-1])
    rows, columns = chosen_cells(whole.shape)
    return levels(whole[rows][:, columns])
