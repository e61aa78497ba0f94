"""Which turn of which loops an operation belongs to, told from the order in which operations end."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradekit.engine.ttir import Module, Op, Region

LOOPS = ("scf.for", "scf.while")

_SCALAR_CODE = ("tt.reduce", "tt.scan", "tt.map_elementwise")
"""Operations whose regions are code for one element, and no lines of a program."""


@dataclass(frozen=True)
class Place:
    """Where an operation stands: the loops around it, outermost first, with its rank among what ends inside each."""

    loops: tuple[Op, ...] = ()
    ranks: tuple[float, ...] = ()


@dataclass
class Nesting:
    """The place of every operation of a module by its identity; operations inside reductions have none."""

    places: dict[int, Place] = field(default_factory=dict)
    _rank: int = 0

    @classmethod
    def of(cls, module: Module) -> Nesting:
        """The places of all operations of `module`."""
        found = cls()
        for function in module.functions.values():
            found._region(function.body, (), ())
        return found

    def _region(self, region: Region, loops: tuple[Op, ...], outer: tuple[float, ...]) -> None:
        """`outer` are the ranks in all loops but the innermost: those of the loops
        inside them, not yet at their end."""
        for block in region.blocks:
            for op in block.ops:
                self._op(op, loops, outer)

    def _op(self, op: Op, loops: tuple[Op, ...], outer: tuple[float, ...]) -> None:
        if op.name in LOOPS:
            end = self._rank + _size(op)
            inside = (*outer, end - 0.5) if loops else ()
            for region in op.regions:
                self._region(region, (*loops, op), inside)
        elif op.name not in _SCALAR_CODE:
            for region in op.regions:
                self._region(region, loops, outer)
        self._rank += 1
        self.places[id(op)] = Place(loops, (*outer, float(self._rank)) if loops else ())


def _size(op: Op) -> int:
    """How many ranks `_op` gives to an operation and all inside it."""
    inner = 0 if op.name in _SCALAR_CODE else sum(_size(o) for r in op.regions for b in r.blocks for o in b.ops)
    return 1 + inner


@dataclass
class LoopTurns:
    """The loops that one program is in, each with its turn from 1 on."""

    _now: dict[int, tuple[int, float]] = field(default_factory=dict)

    def after(self, op: Op, place: Place) -> tuple[int, ...]:
        """The turns of the loops around `op`, outermost first, now that it has ended."""
        self._now.pop(id(op), None)
        turns = []
        for loop, rank in zip(place.loops, place.ranks, strict=True):
            turn, last = self._now.get(id(loop), (1, -1.0))
            again = rank < last or (rank == last and rank.is_integer())
            turn += again
            self._now[id(loop)] = turn, rank
            turns.append(turn)
        return tuple(turns)
