"""Tries all single changes of the kernels that a wrong result comes from, within a budget of work, and keeps those that
make it right."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.budget import STEP
from gradekit.mending.draft import Draft
from gradekit.mending.kernel_text import KernelDraft
from gradekit.program import Program
from gradekit.screening.additions import around
from gradekit.screening.changes import Change, ChangeKind, ChangeSite
from gradekit.screening.expressions import Code, Swap
from gradekit.screening.kinds import ValueKind, kind_of
from gradekit.screening.replacements import RULES
from gradekit.screening.tile_values import OutsideEverywhere, TilePointer
from gradekit.screening.walked_call import WRONG, WalkedCall, code_of
from gradekit.submission.parsed_source import called

MOST_WORK = 300_000_000
"""Of all changes of one submission, in the engine's units."""

WORK_OF_A_SECOND = MOST_WORK // 8
"""Of all changes of a text in which one of two mistakes is mended."""

MOST_WORK_OF_ANOTHER = 20_000_000
"""Of another call as it is: a larger one is left to the engine."""

SHARE_OF_A_CALL = 0.05
"""Of the work that is left: a call that costs more is not screened, for few changes could be tried."""

MOST_OF_A_BATCH = 50_000_000
"""Of the changes that are tried at a time, about."""

MOST_HELD = 192
"""So many that make the failing call right are held against others, those of the likelier kinds."""

MOST_LEFT_WRONG = 0.5
"""The share of the wrong elements that a change may leave wrong to count as one of two."""

IsRight = Callable[[Sequence[Tensor | None]], bool]


@dataclass(frozen=True)
class ShownCall:
    """One call: its program and inputs, its results as they were, whether results are right, and how many elements of
    them are wrong."""

    program: Program
    inputs: Sequence[Tensor]
    results: Sequence[Tensor | None]
    is_right: IsRight
    wrong: Callable[[Sequence[Tensor | None]], int] | None = None


@dataclass(frozen=True)
class _Tried:
    """A change, the node that it puts in, the kernel in which it is tried, the number of the statement there that it is
    in, and the kind of its value."""

    change: Change
    new: ast.AST
    kernel: str
    place: int
    kind: ValueKind | None = None


def changes_of(site: ChangeSite) -> Iterator[Change]:
    """All changes of a function."""
    for node in site.kernel.nodes:
        if isinstance(node, ast.stmt) or node in site.watched.values:
            for rule in RULES.get(type(node), ()):
                yield from rule(site, node)
            if isinstance(node, ast.expr):
                yield from around(site, node)


class Screen:
    """The changes of one submission that make calls of it right."""

    def __init__(self, draft: Draft, allow: Collection[str], work: int = MOST_WORK) -> None:
        self.draft, self.allow = draft, allow
        self.code: Code = code_of(draft.source)
        self.work_left = work
        self._better: list[tuple[int, _Tried]] = []
        self.tried = 0
        self._others: frozenset[str] = frozenset()

    def survivors(
        self, calls: Sequence[ShownCall], kernels: Sequence[str], others: Sequence[str] = (),
        more: Iterable[ShownCall] = (),
    ) -> list[Change]:  # fmt: skip
        """The changes with which all of the calls are right, the first of which fails; the likelier ones first. Nothing
        where a walk does not give what the calls gave. `kernels` write the wrong result, from what `others` have
        made: in these no other arithmetic of indices is tried, which may only go round the mistake. `more` calls are
        asked for one after another, while several changes are left."""
        walked = [(call, replay) for call in calls if (replay := self._replay(call)) is not None]
        if not walked or walked[0][0] is not calls[0]:
            return []
        self._better = []
        call, first = max((one for one in walked if self._is_telling(one, walked[0])), key=_results_of)
        if first.work > SHARE_OF_A_CALL * self.work_left:
            return []
        found: list[_Tried] = []
        self._others = frozenset(others) if kernels else frozenset()
        for batch in self._batches(first, (*kernels, *others)):
            if self.work_left < 0:
                break
            found += self._right(batch, call, first, is_first=True)
        kept = sorted(found, key=_kind_of)[:MOST_HELD]
        self._better += [(0, one) for one in kept]
        for call, replay in walked:
            if replay is not first:
                kept = self._right_again(kept, call, replay)
        for call in more:
            if len(kept) < 2:
                break
            replay_of_it = self._replay(call)
            kept = kept if replay_of_it is None else self._right_again(kept, call, replay_of_it)
        return [one.change for one in kept]

    def in_part(self) -> list[Change]:
        """The changes that have made the last call that was looked at right in part, and no more; those first with
        which fewest elements were wrong. Each may be one of two that are needed."""
        return [one.change for _, one in sorted(self._better, key=lambda pair: (pair[0], pair[1].change.kind))]

    def _is_telling(self, one: tuple[ShownCall, WalkedCall], first: tuple[ShownCall, WalkedCall]) -> bool:
        """Whether a call is the first, or fails as well and costs not much more: in a call of few elements many changes
        seem right."""
        call, replay = one
        costs_little = replay.work <= 2 * first[1].work and replay.begun.keys() == first[1].begun.keys()
        return one is first or costs_little and not call.is_right(call.results)

    def _right_again(self, found: list[_Tried], call: ShownCall, replay: WalkedCall) -> list[_Tried]:
        """Those with which another call is right, too; all of them where it is large."""
        kept: list[_Tried] = []
        if replay.work > MOST_WORK_OF_ANOTHER:
            return found
        for kernel in dict.fromkeys(one.kernel for one in found):
            alike = [one for one in found if one.kernel == kernel]
            if kernel in replay.begun:
                most = replay.most_copies(kernel)
                batches = (alike[at : at + most] for at in range(0, len(alike), most))
                alike = [one for batch in batches for one in self._right(batch, call, replay)]
            kept += alike
        return sorted(kept, key=_kind_of)

    def _replay(self, call: ShownCall) -> WalkedCall | None:
        replay = WalkedCall(call.program, call.inputs, self.code, self.allow)
        try:
            results = replay.run()
        except WRONG:
            return None
        pairs = zip(results, call.results, strict=True)
        return replay if replay.strays or all(_close(mine, seen) for mine, seen in pairs) else None

    def _batches(self, replay: WalkedCall, kernels: Sequence[str]) -> Iterator[list[_Tried]]:
        """The changes in groups that can be tried at once: the likely ones, then the others."""
        sites = [
            (ChangeSite(function, replay.begun[kernel].watched), kernel)
            for kernel in kernels if kernel in replay.begun
            for function in _with_helpers(self._kernel(kernel), self.draft)
        ]  # fmt: skip
        every = [(change, site, kernel) for site, kernel in sites for change in changes_of(site)]
        for turn in sorted({change.turn for change, _, _ in every}):
            for kernel in kernels:
                group = [(one, site) for one, site, of in every if of == kernel and one.turn == turn]
                yield from self._together(group, kernel, replay)

    def _together(
        self, group: Sequence[tuple[Change, ChangeSite]], kernel: str, replay: WalkedCall
    ) -> Iterator[list[_Tried]]:
        """Changes of one kernel, those that leave their values of one kind side by side."""
        pool: list[_Tried] = []
        apart: dict[Hashable, list[_Tried]] = {}
        for tried, site in self._distinct(group, kernel, replay):
            node = tried.change.node
            if tried.kind is None or _is_static(site, node, self.code.functions):
                apart[id(tried)] = [tried]
            elif tried.kind == site.kind(node):
                pool.append(tried)
            else:
                apart.setdefault((node, tried.kind), []).append(tried)
        most = replay.most_copies(kernel) if kernel in replay.begun else 1
        most = max(min(most, MOST_OF_A_BATCH // max(replay.work, 1)), 1)
        pool.sort(key=lambda tried: tried.place)
        for alike in (pool, *apart.values()):
            yield from (alike[at : at + most] for at in range(0, len(alike), most))

    def _distinct(
        self, group: Sequence[tuple[Change, ChangeSite]], kernel: str, replay: WalkedCall
    ) -> Iterator[tuple[_Tried, ChangeSite]]:
        """The changes that can be evaluated, and that make another value than others of the same node."""
        seen: set[Hashable] = set()
        for change, site in group:
            if self.work_left < 0:
                return
            new = _parsed(change)
            if new is None:
                continue
            goes_round = kernel in self._others and change.kind is not ChangeKind.NAME and _is_integer(site, change)
            if goes_round or _needs_constant(change, site, self.code.functions):
                continue
            place = _place(self._kernel(kernel), change.node, self.code.functions[kernel])
            tried = _Tried(change, new, kernel, place or 0)
            if not isinstance(new, ast.expr):
                yield tried, site
                continue
            kind, told = self._value(tried, site, replay, place is not None)
            if kind is not None and (change.node, kind, told) not in seen:
                seen.add((change.node, kind, told))
                yield replace(tried, kind=kind), site

    def _value(
        self, tried: _Tried, site: ChangeSite, replay: WalkedCall, is_own: bool
    ) -> tuple[ValueKind | None, Hashable]:
        """The kind of the value that a change gives where its node was met first, and what tells it from others; None
        for one that gives nothing, or nothing new."""
        change = tried.change
        known = site.watched.names.get(site.kernel.statement(change.node))
        if known is None or not isinstance(tried.new, ast.expr):
            return None, None
        self.work_left -= STEP
        try:
            value = replay.alone(tried.kernel).value(tried.new, known)
        except WRONG:
            return None, None
        kind = kind_of(value)
        if kind is None or not site.is_steady(change.node) or not is_own:
            return kind, change.new
        told = _digest(value)
        before = site.watched.values.get(change.node)
        return (None, None) if kind_of(before) == kind and _digest(before) == told else (kind, told)

    def _kernel(self, name: str) -> KernelDraft:
        return next(kernel for kernel in self.draft.kernels if kernel.name == name)

    def _right(
        self, batch: list[_Tried], call: ShownCall, replay: WalkedCall, is_first: bool = False
    ) -> list[_Tried]:
        """Those of some changes of one node with which a call is right; halves of them where all together cannot be
        walked."""
        if self.work_left < 0:
            return []
        swap = Swap.of([(tried.change.node, tried.new) for tried in batch])
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
        if is_first and call.wrong is not None:
            before = call.wrong(call.results)
            counted = [(call.wrong(result), tried) for tried, result in given if tried not in right]
            self._better += [(count, tried) for count, tried in counted if count <= MOST_LEFT_WRONG * before]
        return right


def _kind_of(tried: _Tried) -> int:
    return tried.change.kind


def _results_of(one: tuple[ShownCall, WalkedCall]) -> int:
    """The elements of a call's results."""
    return sum(result.numel() for result in one[0].results if isinstance(result, Tensor))


def _digest(value: Any) -> Hashable:
    """Equal for equal values."""
    if isinstance(value, TilePointer):
        return value.storage, _digest(value.offset)
    if not isinstance(value, Tensor):
        return value
    flat = value.reshape(-1)
    if flat.numel() and bool((flat == flat[0]).all()):
        return flat[0].item()
    return tuple(value.shape), flat.double().numpy().tobytes()


def _parsed(change: Change) -> ast.AST | None:
    """The tree of a change's text; None where that is not Python."""
    if change.built is not None:
        return change.built
    try:
        if isinstance(change.node, ast.stmt):
            return ast.parse(change.new).body[0]
        return ast.parse(f"({change.new})", mode="eval").body
    except SyntaxError:
        return None


def _place(kernel: KernelDraft, node: ast.AST, function: ast.FunctionDef) -> int | None:
    """The number of the statement of a kernel's body that a node is in; None where it is in another function."""
    while node in kernel.parents and kernel.parents[node] is not function:
        node = kernel.parents[node]
    return function.body.index(node) if isinstance(node, ast.stmt) and node in function.body else None


_STATIC = {"arange", "zeros", "full", "program_id", "num_programs", "reshape", "view", "broadcast_to", "static_range"}


def _is_integer(site: ChangeSite, change: Change) -> bool:
    kind = site.kind(change.node)
    return kind is not None and kind.of == "integer"


def _needs_constant(change: Change, site: ChangeSite, functions: Collection[str]) -> bool:
    """Whether what comes to where Triton takes constants alone is no other constant of the kernel, and no axis."""
    is_meant = (
        change.new in site.kernel.constexprs or change.kind is ChangeKind.AXIS or isinstance(change.node, ast.stmt)
    )
    return not is_meant and _is_static(site, change.node, functions)


def _name_of(node: ast.AST) -> str:
    """The last part of the name of what a call calls."""
    function = node.func if isinstance(node, ast.Call) else None
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _is_static(site: ChangeSite, node: ast.AST, functions: Collection[str]) -> bool:
    """Whether an expression must be a number that all programs have: an axis, a part of a shape, a step."""
    if isinstance(site.watched.values.get(node), (Tensor, TilePointer)):
        return False
    parents = site.kernel.parents
    while isinstance(parents.get(node), (ast.expr, ast.keyword)):
        before, node = node, parents[node]
        if isinstance(node, ast.keyword) and node.arg in ("axis", "shape", "dtype"):
            return True
        name = _name_of(node)
        if (
            name in functions
            or name in _STATIC
            or name == "range"
            and isinstance(node, ast.Call)
            and before in node.args[2:]
        ):
            return True
    return False


def _with_helpers(kernel: KernelDraft, draft: Draft) -> list[KernelDraft]:
    by_name, found = {one.name: one for one in draft.kernels}, [kernel]
    for one in found:
        names = dict.fromkeys(called(node) for node in one.nodes)
        found += [by_name[name] for name in names if name in by_name and by_name[name] not in found]
    return found


def _close(mine: Tensor | None, seen: Tensor | None) -> bool:
    """Whether a walk gave what the engine did, but for rounding."""
    if not isinstance(seen, Tensor) or not isinstance(mine, Tensor):
        return True
    if mine.shape != seen.shape:
        return False
    return torch.allclose(mine.double(), seen.double(), rtol=1e-2, atol=1e-2, equal_nan=True)
