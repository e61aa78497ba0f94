"""Whether every element of a tensor is written by somebody, over all launches that store to it."""

from __future__ import annotations

from collections.abc import Sequence

from gradekit.prove.claims import PROGRAM, LaunchClaims, NoWitness, Simpler, Touch, witness
from gradekit.prove.setting import below, product
from gradekit.prove.solve import Answer, Solver
from gradekit.prove.symbolic_host import StorageRegion
from gradekit.prove.terms import TRUE, Atom, Substitution, Term, Truth, both, equal, var


class Coverage:
    """Of one `region`, by the stores of `launches`; `elements` are the coordinates of the one that is asked about."""

    def __init__(self, region: StorageRegion, launches: Sequence[LaunchClaims], path: Truth, solver: Solver) -> None:
        self.region, self.path, self.solver = region, path, solver
        self.elements = [var(f"element {axis}", 0) for axis in range(len(region.sizes))]
        self.flat = var("element", 0)
        self.stores = [(launched, touch) for launched in launches for touch in _stores(launched, region)]

    def decide(self) -> Answer:
        """Whether each element is written; "open" where no program can be named that would."""
        by_axis = self._claim(flat=False)
        if self._follows(by_axis) or any(self._as_many_as_tiles(launched, touch) for launched, touch in self.stores):
            return Answer("proved")
        is_flat = not all(launched.by_axis(touch) for launched, touch in self.stores)
        if is_flat and self._follows(self._claim(flat=True)):
            return Answer("proved")
        answer = self._ask(by_axis)
        if answer.verdict != "proved":
            flat = self._ask(self._claim(flat=True))
            answer = flat if flat.verdict == "proved" or answer.verdict == "open" else answer
        return answer

    def _as_many_as_tiles(self, launched: LaunchClaims, touch: Touch) -> bool:
        """Whether each program writes a tile of its own, and there are as many as tiles: then all are written."""
        access, along = touch.access, touch.tiles()
        if along is None or access.turns or not launched.by_axis(touch):
            return False
        hypotheses = [*launched.hypotheses, *launched.always(access)]
        is_positive = lambda by: self.solver.follows(hypotheses, by >= 1)
        there = [(one.tile >= 0) & below(one.tile, one.count, is_positive) for one in along]
        inside = [place < size for place, size in zip(touch.coordinates or (), self.region.sizes, strict=True)]
        count = equal(product([one.count for one in along]), product(launched.started.grid))
        return (
            self.solver.follows([self.path], count)
            and all(self.solver.follows(hypotheses, one) for one in there)
            and self.solver.follows([*hypotheses, *inside], access.active)
            and launched.apart(touch, touch, True) == Answer("proved")
        )

    def _claim(self, flat: bool) -> tuple[list[Truth], Truth] | None:
        """Hypotheses, and that one of the stores writes the element; None where nobody can be named who would."""
        written = [self._written(launched, touch, flat) for launched, touch in self.stores]
        found = [one for one in written if one is not None]
        return ([self.path, *self._bounds(flat)], ~both(*(~one for one in found))) if found else None

    def _follows(self, claim: tuple[list[Truth], Truth] | None) -> bool:
        return claim is not None and self.solver.follows(*claim)

    def _ask(self, claim: tuple[list[Truth], Truth] | None) -> Answer:
        return self.solver.ask(*claim) if claim is not None else Answer("open")

    def _written(self, launched: LaunchClaims, touch: Touch, flat: bool) -> Truth | None:
        """That a store writes the element: the condition under which the program and lanes that were guessed do."""
        counters, elements = touch.access.counters(PROGRAM), [self.flat] if flat else self.elements
        places = (touch.place,) if flat else touch.coordinates
        if places is None:
            return None
        equations = [*zip(places, elements, strict=True)]
        try:
            found = witness(equations, counters)
        except NoWitness:
            return None
        simple, put = Simpler(self.solver, [self.path, *self._bounds(flat)]), Substitution(found.get)
        ranges = [_in_range(found[counter.key], counter) for counter in counters]
        limits = [found[p.atom or ""] < g for p, g in zip(PROGRAM, launched.started.grid, strict=True)]
        same = [equal(simple.term(put.term(address)), element) for address, element in equations]
        return both(*map(simple.truth, (*ranges, *limits)), *same, simple.truth(put.truth(touch.access.active)))

    def _bounds(self, flat: bool) -> list[Truth]:
        if flat:
            return [self.flat < self.region.count]
        return [e < size for e, size in zip(self.elements, self.region.sizes, strict=True)]


def _in_range(value: Term, counter: Atom) -> Truth:
    low, high = counter.range
    return both(value >= (low or 0), value <= high if high is not None else TRUE)


def _stores(launched: LaunchClaims, region: StorageRegion) -> list[Touch]:
    return [one for one in launched.touched if one.access.kind == "store" and one.region.storage == region.storage]
