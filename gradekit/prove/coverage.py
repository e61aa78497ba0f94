"""Whether every element of a tensor is written by somebody, over all launches that store to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradekit.prove.claims import PROGRAM, LaunchClaims, Touch
from gradekit.prove.enumerated import left_out
from gradekit.prove.parts import Substitution
from gradekit.prove.setting import product
from gradekit.prove.solve import Answer, Solver
from gradekit.prove.symbolic_host import StorageRegion
from gradekit.prove.terms import ONE, TRUE, ZERO, Atom, Term, Truth, at_most, both, equal, less, negated, term, var
from gradekit.prove.witness import NoWitness, Simpler, witness


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
        values = left_out(self.stores, self.path)
        if values is not None:
            return Answer("refuted", values)
        answer = self._ask(by_axis)
        if answer.verdict != "proved":
            flat = self._ask(self._claim(flat=True))
            answer = flat if flat.verdict == "proved" or answer.verdict == "open" else answer
        return answer

    def _as_many_as_tiles(self, launched: LaunchClaims, touch: Touch) -> bool:
        """Whether each program writes one tile of the region, another one than any other program, and there are as many
        programs as tiles: then each tile is written by one."""
        access, along = touch.access, touch.tiles(by_axis=True)
        if along is None or access.turns or not launched.by_axis(touch):
            return False
        hypotheses = [*launched.hypotheses, *launched.always(access)]
        there = [at_most(ZERO, one.tile) & self._below(hypotheses, one.tile, one.count) for one in along]
        inside = [less(place, size) for place, size in zip(touch.coordinates or (), self.region.sizes, strict=True)]
        count = equal(product([one.count for one in along]), product(launched.started.grid))
        return (
            self.solver.follows([self.path], count)
            and all(self.solver.follows_by_cases(hypotheses, one) for one in there)
            and self.solver.follows([*hypotheses, *inside], access.active)
            and launched.apart(access, access, True) == Answer("proved")
        )

    def _below(self, hypotheses: Sequence[Truth], value: Term, high: Term) -> Truth:
        """value < high; of a quotient, as a claim about what is divided: a // b < c is a < b * c."""
        while value.atom and value.atom.op == "div":
            a, b = value.atom.args
            if not self.solver.follows(hypotheses, at_most(ONE, b)):
                break
            value, high = a, high * b
        return less(value, high)

    def _claim(self, flat: bool) -> tuple[list[Truth], Truth] | None:
        """Hypotheses, and that one of the stores writes the element; None where nobody can be named who would."""
        written = [self._written(launched, touch, flat) for launched, touch in self.stores]
        found = [one for one in written if one is not None]
        return ([self.path, *self._bounds(flat)], negated(both(*map(negated, found)))) if found else None

    def _follows(self, claim: tuple[list[Truth], Truth] | None) -> bool:
        """Whether linear arithmetic shows it."""
        return claim is not None and self.solver.follows(*claim)

    def _ask(self, claim: tuple[list[Truth], Truth] | None) -> Answer:
        return self.solver.ask(*claim) if claim is not None else Answer("open")

    def _written(self, launched: LaunchClaims, touch: Touch, flat: bool) -> Truth | None:
        """That a store writes the element: the condition under which the program and lanes that were guessed do."""
        access = touch.access
        counters = access.counters(PROGRAM)
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
            less(found[p.atom or ""], g) for p, g in zip(PROGRAM, launched.started.grid, strict=True)
        ]
        bounds = [self.path, *self._bounds(flat)]
        simple = Simpler(self.solver, bounds)
        put = Substitution(found.get)
        same = [equal(simple.term(put.term(address)), element) for address, element in equations]
        return both(*map(simple.truth, (*ranges, *limits)), *same, simple.truth(put.truth(touch.access.active)))

    def _bounds(self, flat: bool) -> list[Truth]:
        """That the element is one of the region."""
        if flat:
            return [less(self.flat, self.region.count)]
        return [less(e, size) for e, size in zip(self.elements, self.region.sizes, strict=True)]


def _in_range(value: Term, counter: Atom) -> Truth:
    low, high = counter.range
    return both(at_most(term(low or 0), value), at_most(value, term(high)) if high is not None else TRUE)


def _stores(launched: LaunchClaims, region: StorageRegion) -> Iterator[Touch]:
    for access in launched.accesses:
        touch = launched.touch(access) if access.kind == "store" else None
        if touch is not None and touch.region.storage == region.storage:
            yield touch
