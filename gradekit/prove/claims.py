"""What is decided of one launch: in bounds, nothing wraps, one writer for each element, no program reads another's."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gradekit.engine.kernel_facts import COMMUTING
from gradekit.program import LARGEST_GRID, View
from gradekit.prove import Limit
from gradekit.prove import question as q
from gradekit.prove.question import ProofVerdict
from gradekit.prove.setting import below, contiguous, inside, product
from gradekit.prove.solve import Answer, Solver
from gradekit.prove.symbolic_host import Started, StorageRegion, SymbolicHost
from gradekit.prove.symbolic_values import PROGRAM, Premise, SymbolicAccess, in_order, lanes
from gradekit.prove.terms import (
    FALSE,
    TRUE,
    ZERO,
    Atom,
    Monomial,
    Substitution,
    Term,
    Truth,
    atoms,
    both,
    ceil_div,
    coordinates,
    equal,
    of_atom,
    parts_of,
    split,
    term,
    var,
    without,
)

BY_ORDER = "what atomics of several kinds, or an exchange, leave in an element depends on the order of programs"


@dataclass(frozen=True)
class Tiles:
    """Tiles of `length` elements along an axis of `size`, and the number of the one that a program writes."""

    tile: Term
    length: Term
    size: Term

    @property
    def count(self) -> Term:
        """How many there are."""
        return ceil_div(self.size, self.length)


@dataclass(frozen=True)
class Touch:
    """An access of a launch together with what it touches: `place` is where in `region`, in elements."""

    access: SymbolicAccess
    region: StorageRegion
    place: Term

    @property
    def coordinates(self) -> tuple[Term, ...] | None:
        """Those of its place, by the region's strides."""
        return coordinates(self.place, self.region.strides)

    def tiles(self) -> list[Tiles] | None:
        """The tile that a program writes, along each axis of the region: None where what it writes is none."""
        lane_of = {one.atom: n for one, n in zip(lanes(self.access.shape), self.access.shape, strict=True) if one.atom}
        found = []
        for place, size in zip(self.coordinates or (), self.region.sizes, strict=False):
            lane = next((one for one in lane_of if place.parts.get((one,)) == 1), None)
            count = term(lane_of[lane] if lane else 1)
            tile, rest = split(place - (of_atom(lane) if lane else 0), count)
            if rest.number != 0 or not lane_of.keys().isdisjoint(atoms(tile).values()):
                return None
            found.append(Tiles(tile, count, size))
        return found or None


class LaunchClaims:
    """One launch, its accesses, and the questions about it."""

    def __init__(self, host: SymbolicHost, started: Started, number: int, solver: Solver) -> None:
        self.host, self.started, self.number, self.solver = host, started, number, solver
        self.accesses: Sequence[SymbolicAccess] = ()
        self.hypotheses = [host.path, *(p < g for p, g in zip(PROGRAM, started.grid, strict=True))]
        self.lemmas: dict[int, list[Truth]] = {}  # what was proved to hold where an access is made
        self.by_coordinates: set[int] = set()

    # --- bounds

    def bounds(self) -> Iterator[ProofVerdict]:
        """A verdict for each access."""
        for access in self.accesses:
            touch = self.touch(access)
            if touch is None:
                yield self.verdict(q.BOUNDS, access, q.OPEN, access.why or "nothing is known of the size of its tensor")
                continue
            answer = self._inside(touch)
            unmet = self._unmet(access, touch) if answer.verdict == "proved" else None
            if unmet is not None:
                kind = q.WRAP if unmet[0].high is not None else q.BOUNDS
                yield self._from(kind, replace(access, line=unmet[0].line or access.line), unmet[1])
                continue
            if answer.verdict == "proved":
                divisors = (one for one in in_order(access.premises | access.premises_always) if one.low == 1)
                self.lemmas[access.order] = [_where_it_runs(one, access) for one in divisors]
            yield self._from(q.BOUNDS, access, answer)

    def touch(self, access: SymbolicAccess) -> Touch | None:
        """What an access touches; None where nothing is known of it."""
        if access.base is None or access.base >= len(self.started.step.args):
            return None
        view: Any = self.started.step.args[access.base]
        view = getattr(view, "view", view)
        start, region = self.host.offset(view), self.host.regions.get(view.storage)
        if start is None or region is None or access.itemsize != region.itemsize:
            return None
        return Touch(access, region, access.offset + start)

    def _inside(self, touch: Touch) -> Answer:
        hypotheses = [*self.hypotheses, touch.access.active]
        found = touch.coordinates
        if found is not None:
            goal = both(*(inside(c, size) for c, size in zip(found, touch.region.sizes, strict=True)))
            if self.solver.follows(hypotheses, goal):
                self.by_coordinates.add(touch.access.order)
                return Answer("proved")
        return self.solver.ask(hypotheses, inside(touch.place, touch.region.count))

    def _unmet(self, access: SymbolicAccess, touch: Touch) -> tuple[Premise, Answer] | None:
        """A premise of the access that does not hold, or is not known to; None where all is well."""
        top = [Premise(touch.place, 0, touch.region.count.range[1], both(), None)]
        for always, premises in ((True, access.premises_always), (False, access.premises)):
            paid = [] if always else list(top)
            for one in in_order(premises):
                if any(_covers(known, one) for known in paid):
                    continue
                answer = self._met(one, access, always)
                if answer.verdict != "proved":
                    return one, answer
                paid.append(one)
        return None

    def _met(self, one: Premise, access: SymbolicAccess, always: bool) -> Answer:
        hypotheses = [*self.hypotheses, one.path]
        if self.solver.follows(hypotheses, one.condition):
            return Answer("proved")
        return self.solver.ask(hypotheses if always else [*hypotheses, access.active], one.condition)

    def _from(self, kind: str, access: SymbolicAccess, answer: Answer) -> ProofVerdict:
        why = "the solver does not decide it within its limit" if answer.verdict == q.OPEN else ""
        return self.verdict(kind, access, answer.verdict, why, answer if answer.verdict == q.REFUTED else None)

    # --- programs among each other

    @cached_property
    def touched(self) -> list[Touch]:
        """What the accesses touch, as far as it is known."""
        return [touch for access in self.accesses if (touch := self.touch(access)) is not None]

    def one_writer(self) -> Iterator[ProofVerdict]:
        """A verdict for each pair of stores that may meet, told by the first."""
        stores = [touch for touch in self.touched if touch.access.kind == "store"]
        for position, first in enumerate(stores):
            others = [other for other in stores[position:] if other.region is first.region]
            yield self._worst(q.ONE_WRITER, first, [self.apart(first, other, first is other) for other in others])

    def one_order(self) -> Iterator[ProofVerdict]:
        """For atomics on a result, or on what is loaded: open where one meets what it does not commute with."""
        used = {touch.region.storage for touch in self.touched if touch.access.kind == "load"}
        used |= {result.storage for result in self.host.program.results if isinstance(result, View)}
        changing = [t for t in self.touched if t.access.kind != "load" and t.region.storage in used]
        for place, first in enumerate(changing):
            others = [t for t in changing[place:] if t.region is first.region and _by_order(first.access, t.access)]
            if self._worst(q.ONE_WRITER, first, [self.apart(first, t, False) for t in others]).verdict != q.PROVED:
                yield self.verdict(q.ONE_WRITER, first.access, q.OPEN, BY_ORDER)

    def no_race(self) -> Iterator[ProofVerdict]:
        """A verdict for each load from memory that other programs write."""
        for load in self.touched:
            stores = [t for t in self.touched if t.access.kind != "load" and t.region is load.region]
            if load.access.kind == "load" and stores:
                yield self._worst(q.NO_RACE, load, [self.apart(load, store, False) for store in stores])

    def _worst(self, kind: str, touch: Touch, answers: Sequence[Answer]) -> ProofVerdict:
        worst = min(answers, key=lambda one: q.GRAVITY.index(one.verdict), default=Answer(q.PROVED))
        return self._from(kind, touch.access, worst)

    def apart(self, a: Touch, b: Touch, same: bool) -> Answer:
        """Whether no two programs (and no two lanes of one, for a store and itself) touch one element of a region."""
        if same and self._tells_who(a):
            return Answer("proved")
        copy = _copied()
        other = tuple(copy.term(p) for p in PROGRAM)
        hypotheses = [*self.where(a.access), *map(copy.truth, self.where(b.access)), *self._meet(a, b, copy)]
        for case in [*self._before(PROGRAM, other), *(() if same else self._before(other, PROGRAM))]:
            together = [*hypotheses, case]
            if not self.solver.follows(self._equated(together, a.place, copy), FALSE):
                answer = self.solver.ask(together, FALSE)
                if answer.verdict != "proved":
                    return answer
        lanes_apart = self._lanes_apart(a.access, copy, other) if same else ()
        answers = (self.solver.ask([*hypotheses, case], FALSE) for case in lanes_apart)
        return next((answer for answer in answers if answer.verdict != "proved"), Answer("proved"))

    def _before(self, programs: Sequence[Term], others: Sequence[Term]) -> Iterator[Truth]:
        """One program comes before another in the grid, by the last axis in which they differ."""
        for axis, size in enumerate(self.started.grid):
            if size.number != 1:
                after = [equal(x, y) for x, y in zip(programs[axis + 1 :], others[axis + 1 :], strict=True)]
                yield both(*after, programs[axis] < others[axis])

    def _equated(self, hypotheses: Sequence[Truth], place: Term, copy: Substitution) -> list[Truth]:
        """The hypotheses about `place` and programs, with one number for what is alike in both programs."""
        found = list(hypotheses)
        for atom in _factors(place):
            mine = of_atom(atom)
            twin = copy.term(mine).atom
            if atom.op not in ("div", "mod") or twin is None or twin.op != atom.op or twin == atom:
                continue
            a, b = twin.args
            if not self.solver.follows(found, both(equal(mine, of_atom(twin)), b >= 1)):
                continue
            rest = of_atom(twin) if twin.op == "mod" else a - of_atom(twin) * b
            meaning = [inside(rest, b), equal(rest, a - a // b * b)]
            put = Substitution({twin.key: mine}.get)
            found = [put.truth(condition) for condition in (*found, *meaning)]
            copy = _then(copy, put)
        programs = [*PROGRAM, *map(_copied().term, PROGRAM)]
        asked = {key for key in atoms(place, copy.term(place), *programs) if not key.startswith("var('@")}
        parts = (part for one in found for part in parts_of(one))
        return [part for part in parts if all(a.op != "var" or key in asked for key, a in atoms(part).items())]

    def _tells_who(self, touch: Touch) -> bool:
        """Whether the element alone tells which program and which lanes wrote it: then there are no two."""
        access, region = touch.access, touch.region
        places = touch.coordinates if self.by_axis(touch) else (touch.place,)
        counters = access.counters(PROGRAM)
        elements = [var(f"element {axis}", 0) for axis in range(len(region.sizes))]
        if places is None:
            return False
        try:
            found = witness(list(zip(places, elements, strict=False)), counters)
        except NoWitness:
            return False
        given = {e.atom: place for e, place in zip(elements, places, strict=False)}
        where, put = self.where(access), Substitution(given.get)
        simple = Simpler(self.solver, where)
        told = ((simple.term(put.term(found[c.key])), c) for c in counters if not str(c.args[0]).startswith("turn "))
        return all(self.solver.follows(where, equal(number, of_atom(c))) for number, c in told)

    def where(self, access: SymbolicAccess) -> list[Truth]:
        """What holds where the access is made."""
        return [*self.hypotheses, access.active, *self.lemmas.get(access.order, ())]

    def always(self, access: SymbolicAccess) -> list[Truth]:
        """Those of the lemmas of an access that hold in every program, also where it touches nothing."""
        return [one for one in self.lemmas.get(access.order, ()) if self.solver.follows(self.hypotheses, one)]

    def by_axis(self, touch: Touch) -> bool:
        """Whether the coordinates of its place are inside of the shape, and tell elements apart."""
        return touch.access.order in self.by_coordinates and touch.region.strides == contiguous(touch.region.sizes)

    def _lanes_apart(self, access: SymbolicAccess, copy: Substitution, other: Sequence[Term]) -> Iterator[Truth]:
        """One program, one turn, two lanes."""
        turns = zip(access.turns, map(copy.term, access.turns), strict=True)
        together = [equal(x, y) for x, y in (*zip(PROGRAM, other, strict=True), *turns)]
        places = [lane for lane in lanes(access.shape) if lane.parts]
        for axis, lane in enumerate(places):
            same = [equal(p, copy.term(p)) for p in places[:axis]]
            yield both(*together, *same, lane < copy.term(lane))

    def _meet(self, a: Touch, b: Touch, copy: Substitution) -> list[Truth]:
        if self.by_axis(a) and self.by_axis(b) and a.coordinates is not None and b.coordinates is not None:
            return [equal(x, copy.term(y)) for x, y in zip(a.coordinates, b.coordinates, strict=True)]
        return [equal(a.place, copy.term(b.place))]

    # --- grid

    def grid(self) -> ProofVerdict:
        """Whether the grid is one that CUDA launches."""
        limits = [g <= most for g, most in zip(self.started.grid, LARGEST_GRID, strict=True)]
        return self.about_launch(q.GRID, "the grid", self.solver.ask([self.host.path], both(*limits)))

    def about_launch(self, kind: str, subject: str, answer: Answer) -> ProofVerdict:
        """A verdict about the launch as a whole."""
        line = self.started.step.source.line if self.started.step.source else None
        return ProofVerdict(kind, subject, answer.verdict, line, self.kernel, self.number, values=answer.values)

    # --- telling

    @property
    def kernel(self) -> str:
        """The name of the kernel that is launched."""
        return self.host.program.kernels[self.started.step.kernel].name

    def verdict(
        self, kind: str, access: SymbolicAccess, verdict: str, why: str = "", values: Answer | None = None
    ) -> ProofVerdict:
        """A verdict about an access."""
        touch = self.touch(access)
        what = self.host.names.get(touch.region.storage, "a tensor that the call allocates") if touch else "memory"
        word = {"load": "load from", "store": "store to", "atomic": "update of"}.get(access.kind, "access to")
        found = values.values if values else {}
        program = tuple(found.get(p.atom or "", 0) for p in PROGRAM) if values else ()
        exact = all(a.op not in ("read", "free") for a in atoms(access.offset, access.mask, access.path).values())
        told = kind, f"{word} {what}", verdict, access.line, self.kernel, self.number, why
        return ProofVerdict(*told, values=found, program=program, exact=exact)


def _by_order(one: SymbolicAccess, other: SymbolicAccess) -> bool:
    """Whether an atomic and what else changes its element leave something that depends on which is last."""
    changes = {one.change, other.change}
    return changes != {""} and (len(changes) > 1 or not changes <= COMMUTING)


def _where_it_runs(premise: Premise, access: SymbolicAccess) -> Truth:
    """The premise, wherever its own path is taken, which may be another than that of the access."""
    taken = {part.key for whole in (access.path, access.mask) for part in parts_of(whole)}
    if all(part.key in taken for part in parts_of(premise.path)):
        return premise.condition
    return ~(premise.path & ~premise.condition)


def _factors(place: Term) -> dict[Atom, None]:
    """The atoms whose products a term is the sum of, in place of a choice those of either side."""
    found: dict[Atom, None] = {}
    for atom in (atom for mono in place.parts for atom in mono):
        sides = atom.args[1:] if atom.op == "choose" else ()
        found |= {one: None for side in sides for one in _factors(side)} or {atom: None}
    return found


def _covers(known: Premise, one: Premise) -> bool:
    """Whether `known`, which holds, shows that `one` does: between zero and something that is no greater than it."""
    low = one.value.range[0]
    if known.high is None or one.high is None or low is None or (one.low is not None and low < one.low):
        return False
    gap = (known.value - one.value).range[0]
    return known.high <= one.high and gap is not None and gap >= 0 and known.path.op == "true"


def _copied() -> Substitution:
    """Puts another program, other turns and lanes in place of those of the launch: all that is not a size."""
    return Substitution(_other)


def _then(first: Substitution, second: Substitution) -> Substitution:
    return Substitution(lambda atom: second.term(first.term(of_atom(atom))))


def _other(atom: Atom) -> Term | None:
    if atom.op == "free":
        return of_atom(Atom("var", (f"{atom.args[0]}'",)))
    name = str(atom.args[0])
    if atom.op == "var" and name.startswith(("program ", "@", "turn ", "before ")):
        return of_atom(Atom("var", (name + "'",), atom.range))
    return None


# --- who computes an element: the program, turn and lanes for which an address is the element's -----------------------
#
# An address is a sum of counters times steps, where each step is as long as all shorter ones reach: pid * 1024 +
# lane. So the counter of the longest step is the element divided by it, and the rest is for the others. Quotients and
# remainders of one counter by one number (pid // n, pid % n) are two counters, from which the one is put together
# again. What comes out is a guess, which the solver then checks: a wrong one proves nothing.


class NoWitness(Exception):
    """The address is not of a kind that can be inverted."""


def witness(equations: Sequence[tuple[Term, Term]], counters: Sequence[Atom]) -> dict[str, Term]:
    """Values for all counters, by key, for which (term with counters, element) may be equal. Raises NoWitness."""
    parts = _Splits(counters)
    left = [(parts.split(address), element) for address, element in equations]
    found: dict[str, Term] = {}
    for address, element in sorted(left, key=lambda pair: len(_free(pair[0], parts.keys))):
        address = _put(address, found)
        found |= _inverted(address, element, parts.keys)
    return parts.joined(found)


class _Splits:
    """Counters, and the two that each division makes of one."""

    def __init__(self, counters: Sequence[Atom]) -> None:
        self.counters = list(counters)
        self.keys = {counter.key for counter in counters}
        self.made: list[tuple[Term, Term, Term, Term]] = []  # whole, divisor, quotient, rest

    def split(self, address: Term) -> Term:
        """The address with new counters in place of quotients and remainders of counters."""
        for made in self.made:
            address = _divided(address, *made)
        for _ in range(Limit.SPLITS):
            division = self._innermost(address)
            if division is None:
                return address
            whole, divisor = division.args
            number = len(self.made)
            quotient, rest = var(f"quotient {number}", 0), var(f"rest {number}", 0)
            self.keys |= {key for one in (quotient, rest) for key in atoms(one)}
            self.made.append((whole, divisor, quotient, rest))
            address = _divided(address, whole, divisor, quotient, rest)
        raise NoWitness("too many divisions")

    def _innermost(self, address: Term) -> Atom | None:
        for atom in atoms(address).values():  # parts stand before what is made of them
            if atom.op in ("div", "mod") and _free(atom.args[0], self.keys):
                return atom
        return None

    def joined(self, found: Mapping[str, Term]) -> dict[str, Term]:
        """Values for the counters, from those of their parts."""
        known = dict(found)
        number = lambda counter: known.get(counter.atom or "", ZERO)
        for whole, divisor, quotient, rest in reversed(self.made):
            value = number(quotient) * _put(divisor, known) + number(rest)
            known |= _inverted(_put(whole, known), value, self.keys)
        return {counter.key: known.get(counter.key, ZERO) for counter in self.counters}


def _divided(address: Term, whole: Term, divisor: Term, quotient: Term, rest: Term) -> Term:
    parts = {Atom("div", (whole, divisor)).key: quotient, Atom("mod", (whole, divisor)).key: rest}
    return Substitution(parts.get).term(address)


def _put(value: Term, known: Mapping[str, Term]) -> Term:
    return Substitution(known.get).term(value)


def _free(value: Term, keys: set[str]) -> list[str]:
    return [key for key in atoms(value) if key in keys]


def _inverted(address: Term, element: Term, keys: set[str]) -> dict[str, Term]:
    """The counters in a sum, each divided out of what is left of the element, the longest step first."""
    steps: dict[str, Term] = {}
    fixed = ZERO
    for mono, factor in address.parts.items():
        mine = [atom for atom in mono if atom.key in keys]
        if len(mine) > 1 or any(_free(of_atom(atom), keys) for atom in mono if atom.key not in keys):
            raise NoWitness("counters are multiplied with each other")
        if not mine:
            fixed = fixed + Term({mono: factor})
            continue
        rest: Monomial | None = without(mono, (mine[0],))
        steps[mine[0].key] = steps.get(mine[0].key, ZERO) + Term({rest or (): factor})
    left, found = element - fixed, dict[str, Term]()
    for key, step in sorted(steps.items(), key=lambda item: _length(item[1]), reverse=True):
        down = max(step.parts.values()) < 0
        step = -step if down else step
        quotient, left = left // step, left % step
        found[key] = -quotient if down else quotient
    return found


def _length(step: Term) -> tuple[int, int, int]:
    """Orders steps: more variables are longer, then larger numbers, whichever way they go."""
    signs = {factor > 0 for factor in step.parts.values()}
    if len(signs) != 1:
        raise NoWitness("a counter's step may be of either sign")
    return max(map(len, step.parts)), len(step.parts), max(map(abs, step.parts.values()))


class Simpler(Substitution):
    """Simplifies quotients and remainders of what is known to be smaller than the divisor."""

    def __init__(self, solver: Solver, hypotheses: Sequence[Truth]) -> None:
        super().__init__(self._simple)
        self.solver, self.hypotheses = solver, hypotheses

    def _simple(self, atom: Atom) -> Term | None:
        if atom.op not in ("div", "mod"):
            return None
        a, b = self.term(atom.args[0]), self.term(atom.args[1])
        whole, rest = split(a, b)
        if self.solver.follows(self.hypotheses, inside(rest, b)):
            return rest if atom.op == "mod" else whole
        return a // b if atom.op == "div" else a - b * (a // b)


# --- whether every element of a tensor is written by somebody, over all launches that store to it ---------------------


class Coverage:
    """Of one `region`, by the stores of `launches`; `elements` are the coordinates of the one that is asked about."""

    def __init__(self, region: StorageRegion, launches: Sequence[LaunchClaims], path: Truth, solver: Solver) -> None:
        self.region, self.path, self.solver = region, path, solver
        self.elements = [var(f"element {axis}", 0) for axis in range(len(region.sizes))]
        self.flat = var("element", 0)
        touched = [(launched, touch) for launched in launches for touch in launched.touched]
        self.stores = [(l, t) for l, t in touched if t.access.kind == "store" and t.region.storage == region.storage]

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
        return answer if answer.verdict == "proved" or len(self.stores) != 1 else self._without_a_tile() or answer

    def _as_many_as_tiles(self, launched: LaunchClaims, touch: Touch) -> bool:
        """Whether each program writes a tile of its own, and there are as many as tiles: then all are written."""
        there = self._there(launched, touch)
        if there is None or touch.coordinates is None:
            return False
        inside = [place < size for place, size in zip(touch.coordinates, self.region.sizes, strict=True)]
        return (
            self.solver.follows(there[0], there[1])
            and self.solver.follows([*there[0], *inside], touch.access.active)
            and launched.apart(touch, touch, True) == Answer("proved")
        )

    def _without_a_tile(self) -> Answer | None:
        """A call in which a program writes no tile, of as many programs as there are tiles: one is left out."""
        there = self._there(*self.stores[0])
        answer = self.solver.ask(*there) if there else None
        return answer if answer and answer.verdict == "refuted" else None

    def _there(self, launched: LaunchClaims, touch: Touch) -> tuple[list[Truth], Truth] | None:
        """Hypotheses, and that a program's tile is one of the region's; None where there are not as many programs."""
        access, along = touch.access, touch.tiles()
        if along is None or access.turns or not launched.by_axis(touch):
            return None
        tiles, programs = product([one.count for one in along]), product(launched.started.grid)
        if not self.solver.follows([self.path], equal(tiles, programs)):
            return None
        hypotheses = [*launched.hypotheses, *launched.always(access)]
        is_positive = lambda by: self.solver.follows(hypotheses, by >= 1)
        return hypotheses, both(*((one.tile >= 0) & below(one.tile, one.count, is_positive) for one in along))

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
        still = self._still(launched, touch, counters)
        equations = [(still.term(place), element) for place, element in zip(places, elements, strict=True)]
        try:
            found = witness(equations, counters)
        except NoWitness:
            return None
        simple, put = Simpler(self.solver, [self.path, *self._bounds(flat)]), Substitution(found.get)
        ranges = [_in_range(found[counter.key], counter) for counter in counters]
        limits = [found[p.atom or ""] < g for p, g in zip(PROGRAM, launched.started.grid, strict=True)]
        same = [equal(simple.term(put.term(address)), element) for address, element in equations]
        return both(*map(simple.truth, (*ranges, *limits)), *same, simple.truth(put.truth(touch.access.active)))

    def _still(self, launched: LaunchClaims, touch: Touch, counters: Sequence[Atom]) -> Substitution:
        """Puts 0 in place of counters that are 0 wherever it stores: of two with equal steps, a guess takes any."""
        where = launched.where(touch.access)
        return Substitution({c.key: ZERO for c in counters if self.solver.follows(where, equal(of_atom(c), ZERO))}.get)

    def _bounds(self, flat: bool) -> list[Truth]:
        if flat:
            return [self.flat < self.region.count]
        return [e < size for e, size in zip(self.elements, self.region.sizes, strict=True)]


def _in_range(value: Term, counter: Atom) -> Truth:
    low, high = counter.range
    return both(value >= (low or 0), value <= high if high is not None else TRUE)
