"""Which elements the kernels of a call load and store: an observer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.engine.budget import OverBudget
from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.memory import Memory
from gradekit.engine.observer import touched
from gradekit.engine.ttir import Op

_MOST_LANES = 1 << 23  # 17 bytes are kept of each


@dataclass(frozen=True, eq=False)
class Access:
    """A load or store of a `line`, in a `launch`, by many programs: the linear id of each lane's program and the place
    that it aims at, int64 [lanes], and whether its mask lets it, bool [lanes]; with the line and the turn, from 1 on,
    of the innermost `loop` around it."""

    line: int
    launch: int
    programs: Tensor
    places: Tensor
    active: Tensor
    loop: tuple[int, int] | None

    @property
    def lanes(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of each lane: the program, the place, whether it is active, and the turn, 0 outside of a loop."""
        return self.programs, self.places, self.active, torch.full_like(self.places, self.loop[1] if self.loop else 0)


@dataclass
class Accesses:
    """An observer: the loads and the stores of each storage, in order (an atomic is both), and by line of a loop the
    most `turns` of one program. Raises OverBudget for too many lanes."""

    loads: dict[int, list[Access]] = field(default_factory=dict)
    stores: dict[int, list[Access]] = field(default_factory=dict)
    turns: Counter[int] = field(default_factory=Counter)
    kept: int = 0

    def launch(self, context: LaunchContext, memory: Memory) -> Observe:
        """A launch begins; with launch 0, everything does."""
        if context.launch == 0:
            self.loads, self.stores, self.turns, self.kept = {}, {}, Counter(), 0

        def note(frame: Frame, op: Op) -> None:
            for loop, turn in frame.loops or ():
                line, asked_again = context.line(loop) or 0, loop.name == "scf.while"
                self.turns[line] = max(self.turns[line], turn - asked_again)
            if (found := touched(frame, op, memory)) is None or found.storage is None:
                return
            if (more := self.kept + found.index.numel()) > _MOST_LANES:
                raise OverBudget("lanes", _MOST_LANES)
            programs = frame.programs().view(-1, 1).expand_as(found.index)
            inner = next(((context.line(around) or 0, turn) for around, turn in (frame.loops or ())[-1:]), None)
            lanes = programs.flatten(), found.index.flatten(), found.active.flatten()
            access, self.kept = Access(context.line(op) or 0, context.launch, *lanes, inner), more
            for kept, is_meant in ((self.loads, bool(op.results)), (self.stores, _stores(op))):
                if is_meant:
                    kept.setdefault(found.storage.id, []).append(access)

        return note


def _stores(op: Op) -> bool:
    return not op.results or op.name.startswith("tt.atomic")


def let_through(accesses: list[Access]) -> Iterator[Tensor]:
    """The places that the lanes of each access touch."""
    return (one.places[one.active] for one in accesses)


def places(accesses: list[Access]) -> Tensor:
    """The places that a lane touches, in order, each once."""
    return torch.cat([torch.empty(0, dtype=torch.int64), *let_through(accesses)]).unique()
