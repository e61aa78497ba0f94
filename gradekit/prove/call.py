"""All that is claimed of one call: of its launches, and of what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gradekit import domain
from gradekit.domain import MOST_ELEMENTS
from gradekit.engine import Type, option_count
from gradekit.engine.kernel_facts import parsed
from gradekit.program import ITEMSIZE, Aten, Copy, Descriptor, Fill, Literal, Scalar, View, run_steps, writes
from gradekit.prove import question as q
from gradekit.prove.claims import PROGRAM, LaunchClaims
from gradekit.prove.coverage import Coverage
from gradekit.prove.memory_rules import accesses, itemsize
from gradekit.prove.question import ProofVerdict
from gradekit.prove.setting import contents, product
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_host import INT32, Started, StorageRegion, SymbolicHost
from gradekit.prove.symbolic_values import OTHER, Owed, SymbolicAccess, SymbolicPointer, Tile, Value, in_order
from gradekit.prove.terms import ZERO, Atom, Substitution, Term, Truth, atoms, of_atom, var
from gradekit.prove.walk import TooLong

MOST_IN_A_TILE = 1 << 20
"""Elements: Triton refuses larger tensors."""


def launched_of(
    host: SymbolicHost, solver: Solver, names: Mapping[int, str], entry: domain.EntryDomain
) -> list[LaunchClaims]:
    """All launches; `names` are what the student calls each storage. `entry` says
    what is known of what tensors hold."""
    return [launched(host, started, number, solver, names, entry) for number, started in enumerate(host.launches)]


def decide(
    host: SymbolicHost, launches: Sequence[LaunchClaims], solver: Solver, names: Mapping[int, str]
) -> list[ProofVerdict]:
    """A verdict for each claim about the call that makes the `launches`."""
    found: list[ProofVerdict] = []
    for one in launches:
        found += [one.grid(), *_tiles(host, one, solver), *one.bounds()]
    for option in range(option_count(host.program)):
        taken = [*run_steps(host.program.steps, option)]
        found += _covered(host, [one for one in launches if any(one.started.step is t for t in taken)], solver, names)
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
    host: SymbolicHost,
    started: Started,
    number: int,
    solver: Solver,
    names: Mapping[int, str],
    entry: domain.EntryDomain,
) -> LaunchClaims:
    """A launch whose kernel has been walked through; one that is too large to be has no accesses but an unknown one."""
    module = parsed(host.program.kernels[started.step.kernel].unaligned)
    hypotheses = [host.path, *(p < g for p, g in zip(PROGRAM, started.grid, strict=True))]
    given = arguments(host, started, module.entry.argument_types)
    try:
        found: Sequence[SymbolicAccess] = accesses(
            module, host.program.path, given, started.grid, hypotheses, solver
        ).found
    except TooLong as error:
        found = [SymbolicAccess("load", None, 0, None, ZERO, host.path, host.path, (), 1, why=str(error))]
    made = LaunchClaims(host, started, number, found, solver, names)
    made.hypotheses += contents(entry, host.setting.sizes, _reads(host, started), *_formulas(found))
    return made


def _reads(host: SymbolicHost, started: Started) -> dict[str, str]:
    """The names of inputs, by those with which terms read from a launch's arguments."""
    inputs = {view.storage: shape.name for view, shape in zip(host.program.inputs, host.setting.tensors, strict=True)}
    args = enumerate(started.step.args)
    return {f"argument {n}": inputs[arg.storage] for n, arg in args if isinstance(arg, View) and arg.storage in inputs}


def _formulas(found: Sequence[SymbolicAccess]) -> Iterator[Term | Truth]:
    for access in found:
        yield from (access.offset, access.mask, access.path)
        yield from (part for owed in in_order(access.owed | access.owed_always) for part in (owed.value, owed.path))


def arguments(host: SymbolicHost, started: Started, types: Sequence[Type]) -> list[Value]:
    """The values of a kernel's arguments: pointers by their position, integers as the host computed them."""
    found: list[Value] = []
    for position, (step, origin) in enumerate(zip(started.step.args, started.args, strict=True)):
        if isinstance(step, Descriptor):
            found += _descriptor(host, position, step, types[len(found) :])
        elif isinstance(step, View):
            found.append(SymbolicPointer(position, ZERO, itemsize(types[len(found)].pointee)))
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
        tile = Tile(base, *geometry, (ZERO,) * rank, argument.block)
    alone = len(types) < 1 + 2 * rank or types[1].element == "tensordesc"
    return [tile] if alone else [tile, *(geometry[0] + geometry[1] if geometry else [OTHER] * (2 * rank))]


def _covered(
    host: SymbolicHost, launches: Sequence[LaunchClaims], solver: Solver, names: Mapping[int, str]
) -> Iterator[ProofVerdict]:
    """A verdict for each result, and for each buffer that a kernel reads: by then it must have been written."""
    writers = dict(_read(launches)) | dict.fromkeys(_results(host), len(launches))
    for storage in dict.fromkeys([*_results(host), *writers]):
        region = host.regions.get(storage)
        subject = f"every element of {names.get(storage, 'a buffer')}"
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


# --- beyond the promised sizes ----------------------------------------------------------------------------------------

LARGEST = 1 << 40
BEYOND = " beyond"


def beyond(launched: LaunchClaims, proved: set[tuple[int | None, str]]) -> Iterator[ProofVerdict]:
    """At most one refutation, for sizes that are not promised; `proved` are lines and subjects of accesses inside."""
    for access in launched.accesses:
        verdict = launched.verdict(q.WRAP, access, q.REFUTED)
        if not verdict.exact or (access.line, verdict.subject) not in proved:
            continue
        for owed in in_order(access.owed | access.owed_always):
            if owed.high != INT32 or owed.value.range[1] is not None and owed.value.range[1] <= INT32:
                continue
            found = _wraps(launched, access, owed)
            if found is not None:
                yield found
                return


def _wraps(launched: LaunchClaims, access: SymbolicAccess, owed: Owed) -> ProofVerdict | None:
    """The access at sizes for which `owed` does not hold where memory is touched."""
    wide = Substitution(_widened)
    grid = [p < wide.term(g) for p, g in zip(PROGRAM, launched.started.grid, strict=True)]
    narrow = [
        wide.term(of_atom(a)) <= INT32 for a in atoms(owed.value).values() if a.op == "var" and _is_size(a)
    ]
    where: list[Truth] = [*grid, *narrow, wide.truth(owed.path), wide.truth(access.active)]
    answer = launched.solver.ask_once(where, wide.term(owed.value) <= INT32)
    if answer.verdict != q.REFUTED:
        return None
    values = {key.replace(BEYOND, ""): value for key, value in answer.values.items()}
    verdict = launched.verdict(q.WRAP, access, q.REFUTED, values=type(answer)(answer.verdict, values))
    return replace(verdict, line=owed.line or verdict.line)


def _is_size(atom: Atom) -> bool:
    name = str(atom.args[0])
    return not name.startswith(("program ", "@", "turn ", "before "))


def _widened(atom: Atom) -> Term | None:
    if atom.op != "var" or not _is_size(atom) or atom.range[1] != MOST_ELEMENTS:
        return None
    return var(f"{atom.args[0]}{BEYOND}", atom.range[0], LARGEST)
