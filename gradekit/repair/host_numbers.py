"""What a submission's expressions are in one call: its host code is walked on tensors of that call, and no kernel is.

What is not understood has no value, and says nothing.
"""

from __future__ import annotations

import ast
import builtins
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gradekit.engine.budget import Budget, Meter, OverBudget
from gradekit.inputs.spec import Input
from gradekit.interpreter.host_vocabulary import Launcher
from gradekit.interpreter.host_walk import HostWalk, Launches
from gradekit.interpreter.shown_call import FAILS
from gradekit.interpreter.tile_values import NotWalked
from gradekit.interpreter.walk import Names
from gradekit.interpreter.walked_call import code_of
from gradekit.repair.mend import Mend
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import Edit

MOST_WORK = 10_000_000
"""Of one walk, in the engine's units."""


class _NumberWalk(HostWalk):
    """Goes on behind what it does not understand, and keeps what kernels are given."""

    def __init__(self, draft: Draft, tensors: Sequence[torch.Tensor]) -> None:
        launches = Launches(code_of(draft.source), {}, tensors, lenient=True)
        super().__init__(draft.source, launches, Meter(Budget(MOST_WORK)))
        self.given: dict[str, list[Names]] = {kernel.name: [] for kernel in draft.kernels}

    def statement(self, node: ast.stmt, names: Names) -> None:
        """One statement; names that it would have assigned are not known where it is not understood."""
        try:
            super().statement(node, names)
        except FAILS:
            for one in ast.walk(node):
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    names.pop(one.id, None)

    def _launch(self, launcher: Launcher, args: Sequence[Any], given: Mapping[str, Any]) -> None:
        parameters = [one.arg for one in self.launches.code.functions[launcher.kernel].args.args]
        self.given[launcher.kernel].append({**dict(zip(parameters, args, strict=False)), **given})


class KnownNumbers:
    """What names are in one call of `entry` with the arguments that are `given`: Inputs, numbers, None for others."""

    def __init__(self, draft: Draft, entry: str, given: Sequence[Any]) -> None:
        args = [_tensor(one) if isinstance(one, Input) else one for one in given]
        self._source, self._data = draft.source, draft.source.text.encode("utf-8")
        self._walk = _NumberWalk(draft, [one for one in args if isinstance(one, torch.Tensor)])
        try:
            self._walk.called_with(self._walk.module.get(entry), args)
        except FAILS:
            pass
        self._within = [(draft.source.span(node), [names]) for node, names in self._walk.names.items()]
        for kernel in draft.kernels:
            launched = [
                {**self._walk.module, **{name: one for name, one in each.items() if name not in kernel.values}}
                for each in self._walk.given[kernel.name]
            ]
            self._within += [(draft.source.span(kernel.node), launched)] if launched else []

    def _names_at(self, place: int) -> list[Names]:
        """Those before the innermost statement around a place, or of each launch of a kernel."""
        around = [(end - start, names) for (start, end), names in self._within if start <= place < end]
        return min(around, key=lambda one: one[0])[1] if around else [{}]

    def are_left_by(self, mend: Mend) -> bool:
        """Whether a mend puts, for each number, another expression that is the same number here, or none at all."""
        return all(map(self._is_left_by, mend.edits))

    def _is_left_by(self, edit: Edit) -> bool:
        old = self._data[edit.start : edit.end].decode("utf-8")
        return all(self._are_alike(old, edit.new, names) for names in self._names_at(edit.start))

    def _are_alike(self, old: str, new: str, names: Names) -> bool:
        before = self._value(old, names)
        if not _is_number(before):
            return False
        after = self._value(new, names)
        return before == after if _is_number(after) else after is not None

    def _value(self, text: str, names: Names) -> Any:
        """What an expression is; an error where it cannot be anything, None where that is not known: within a kernel,
        its own names are not."""
        known = ChainMap(names, self._walk.module, vars(builtins))
        try:
            tree = ast.parse(text.strip(), mode="eval").body
            if any(isinstance(node, ast.Name) and node.id not in known for node in ast.walk(tree)):
                return None
            return self._walk.value(tree, dict(names))
        except (SyntaxError, NotWalked, OverBudget):
            return None
        except FAILS as error:
            return error


def _is_number(value: Any) -> bool:
    """Whether it is a whole number, or several."""
    parts = value if isinstance(value, tuple) else (value,)
    return bool(parts) and all(type(part) is int for part in parts)


def _tensor(spec: Input) -> torch.Tensor:
    """One that lies in memory as the call's does, and has no values."""
    return torch.empty_strided(spec.shape, spec.stride, dtype=getattr(torch, spec.dtype))
