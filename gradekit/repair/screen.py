"""Tries all single changes of the kernels that a wrong result comes from, within a budget of work, and keeps those that
make it right."""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from torch import Tensor

from gradekit.engine.budget import AGAIN, STEP, OverBudget
from gradekit.interpreter.shown_call import ShownCall
from gradekit.interpreter.tile_values import OutsideEverywhere, TilePointer, ValueKind, kind_of
from gradekit.interpreter.walk import Code, Substitution
from gradekit.interpreter.walked_call import WRONG, WalkedCall, code_of, has_effects
from gradekit.repair.operators.all_changes import EARLY, LATE, changes_of_kernel
from gradekit.repair.operators.changes import LIKELY, Change, ChangeKind, ChangeSite, parsed
from gradekit.repair.work import Limit, Share, Turn, Work
from gradekit.source.draft import Draft, leading_to
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import called

STAGES = (range(Turn.IDLE, 0), range(Turn.COMBINED), LATE)
"""The turns of changes that are looked at before it is decided whether to go on."""

Confirmed = Callable[[Change], int | None]
"""With a change, how many other examples are right where all are right or wrong as before, 0 where one is not; None
where that is not known."""

ALONE = (ChangeKind.AXIS, ChangeKind.UPDATE)
"""Of the changes that are tried one by one, those that a beginner's mistake may be; others seldom compile."""

Walked = tuple[ShownCall, WalkedCall]

_NO_MORE: Any = object()


class Screen:
    """The changes of one submission that make calls of it right."""

    def __init__(self, draft: Draft, allow: Collection[str], work: Share | None = None) -> None:
        self.draft, self.allow = draft, allow
        self.code: Code = code_of(draft.source)
        self._work = work if work is not None else Work().in_kernels
        self._better: list[tuple[float, TriedChange]] = []
        self._mended: Counter[Change] = Counter()
        self._alone = self._are_confirmed = False
        self.tried = 0
        self._settled: Mapping[str, Collection[int]] = {}
        self._lacks: float | None = None
        self._astray: Collection[int] = ()
        self._leading: dict[str, set[ast.stmt]] = {}
        self._made: dict[tuple[int, str, int], list[tuple[Change, ChangeSite]]] = {}
        self._digests: dict[tuple[int, ast.AST], Hashable] = {}

    def survivors(
        self, calls: Sequence[ShownCall], kernels: Sequence[str], others: Sequence[str] = (),
        more: Iterable[ShownCall] = (), astray: Collection[int] = (), confirmed: Confirmed = lambda change: None,
        settled: Mapping[str, Collection[int]] = MappingProxyType({}),
        is_suspect: Callable[[Change], bool] = lambda change: False,
    ) -> list[Change]:  # fmt: skip
        """The changes with which all of the calls are right, the first of which fails; the likelier ones first. Nothing
        where a walk does not give what the calls gave. `kernels` write the wrong result, from what `others` have
        made. `more` calls are asked for one after another while many changes are left; of few, it is asked first
        whether they are `confirmed`. Where accesses go `astray`, or are missing, only what leads to those on these
        lines is changed. Of some kernels there are `settled` lines, which nothing is changed in. Where what is right
        `is_suspect`, it may only hide the mistake: then the less likely ones are looked at, too."""
        kernels, others = (kernels, others) if kernels else (others, ())
        self._settled, self._lacks, self._alone = settled, calls[0].lacks, calls[0].alone
        self._astray, self._leading, self._made, self._digests = astray, {}, {}, {}
        walked = [(call, replay) for call in calls if (replay := self.replayed(call)) is not None]
        if not walked or walked[0][0] is not calls[0]:
            return []
        self._better, first = [], walked[0][1]
        if first.work > Limit.OF_A_CALL * self._work.left:
            return []
        telling = max((one for one in walked if self._is_telling(one, walked[0])), key=_results_of)
        also = sorted((one for one in walked if one[1] is not first), key=lambda one: one is not telling)
        again: Iterator[Walked | None] = (
            (call, walk) if (walk := self.replayed(call)) is not None else None for call in more
        )
        reserve = int(Limit.KEPT_FOR_OTHER_CALLS * self._work.left)
        found, kept = list[TriedChange](), list[TriedChange]()
        in_turn = [one for turns in STAGES for one in ((turns, kernels, None), (turns, others, False))]
        in_turn += [(turns, others, True) for turns in STAGES]
        for turns, mine, of_indices in (one for one in in_turn if one[1]):
            if of_indices and kept:
                break
            again, next_ones = itertools.tee(again)
            is_last = turns is STAGES[-1] and (of_indices or not others)
            kept_back = reserve if is_last or not others else self._work.left // 2
            found += (new := self._found(walked[0], mine, turns, max(reserve, kept_back), of_indices))
            kept = self._held([*kept, *new], also, next_ones, confirmed)
            likely = [one.change for one in kept if self._are_confirmed or one.change.kind in LIKELY]
            if not all(map(is_suspect, likely[: Limit.SURVIVORS])):
                break
        if not found and telling is not walked[0]:  # of few elements, much comes near by chance
            self._better = [one for one in self._better if one[0] <= 0]
            self._found(telling, (*kernels, *others), STAGES[1], reserve)
        writers = [one for one in kept if one.kernel in kernels]  # changes elsewhere may only work around it
        are_likely = writers and min(one.change.kind for one in writers) <= min(one.change.kind for one in kept)
        changes = [one.change for one in (writers if are_likely else kept)]
        most = max((self._mended[change] for change in changes), default=0)  # one mistake explains most calls
        return [change for change in changes if self._mended[change] == most]

    def of_prior(self, call: ShownCall, kernels: Sequence[str], only_idle: bool) -> list[Change]:
        """The changes that use a name which nothing uses, and unless these `only` are asked for, that let programs and
        steps begin elsewhere: of a call whose right result is not known, or that cannot be walked to its end."""
        walk = WalkedCall(call.program, call.inputs, self.code, self.allow, call.compared)
        with contextlib.suppress(*WRONG):
            walk.run()
        walked = (kernel for kernel in kernels if kernel in walk.begun)
        every = [change for kernel in walked for change, _ in self._every(walk, kernel, STAGES[0])]
        idle = [change for change in every if change.turn == Turn.IDLE and not change.lacks]
        return idle if only_idle else [*(one for one in every if one.kind is ChangeKind.STEP), *idle]

    def _held(
        self, found: list[TriedChange], also: list[Walked], more: Iterator[Walked | None], confirmed: Confirmed
    ) -> list[TriedChange]:
        """Those with which other calls are right, too: `more` of them are asked for while any is left."""
        kept = sorted(found, key=lambda one: one.change.kind)[: Limit.HELD]
        self._better += [(0, one) for one in kept]
        self._mended.clear()  # what was found before is held again
        for call, replay in also:
            kept = self._right_again(kept, call, replay)
            self._better += [(-len(self._better), one) for one in kept]  # what holds longest comes first
        is_asked = self._are_confirmed = False
        while kept:
            if len(kept) <= Limit.FEW and not is_asked:
                is_asked, known = True, {one.change: confirmed(one.change) for one in kept}
                if None not in known.values():
                    self._mended.update({change: count or 0 for change, count in known.items()})
                    self._are_confirmed = True
                    return [one for one in kept if known[one.change]]
            if (one := next(more, _NO_MORE)) is _NO_MORE:
                break
            kept = self._right_again(kept, *one) if one is not None else kept
            self._better += [(-len(self._better), one) for one in kept]
        return kept

    def _found(
        self, one: Walked, kernels: Sequence[str], turns: range, reserve: int, of_indices: bool | None = None
    ) -> list[TriedChange]:
        """All changes of some turns with which a call is right, those `of_indices` alone or all but those where that is
        said; a reserve of work is for other calls."""
        call, replay = one
        found: list[TriedChange] = []
        self._work.spend(reserve)
        for batch in self._batches(replay, kernels, turns, of_indices):
            if self._work.left < 0:
                break
            found += self._right(batch, call, replay, is_first=True)
        self._work.spend(-reserve)
        return [like for one in found for like in with_alike(one)]

    def in_part(self) -> list[Change]:
        """The changes that have made the last call that was looked at right in part, and no more; those first with
        which most calls were right, or fewest elements wrong. Each may be one of two that are needed."""
        better = sorted(self._better, key=lambda pair: (pair[0], pair[1].change.kind))
        return list(dict.fromkeys(one.change for _, one in better))

    def _is_telling(self, one: Walked, first: Walked) -> bool:
        """Whether a call is the first, or fails as well and costs not much more: in a call of few elements many changes
        seem right."""
        call, replay = one
        costs_little = replay.work <= 2 * first[1].work and replay.begun.keys() == first[1].begun.keys()
        return one is first or costs_little and not call.is_right(call.results)

    def _right_again(self, found: list[TriedChange], call: ShownCall, replay: WalkedCall) -> list[TriedChange]:
        """Those with which another call is right, too; all of them where it is large, or no work is left."""
        kept: list[TriedChange] = []
        counts = {kernel: sum(one.kernel == kernel for one in found) for kernel in replay.begun}
        tries = sum(1 + count // replay.most_copies(kernel) for kernel, count in counts.items())
        if replay.work > AGAIN or 2 * tries * replay.work > self._work.left:
            return found
        for kernel in dict.fromkeys(one.kernel for one in found):
            alike = [one for one in found if one.kernel == kernel]
            if kernel in replay.begun:
                most = replay.most_copies(kernel)
                batches = (alike[at : at + most] for at in range(0, len(alike), most))
                alike = [one for batch in batches for one in self._right(batch, call, replay)]
            kept += alike
        return sorted(kept, key=lambda one: one.change.kind)

    def replayed(self, call: ShownCall) -> WalkedCall | None:
        """A call as it is, walked; None where that does not give what the call gave."""
        replay = WalkedCall(call.program, call.inputs, self.code, self.allow, call.compared, call.alone)
        try:
            results = replay.run()
        except WRONG:
            return None
        return replay if call.is_given_by(results, replay.strays) else None

    def _batches(
        self, replay: WalkedCall, kernels: Sequence[str], turns: range, of_indices: bool | None
    ) -> Iterator[list[TriedChange]]:
        """The changes in groups that can be tried at once: the likely ones, then the others."""
        walked = [kernel for kernel in kernels if kernel in replay.begun]
        every = [(*one, kernel) for kernel in walked for one in self._every(replay, kernel, turns)]
        every = [one for one in every if of_indices in (None, is_of_an_index(*one[:2]))]
        later: list[list[TriedChange]] = []
        for turn in sorted({change.turn for change, _, _ in every if change.turn in turns}):
            for kernel in kernels:
                group = [(one, site) for one, site, of in every if of == kernel and one.turn == turn]
                pool, others = self._together(group, kernel, replay)
                apart = list(self._cut(others, kernel, replay))
                yield from (batch for batch in apart if batch[0].change.kind in ALONE)
                yield from self._cut([pool], kernel, replay)
                later += (batch for batch in apart if batch[0].change.kind not in ALONE)
        yield from later

    def _every(self, replay: WalkedCall, kernel: str, turns: range) -> list[tuple[Change, ChangeSite]]:
        """All changes of a kernel and its helpers of some turns, as a call has walked them: the early ones are made at
        once, and looked at in turns."""
        made = EARLY if turns.start in EARLY else LATE
        key = id(replay), kernel, made.start
        if key not in self._made:
            settled = self._settled.get(kernel, ())
            of = self._kernel(kernel), self.draft, replay.begun[kernel].watched
            every = changes_of_kernel(*of, made, settled, self._lacks)
            every = (pair for pair in every if any(line not in settled for line in (*pair[0].lines, pair[0].line)))
            self._made[key] = [pair for pair in every if not self._astray or self._may_lead(*pair)]
        return self._made[key]

    def _may_lead(self, change: Change, site: ChangeSite) -> bool:
        """Whether a change may move the accesses that are out of bounds. A remainder hides any that is, and where
        results are right nothing asks for it."""
        if self._alone and isinstance(getattr(change.built, "op", None), ast.Mod):
            return False
        if site.kernel.name not in self._leading:
            self._leading[site.kernel.name] = leading_to(site.kernel, self._astray)
        return any(site.kernel.statement(part.node) in self._leading[site.kernel.name] for part in change.parts)

    def _together(
        self, group: Sequence[tuple[Change, ChangeSite]], kernel: str, replay: WalkedCall
    ) -> tuple[list[TriedChange], list[list[TriedChange]]]:
        """Changes of one kernel: those that leave their values of one kind, which can be tried side by side, and those
        that must be tried apart from these."""
        pool: list[TriedChange] = []
        apart: dict[Hashable, list[TriedChange]] = {}
        for tried, site in self._distinct(group, kernel, replay):
            node = tried.change.node
            if tried.kind is None or is_static(site, node, self.code.functions):
                apart[id(tried)] = [tried]
            elif tried.kind == site.kind(node):
                pool.append(tried)
            else:
                apart.setdefault((node, tried.kind), []).append(tried)
        latest_first = sorted(pool, key=lambda tried: -tried.place)  # what comes before them need not be walked again
        return latest_first, list(apart.values())

    def _cut(self, groups: Iterable[list[TriedChange]], kernel: str, replay: WalkedCall) -> Iterator[list[TriedChange]]:
        """Groups in batches that are not too large."""
        most = max(min(replay.most_copies(kernel), Limit.BATCH // max(replay.work_from(kernel), 1)), 1)
        for group in groups:
            yield from (group[at : at + most] for at in range(0, len(group), most))

    def _distinct(
        self, group: Sequence[tuple[Change, ChangeSite]], kernel: str, replay: WalkedCall
    ) -> Iterator[tuple[TriedChange, ChangeSite]]:
        """The changes that can be evaluated, and that make another value than others of the same node."""
        seen: dict[Hashable, tuple[TriedChange, ChangeSite]] = {}
        for change, site in group:
            if self._work.left < 0:
                break
            new = tuple(tree for part in change.parts if (tree := parsed(part)) is not None)
            is_refused = any(needs_constant(part, site, self.code.functions) for part in change.parts)
            if len(new) < len(change.parts) or is_refused:
                continue
            places = [place_of(self._kernel(kernel), part.node, self.code.functions[kernel]) for part in change.parts]
            tried = TriedChange(change, new, kernel, min(place or 0 for place in places))
            if change.also or change.kind is ChangeKind.STEP or not isinstance(new[0], ast.expr):
                if (several := self._of_parts(tried, site, replay)) is not None:
                    seen[id(change)] = several, site
                continue
            kind, told = self._value(tried, site, replay, places[0] is not None)
            if kind is not None:
                one, _ = seen.get(key := (change.node, kind, told), (None, None))
                one = replace(tried, kind=kind) if one is None else replace(one, alike=(*one.alike, change))
                seen[key] = one, site
        yield from seen.values()

    def _of_parts(self, tried: TriedChange, site: ChangeSite, replay: WalkedCall) -> TriedChange | None:
        """With the kind of the first value where no part of a change leaves another kind than there was; None where a
        part gives no value. Parts that turn axes have a kind together alone."""
        kinds = [site.kind(part.node) for part in tried.change.parts]
        is_plain = tried.change.kind is not ChangeKind.AXIS and all(isinstance(one, ast.expr) for one in tried.new)
        if not is_plain or None in kinds:
            return tried
        each = [replace(tried, change=p, new=(new,)) for p, new in zip(tried.change.parts, tried.new, strict=True)]
        made = [self._value(part, site, replay, is_own=False)[0] for part in each]
        if None in made:
            return None
        return replace(tried, kind=kinds[0]) if made == kinds else tried

    def _value(
        self, tried: TriedChange, site: ChangeSite, replay: WalkedCall, is_own: bool
    ) -> tuple[ValueKind | None, Hashable]:
        """The kind of the value that a change gives where its node was met first, and what tells it from others; None
        for one that gives nothing, or nothing new."""
        change = tried.change
        known = site.watched.names.get(site.kernel.statement(change.node))
        (new,) = tried.new
        if known is None or not isinstance(new, ast.expr):
            return None, None
        if any(one in change.new for one in ("store", "atomic", *self.code.functions)) and has_effects(new, self.code):
            return site.kind(change.node), change.new  # evaluated here, it would change what all others begin with
        alone = replay.alone(tried.kernel)
        alone.known, before = site.watched.values, alone.meter.work  # what it keeps of the old expression had a value
        try:
            value = alone.value(new, known)
        except WRONG:
            return None, None
        finally:
            self._work.spend(alone.meter.work - before + STEP)
        kind = kind_of(value)
        if kind is None or not site.is_steady(change.node) or not is_own or not replay.is_launched_once(tried.kernel):
            return kind, change.new
        told = digest(value)
        is_usual = site.kind(change.node) == kind and self._usual(site, change.node) == told
        return (None, None) if is_usual else (kind, told)

    def _usual(self, site: ChangeSite, node: ast.AST) -> Hashable:
        """What tells the value from others that an expression had when it was met first."""
        key = id(site), node
        if key not in self._digests:
            self._digests[key] = digest(site.watched.values.get(node))
        return self._digests[key]

    def _kernel(self, name: str) -> KernelDraft:
        return next(kernel for kernel in self.draft.kernels if kernel.name == name)

    def _right(
        self, batch: list[TriedChange], call: ShownCall, replay: WalkedCall, is_first: bool = False
    ) -> list[TriedChange]:
        """Those of some changes of one node with which a call is right; halves of them where all together cannot be
        walked."""
        if self._work.left < 0:
            return []
        substitution = Substitution.of([tried.pairs for tried in batch])
        try:
            copies = replay.changed(batch[0].kernel, substitution, min(tried.place for tried in batch))
        except OutsideEverywhere:
            return []
        except WRONG as error:
            half = len(batch) // 2
            if not half and not is_first and isinstance(error, OverBudget):
                return batch  # it does what was left undone, and whether it is right is not known
            halves = (batch[:half], batch[half:]) if half else ()
            return [one for part in halves for one in self._right(part, call, replay, is_first)]
        finally:
            self._work.spend(replay.spent)
        self.tried += len(batch)
        may_be = ~copies.lost if call.may_be is None else ~copies.lost & call.may_be(copies.results)
        of_copy = {number: result for number in _places(may_be) if (result := copies.of(number)) is not None}
        right = {number for number, result in of_copy.items() if call.is_right(result)}
        if call.mended is not None:
            self._mended.update(batch[number].change for number, result in of_copy.items() if call.mended(result))
        if is_first and call.wrong is not None:
            before = call.wrong([None if one is None else one[None] for one in call.results])
            counts = call.wrong(copies.results)
            most = before if replay.strays else Limit.LEFT_WRONG * before  # no copy that is left goes out of bounds
            helps = ~copies.lost & (counts <= most)
            self._better += [(float(counts[number]), batch[number]) for number in _places(helps) if number not in right]
        return [batch[number] for number in sorted(right)]


def _places(which: Tensor) -> list[int]:
    """The numbers of the elements that are True."""
    return which.nonzero().flatten().tolist()


def _results_of(one: tuple[ShownCall, WalkedCall]) -> int:
    """The elements of a call's results."""
    return sum(result.numel() for result in one[0].results if isinstance(result, Tensor))


# --- a change as it is tried on a call: the nodes that it puts in, and what others do the same there ------------------


@dataclass(frozen=True)
class TriedChange:
    """A change, the nodes that it puts in, the kernel in which it is tried, the number of the first statement there
    that it is in, and the kind of its value; others are `alike` if they give the same value in the call that is looked
    at first."""

    change: Change
    new: tuple[ast.AST, ...]
    kernel: str
    place: int
    kind: ValueKind | None = None
    alike: tuple[Change, ...] = ()

    @property
    def pairs(self) -> list[tuple[ast.AST, ast.AST]]:
        """What is there, and what is put in its place."""
        return list(zip((part.node for part in self.change.parts), self.new, strict=True))


def with_alike(tried: TriedChange) -> list[TriedChange]:
    """It, and the others that give the same value."""
    trees = [(change, parsed(change)) for change in tried.alike]
    others = [replace(tried, change=change, new=(tree,), alike=()) for change, tree in trees if tree is not None]
    return [tried, *others]


def digest(value: Any) -> Hashable:
    """Equal for equal values."""
    if isinstance(value, TilePointer):
        return value.storage, digest(value.offset)
    if not isinstance(value, Tensor):
        return value
    flat = value.reshape(-1)
    if flat.numel() and bool((flat == flat[0]).all()):
        return flat[0].item()
    return tuple(value.shape), flat.double().numpy().tobytes()


def place_of(kernel: KernelDraft, node: ast.AST, function: ast.FunctionDef) -> int | None:
    """The number of the statement of a kernel's body that a node is in; None where it is in another function."""
    while node in kernel.parents and kernel.parents[node] is not function:
        node = kernel.parents[node]
    return function.body.index(node) if isinstance(node, ast.stmt) and node in function.body else None


# --- where Triton takes constants alone: an axis, a part of a shape, a step -------------------------------------------


_STATIC = {"arange", "zeros", "full", "program_id", "num_programs", "reshape", "view", "broadcast_to", "static_range"}


def is_of_an_index(change: Change, site: ChangeSite) -> bool:
    """Whether it changes a whole number: in a kernel that feeds another, that may only work around a mistake."""
    kind = site.kind(change.node)
    is_as_likely = change.kind in (ChangeKind.IDLE, ChangeKind.NAME)
    return kind is not None and kind.of == "integer" and not is_as_likely


def needs_constant(change: Change, site: ChangeSite, functions: Collection[str]) -> bool:
    """Whether what comes to where Triton takes constants alone is no other constant of the kernel, and no axis."""
    is_meant = (
        change.new in site.kernel.constexprs or change.kind is ChangeKind.AXIS or isinstance(change.node, ast.stmt)
    )
    return not is_meant and is_static(site, change.node, functions)


def is_static(site: ChangeSite, node: ast.AST, functions: Collection[str]) -> bool:
    """Whether an expression must be a number that all programs have: an axis, a part of a shape, a step."""
    if isinstance(site.watched.values.get(node), (Tensor, TilePointer)):
        return False
    parents, computed = site.kernel.parents, {*site.kernel.params, *(name for name, _ in site.kernel.assigned)}
    while isinstance(parents.get(node), (ast.expr, ast.keyword)):
        before, node = node, parents[node]
        if isinstance(node, ast.keyword) and node.arg in ("axis", "shape", "dtype"):
            return True
        name = called(node).rpartition(".")[2]
        is_step = name == "range" and isinstance(node, ast.Call) and before in node.args[2:]
        if name == "full" and isinstance(node, ast.Call) and before in node.args[1:]:
            return False
        if is_step or name in _STATIC or name in functions and not site.kernel.names(before) & computed:
            return True
    return False
