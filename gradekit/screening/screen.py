"""Tries all single changes of the kernels that a wrong result comes from, within a budget of work, and keeps those that
make it right."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from gradekit.engine.budget import STEP
from gradekit.mending.dependences import leading_to
from gradekit.mending.draft import Draft
from gradekit.mending.kernel_text import KernelDraft
from gradekit.screening.additions import FIRST_COMBINED, around
from gradekit.screening.changes import LAST_TURN, LIKELY, OF_IDLE, Change, ChangeKind, ChangeSite
from gradekit.screening.kinds import ValueKind, kind_of
from gradekit.screening.replacements import RULES
from gradekit.screening.shown_call import ShownCall, is_like
from gradekit.screening.static_places import is_integer, is_static, needs_constant
from gradekit.screening.swap import Code, Swap
from gradekit.screening.tile_values import OutsideEverywhere
from gradekit.screening.together import of_several_places
from gradekit.screening.tried_change import TriedChange, digest, kind_of_change, parsed, place_of, with_alike
from gradekit.screening.walked_call import WRONG, WalkedCall, code_of, has_effects
from gradekit.submission.parsed_source import called

MOST_WORK = 400_000_000
"""Of all changes of one submission, in the engine's units."""

WORK_OF_A_SECOND = MOST_WORK // 8
"""Of all changes of a text in which one of two mistakes is mended."""

MOST_WORK_OF_ANOTHER = 20_000_000
"""Of another call as it is: a larger one is left to the engine."""

SHARE_OF_A_CALL = 0.05
"""Of the work that is left: a call that costs more is not screened, for few changes could be tried."""

KEPT_FOR_OTHER_CALLS = 0.2
"""The share of the work that is left in which what makes the failing call right is held against others."""

MOST_OF_A_BATCH = 200_000_000
"""Of the changes that are tried at a time, about."""

MOST_HELD = 400
"""So many that make the failing call right are held against others, those of the likelier kinds."""

MOST_LEFT_WRONG = 0.5
"""The share of the wrong elements that a change may leave wrong to count as one of two."""

STAGES = (range(OF_IDLE, 0), range(FIRST_COMBINED), range(FIRST_COMBINED, LAST_TURN + 1))
"""The turns of changes that are looked at before it is decided whether to go on."""

ALONE = (ChangeKind.AXIS, ChangeKind.UPDATE)
"""Of the changes that are tried one by one, those that a beginner's mistake may be; others seldom compile."""

Walked = tuple[ShownCall, WalkedCall]

_NO_MORE: Any = object()


def changes_of(site: ChangeSite) -> Iterator[Change]:
    """All changes of a function."""
    for node in site.kernel.nodes:
        if isinstance(node, ast.stmt) or node in site.watched.values:
            for rule in RULES.get(type(node), ()):
                yield from rule(site, node)
            if isinstance(node, ast.expr):
                yield from around(site, node)
    yield from of_several_places(site)


class Screen:
    """The changes of one submission that make calls of it right."""

    def __init__(self, draft: Draft, allow: Collection[str], work: int = MOST_WORK) -> None:
        self.draft, self.allow = draft, allow
        self.code: Code = code_of(draft.source)
        self.work_left = work
        self._better: list[tuple[int, TriedChange]] = []
        self._mended: Counter[Change] = Counter()
        self.tried = 0
        self._others: frozenset[str] = frozenset()
        self._astray: Collection[int] = ()
        self._leading: dict[str, set[ast.stmt]] = {}
        self._made: dict[tuple[int, str], list[tuple[Change, ChangeSite]]] = {}
        self._digests: dict[tuple[int, ast.AST], Hashable] = {}

    def survivors(
        self, calls: Sequence[ShownCall], kernels: Sequence[str], others: Sequence[str] = (),
        more: Iterable[ShownCall] = (), astray: Collection[int] = (),
    ) -> list[Change]:  # fmt: skip
        """The changes with which all of the calls are right, the first of which fails; the likelier ones first. Nothing
        where a walk does not give what the calls gave. `kernels` write the wrong result, from what `others` have
        made: in these no other arithmetic of indices is tried, which may only go round the mistake. `more` calls are
        asked for one after another, while several changes are left. Where accesses go `astray`, or are missing, only
        what leads to those on these lines is changed."""
        self._astray, self._leading, self._made, self._digests = astray, {}, {}, {}
        walked = [(call, replay) for call in calls if (replay := self._replay(call)) is not None]
        if not walked or walked[0][0] is not calls[0]:
            return []
        self._better = []
        first = walked[0][1]
        if first.work > SHARE_OF_A_CALL * self.work_left:
            return []
        self._others = frozenset(others) if kernels else frozenset()
        telling = max((one for one in walked if self._is_telling(one, walked[0])), key=_results_of)
        also = sorted((one for one in walked if one[1] is not first), key=lambda one: one is not telling)
        again: Iterator[Walked | None] = map(self._with_replay, more)
        reserve, found = int(KEPT_FOR_OTHER_CALLS * self.work_left), list[TriedChange]()
        kept: list[TriedChange] = []
        for turns, mine in itertools.product(STAGES, filter(None, (kernels, others))):
            again, rest = itertools.tee(again)
            kept_back = self.work_left // 2 if mine is others and kernels and turns is not STAGES[-1] else reserve
            found += self._found(walked[0], mine, turns, max(reserve, kept_back))
            kept = self._held(found, also, rest)
            if any(one.change.kind in LIKELY for one in kept):
                break
        if not found and telling is not walked[0]:  # of few elements, none may be right in part
            self._found(telling, (*kernels, *others), STAGES[1], reserve)
        writers = [one for one in kept if one.kernel in kernels]  # what feeds them may go round a mistake there
        are_likely = writers and min(map(kind_of_change, writers)) <= min(map(kind_of_change, kept))
        return self._that_mend_most([one.change for one in (writers if are_likely else kept)])

    def _that_mend_most(self, found: list[Change]) -> list[Change]:
        """The changes with which most calls are right that may have stayed wrong: one mistake explains them all."""
        most = max((self._mended[change] for change in found), default=0)
        return [change for change in found if self._mended[change] == most]

    def _with_replay(self, call: ShownCall) -> Walked | None:
        replay = self._replay(call)
        return (call, replay) if replay is not None else None

    def _held(self, found: list[TriedChange], also: list[Walked], more: Iterator[Walked | None]) -> list[TriedChange]:
        """Those with which other calls are right, too: `more` of them are asked for while any is left."""
        kept = sorted(found, key=kind_of_change)[:MOST_HELD]
        self._better += [(0, one) for one in kept]
        self._mended.clear()  # what was found before is held again
        for call, replay in also:
            kept = self._right_again(kept, call, replay)
        while kept and (one := next(more, _NO_MORE)) is not _NO_MORE:
            kept = self._right_again(kept, *one) if one is not None else kept
        return kept

    def _found(self, one: Walked, kernels: Sequence[str], turns: range, reserve: int) -> list[TriedChange]:
        """All changes of some turns with which a call is right; a reserve of work is for other calls."""
        self.work_left -= reserve
        found = self._looked(one, kernels, turns)
        self.work_left += reserve
        return [like for one in found for like in with_alike(one)]

    def _looked(self, one: Walked, kernels: Sequence[str], turns: range) -> list[TriedChange]:
        """The changes with which a call is right, as far as the work goes; `_better` has those that help in part."""
        call, replay = one
        found: list[TriedChange] = []
        for batch in self._batches(replay, kernels, turns):
            if self.work_left < 0:
                break
            found += self._right(batch, call, replay, is_first=True)
        return found

    def in_part(self) -> list[Change]:
        """The changes that have made the last call that was looked at right in part, and no more; those first with
        which fewest elements were wrong. Each may be one of two that are needed."""
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
        if replay.work > MOST_WORK_OF_ANOTHER or 2 * tries * replay.work > self.work_left:
            return found
        for kernel in dict.fromkeys(one.kernel for one in found):
            alike = [one for one in found if one.kernel == kernel]
            if kernel in replay.begun:
                most = replay.most_copies(kernel)
                batches = (alike[at : at + most] for at in range(0, len(alike), most))
                alike = [one for batch in batches for one in self._right(batch, call, replay)]
            kept += alike
        return sorted(kept, key=kind_of_change)

    def _replay(self, call: ShownCall) -> WalkedCall | None:
        replay = WalkedCall(call.program, call.inputs, self.code, self.allow)
        try:
            results = replay.run()
        except WRONG:
            return None
        return replay if replay.strays or is_like(results, call.results) else None

    def _batches(self, replay: WalkedCall, kernels: Sequence[str], turns: range) -> Iterator[list[TriedChange]]:
        """The changes in groups that can be tried at once: the likely ones, then the others."""
        every = [(*one, kernel) for kernel in kernels if kernel in replay.begun for one in self._every(replay, kernel)]
        later: list[list[TriedChange]] = []
        for turn in sorted({change.turn for change, _, _ in every if change.turn in turns}):
            for kernel in kernels:
                group = [(one, site) for one, site, of in every if of == kernel and one.turn == turn]
                pool, others = self._together(group, kernel, replay)
                yield from self._cut([pool], kernel, replay)
                later += self._cut(others, kernel, replay)
        yield from sorted(later, key=lambda batch: batch[0].change.kind not in ALONE)

    def _every(self, replay: WalkedCall, kernel: str) -> list[tuple[Change, ChangeSite]]:
        """All changes of a kernel and its helpers, as a call has walked them: made once, and looked at in turns."""
        key = id(replay), kernel
        if key not in self._made:
            functions = _with_helpers(self._kernel(kernel), self.draft)
            sites = [ChangeSite(function, replay.begun[kernel].watched) for function in functions]
            self._made[key] = [(one, site) for site in sites for one in changes_of(site) if self._may_lead(one, site)]
        return self._made[key]

    def _may_lead(self, change: Change, site: ChangeSite) -> bool:
        """Whether a change may lead the accesses elsewhere that go astray; any where none does."""
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
        most = max(min(replay.most_copies(kernel), MOST_OF_A_BATCH // max(replay.work_from(kernel), 1)), 1)
        for group in groups:
            yield from (group[at : at + most] for at in range(0, len(group), most))

    def _distinct(
        self, group: Sequence[tuple[Change, ChangeSite]], kernel: str, replay: WalkedCall
    ) -> Iterator[tuple[TriedChange, ChangeSite]]:
        """The changes that can be evaluated, and that make another value than others of the same node."""
        seen: dict[Hashable, tuple[TriedChange, ChangeSite]] = {}
        for change, site in group:
            if self.work_left < 0:
                break
            new = tuple(tree for part in change.parts if (tree := parsed(part)) is not None)
            if len(new) < len(change.parts) or self._is_refused(change, kernel, site):
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

    def _is_refused(self, change: Change, kernel: str, site: ChangeSite) -> bool:
        goes_round = kernel in self._others and change.kind is not ChangeKind.NAME and is_integer(site, change)
        return goes_round or any(needs_constant(part, site, self.code.functions) for part in change.parts)

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
        if has_effects(new, self.code):
            return site.kind(change.node), change.new  # evaluated here, it would change what all others begin with
        alone = replay.alone(tried.kernel)
        before, self.work_left = alone.meter.work, self.work_left - STEP
        try:
            value = alone.value(new, known)
        except WRONG:
            return None, None
        finally:
            self.work_left -= alone.meter.work - before
        kind = kind_of(value)
        if kind is None or not site.is_steady(change.node) or not is_own:
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
        if self.work_left < 0:
            return []
        swap = Swap.of([tried.pairs for tried in batch])
        try:
            results = replay.changed(batch[0].kernel, swap, min(tried.place for tried in batch))
        except OutsideEverywhere:
            return []
        except WRONG:
            half = len(batch) // 2
            halves = (batch[:half], batch[half:]) if half else ()
            return [one for part in halves for one in self._right(part, call, replay, is_first)]
        finally:
            self.work_left -= replay.spent
        self.tried += len(batch)
        given = [(tried, result) for tried, result in zip(batch, results, strict=True) if result is not None]
        right = [tried for tried, result in given if call.is_right(result)]
        if call.mended is not None:
            self._mended.update(tried.change for tried, result in given if call.mended(result))
        if is_first and call.wrong is not None:
            before = call.wrong(call.results)
            counted = [(call.wrong(result), tried) for tried, result in given if tried not in right]
            self._better += [(count, tried) for count, tried in counted if count <= MOST_LEFT_WRONG * before]
        return right


def _results_of(one: tuple[ShownCall, WalkedCall]) -> int:
    """The elements of a call's results."""
    return sum(result.numel() for result in one[0].results if isinstance(result, Tensor))


def _with_helpers(kernel: KernelDraft, draft: Draft) -> list[KernelDraft]:
    by_name, found = {one.name: one for one in draft.kernels}, [kernel]
    for one in found:
        names = dict.fromkeys(called(node) for node in one.nodes)
        found += [by_name[name] for name in names if name in by_name and by_name[name] not in found]
    return found
