"""From calls to verdicts: which paths host code takes, what is claimed on each, and for which sizes that is all.

Calls of one form (dtypes, ranks, which tensors are contiguous) are taken together. Host code is followed at the
sizes of the calls, then at sizes that the solver finds on no path so far, until there are none within the domain, or
the budget is used up: a budget of paths and of the solver's steps, never of time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradekit import domain
from gradekit.engine.executor import option_count
from gradekit.engine.frame import known_itemsize
from gradekit.engine.kernel_facts import parsed
from gradekit.engine.ttir import Type
from gradekit.judge.failure import Failure
from gradekit.origins import Origins
from gradekit.program import (
    ITEMSIZE,
    MOST_IN_A_TILE,
    Argument,
    Aten,
    Copy,
    Descriptor,
    Fill,
    Literal,
    Program,
    Scalar,
    View,
    run_steps,
    writes,
)
from gradekit.prove import Limit
from gradekit.prove import question as q
from gradekit.prove.claims import Coverage, LaunchClaims
from gradekit.prove.memory_rules import accesses
from gradekit.prove.question import ProofVerdict
from gradekit.prove.setting import Setting, class_of, contents, product, setting_of
from gradekit.prove.solve import Answer, Solver
from gradekit.prove.symbolic_host import NotFollowed, Started, StorageRegion, SymbolicHost
from gradekit.prove.symbolic_values import OTHER, SymbolicAccess, SymbolicPointer, Tile, Value, in_order
from gradekit.prove.terms import ZERO, Term, Truth, atoms, both, equal
from gradekit.prove.value_of import Undefined, value_of
from gradekit.prove.walk import TooLong

Follow = Callable[[Sequence[Argument]], tuple[Program, Origins]]
"""Gives the program of a call and its origins; raises what cannot be followed as NotFollowed."""


@dataclass(frozen=True)
class ProofBudget:
    """How many forms of call are looked at, and how many paths of each; how many `branches` beside these, of the first
    form: paths on which comparisons of host code are decided as on none before; how many `further` ones, which differ
    in the constants of kernels alone; and the solver's steps for all. `ones` says whether also those count that sizes
    of 1 alone take, for which Triton compiles a kernel anew."""

    forms: int = 8
    paths: int = 8
    further: int = 2
    branches: int = 6
    steps: int = Limit.SOLVER_STEPS
    ones: bool = True


CHECK = ProofBudget(forms=2, paths=2, further=1, branches=6, steps=1_500_000, ones=False)  # of a check: about a second


@dataclass
class Proofs:
    """`verdicts`, the gravest of each claim; `assumptions` in words; `unseen` sizes for which host code was not
    followed, if any; `gaps`, what was not decided at all; `largest` promised sizes, by name; `faults`, refutations that
    the engine contradicts; `failures`, what it found wrong in memory for others, each with its sizes."""

    verdicts: list[ProofVerdict] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    unseen: Mapping[str, int] | None = None
    gaps: list[str] = field(default_factory=list)
    largest: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    paths: int = 0
    steps: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """How many claims are proved, refuted and open."""
        return {v: sum(one.verdict == v for one in self.verdicts) for v in (q.PROVED, q.REFUTED, q.OPEN)}

    def add(self, verdict: ProofVerdict) -> None:
        """Keeps a verdict, unless one as grave is known of its claim."""
        place = next((n for n, known in enumerate(self.verdicts) if known.claim == verdict.claim), None)
        if place is None:
            self.verdicts.append(verdict)
        elif q.GRAVITY.index(verdict.verdict) < q.GRAVITY.index(self.verdicts[place].verdict):
            self.verdicts[place] = verdict

    def gap(self, why: str) -> None:
        """Notes what was not decided, once."""
        self.gaps += [why] if why not in self.gaps else []

    def as_data(self) -> dict[str, Any]:
        """As the report record holds it."""
        data: dict[str, Any] = {**self.counts, "claims": [verdict.as_data() for verdict in self.verdicts]}
        data |= {"assumptions": self.assumptions, "paths": self.paths, "steps": self.steps, "largest": self.largest}
        data |= {"unseen": dict(self.unseen)} if self.unseen is not None else {}
        said = {"gaps": self.gaps, "faults": self.faults}
        return data | {name: sentences for name, sentences in said.items() if sentences}


def prove(calls: Sequence[Sequence[Argument]], names: Sequence[str], follow: Follow,
          entry: domain.EntryDomain, budget: ProofBudget) -> Proofs:  # fmt: skip
    """Decides the claims about all calls of the forms that `calls` have, whose arguments are called `names`."""
    forms: dict[tuple[object, ...], list[Sequence[Argument]]] = {}
    for call in calls:
        if all(0 not in arg.shape for arg in call if isinstance(arg, View)):
            forms.setdefault(class_of(call), []).append(call)
    found, solver = Proofs(), Solver(budget.steps)
    for number, form in enumerate(list(forms.values())[: budget.forms]):
        most = budget.paths + (0 if number else budget.branches)
        _Form(form, names, follow, entry, budget, most, solver, found).prove()
    if len(forms) > budget.forms:
        found.gaps.append(f"{len(forms) - budget.forms} further forms of call were not looked at")
    found.steps = solver.steps
    return found


USED_UP = "further paths of host code were not looked at: the budget of this proof is used up"


class _Form:
    """The calls of one form, and the paths that host code takes for them."""

    def __init__(self, calls: Sequence[Sequence[Argument]], names: Sequence[str], follow: Follow,
                 entry: domain.EntryDomain, budget: ProofBudget, most: int, solver: Solver,
                 found: Proofs) -> None:  # fmt: skip
        self.calls, self.names, self.follow = calls, names, follow
        self.entry, self.budget, self.most, self.solver, self.found = entry, budget, most, solver, found
        self.hosts: list[SymbolicHost] = []
        self._turns = 0

    def prove(self) -> None:
        """Follows, decides and gathers."""
        for call in self.calls:
            self._call(call, self.budget.paths)
        setting = setting_of(self.calls[0], self.names, self.entry)
        while self.hosts and self._further(setting):
            pass
        example = self._elsewhere(setting, least=1)
        if example.verdict == q.REFUTED:
            self.found.unseen = _sizes(setting, example.values)
        elif example.verdict == q.OPEN:
            self.found.gap("whether host code takes further paths is not known")

    def _further(self, setting: Setting) -> bool:
        """Follows a call that decides otherwise than those so far: first by comparisons of host code, then by the
        constants of kernels or by sizes of 1. Whether there is one, and it could be followed."""
        example = self._elsewhere(setting, 2, [both(*host.comparisons) for host in self.hosts])
        if example.verdict != q.REFUTED and self.budget.further > self._turns:
            self._turns += 1
            example = self._elsewhere(setting, 2)
            if example.verdict != q.REFUTED and self.budget.ones:
                example = self._elsewhere(setting, 1)
        if example.verdict != q.REFUTED or len(self.hosts) >= self.most:
            return False
        return self._call(_example(self.calls[0], setting, example.values), self.most)

    def _elsewhere(self, setting: Setting, least: int, known: Sequence[Truth] = ()) -> Answer:
        """Sizes, each at least so large, on none of the paths `known`, or else on none of those so far."""
        large = [size >= least for size in setting.sizes.values() if (size.range[1] or least) >= least]
        others = known or [host.path for host in self.hosts]
        return self.solver.example(*setting.hypotheses, *large, *(~path for path in others))

    def _call(self, call: Sequence[Argument], most: int) -> bool:
        setting = setting_of(call, self.names, self.entry)
        taken = [host for host in self.hosts if host.takes(setting.values)]
        if not taken and (len(self.hosts) >= most or self.solver.steps > self.solver.limit):
            self.found.gap(USED_UP)
            return False
        try:
            program, origins = self.follow(call)
            if taken:
                taken[0].check(program, setting.values)
            else:
                host = SymbolicHost(program, origins, setting)
                self._check_elsewhere(host, call)
                self._host(host, tuple(call))
        except NotFollowed as error:
            self.found.gap(str(error))
            self.hosts = [host for host in self.hosts if host not in taken]
            return False
        return True

    def _check_elsewhere(self, host: SymbolicHost, call: Sequence[Argument]) -> None:
        """Raises NotFollowed where the terms do not give the numbers of another call on the path, a far one."""
        values = host.setting.values
        for times in Limit.FAR:
            found = self._where(host, [
                [size >= times * values[key], ~equal(size, values[key])]
                for size in host.setting.sizes.values() for key in atoms(size) if key in values
            ])  # fmt: skip
            if self._agrees(host, call, found):
                return

    def _where(self, host: SymbolicHost, choices: Sequence[Sequence[Truth]]) -> Mapping[str, int]:
        """Values on the host's path for which of each list the first condition holds that may; none where none may."""
        conditions = list[Truth]()
        found: Mapping[str, int] = {}
        for one in choices:
            for condition in one:
                example = self.solver.example(host.path, *conditions, condition)
                if example.verdict == q.REFUTED:
                    conditions.append(condition)
                    found = example.values
                    break
        return found

    def _agrees(self, host: SymbolicHost, call: Sequence[Argument], found: Mapping[str, int]) -> bool:
        """Whether such a call can be followed; raises NotFollowed where its numbers are not the host's terms."""
        other = _example(call, host.setting, found) if found else ()
        if not other or class_of(other) != class_of(call):
            return False
        values = setting_of(other, self.names, self.entry).values
        if not host.takes(values):
            return False
        try:
            program = self.follow(other)[0]
        except NotFollowed:  # for example, a tile that is too large there
            return False
        host.check(program, values)
        return True

    def _host(self, host: SymbolicHost, call: tuple[Argument, ...]) -> None:
        self.solver.sizes = [size for size in host.setting.sizes.values() if size.number is None]
        launches = [launched(host, one, n, self.solver, self.entry) for n, one in enumerate(host.launches)]
        verdicts = decide(host, launches, self.solver)
        if self.solver.steps > self.solver.limit and self.found.paths:
            self.found.gap(USED_UP)  # of this path, what is open may only be so for want of steps
            verdicts = [verdict for verdict in verdicts if verdict.verdict == q.REFUTED]
        else:
            self._followed(host)
        for verdict in verdicts:
            if verdict.verdict == q.REFUTED:
                sizes = _sizes(host.setting, verdict.values)
                verdict = replace(verdict, sizes=sizes, call=_example(call, host.setting, verdict.values))
            self.found.add(verdict)

    def _followed(self, host: SymbolicHost) -> None:
        self.hosts.append(host)
        proofs = self.found
        proofs.paths += 1
        ends = {name: size.range[1] for name, size in host.setting.sizes.items()}
        proofs.largest |= {name: end for name, end in ends.items() if end is not None}
        proofs.assumptions += [a for a in host.setting.assumptions if a not in proofs.assumptions]


def _sizes(setting: Setting, values: Mapping[str, int]) -> dict[str, int]:
    return {name: _number(size, values) for name, size in setting.sizes.items()}


def _number(value: Term, values: Mapping[str, int]) -> int:
    try:
        return value_of(value, values)
    except Undefined:
        return max(value.range[0] or 0, 1)


def _example(call: Sequence[Argument], setting: Setting, values: Mapping[str, int]) -> tuple[Argument, ...]:
    """The call with the sizes and strides that the solver found."""
    shapes = iter(setting.tensors)
    found: list[Argument] = []
    for position, arg in enumerate(call):
        if isinstance(arg, View):
            shape = next(shapes)
            sizes = tuple(_number(size, values) for size in shape.sizes)
            found.append(replace(arg, shape=sizes, stride=tuple(_number(s, values) for s in shape.strides), offset=0))
        elif isinstance(arg, Scalar) and position in setting.scalars:
            found.append(replace(arg, value=_number(setting.scalars[position], values)))
        else:
            found.append(arg)
    return tuple(found)


# --- all that is claimed of one call: of its launches, and of what it returns -----------------------------------------


def decide(host: SymbolicHost, launches: Sequence[LaunchClaims], solver: Solver) -> list[ProofVerdict]:
    """A verdict for each claim about the call that makes the `launches`."""
    found: list[ProofVerdict] = []
    for one in launches:
        found += [one.grid(), *_tiles(host, one, solver), *one.bounds()]
    for option in range(option_count(host.program)):
        taken = [*run_steps(host.program.steps, option)]
        found += _covered(host, [one for one in launches if any(one.started.step is t for t in taken)], solver)
    for one in launches:
        found += [*one.one_writer(), *one.one_order(), *one.no_race()]
    return found


def _tiles(host: SymbolicHost, one: LaunchClaims, solver: Solver) -> Iterator[ProofVerdict]:
    """Whether tiles that are as large as a size have no more elements than Triton allows."""
    origin = host.origins.launches[one.number]
    powers = [host.terms[number] for number, _ in origin.constants]
    together = product([power for power in powers if any(a.op == "power" for a in atoms(power).values())])
    if together.number is None:
        conditions = [*host.setting.hypotheses, *host.comparisons]
        answer = solver.ask(conditions, together <= MOST_IN_A_TILE)
        yield one.about_launch(q.TILE, "the tiles", answer)


def launched(
    host: SymbolicHost, started: Started, number: int, solver: Solver, entry: domain.EntryDomain
) -> LaunchClaims:
    """A launch whose kernel has been walked through; one that is too large has one unknown access."""
    made = LaunchClaims(host, started, number, solver)
    module = parsed(host.program.kernels[started.step.kernel].unaligned)
    given = arguments(host, started, module.entry.argument_types)
    try:
        made.accesses = accesses(module, host.program.path, given, started.grid, made.hypotheses, solver)
    except TooLong as error:
        made.accesses = [SymbolicAccess("load", None, 0, None, ZERO, host.path, host.path, (), 1, why=str(error))]
    made.hypotheses += contents(entry, host.setting.sizes, _reads(host, started), *_formulas(made.accesses))
    return made


def _reads(host: SymbolicHost, started: Started) -> dict[str, str]:
    """The names of inputs, by those with which terms read from a launch's arguments."""
    inputs, args = {view.storage for view in host.program.inputs}, enumerate(started.step.args)
    views = {n: arg.storage for n, arg in args if isinstance(arg, View) and arg.storage in inputs}
    return {f"argument {n}": host.names[storage] for n, storage in views.items()}


def _formulas(found: Sequence[SymbolicAccess]) -> Iterator[Term | Truth]:
    for access in found:
        yield from (access.offset, access.mask, access.path)
        yield from (part for o in in_order(access.premises | access.premises_always) for part in (o.value, o.path))


def arguments(host: SymbolicHost, started: Started, types: Sequence[Type]) -> list[Value]:
    """The values of a kernel's arguments: pointers by their position, integers as the host computed them."""
    found: list[Value] = []
    for position, (step, origin) in enumerate(zip(started.step.args, started.args, strict=True)):
        if isinstance(step, Descriptor):
            found += _descriptor(host, position, step, types[len(found) :])
        elif isinstance(step, View):
            found.append(SymbolicPointer(position, ZERO, known_itemsize(types[len(found)].pointee)))
        else:
            found.append(origin if isinstance(step, Scalar) and origin is not None else OTHER)
    return found if len(found) == len(types) else [OTHER] * len(types)


def _descriptor(host: SymbolicHost, position: int, argument: Descriptor, types: Sequence[Type]) -> list[Value]:
    """The values that stand for a descriptor; its shape and strides are among them in some releases of Triton."""
    rank = len(argument.block)
    geometry = host.geometry(argument.view)
    base = SymbolicPointer(position, ZERO, ITEMSIZE[argument.view.dtype])
    tile: Value = OTHER
    if geometry is not None:
        tile = Tile(base, *geometry, argument.block)
    alone = len(types) < 1 + 2 * rank or types[1].element == "tensordesc"
    return [tile] if alone else [tile, *(geometry[0] + geometry[1] if geometry else [OTHER] * (2 * rank))]


def _covered(host: SymbolicHost, launches: Sequence[LaunchClaims], solver: Solver) -> Iterator[ProofVerdict]:
    """A verdict for each result, and for each buffer that a kernel reads: by then it must have been written."""
    writers = dict(_read(launches)) | dict.fromkeys(_results(host), len(launches))
    for storage in dict.fromkeys([*_results(host), *writers]):
        region = host.regions.get(storage)
        subject = f"every element of {host.names.get(storage, 'a tensor that the call allocates')}"
        if _written_whole(host, storage, Aten):
            continue
        if region is None:
            yield ProofVerdict(q.COVERED, subject, q.OPEN, why="nothing is known of its size")
        elif not region.is_input and not _written_whole(host, storage, Fill, Copy, Literal):
            yield _coverage(host, region, launches[: writers[storage]], solver, subject)


def _coverage(
    host: SymbolicHost, region: StorageRegion, launches: Sequence[LaunchClaims], solver: Solver, subject: str
) -> ProofVerdict:
    coverage = Coverage(region, launches, host.path, solver)
    answer = coverage.decide()
    launched, touch = next(iter(coverage.stores), (None, None))
    line, kernel = touch.access.line if touch else None, launched.kernel if launched else ""
    why = "" if answer.verdict != q.OPEN else "which program writes each element was not worked out"
    return ProofVerdict(q.COVERED, subject, answer.verdict, line, kernel, why=why, values=answer.values)


def _results(host: SymbolicHost) -> Iterator[int]:
    for result in host.program.results:
        if isinstance(result, View):
            yield result.storage


def _read(launches: Sequence[LaunchClaims]) -> Iterator[tuple[int, int]]:
    """Each storage that is read, and how many launches have begun by then; the first last."""
    for position in reversed(range(len(launches))):
        for touch in launches[position].touched:
            if touch.access.kind == "load":
                yield touch.region.storage, position + 1


def _written_whole(host: SymbolicHost, storage: int, *kinds: type) -> bool:
    written = (view for step in host.program.steps if isinstance(step, kinds) for view in writes(step))
    return any(view.storage == storage and host.is_whole(view) for view in written)
