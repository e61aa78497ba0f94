"""Whether an attribute that a source text sets is on what is its own: the `self` of a new object, or the `ctx` that
torch hands to an autograd function. Anybody can call a function with a module of torch in their place, so nothing in
the text may call those that set attributes, nor hand them on.

Text only: nothing is imported or run here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

OWNERS = ("self", "ctx")

CALLED_BY_OTHERS = frozenset({"__init__", "forward", "backward", "setup_context"})
"""Methods that may set attributes: Python and torch call them, and nobody else has a reason to."""

BY_NAME = frozenset({"register_fake", "register_autograd"})
"""Functions of torch.library, and methods of an operator, that complete an operator: those take its name first."""

RESERVED = frozenset({*OWNERS, "super", "staticmethod", "dataclass", *BY_NAME})
"""Names that mean one thing all through a text: nothing may bind them to another."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Surroundings:
    """The syntax tree of a text, with the node around each node."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self._around = {inner: node for node in ast.walk(tree) for inner in ast.iter_child_nodes(node)}
        setting = (self.function(node) for node in ast.walk(tree) if self._is_set_on_owner(node))
        self.setters = {function for function in setting if function is not None}
        self._names = {function.name for function in self.setters}
        parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self.variables = parameters | {name for node in ast.walk(tree) for name in stored(node)}

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, from the inside out."""
        while (around := self._around.get(node)) is not None:
            yield around
            node = around

    def function(self, node: ast.AST) -> Function | None:
        """The innermost function around `node`."""
        inside = (above for above in self.above(node) if isinstance(above, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)))
        found = next(inside, None)
        return found if isinstance(found, _FUNCTIONS) else None

    def is_own(self, attribute: ast.Attribute) -> bool:
        """Whether `attribute`, which is set, is on the first parameter of what only Python or torch calls."""
        function = self.function(attribute)
        return self._is_set_on_owner(attribute) and function is not None and self._is_called_by_others(function)

    def hands_on_setter(self, node: ast.AST) -> bool:
        """Whether `node` names a function that sets attributes, for something other than to register it."""
        if isinstance(node, ast.Attribute) and node.attr == "__init__":
            return not self._calls_the_base(node)
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        return name in self._names and isinstance(node.ctx, ast.Load) and not self._is_registered(node)  # type: ignore[attr-defined]

    def decorates(self, node: ast.AST) -> bool:
        """Whether `node` is a decorator, or what a decorator calls."""
        around = next(self.above(node), None)
        if isinstance(around, ast.Call) and around.func is node and not around.args:
            node, around = around, next(self.above(around), None)
        return node in getattr(around, "decorator_list", ())

    def is_called(self, node: ast.AST) -> bool:
        """Whether `node` is what a call calls, or a decorator."""
        around = next(self.above(node), None)
        return (isinstance(around, ast.Call) and around.func is node) or self.decorates(node)

    def _is_set_on_owner(self, node: ast.AST) -> bool:
        if not (isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)):
            return False
        function = self.function(node)
        parameters = [*function.args.posonlyargs, *function.args.args] if function else []
        owner = node.value.id if isinstance(node.value, ast.Name) else None
        return owner in OWNERS and bool(parameters) and parameters[0].arg == owner

    def _is_called_by_others(self, function: Function) -> bool:
        plain = all(isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.decorator_list)
        is_method = isinstance(self._around[function], ast.ClassDef)
        return plain and (not is_method or function.name in CALLED_BY_OTHERS)

    def _is_registered(self, node: ast.AST) -> bool:
        """Whether `node` is an argument of register_autograd."""
        above = self.above(node)
        call = next((one for one in above if not isinstance(one, ast.keyword)), None)
        name = getattr(call.func, "attr", getattr(call.func, "id", "")) if isinstance(call, ast.Call) else ""
        return isinstance(call, ast.Call) and call.func is not node and name == "register_autograd"

    def _calls_the_base(self, node: ast.Attribute) -> bool:
        """Whether this is `super().__init__` in an __init__."""
        function, value = self.function(node), node.value
        is_super = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
        return is_super and not value.args and function is not None and function.name == "__init__"  # type: ignore[attr-defined]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def stored(node: ast.AST) -> Iterator[str]:
    """The names that `node` itself binds by something other than a definition or a parameter."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.alias(name=name, asname=asname):
            if asname:
                yield asname
            elif name in OWNERS:
                yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names


def bound(node: ast.AST) -> Iterator[str]:
    """The names that `node` itself binds, by a definition too; no parameters."""
    yield from stored(node)
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield node.name
