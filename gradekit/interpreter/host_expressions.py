"""Evaluates the expressions of host code on the tensors of a call."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import OF_ONE, OF_TWO, SIGNS, UNARY
from gradekit.engine.budget import Meter
from gradekit.interpreter.host_limits import EVALUATION, MOST_ITEMS, bounded, computed, items
from gradekit.interpreter.host_values import Context, HostFunction, Launcher
from gradekit.interpreter.host_vocabulary import ATTRIBUTES, DEVICE, Dotted, OneDevice, of_dotted
from gradekit.interpreter.swap import Names
from gradekit.interpreter.tile_values import NotWalked

MOST_EXPONENT = 64
"""Of a power, and so many bits of a shift."""


class HostExpressions:
    """The expressions of one walk. For a node of `news`, another one is evaluated. `values` has what each expression
    was when it was met first. `meter` counts what is evaluated."""

    def __init__(self, meter: Meter, news: Mapping[ast.AST, ast.AST] | None = None) -> None:
        self.meter, self.news = meter, dict(news or {})
        self.values: dict[ast.AST, Any] = {}

    def _bind(self, target: ast.expr, value: Any, names: Names) -> None:
        raise NotImplementedError

    def _call(self, node: ast.Call, names: Names) -> Any:
        raise NotImplementedError

    def value(self, node: ast.expr, names: Names) -> Any:
        """The value of an expression.

        Raises:
            NotWalked: it is none of the vocabulary; or whatever torch and Python raise.
        """
        if node in self.news:
            new = self.news.pop(node)  # what stands in its place may contain it
            try:
                return self.value(new, names)  # type: ignore[arg-type]
            finally:
                self.news[node] = new
        evaluate = _EXPRESSIONS.get(type(node))
        if evaluate is None:
            raise NotWalked(f"an expression {type(node).__name__}")
        self.meter.spend(0, EVALUATION)
        found = bounded(evaluate(self, node, names))
        self.values.setdefault(node, found)
        return found

    def _is_true(self, node: ast.expr, names: Names) -> bool:
        found = self.value(node, names)
        if isinstance(found, Tensor):
            raise NotWalked("a decision by a tensor's values")
        return bool(found)

    def _constant(self, node: ast.Constant, names: Names) -> Any:
        return node.value

    def _name(self, node: ast.Name, names: Names) -> Any:
        return names[node.id] if node.id in names else Dotted(node.id)

    def _attribute(self, node: ast.Attribute, names: Names) -> Any:
        return self.attribute_of(self.value(node.value, names), node.attr)

    @staticmethod
    def attribute_of(of: Any, name: str) -> Any:
        """An attribute of a tensor, a module or a context.

        Raises:
            NotWalked: it is none that is known.
        """
        if isinstance(of, Dotted):
            return of_dotted(f"{of.path}.{name}")
        if isinstance(of, Tensor) and name in ("device", "is_cuda"):
            return DEVICE if name == "device" else True
        if isinstance(of, (Tensor, torch.dtype)) and name in ATTRIBUTES:
            return getattr(of, name)
        if isinstance(of, OneDevice) and name in ("type", "index"):
            return getattr(of, name)
        if isinstance(of, Context):
            own = {"saved_tensors": of.saved, "needs_input_grad": of.needs}
            return own[name] if name in own else of.names[name]
        raise NotWalked(f"an attribute {name}")

    def _subscript(self, node: ast.Subscript, names: Names) -> Any:
        of, at = self.value(node.value, names), self.value(node.slice, names)
        if isinstance(of, Launcher):
            return Launcher(of.kernel, at)
        parts = at if isinstance(at, tuple) else (at,)
        if isinstance(of, Tensor) and any(isinstance(one, (Tensor, list)) for one in parts):
            raise NotWalked("an index of many elements")
        if isinstance(of, (Tensor, tuple, list, dict)):
            return of[at]
        raise NotWalked("an index of something else")

    def _slice(self, node: ast.Slice, names: Names) -> slice:
        return slice(*(None if one is None else self.value(one, names) for one in (node.lower, node.upper, node.step)))

    def _binary(self, node: ast.BinOp, names: Names) -> Any:
        left, right = self.value(node.left, names), self.value(node.right, names)
        return self._operated(node.op, left, right)

    def _operated(self, op: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(op, (ast.Pow, ast.LShift)) and isinstance(right, int) and right > MOST_EXPONENT:
            raise NotWalked("a power that is too large")
        if isinstance(left, (list, tuple, str)) and isinstance(right, int) and right * len(left) > MOST_ITEMS:
            raise NotWalked("a list that is too long")
        if isinstance(right, (list, tuple, str)) and isinstance(left, int):
            raise NotWalked("a number of lists")
        if isinstance(left, str) and isinstance(op, ast.Mod):
            raise NotWalked("a string that is made")
        return computed(OF_TWO[SIGNS[type(op)]], (left, right), {}, self.meter)

    def _unary(self, node: ast.UnaryOp, names: Names) -> Any:
        return computed(OF_ONE[UNARY[type(node.op)]], (self.value(node.operand, names),), {}, self.meter)

    def _bool(self, node: ast.BoolOp, names: Names) -> Any:
        found: Any = None
        for part in node.values:
            found = self.value(part, names)
            if self._is_true(part, names) is isinstance(node.op, ast.Or):
                break
        return found

    def _compare(self, node: ast.Compare, names: Names) -> bool:
        values = [self.value(one, names) for one in (node.left, *node.comparators)]
        pairs = zip(node.ops, itertools.pairwise(values), strict=True)
        return all(computed(OF_TWO[SIGNS[type(op)]], pair, {}, self.meter) for op, pair in pairs)

    def _choice(self, node: ast.IfExp, names: Names) -> Any:
        return self.value(node.body if self._is_true(node.test, names) else node.orelse, names)

    def _tuple(self, node: ast.Tuple, names: Names) -> tuple[Any, ...]:
        return tuple(self._all(node.elts, names))

    def _list(self, node: ast.List, names: Names) -> list[Any]:
        return self._all(node.elts, names)

    def _dict(self, node: ast.Dict, names: Names) -> dict[Any, Any]:
        if None in node.keys:
            raise NotWalked("a dict of another")
        keys = [self.value(key, names) for key in node.keys if key is not None]
        return dict(zip(keys, (self.value(one, names) for one in node.values), strict=True))

    def _all(self, nodes: Sequence[ast.expr], names: Names) -> list[Any]:
        """The values of several expressions, with what is starred spread out."""
        found: list[Any] = []
        for node in nodes:
            is_starred = isinstance(node, ast.Starred)
            value = self.value(node.value if isinstance(node, ast.Starred) else node, names)
            found += items(value) if is_starred else [value]
        return found

    def _lambda(self, node: ast.Lambda, names: Names) -> HostFunction:
        return HostFunction(node, names)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, names: Names) -> list[Any]:
        if len(node.generators) != 1:
            raise NotWalked("a list of several loops")
        (loop,), found, inner = node.generators, list[Any](), dict(names)
        for value in items(self.value(loop.iter, names)):
            self._bind(loop.target, value, inner)
            if all(self._is_true(test, inner) for test in loop.ifs):
                found.append(self.value(node.elt, inner))
        return found

    def _formatted(self, node: ast.JoinedStr, names: Names) -> str:
        return ""


_EXPRESSIONS: dict[type, Callable[[HostExpressions, Any, Names], Any]] = {
    ast.Constant: HostExpressions._constant,
    ast.Name: HostExpressions._name,
    ast.Attribute: HostExpressions._attribute,
    ast.Subscript: HostExpressions._subscript,
    ast.Slice: HostExpressions._slice,
    ast.BinOp: HostExpressions._binary,
    ast.UnaryOp: HostExpressions._unary,
    ast.BoolOp: HostExpressions._bool,
    ast.Compare: HostExpressions._compare,
    ast.IfExp: HostExpressions._choice,
    ast.Tuple: HostExpressions._tuple,
    ast.List: HostExpressions._list,
    ast.Dict: HostExpressions._dict,
    ast.Lambda: HostExpressions._lambda,
    ast.ListComp: HostExpressions._comprehension,
    ast.GeneratorExp: HostExpressions._comprehension,
    ast.JoinedStr: HostExpressions._formatted,
    ast.Call: lambda walk, node, names: walk._call(node, names),
}
