"""All changes of a kernel and of the functions that it calls."""

import ast
from collections.abc import Collection, Iterator

from gradekit.interpreter.walk import Watched
from gradekit.repair.operators.additions import around
from gradekit.repair.operators.changes import Change, ChangeSite
from gradekit.repair.operators.insertions import insertions
from gradekit.repair.operators.replacements import RULES
from gradekit.repair.operators.together import of_several_places
from gradekit.repair.work import Turn
from gradekit.source.draft import Draft
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import called

EARLY, LATE = range(Turn.IDLE, Turn.COMBINED), range(Turn.COMBINED, Turn.LAST + 1)
"""The turns of changes that are made at a time: the late ones are most, and seldom asked for."""


def changes_of_kernel(
    kernel: KernelDraft, draft: Draft, watched: Watched, turns: range, settled: Collection[int] = (),
    lacks: float | None = None,
) -> Iterator[tuple[Change, ChangeSite]]:  # fmt: skip
    """Those of some turns, `EARLY` or `LATE`, of a kernel that was walked and its helpers, few of `settled` lines; what
    all of the result `lacks` as a factor comes early."""
    for function in _with_helpers(kernel, draft):
        site = ChangeSite(function, watched, turns, draft.numbers, lacks)
        yield from ((change, site) for change in changes_of(site, settled) if change.turn in turns)


def changes_of(site: ChangeSite, settled: Collection[int] = ()) -> Iterator[Change]:
    """All changes of a function, of single places on `settled` lines none; where late ones alone are asked for, what
    names and additions give."""
    is_early = site.turns.start in EARLY
    for node in site.kernel.nodes:
        if (isinstance(node, ast.stmt) or node in site.watched.values) and getattr(node, "lineno", 0) not in settled:
            for rule in RULES.get(type(node), ()) if is_early or isinstance(node, ast.Name) else ():
                yield from rule(site, node)
            if isinstance(node, ast.expr):
                yield from around(site, node)
    if is_early:
        yield from of_several_places(site)
        yield from insertions(site)


def _with_helpers(kernel: KernelDraft, draft: Draft) -> list[KernelDraft]:
    by_name, found = {one.name: one for one in draft.kernels}, [kernel]
    for one in found:
        names = dict.fromkeys(called(node) for node in one.nodes)
        found += [by_name[name] for name in names if name in by_name and by_name[name] not in found]
    return found
