"""Tries all single changes of the kernels that a wrong result comes from, within a budget of work, and keeps those that make
it right."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradekit.engine.budget import STEP
from gradekit.mending.draft import Draft
from gradekit.mending.kernel_text import KernelDraft
from gradekit.program import Program
from gradekit.screening.changes import Change, Site, changes_of
from gradekit.screening.replay import WRONG, NoEffect, Replay, code_of
from gradekit.screening.walk import Code, Swap, Watched
from gradekit.submission.parsed_source import called

MOST_WORK = 80_000_000
"""Of all changes of one submission, in the engine's units."""

MOST_CHANGES = 3000
"""How many changes of one submission are tried."""

IsRight = Callable[[Sequence[Tensor | None]], bool]


@dataclass(frozen=True)
class Shown:
    """One call: its program and inputs, its `wrong` results as they were (None where all were right), and whether results
    are right."""

    program: Program
    inputs: Sequence[Tensor]
    results: Sequence[Tensor | None]
    is_right: IsRight


class Screen:
    """The changes of one submission that make calls of it right."""

    def __init__(self, draft: Draft, allow: Collection[str]) -> None:
        self.draft, self.allow = draft, allow
        self.code: Code = code_of(draft.source)
        self.work_left = MOST_WORK
        self.tried = 0

    def survivors(self, calls: Sequence[Shown], kernels: Sequence[str]) -> list[Change]:
        """The changes in `kernels` with which all of the calls are right, the first of which fails; the likelier ones
        first. Nothing where a walk does not give what the calls gave."""
        replays = [replay for call in calls if (replay := self._replay(call)) is not None]
        if not calls or not replays or replays[0].program is not calls[0].program:
            return []
        found = []
        for change in self._changes(replays[0], kernels):
            if self.work_left < 0 or self.tried >= MOST_CHANGES:
                break
            self.tried += 1
            if self._is_right(change, calls[0], replays[0]) and all(
                self._is_right(change, call, replay)
                for call, replay in zip(calls[1:], replays[1:], strict=False)
            ):
                found.append(change)
        return sorted(found, key=lambda change: change.kind)

    def _replay(self, call: Shown) -> Replay | None:
        replay = Replay(call.program, call.inputs, self.code, self.allow)
        try:
            results = replay.run()
        except WRONG:
            return None
        pairs = zip(results, call.results, strict=True)
        return replay if all(_close(mine, seen) for mine, seen in pairs) else None

    def _changes(self, replay: Replay, kernels: Sequence[str]) -> Iterator[Change]:
        found = [
            (change, kernel)
            for kernel in kernels if kernel in replay.begun
            for function in _with_helpers(self._kernel(kernel), self.draft)
            for change in changes_of(Site(function, replay.begun[kernel].watched))
        ]  # fmt: skip
        self._kernels = {id(change): kernel for change, kernel in found}
        self._kept = found
        return iter(sorted((change for change, _ in found), key=lambda change: change.turn))

    def _kernel(self, name: str) -> KernelDraft:
        return next(kernel for kernel in self.draft.kernels if kernel.name == name)

    def _is_right(self, change: Change, call: Shown, replay: Replay) -> bool:
        kernel = self._kernels[id(change)]
        try:
            new = _parsed(change)
            function = self.code.functions[kernel]
            statement = _top(self._kernel(kernel), change.node, function)
            results, _ = replay.changed(kernel, Swap(change.node, new), statement, 3 * replay.work + 50 * STEP)
            return call.is_right(results)
        except (NoEffect, SyntaxError, *WRONG):
            return False
        finally:
            self.work_left -= replay.spent


def _parsed(change: Change) -> ast.AST:
    if isinstance(change.node, ast.stmt):
        return ast.parse(change.new).body[0]
    return ast.parse(f"({change.new})", mode="eval").body


def _top(kernel: KernelDraft, node: ast.AST, function: ast.FunctionDef) -> ast.stmt | None:
    """The statement of a kernel's body that a node is in; None where it is in another function."""
    while node in kernel.parents and kernel.parents[node] is not function:
        node = kernel.parents[node]
    return node if isinstance(node, ast.stmt) and node in function.body else None


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
