"""All mends of a submission, those first that the evidence speaks for."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gradekit.causes import OUT_OF_BOUNDS, Cause
from gradekit.repair.idioms import launches, masks, other_kernels
from gradekit.repair.idioms.idiom import GENERAL, Idiom, idioms_of
from gradekit.repair.mend import Clues, Family, Mend
from gradekit.repair.unexpected import survived
from gradekit.repair.work import Limit, Rank
from gradekit.source.draft import Draft, draft_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import called

_IN_KERNELS = (masks.masks_missing, *other_kernels.RULES)
_ON_HOST = launches.RULES
"""What no pattern says, for it compares names or whole kernels."""

_SPEAKS_FOR = {
    Cause.OUT_OF_BOUNDS_LOAD: (Family.MASK, Family.INDEX, Family.LOOP, Family.STRIDES, Family.GRID),
    Cause.OUT_OF_BOUNDS_STORE: (Family.MASK, Family.INDEX, Family.GRID, Family.STRIDES),
    Cause.UNWRITTEN_OUTPUT: (Family.GRID, Family.INDEX, Family.MASK, Family.STRIDES),
    Cause.NO_KERNEL: (Family.GRID,),
    Cause.WRITE_CONFLICT: (Family.MEMORY, Family.MASK, Family.INDEX, Family.GRID),
    Cause.RACE: (Family.MEMORY, Family.MASK, Family.INDEX, Family.GRID),
    Cause.UNINITIALIZED_READ: (Family.MEMORY, Family.GRID, Family.INDEX),
    Cause.UNDEFINED_LANES: (Family.MASK,),
    Cause.INPUT_MODIFIED: (Family.STRIDES, Family.INDEX),
    Cause.IGNORES_STRIDES: (Family.STRIDES, Family.INDEX),
    Cause.LOW_PRECISION: (Family.CAST, Family.SUM),
}
_OF_SEVERAL_WRITES = {Cause.WRITE_CONFLICT, Cause.RACE, Cause.UNINITIALIZED_READ}
"""What is seen where an element is written or added to several times."""


def mends(text: str, idioms: Sequence[Idiom] = (), kernels: Collection[str] = ()) -> list[Mend]:
    """Every mend of host code, helpers and kernels, or of these `kernels`, each once, the most specific first; nothing
    where the text is not Python. `idioms` are those that belong to the assignment alone."""
    if (draft := draft_of(text)) is None:
        return []
    seen: dict[Hashable, Mend] = {}
    every = [*idioms_of(GENERAL), *idioms]
    found = list(_of_rules(_ON_HOST, [one for one in every if one.is_of_host], draft))
    for kernel in draft.kernels:
        is_helper = _is_helper(draft, kernel)
        if is_helper or not kernels or kernel.name in kernels:
            mine = _of_rules(_IN_KERNELS, [one for one in every if not one.is_of_host], draft, kernel)
            found += (replace(mend, kernel="") for mend in mine) if is_helper else mine
    for mend in sorted(found, key=lambda mend: mend.rank):
        seen.setdefault(tuple((edit.start, edit.end, edit.new) for edit in mend.edits), mend)
    return list(seen.values())


def _of_rules(rules: Sequence[Callable[..., Iterator[Mend]]], idioms: Iterable[Idiom], *place: Any) -> Iterator[Mend]:
    """What rules and idioms find in a draft, or in a kernel of it."""
    for rule in rules:
        yield from _of_one_rule(rule.__name__, rule(*place))
    for idiom in idioms:
        yield from _of_one_rule(idiom.name, idiom.mends(*place))


def _of_one_rule(name: str, found: Iterator[Mend]) -> Iterator[Mend]:
    """What a rule finds. Where it fails on an unexpected text, the other rules still run."""
    with survived(f"The rule {name}"):
        yield from found


def _is_helper(draft: Draft, kernel: KernelDraft) -> bool:
    """Whether a function is called by kernels and launched by nobody: what it does is part of any of them."""
    return not draft.launches_of(kernel) and any(
        called(node) == kernel.name for other in draft.kernels if other is not kernel for node in other.nodes
    )


def in_order(found: list[Mend], clues: Clues) -> list[Mend]:
    """The mends that could matter, in the order in which they are worth a try."""
    outside = clues.causes & OUT_OF_BOUNDS
    wanted = {family for cause in outside or clues.causes for family in _SPEAKS_FOR.get(cause, ())}
    if clues.small:
        wanted = {Family.CAST, Family.SUM}

    def key(mend: Mend) -> int:
        leads_elsewhere = bool(clues.leading) and mend.kernel != "" and mend.line not in clues.leading
        late = (bool(wanted) and mend.family not in wanted) + leads_elsewhere
        special = mend.family in (Family.CAST, Family.MEMORY) and mend.family not in wanted
        early = Rank.SOONER if clues.strided and mend.family is Family.STRIDES else 0
        few = mend.rank <= Rank.SPECIFIC or mend.family is Family.MEMORY
        later = Rank.LATER_IF_SPECIFIC if few else Rank.LATER
        return mend.rank - early + later * (late + special) + Rank.ELSEWHERE * (mend.kernel in clues.others)

    mine = {*clues.kernels, *clues.others}
    kept = [mend for mend in found if not mend.kernel or not mine or mend.kernel in mine]
    if clues.lines:  # there is no result: what Triton refuses, or what never ends, is in one place
        kept = [mend for mend in kept if mend.line in clues.lines or mend.rank <= Rank.SPECIFIC]
        return sorted(kept, key=lambda mend: mend.rank)[: Limit.OF_REFUSED]
    if Cause.UNWRITTEN_OUTPUT in clues.causes and not clues.causes & _OF_SEVERAL_WRITES:
        kept = [mend for mend in kept if mend.family is not Family.MEMORY]
    return sorted(kept, key=key)
