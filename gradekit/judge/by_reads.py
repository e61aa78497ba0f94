"""Which part of the inputs no kernel reads, where leaving it out gives the same wrong result."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.causes import Cause
from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.memory import Memory, strided
from gradekit.engine.observer import touched
from gradekit.engine.ttir import Op
from gradekit.judge.by_special import ran
from gradekit.judge.by_text import tile_without_loop
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, explained
from gradekit.program import Aten, Copy, Program, View, every_step

_AS_IF = {"0": 0.0, "-inf": -math.inf}
"""What an element that is left out counts as, in a sum or in a maximum."""


@dataclass
class _Touched:
    """An observer: the numbers of the elements of each storage that are loaded or stored."""

    elements: dict[int, list[Tensor]] = field(default_factory=dict)

    def launch(self, context: LaunchContext, memory: Memory) -> Observe:
        """A launch begins."""

        def note(frame: Frame, op: Op) -> None:
            if (found := touched(frame, op, memory)) is not None and found.storage is not None:
                self.touch(found.storage.id, found.index[found.active])

        return note

    def touch(self, storage: int, places: Tensor) -> None:
        """Notes elements of a storage."""
        self.elements.setdefault(storage, []).append(places.unique())

    def of(self, view: View) -> Tensor:
        """Which elements of a view are among them."""
        return torch.isin(_places(view), torch.cat(self.elements.get(view.storage, [torch.empty(0)])))


def never_read(
    program: Program, inputs: Sequence[Tensor], comparison: Comparison | None, allow: Collection[str],
    names: Sequence[str], text: str = "",
) -> Diagnosis | None:  # fmt: skip
    """Which part of the inputs no kernel reads, where that explains the wrong result: with 0 or -inf in its place it
    would be right. None where it does not. `names` are those of the inputs. Where as many are read as a tile has
    elements, and by the `text` no loop goes on behind it, that is told, too."""
    if comparison is None or [one.shape for one in comparison.reference.inputs] != [one.shape for one in inputs]:
        return None
    unread = _unread(program, inputs, allow)
    parts = [_said(gone, name) for gone, name in zip(unread, names, strict=True) if bool(gone.any())]
    for number, value in _AS_IF.items() if parts else ():
        others = [one.masked_fill(gone, value) for one, gone in zip(inputs, unread, strict=True)]
        if explained(comparison, others):
            sentence = f"{' '.join(parts)} The result is as if {number} stood in the place of the others."
            hint = "see that the programs of the grid, or a loop in each of them, go over all of it"
            counts = (first for gone in unread for _, first in _read_first(gone))
            short = next(filter(None, (tile_without_loop(text, program, count) for count in counts)), None)
            if short is None:
                return Diagnosis(Cause.WRONG_VALUES, sentence, hint=hint)
            kernel, line = short
            sentence += f" No loop of {kernel.name} goes on behind the tile in line {line}."
            return Diagnosis(Cause.WRONG_VALUES, sentence, line, "walk along in a loop, a tile in each step")
    return None


def _unread(program: Program, inputs: Sequence[Tensor], allow: Collection[str]) -> list[Tensor]:
    """Of each input, the elements that no launch touches, in it or in a copy of it; none of whole numbers, which may
    say what is to be read, nor where torch computes."""
    seen, steps = _Touched(), list(every_step(program.steps))
    every = [torch.zeros(one.shape, dtype=torch.bool) for one in inputs]
    if any(isinstance(step, Aten) for step in steps) or not ran(program, inputs, allow, seen):
        return every
    for step in (one for one in reversed(steps) if isinstance(one, Copy) and one.origin.shape == one.target.shape):
        seen.touch(step.origin.storage, _places(step.origin)[seen.of(step.target)])
    given = zip(program.inputs, inputs, every, strict=True)
    return [~seen.of(view) if one.is_floating_point() else none for view, one, none in given]


def _places(view: View) -> Tensor:
    """Where each element of a view lies in its storage."""
    return strided(torch.arange(view.reach), view.shape, view.stride, view.offset)


def _read_first(unread: Tensor) -> Iterator[tuple[int, int]]:
    """Each dimension along which only the first places are read, all of these, with their number."""
    for dimension in range(unread.dim()):
        gone = unread.transpose(0, dimension).reshape(unread.shape[dimension], -1).all(1)
        first = int((~gone).sum())
        if first and bool(gone[first:].all()) and int(unread.sum()) * gone.numel() == int(gone.sum()) * unread.numel():
            yield dimension, first


def _said(unread: Tensor, name: str) -> str:
    """What is never read, in words: all rows or columns from one on, where these are they."""
    few = {1: ["elements"], 2: ["rows", "columns"]}
    names = few.get(unread.dim()) or [f"places along dimension {one}" for one in range(unread.dim())]
    for dimension, first in _read_first(unread):
        return f"Only the first {first} of {unread.shape[dimension]} {names[dimension]} of {name} are read."
    return f"{int(unread.sum())} of {unread.numel()} elements of {name} are never read."
