"""Tries single changes of host code on a failing call, and keeps those that make it right."""

import ast
import contextlib
import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from torch import Tensor

from gradekit.engine.budget import STEP, Budget, Meter, OverBudget
from gradekit.interpreter.host_walk import HostWalk
from gradekit.interpreter.shown_call import HostReplay, ShownCall
from gradekit.interpreter.tile_values import NotWalked
from gradekit.interpreter.walk import Code
from gradekit.interpreter.walked_call import WRONG
from gradekit.repair.operators.changes import Change, ChangeKind, parsed
from gradekit.repair.operators.host_changes import HostSite, host_changes
from gradekit.repair.work import Limit, Share, Turn, Work
from gradekit.submission.parsed_source import ParsedSource

_NO_VALUE: Any = object()

Walked = tuple[ShownCall, HostReplay]
Pairs = list[tuple[Change, dict[ast.AST, ast.AST]]]


class HostScreen:
    """The changes of the host code of one submission that make calls of it right."""

    def __init__(self, source: ParsedSource, code: Code, work: Share | None = None) -> None:
        self.source, self.code = source, code
        self._work = work if work is not None else Work().on_host
        self._mended: Counter[int] = Counter()
        self._unchanged: Counter[int] = Counter()
        self.copies: list[Change] = []  # of views, with which calls are right: they may only work around wrong strides
        self.in_part: list[Change] = []  # with which the failing call is right, and another not: each may be one of two

    def survivors(self, failing: ShownCall, more: Iterable[ShownCall]) -> list[Change]:
        """The changes with which a failing call, and `more` that are asked for while any change is left, are right.
        Nothing where a walk does not give what the call gave."""
        replay, self.in_part = self._replay(failing), []
        if replay is None or replay.walk is None:
            return []
        site = HostSite(self.source, replay.walk)
        every = [(one, news) for one in host_changes(site) if (news := self._news(one)) is not None]
        met = {statement: number for number, statement in enumerate(site.walk.names)}
        latest = lambda pair: -met.get(site.statement(pair[0].node), 0)  # the launches before it are known
        again, more = itertools.tee(more)
        copied = [
            pair for pair in every if pair[0].turn == Turn.HOST_LAST and self._is_right(pair[1], (failing, replay))
        ]
        self.copies = [change for change, _ in self._held(copied, again)]
        found: Pairs = []
        for turn in range(Turn.HOST_LATER + 1):
            groups = self._distinct([pair for pair in every if pair[0].turn == turn], site)
            mine = [pair for group in groups for pair in group]
            again, more = itertools.tee(more)
            in_turn = sorted(groups, key=lambda group: latest(group[0]))
            right = [one for group in in_turn if self._is_right(group[0][1], (failing, replay)) for one in group]
            if found := self._held(sorted(right, key=mine.index), again):
                break
            self.in_part += [change for change, _ in right]
        return [change for change, _ in sorted(found, key=lambda pair: pair[0].kind)]

    def of_prior(self, call: ShownCall) -> list[Change]:
        """The changes of grids, of a call that cannot be walked to its end."""
        walk = HostReplay(call.host, call.program, self.source, self.code) if call.host is not None else None
        with contextlib.suppress(*WRONG):
            _ = walk and walk.run(int(Limit.OF_A_CALL_ON_HOST * self._work.most))
        site = HostSite(self.source, walk.walk) if walk is not None and walk.walk is not None else None
        return [one for one in host_changes(site) if one.kind is ChangeKind.STEP] if site is not None else []

    def _held(self, found: Pairs, more: Iterable[ShownCall]) -> Pairs:
        """Those with which more calls are right, and most of those that may stay wrong: one mistake explains most. Of
        these, what launches the same as before in most of the calls that were right: what such calls compute was right,
        too."""
        self._mended.clear()
        self._unchanged.clear()
        for call in more if found else ():
            again = self._replay(call)
            if again is not None and found:
                found = [pair for pair in found if self._is_right(pair[1], (call, again), is_unknown=True)]
        for count in (self._mended, self._unchanged):
            most = max((count[id(news)] for _, news in found), default=0)
            found = [(change, news) for change, news in found if count[id(news)] == most]
        return found

    def _news(self, change: Change) -> dict[ast.AST, ast.AST] | None:
        trees = [parsed(part) for part in change.parts]
        if None in trees:
            return None
        return {part.node: tree for part, tree in zip(change.parts, trees, strict=True) if tree is not None}

    def _distinct(self, changes: Pairs, site: HostSite) -> list[Pairs]:
        """Those that make another number than there was, together where several of one place make the same."""
        found: dict[Hashable, Pairs] = {}
        for change, news in changes:
            node, new = next(iter(news.items()))
            value = self._number(new, site, node) if len(news) == 1 else None
            before = site.value(node)
            if value is _NO_VALUE or value is not None and type(value) is type(before) and value == before:
                continue
            found.setdefault(id(news) if value is None else (node, value), []).append((change, news))
        return list(found.values())

    def _number(self, new: ast.AST, site: HostSite, node: ast.AST) -> int | float | None:
        """The number that an expression is where a node stands; None of a tensor, and of what was not evaluated."""
        statement = site.statement(node)
        names = site.walk.names.get(statement)
        if names is None or not isinstance(site.value(node), (int, float)) or not isinstance(new, ast.expr):
            return None
        alone = HostWalk(self.source, site.walk.launches, Meter(Budget(100 * STEP)))
        try:
            value = alone.value(new, dict(names))
        except WRONG:
            return None if isinstance(new, ast.Name) else _NO_VALUE
        return value if isinstance(value, (int, float)) else None

    def _is_right(self, news: dict[ast.AST, ast.AST], walked: Walked, is_unknown: bool = False) -> bool:
        """Whether a call is right with a change, and no program does more in vain than before; `is_unknown` where no
        work is left to see it."""
        call, replay = walked
        if self._work.left < 0:
            return is_unknown
        try:
            results = replay.changed(news)
        except WRONG:
            return False
        finally:
            self._work.spend(replay.spent + STEP)
        again = any(count for (_, way), count in replay.in_vain[-1].items() if way)
        if not _fits(results, call) or replay.does_more_in_vain or call.alone and again:
            return False
        self._mended[id(news)] += call.mended is not None and call.mended(results)
        was_right = call.mended is None and call.is_right(call.results)
        self._unchanged[id(news)] += was_right and replay.launched[-1] == replay.launched[0]
        return call.is_right(results)

    def _replay(self, call: ShownCall) -> HostReplay | None:
        """A call as it is, walked; None where that does not give what the call gave, or costs much."""
        if call.host is None or self._work.left < 0:
            return None
        replay = HostReplay(call.host, call.program, self.source, self.code)
        try:
            results = replay.run(int(Limit.OF_A_CALL_ON_HOST * self._work.most))
        except (NotWalked, OverBudget):
            return None
        except WRONG:  # as a kernel may: by a division by a wrong number of host code, say
            return replay
        finally:
            self._work.spend(replay.spent)
        fits = len(results) == len(call.results) and call.is_given_by(results, replay.strays)
        return replay if fits else None


def _fits(results: Sequence[Tensor | None], call: ShownCall) -> bool:
    """Whether results are as many as there were, of the same shapes and dtypes."""
    return [*map(_form, results)] == [*map(_form, call.results)]


def _form(result: Tensor | None) -> Hashable:
    return (result.shape, result.dtype) if isinstance(result, Tensor) else None
