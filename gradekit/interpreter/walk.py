"""One walk of Python's statements and expressions, whatever their values are.

A subclass has the values: tiles of all programs of a launch (kernel_walk.py), or the numbers and tensors of host code
(host_walk.py). It defines operators, decisions, names, attributes, indices and calls. A walk has three clients:
`substitution` evaluates other nodes in the place of some, `watched` records values, `meter` counts work.

What is not understood, too large or refused raises NotWalked, in this file and those beside it; or else what torch and
Python raise.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from torch import Tensor

from gradekit.arithmetic import SIGNS, UNARY
from gradekit.engine.budget import Meter
from gradekit.interpreter import Limit
from gradekit.interpreter.tile_values import NotWalked, chosen

_METHODS = {each: f"_{name.lower()}" for name, each in vars(ast).items() if isinstance(each, type)}


class Walk:
    """A walk of statements and expressions: the `meter` ends it, `watched` (None: nobody) records its values."""

    def __init__(self, meter: Meter, substitution: Substitution | None, watched: Watched | None) -> None:
        self.meter, self.substitution, self.watched = meter, substitution or Substitution(), watched
        self.known: dict[ast.AST, Any] = {}  # the values of expressions that need no evaluation
        self._depth = 0

    # --- what the values are: methods of each subclass ----------------------------------------------------------------

    operated: Callable[[str, Any, Any], Any]  # `left sign right`, the sign first
    inverted: Callable[[str, Any], Any]  # a unary operator: "-", "+", "~" or "not"
    decided: Callable[[Any], Any]  # a condition as something that is true or false; a Tensor where programs differ
    items: Callable[[Any], Sequence[Any]]  # the parts of a value that is spread out, or that a loop goes over
    outside: Callable[[str], Any]  # a name that is none of those around an expression
    both_ways: Callable[[ast.If, Tensor, Names], None]  # a branch that programs leave in different ways

    # --- statements ---------------------------------------------------------------------------------------------------

    def body(self, statements: Sequence[ast.stmt], names: Names) -> None:
        """Statements in order."""
        for statement in statements:
            self.statement(statement, names)

    def statement(self, node: ast.stmt, names: Names) -> None:
        """One statement; raises Returned where it ends the function."""
        node = cast(ast.stmt, self.replaced(node))
        if self.watched is not None and node not in self.watched.names:
            self.watched.names[node] = dict(names)
        self._visited(node, names)

    def _visited(self, node: ast.AST, names: Names) -> Any:
        """What the method for nodes of a type gives: `_binop` for BinOp."""
        visit = getattr(self, _METHODS[type(node)], None)
        if visit is None:
            raise NotWalked(f"source with {type(node).__name__}")
        return visit(node, names)

    def replaced(self, node: ast.AST) -> ast.AST:
        """What stands in the place of a statement, of a target or of the range of a loop."""
        if node not in self.substitution.news:
            return node
        if self.substitution.copies > 1:
            raise NotWalked("a statement in several copies")
        ((_, new),) = self.substitution.news[node]
        return new

    def returned(self, statements: Sequence[ast.stmt], names: Names) -> Any:
        """What a function with these statements returns; raises NotWalked where it is too deep in others."""
        if self._depth >= Limit.DEPTH:
            raise NotWalked("functions that call each other")
        self._depth += 1
        try:
            self.body(statements, names)
        except Returned as returned:
            return returned.value
        finally:
            self._depth -= 1
        return None

    def _assign(self, node: ast.Assign | ast.AnnAssign, names: Names) -> None:
        if node.value is None:
            return
        value = self.value(node.value, names)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.bind(target, value, names)

    _annassign = _assign

    def _augassign(self, node: ast.AugAssign, names: Names) -> None:
        if not isinstance(node.target, ast.Name) or node.target.id not in names:
            raise NotWalked("an assignment to no name")
        right, left = self.value(node.value, names), names[node.target.id]
        self.name(node.target.id, self.operated(SIGNS[type(node.op)], left, right), names)

    def bind(self, target: ast.expr, value: Any, names: Names) -> None:
        """Assigns a value to a target."""
        target = cast(ast.expr, self.replaced(target))
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = list(self.items(value))
            starred = next((n for n, one in enumerate(target.elts) if isinstance(one, ast.Starred)), None)
            if starred is not None:
                after = len(parts) - (len(target.elts) - starred - 1)
                parts[starred:after] = [parts[starred:after]]
            for part, one in zip(target.elts, parts, strict=True):
                self.bind(part.value if isinstance(part, ast.Starred) else part, one, names)
        elif isinstance(target, ast.Name):
            self.name(target.id, value, names)
        else:
            self.put(target, value, names)

    def name(self, name: str, value: Any, names: Names) -> None:
        """Gives a name to a value."""
        names[name] = value

    def put(self, target: ast.expr, value: Any, names: Names) -> None:
        """Assigns a value to a target that is no name."""
        raise NotWalked("an assignment to no name")

    def _expr(self, node: ast.Expr, names: Names) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value, names)

    def _pass(self, node: ast.stmt, names: Names) -> None:
        pass

    _assert = _pass

    def _return(self, node: ast.Return, names: Names) -> None:
        raise Returned(self.value(node.value, names) if node.value is not None else None)

    def _if(self, node: ast.If, names: Names) -> None:
        condition = self.decided(self.value(node.test, names))
        if isinstance(condition, Tensor):
            self.both_ways(node, condition, names)
        else:
            self.body(node.body if condition else node.orelse, names)

    def _for(self, node: ast.For, names: Names) -> None:
        for value in self.items(self.value(node.iter, names)):
            self.bind(node.target, value, names)
            self.body(node.body, names)

    # --- expressions --------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, names: Names) -> Any:
        """The value of an expression."""
        if node in self.substitution.news:
            return self.substituted(node, names)
        if node in self.known:
            return self.known[node]
        found = self._visited(node, names)
        if self.watched is not None and not isinstance(found, ast.AST):  # a function is no value
            self.watched.values.setdefault(node, found)
        return found

    def substituted(self, node: ast.expr, names: Names) -> Any:
        """An expression in whose place another one stands."""
        news = self.substitution.news.pop(node)  # what stands in its place may contain it
        try:
            return self.value(cast(ast.expr, news[0][1]), names)
        finally:
            self.substitution.news[node] = news

    def _constant(self, node: ast.Constant, names: Names) -> Any:
        return node.value

    def _name(self, node: ast.Name, names: Names) -> Any:
        return names[node.id] if node.id in names else self.outside(node.id)

    def _binop(self, node: ast.BinOp, names: Names) -> Any:
        left, right = self.value(node.left, names), self.value(node.right, names)
        return self.operated(SIGNS[type(node.op)], left, right)

    def _unaryop(self, node: ast.UnaryOp, names: Names) -> Any:
        return self.inverted(UNARY[type(node.op)], self.value(node.operand, names))

    def _compare(self, node: ast.Compare, names: Names) -> Any:
        left, found = self.value(node.left, names), None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, names)
            one = self.operated(SIGNS[type(op)], left, right)
            found, left = one if found is None else self.operated("&", found, one), right
        return found

    def _boolop(self, node: ast.BoolOp, names: Names) -> Any:
        found: Any = None
        for number, part in enumerate(node.values):
            found = self.value(part, names) if not number else self.also(node.op, found, part, names)
            if not isinstance(found, Tensor) and bool(found) is isinstance(node.op, ast.Or):
                break
        return found

    def also(self, op: ast.boolop, found: Any, part: ast.expr, names: Names) -> Any:
        """`found and part`, or `or`, where `found` alone does not decide."""
        return self.value(part, names)

    def _ifexp(self, node: ast.IfExp, names: Names) -> Any:
        condition = self.decided(self.value(node.test, names))
        if isinstance(condition, Tensor):
            return chosen(condition, self.value(node.body, names), self.value(node.orelse, names))
        return self.value(node.body if condition else node.orelse, names)

    def _tuple(self, node: ast.Tuple | ast.List, names: Names) -> tuple[Any, ...]:
        return tuple(self.each(node.elts, names))

    def each(self, nodes: Sequence[ast.expr], names: Names) -> list[Any]:
        """The values of several expressions, with what is starred spread out."""
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += self.items(self.value(node.value, names))
            else:
                found.append(self.value(node, names))
        return found

    def arguments(self, node: ast.Call, names: Names) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, those that have names apart."""
        given: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, names)
            given |= {keyword.arg: value} if keyword.arg is not None else value
        return self.each(node.args, names), given


_MISSING = object()


def constant(default: ast.expr) -> Any:
    """The value of a default, where it is a constant."""
    return default.value if isinstance(default, ast.Constant) else _MISSING


def bound(
    params: ast.arguments, args: Sequence[Any], given: Mapping[str, Any], default: Callable[[ast.expr], Any] = constant
) -> Names:
    """The parameters of a function by their names, with their values; `default` gives that of a default."""
    every = [one.arg for one in (*params.posonlyargs, *params.args)]
    alone = [one.arg for one in params.kwonlyargs]
    defaults = [*zip(every[len(every) - len(params.defaults) :], params.defaults, strict=True)]
    defaults += [(name, one) for name, one in zip(alone, params.kw_defaults, strict=True) if one is not None]
    names = {name: value for name, one in defaults if (value := default(one)) is not _MISSING}
    names |= dict(zip(every, args, strict=False)) | dict(given)
    if params.vararg is not None:
        names[params.vararg.arg] = tuple(args[len(every) :])
    elif len(args) > len(every) or any(name not in names for name in (*every, *alone)):
        raise NotWalked("arguments that do not fit")
    return names


# --- what a walk is given, and what it leaves -------------------------------------------------------------------------

Names = dict[str, Any]


@dataclass(frozen=True)
class Code:
    """What a kernel may refer to: the jitted `functions` of its source and the plain `constants` of its module."""

    functions: Mapping[str, ast.FunctionDef]
    constants: Mapping[str, Any]


@dataclass
class Substitution:
    """Other nodes in the place of some, in each of several `copies` of a launch (0: nothing is substituted). `news`
    has, by the old node, the number of each copy in which another stands there, with that one."""

    copies: int = 0
    news: dict[ast.AST, list[tuple[int, ast.AST]]] = field(default_factory=dict)

    @staticmethod
    def of(changes: Sequence[Sequence[tuple[ast.AST, ast.AST]]]) -> Substitution:
        """A copy for each change, which is pairs of an old and a new node."""
        substitution = Substitution(len(changes))
        for copy, pairs in enumerate(changes):
            for old, new in pairs:
                substitution.news.setdefault(old, []).append((copy, new))
        return substitution


@dataclass
class Watched:
    """What a walk has recorded: the value of each expression and the names before each statement, when first met."""

    values: dict[ast.AST, Any] = field(default_factory=dict)
    names: dict[ast.AST, Names] = field(default_factory=dict)


class Returned(Exception):
    """A function returns `value`."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value
