"""Walks the statements of a kernel for all programs of a grid at once.

Where programs go different ways (`if` and loops by a value of theirs), each statement counts for those alone that are
there: `active` says which, None for all.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import SIGNS
from gradekit.interpreter.expressions import Expressions
from gradekit.interpreter.swap import Names, Returned
from gradekit.interpreter.tile_values import NotWalked, TilePointer, aligned, cast, computed, spread, tile_of
from gradekit.submission.parsed_source import dotted


class KernelWalk(Expressions):
    """One launch: `grid` programs of a kernel."""

    def body(self, statements: Sequence[ast.stmt], names: Names) -> None:
        """Statements in order."""
        for statement in statements:
            self.statement(statement, names)

    def statement(self, node: ast.stmt, names: Names) -> None:
        """One statement."""
        if node in self.swap.news:
            if self.copies > 1:
                raise NotWalked("a statement in several copies")
            ((_, new),) = self.swap.news[node]
            assert isinstance(new, ast.stmt)
            node = new
        if self.watched is not None and node not in self.watched.names:
            self.watched.names[node] = dict(names)
        walk = _STATEMENTS.get(type(node))
        if walk is None:
            raise NotWalked(f"a statement {type(node).__name__}")
        walk(self, node, names)

    def _assign(self, node: ast.Assign | ast.AnnAssign, names: Names) -> None:
        if node.value is None:
            return
        value = self.value(node.value, names)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self._bind(target, value, names)

    def _augmented(self, node: ast.AugAssign, names: Names) -> None:
        if not isinstance(node.target, ast.Name):
            raise NotWalked("an assignment to no name")
        right = self.value(node.value, names)
        left = names.get(node.target.id)
        if left is None:
            raise NotWalked("a name without a value")
        self._bind(node.target, self._spent(computed(SIGNS[type(node.op)], left, right)), names)

    def _bind(self, target: ast.expr, value: Any, names: Names) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(target.elts) == len(value):
            for part, one in zip(target.elts, value, strict=True):
                self._bind(part, one, names)
        elif isinstance(target, ast.Name):
            if self.active is not None and target.id in names:
                value = _merged(self.active, value, names[target.id])
            names[target.id] = value
        else:
            raise NotWalked("an assignment to no name")

    def _expression(self, node: ast.Expr, names: Names) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value, names)

    def _nothing(self, node: ast.stmt, names: Names) -> None:
        pass

    def _return(self, node: ast.Return, names: Names) -> None:
        if self.active is None:
            raise Returned(self.value(node.value, names) if node.value is not None else None)
        if self._depth or node.value is not None:
            raise NotWalked("a return of some programs from a function")
        self.gone = self.active if self.gone is None else self.gone | self.active
        self.active = torch.zeros_like(self.active)

    def _if(self, node: ast.If, names: Names) -> None:
        condition = self.decided(self.value(node.test, names))
        if not isinstance(condition, Tensor):
            self.body(node.body if condition else node.orelse, names)
            return
        outer = self.active
        for way, statements in ((condition, node.body), (~condition, node.orelse)):
            self._among(outer, way)
            if statements and bool(self.active.any()):  # type: ignore[union-attr]
                self.body(statements, names)
        self._again(outer)

    def _among(self, outer: Tensor | None, way: Tensor) -> None:
        way = way.expand(self.count)
        self.active = way if outer is None else outer & way
        if self.gone is not None:
            self.active = self.active & ~self.gone

    def _again(self, outer: Tensor | None) -> None:
        self.active = outer
        if self.gone is not None:
            self.active = ~self.gone if outer is None else outer & ~self.gone

    def _while(self, node: ast.While, names: Names) -> None:
        outer = self.active
        for step in range(self.patience + 1):
            condition = self.decided(self.value(node.test, names))
            if isinstance(condition, Tensor):
                self._among(self.active, condition)
                if not bool(self.active.any()):  # type: ignore[union-attr]
                    break
            elif not condition:
                break
            if step == self.patience:
                self._give_up(torch.ones(self.count, dtype=torch.bool) if self.active is None else self.active)
                break
            self.longest = max(self.longest, step + 1)
            self.body(node.body, names)
        self._again(outer)

    def _give_up(self, programs: Tensor) -> None:
        """Some programs have made too many steps of a loop."""
        if self.copies == 1:
            raise NotWalked("a loop of too many steps")
        self.memory.lose(programs)

    def _for(self, node: ast.For, names: Names) -> None:
        call = self._loop_of(node)
        if not isinstance(call, ast.Call) or dotted(call.func).rpartition(".")[2] not in ("range", "static_range"):
            raise NotWalked("a loop over something else than a range")
        bounds = [self.decided(self.value(argument, names)) for argument in call.args[:3]]
        first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else 1
        if isinstance(step, Tensor) or not isinstance(step, int) or step == 0:
            raise NotWalked("a step that is no number")
        if isinstance(first, Tensor) or isinstance(last, Tensor):
            self._each_its_own(node, (tile_of(first), tile_of(last), step), names)
            return
        self.longest = max(self.longest, len(range(first, last, step)))
        if self.longest > self.patience:
            raise NotWalked("a loop of too many steps")
        for number in range(first, last, step):
            self._bind(node.target, number, names)
            self.body(node.body, names)

    def _loop_of(self, node: ast.For) -> ast.AST:
        """What a loop goes over: in place of a range there may be another one."""
        if node.iter not in self.swap.news:
            return node.iter
        if self.copies > 1:
            raise NotWalked("a loop in several copies")
        ((_, new),) = self.swap.news[node.iter]
        return new

    def _each_its_own(self, node: ast.For, bounds: tuple[Tensor, Tensor, int], names: Names) -> None:
        first, last, step = bounds
        counts = -torch.div(first - last, step, rounding_mode="floor") if step > 0 else torch.zeros(1)
        if step < 0 or first.dim() > 1 or last.dim() > 1:
            raise NotWalked("a loop that counts down")
        if int(counts.max()) > self.patience:
            self._give_up((counts > self.patience).expand(self.count))
            counts = counts.clamp(max=self.patience)
        self.longest = max(self.longest, int(counts.max()))
        outer = self.active
        for number in range(max(int(counts.max()), 0)):
            self._among(outer, counts > number)
            self._bind(node.target, (first + number * step).expand(self.count), names)
            self.body(node.body, names)
        self._again(outer)


_STATEMENTS: dict[type, Callable[[KernelWalk, Any, Names], None]] = {
    ast.Assign: KernelWalk._assign,
    ast.AnnAssign: KernelWalk._assign,
    ast.AugAssign: KernelWalk._augmented,
    ast.Expr: KernelWalk._expression,
    ast.If: KernelWalk._if,
    ast.For: KernelWalk._for,
    ast.While: KernelWalk._while,
    ast.Return: KernelWalk._return,
    ast.Pass: KernelWalk._nothing,
    ast.Assert: KernelWalk._nothing,
}


def _merged(active: Tensor, value: Any, before: Any) -> Any:
    """A value for the programs that are active, and what was before for the others."""
    if isinstance(value, tuple) and isinstance(before, tuple):
        return tuple(_merged(active, one, other) for one, other in zip(value, before, strict=True))
    if isinstance(value, TilePointer) and isinstance(before, TilePointer) and value.storage == before.storage:
        offsets = _merged(active, tile_of(value.offset), tile_of(before.offset))
        return TilePointer(value.storage, value.dtype, offsets)
    if value is before:
        return value
    new, old = aligned(tile_of(value), tile_of(before))
    if new.dtype != old.dtype:
        new = cast(new, old.dtype) if isinstance(before, Tensor) else new
    return torch.where(spread(active.reshape(-1), 1).reshape(-1, *(1 for _ in range(new.dim() - 1))), new, old)
