"""Entries that may write to an argument (in place, or `out=`), as the domain says: their calls as ordinary programs.

The program of such a call is made into one that keeps the rules for all others: what may be written becomes memory of
the call's own, which begins as a copy of the argument, and is then a result. So everything that is said of results is
said of it (who wrote each element, races, what was never written), and every other input stays one that nobody writes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gradekit import domain
from gradekit.assignment import Assignment
from gradekit.engine.explain import Namer, sentence
from gradekit.findings import Cause, Finding
from gradekit.judge.memory_checks import own_counters
from gradekit.observations import Counters
from gradekit.program import ITEMSIZE, Allocate, Argument, Copy, Program, Step, View


@dataclass(frozen=True)
class Written:
    """A tensor argument that a call may write: the view and its storage, the `input` that it begins as."""

    name: str
    view: View
    input: View
    nbytes: int
    is_read: bool

    @property
    def has_gaps(self) -> bool:
        """Whether its storage has elements that are none of the tensor's."""
        return self.view.numel * ITEMSIZE[self.view.dtype] < self.nbytes

    @property
    def whole(self) -> View:
        """All of its storage."""
        return View(self.view.storage, self.view.dtype, (self.nbytes // ITEMSIZE[self.view.dtype],), (1,))

    @property
    def steps(self) -> tuple[Step, ...]:
        """What comes before the call's own steps; nobody can know what `out` holds."""
        begun = Allocate(self.view.storage, self.nbytes)
        return (begun, Copy(self.view, self.input)) if self.is_read else (begun,)


class Contracts:
    """Which arguments the entries of an assignment may write, as its domain.toml says."""

    def __init__(self, assignment: Assignment) -> None:
        entries = assignment.domain.items()
        self._entries = {name: entry for name, entry in entries if any(t.written for t in entry.tensors)}

    def program(self, entry: str, args: Sequence[Argument], found: Program) -> Program:
        """The program of a call with these arguments, in which what may be written is a result."""
        contract = self._entries.get(entry)
        if contract is None:
            return found
        written = list(_written(contract, args, found))
        moved = {one.view.storage: one.input.storage for one in written}
        before = tuple(step for one in written for step in one.steps)
        return replace(
            found,
            inputs=tuple(replace(view, storage=moved.get(view.storage, view.storage)) for view in found.inputs),
            storages={moved.get(storage, storage): size for storage, size in found.storages.items()},
            steps=(*found.steps[: found.kept], *before, *found.steps[found.kept :]),
            results=(*_results(contract, found, written), *(one.whole for one in written if one.has_gaps)),
        )

    def written(self, entry: str) -> set[int]:
        """The positions of arguments that the entry may write."""
        arguments = self._entries[entry].arguments if entry in self._entries else ()
        return {place for place, one in enumerate(arguments) if isinstance(one, domain.Tensor) and one.written}

    def counters(self, entry: str, program: Program, counters: Counters) -> Counters:
        """What a call has cost: what it may write is no memory of its own."""
        contract = self._entries.get(entry)
        return counters if contract is None else own_counters(contract, program, counters)

    def findings(self, entry: str, program: Program, findings: Sequence[Finding]) -> list[Finding]:
        """The findings of a run: what lies between the elements of an argument that the call may write is no result. Of
        one that is written in place, only that is never written, and whoever reads it reads outside of the argument."""
        contract, namer = self._entries[entry], Namer(program, ())
        in_place = {tensor.name for tensor in contract.tensors if tensor.written == "in place"}
        names = {
            namer.storage(view.storage): result.argument
            for result, view in zip(contract.results, program.results, strict=False)
            if isinstance(view, View) and result.argument in in_place
        }
        read = [_outside(f, names.get(f.tensor)) if f.cause is Cause.UNINITIALIZED_READ else f for f in findings]
        return _beside(program, len(contract.results), read)

    def results(self, entry: str) -> int | None:
        """How many results of its programs the entry has; None where it may write nothing: all of them."""
        return len(self._entries[entry].results) if entry in self._entries else None


def _written(contract: domain.EntryDomain, args: Sequence[Argument], found: Program) -> Iterator[Written]:
    fresh = max([*found.storages, *found.allocated], default=0)
    views = iter(found.inputs)
    for argument, arg in zip(contract.arguments, args, strict=False):
        if isinstance(arg, View):
            view = next(views)
            if isinstance(argument, domain.Tensor) and argument.written:
                fresh += 1
                size, is_read = found.storages[view.storage], argument.written == "in place"
                yield Written(argument.name, view, replace(view, storage=fresh), size, is_read)


def _results(contract: domain.EntryDomain, found: Program, written: Sequence[Written]) -> Iterator[Argument]:
    """The results as the domain has them: what was written, and between these what the call returns, in order."""
    own = {one.name: one.view for one in written}
    storages = {one.view.storage for one in written}
    returned = iter([r for r in found.results if not (isinstance(r, View) and r.storage in storages)])
    for result in contract.results:
        if result.argument in own:
            yield own[result.argument]
        elif (one := next(returned, None)) is not None:
            yield one


def _outside(finding: Finding, name: str | None) -> Finding:
    """A read of unwritten memory as a load outside of the argument `name`; unchanged where it is of none."""
    if name is None:
        return finding
    found = replace(finding, cause=Cause.OUT_OF_BOUNDS_LOAD, tensor=name)
    return replace(found, message=sentence(found))


def _beside(program: Program, count: int, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, of which those on the storages behind the first `count` results (see `Contracts.program`) give way
    to what they tell: what was written between the elements of an argument."""
    kept, unwritten = list(findings), [f for f in findings if f.cause is Cause.UNWRITTEN_OUTPUT]
    for whole in program.results[count:]:
        assert isinstance(whole, View)
        own = next(view for view in program.results[:count] if isinstance(view, View) and view.storage == whole.storage)
        of_whole = next((f for f in unwritten if f.facts.get("elements") == whole.numel), None)
        missing = next((f.count for f in unwritten if f.facts.get("elements") == own.numel), 0)
        changed = whole.numel - own.numel + missing - (of_whole.count if of_whole else 0)
        if of_whole is not None:
            kept.remove(of_whole)
            unwritten.remove(of_whole)
        if changed:
            elements = "1 element" if changed == 1 else f"{changed} elements"
            message = f"stores to {elements} of memory that lie between those of the tensor that the call may write"
            kept.append(Finding(Cause.OUT_OF_BOUNDS_STORE, message, count=changed))
    return kept
