"""Whether every element of a tensor is written by somebody, over all launches that store to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradekit.prove.claims import PROGRAM, LaunchClaims, Touch
from gradekit.prove.parts import Substitution
from gradekit.prove.solve import Answer, Solver
from gradekit.prove.symbolic_host import StorageRegion
from gradekit.prove.symbolic_values import lanes
from gradekit.prove.terms import TRUE, Atom, Term, Truth, at_most, both, equal, less, negated, term, var
from gradekit.prove.witness import NoWitness, Simpler, witness

SEVERAL = (200, 600)
"""Sizes of a few tiles, which the engine runs."""


class Coverage:
    """Of one `region`, by the stores of `launches`; `elements` are the coordinates of the one that is asked about."""

    def __init__(self, region: StorageRegion, launches: Sequence[LaunchClaims], path: Truth, solver: Solver) -> None:
        self.region, self.launches, self.path, self.solver = region, launches, path, solver
        self.elements = [var(f"element {axis}", 0) for axis in range(len(region.sizes))]
        self.flat = var("element", 0)
        self.larger = Answer("open")

    def decide(self) -> Answer:
        """Whether each element is written; "open" where no program can be named that would."""
        stores = [(launched, touch) for launched in self.launches for touch in _stores(launched, self.region)]
        by_axis = [self._written(launched, touch, flat=False) for launched, touch in stores]
        answer = self._ask(by_axis, flat=False)
        if answer.verdict != "proved":
            flat = self._ask([self._written(launched, touch, flat=True) for launched, touch in stores], flat=True)
            answer = flat if flat.verdict == "proved" or answer.verdict == "open" else answer
        return answer

    def _ask(self, written: Sequence[Truth | None], flat: bool) -> Answer:
        found = [one for one in written if one is not None]
        if not found:
            return Answer("open")
        bounds = [less(self.flat, self.region.count)] if flat else [
            less(e, size) for e, size in zip(self.elements, self.region.sizes, strict=True)
        ]  # fmt: skip
        goal = negated(both(*map(negated, found)))
        answer = self.solver.ask([self.path, *bounds], goal)
        if answer.verdict == "refuted":
            self.larger = self._larger([self.path, *bounds], goal)
        return answer

    def _larger(self, hypotheses: Sequence[Truth], goal: Truth) -> Answer:
        """The same for sizes of several tiles each: the guess may be wrong where there
        is only one, and nothing amiss."""
        room = [size for size in self.solver.sizes if (size.range[1] or 0) >= SEVERAL[1]]
        within = [both(at_most(term(SEVERAL[0]), size), at_most(size, term(SEVERAL[1]))) for size in room]
        return self.solver.ask_once([*hypotheses, *within], goal, linear_only=False)

    def _written(self, launched: LaunchClaims, touch: Touch, flat: bool) -> Truth | None:
        """That a store writes the element: the condition under which the program and lanes that were guessed do."""
        access = touch.access
        counters = [next(iter(t.parts))[0] for t in (*PROGRAM, *access.turns, *_lanes(access.shape))]
        if flat:
            equations = [(touch.place, self.flat)]
        else:
            places = touch.coordinates
            if places is None:
                return None
            equations = list(zip(places, self.elements, strict=True))
        try:
            found = witness(equations, counters)
        except NoWitness:
            return None
        return self._holds(launched, touch, equations, counters, found, flat)

    def _holds(self, launched: LaunchClaims, touch: Touch, equations: Sequence[tuple[Term, Term]],
               counters: Sequence[Atom],
               found: dict[str, Term], flat: bool) -> Truth:  # fmt: skip
        ranges = [_in_range(found[counter.key], counter) for counter in counters]
        limits = [
            less(found[next(iter(p.parts))[0].key], g) for p, g in zip(PROGRAM, launched.started.grid, strict=True)
        ]
        limits = [limit for limit in limits]
        bounds = [self.path, *_element_bounds(self, flat)]
        simple = Simpler(self.solver, bounds)
        put = Substitution(lambda atom: found.get(atom.key))
        same = [equal(simple.term(put.term(address)), element) for address, element in equations]
        return both(*map(simple.truth, (*ranges, *limits)), *same, simple.truth(put.truth(touch.access.active)))


def _element_bounds(coverage: Coverage, flat: bool) -> list[Truth]:
    if flat:
        return [less(coverage.flat, coverage.region.count)]
    return [less(e, size) for e, size in zip(coverage.elements, coverage.region.sizes, strict=True)]


def _in_range(value: Term, counter: Atom) -> Truth:
    low, high = counter.range
    return both(at_most(term(low or 0), value), at_most(value, term(high)) if high is not None else TRUE)


def _lanes(shape: Sequence[int]) -> list[Term]:
    return [lane for lane in lanes(shape) if lane.parts]


def _stores(launched: LaunchClaims, region: StorageRegion) -> Iterator[Touch]:
    for access in launched.accesses:
        touch = launched.touch(access) if access.kind == "store" else None
        if touch is not None and touch.region.storage == region.storage:
            yield touch
