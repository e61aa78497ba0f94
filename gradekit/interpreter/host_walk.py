"""Walks the host code of a submission on the tensors of a call: its syntax tree, with a closed vocabulary. No Python of
a submission runs. The kernels that it launches are walked as source, too."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.budget import Meter
from gradekit.interpreter.host_expressions import HostExpressions
from gradekit.interpreter.host_launches import Launches
from gradekit.interpreter.host_limits import EVALUATION, MOST_ITEMS, computed, items
from gradekit.interpreter.host_values import Context, Differentiable, HostFunction, Launcher, class_of, imported
from gradekit.interpreter.host_vocabulary import (
    FUNCTIONS,
    IN_PLACE,
    MAKERS,
    METHODS,
    SPLITTING,
    Dotted,
    OneDevice,
    is_instance,
)
from gradekit.interpreter.swap import FunctionWalk, Names, Returned
from gradekit.interpreter.tile_values import NotWalked
from gradekit.submission.parsed_source import ParsedSource, called


class HostWalk(FunctionWalk, HostExpressions):
    """One walk of host code.

    Args:
        source: the submission.
        launches: what walks its kernels.
        meter: what the walk may use.
        news: for a node, that which stands in its place.
    """

    def __init__(
        self, source: ParsedSource, launches: Launches, meter: Meter, news: Mapping[ast.AST, ast.AST] | None = None
    ) -> None:
        super().__init__(meter, news)
        self.source, self.launches = source, launches
        self.names: dict[ast.stmt, Names] = {}

    @cached_property
    def module(self) -> Names:
        """The names of the module: functions, kernels, operators, what is imported, and numbers."""
        kernels = {node.name for node in self.source.kernels}
        names: Names = {name: Launcher(name) for name in kernels}
        for node in self.source.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names |= imported(node)
            elif isinstance(node, ast.FunctionDef) and node.name not in kernels:
                names[node.name] = HostFunction(node, names)
            elif isinstance(node, ast.ClassDef):
                names[node.name] = class_of(node, names)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                with suppress(NotWalked, LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
                    self._assign(node, names)
        for name in self._operators(names):
            names[name] = self._operator(names[name], names)
        return names

    def _operators(self, names: Names) -> list[str]:
        """The functions that torch.library makes operators of."""
        found = [node for node in self.source.tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
        return [node.name for node in found if any(_is_operator(one) for one in node.decorator_list)]

    def _operator(self, forward: HostFunction, names: Names) -> Differentiable:
        name, given = getattr(forward.node, "name", ""), dict[str, ast.expr]()
        for node in self.source.tree.body:
            call = node.value if isinstance(node, ast.Expr) else None
            if isinstance(call, ast.Call) and called(call) == f"{name}.register_autograd":
                given = {"backward": call.args[0]} if call.args else {}
                given |= {one.arg: one.value for one in call.keywords if one.arg}
        functions = {key: names.get(value.id) for key, value in given.items() if isinstance(value, ast.Name)}
        backward, setup = functions.get("backward"), functions.get("setup_context")
        if not all(one is None or isinstance(one, HostFunction) for one in (backward, setup)):
            raise NotWalked("an operator of another kind")
        return Differentiable(forward, backward, setup)

    # --- statements ---------------------------------------------------------------------------------------------------

    def body(self, statements: Sequence[ast.stmt], names: Names) -> None:
        """Statements in order."""
        for node in statements:
            self.meter.spend(0, EVALUATION)
            self.names.setdefault(node, dict(names))
            walk = _STATEMENTS.get(type(node))
            if walk is None:
                raise NotWalked(f"a statement {type(node).__name__}")
            walk(self, node, names)

    def _assign(self, node: ast.Assign | ast.AnnAssign, names: Names) -> None:
        if node.value is not None:
            value = self.value(node.value, names)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._bind(target, value, names)

    def _bind(self, target: ast.expr, value: Any, names: Names) -> None:
        target = self.news.get(target, target)  # type: ignore[assignment]
        self.values.setdefault(target, value)
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = items(value)
            starred = next((n for n, one in enumerate(target.elts) if isinstance(one, ast.Starred)), None)
            if starred is not None:
                after = len(target.elts) - starred - 1
                parts[starred : len(parts) - after] = [parts[starred : len(parts) - after]]
            for part, one in zip(target.elts, parts, strict=True):
                self._bind(part.value if isinstance(part, ast.Starred) else part, one, names)
        elif isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Attribute) and isinstance(context := self.value(target.value, names), Context):
            context.names[target.attr] = value
        else:
            raise NotWalked("an assignment to something else")

    def _augmented(self, node: ast.AugAssign, names: Names) -> None:
        if not isinstance(node.target, ast.Name):
            raise NotWalked("an assignment to something else")
        right, left = self.value(node.value, names), names[node.target.id]
        names[node.target.id] = self._operated(node.op, left, right)

    def _expression(self, node: ast.Expr, names: Names) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value, names)

    def _return(self, node: ast.Return, names: Names) -> None:
        raise Returned(self.value(node.value, names) if node.value is not None else None)

    def _if(self, node: ast.If, names: Names) -> None:
        self.body(node.body if self._is_true(node.test, names) else node.orelse, names)

    def _for(self, node: ast.For, names: Names) -> None:
        for value in items(self.value(node.iter, names)):
            self._bind(node.target, value, names)
            self.body(node.body, names)

    def _with(self, node: ast.With, names: Names) -> None:
        self.body(node.body, names)

    def _define(self, node: ast.FunctionDef, names: Names) -> None:
        names[node.name] = HostFunction(node, names)

    def _nothing(self, node: ast.stmt, names: Names) -> None:
        pass

    def _raise(self, node: ast.Raise, names: Names) -> None:
        raise NotWalked("host code raises")

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, names: Names) -> Any:
        self.meter.spend(1)
        if isinstance(node.func, ast.Attribute):
            of, name = self.value(node.func.value, names), node.func.attr
            args, given = self._given(node, names)
            return self._method(of, name, args, given)
        function = self.value(node.func, names)
        args, given = self._given(node, names)
        return self.called_with(function, args, given)

    def _given(self, node: ast.Call, names: Names) -> tuple[list[Any], dict[str, Any]]:
        given: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, names)
            given |= {keyword.arg: value} if keyword.arg is not None else value
        return self._all(node.args, names), given

    def called_with(self, function: Any, args: Sequence[Any], given: Mapping[str, Any] | None = None) -> Any:
        """What a function gives for its arguments."""
        given = dict(given or {})
        if isinstance(function, Launcher):
            return self._launch(function, args, given)
        if isinstance(function, HostFunction):
            return self._inside(function, args, given)
        if isinstance(function, Differentiable):
            return self._applied(function, [*args, *given.values()])
        if isinstance(function, Dotted) and function.path == "isinstance":
            return is_instance(args[0], args[1])
        if isinstance(function, Dotted) and function.path in FUNCTIONS:
            return computed(FUNCTIONS[function.path], args, given, self.meter)
        raise NotWalked("a call of something else")

    def _method(self, of: Any, name: str, args: list[Any], given: dict[str, Any]) -> Any:
        if isinstance(of, Tensor):
            return self._of_tensor(of, name, args, given)
        if isinstance(of, Context) and name == "save_for_backward":
            of.saved = tuple(args)
            return None
        if isinstance(of, Context) and name in ("mark_non_differentiable", "set_materialize_grads", "mark_dirty"):
            return None
        if isinstance(of, Differentiable) and name == "apply":
            return self._applied(of, args)
        if isinstance(of, list) and name == "append":
            return of.append(*args)
        if isinstance(of, torch.Size) and name == "numel":
            return of.numel()
        return self.called_with(self.attribute_of(of, name), args, given)

    def _of_tensor(self, of: Tensor, name: str, args: list[Any], given: dict[str, Any]) -> Any:
        if name == "data_ptr":
            return 0  # as aligned as can be
        if name in MAKERS:
            return FUNCTIONS[MAKERS[name]](*args, **{"dtype": of.dtype, **given})
        if name not in METHODS:
            raise NotWalked(f"a method {name}")
        if name in IN_PLACE and self.launches.is_input(of):
            raise NotWalked("a store to an input")
        args = [one for one in args if not isinstance(one, OneDevice) and one != "cuda"]
        given = {key: value for key, value in given.items() if key not in ("device", "non_blocking")}
        if name == "to" and not args and not given:
            return of
        if name in SPLITTING and max(of.shape, default=0) > MOST_ITEMS:
            raise NotWalked("a list that is too long")
        return computed(getattr(torch.Tensor, name), [of, *args], given, self.meter)

    def _launch(self, launcher: Launcher, args: Sequence[Any], given: dict[str, Any]) -> None:
        names = self.launches.bound(launcher.kernel, args, given)
        grid = launcher.grid
        if isinstance(grid, HostFunction):
            grid = self._inside(grid, [dict(names)], {})
        self.launches.launch(launcher.kernel, grid, names, self.meter)

    def _inside(self, function: HostFunction, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        """What a function of the source returns."""
        node = function.node
        names = {**function.around, **self._parameters(node.args, args, given, function.around)}
        if isinstance(node, ast.Lambda):
            return self.value(node.body, names)
        return self.returned(node.body, names)

    def _parameters(self, params: ast.arguments, args: Sequence[Any], given: Mapping[str, Any], around: Names) -> Names:
        every = [one.arg for one in (*params.posonlyargs, *params.args)]
        defaults = zip(every[len(every) - len(params.defaults) :], params.defaults, strict=True)
        alone = zip((one.arg for one in params.kwonlyargs), params.kw_defaults, strict=True)
        names = {name: self.value(one, around) for name, one in (*defaults, *alone) if one is not None}
        names |= dict(zip(every, args, strict=False)) | dict(given)
        rest = tuple(args[len(every) :])
        if params.vararg is not None:
            names[params.vararg.arg] = rest
        elif rest:
            raise NotWalked("more arguments than parameters")
        return names

    # --- gradients ----------------------------------------------------------------------------------------------------

    def _applied(self, function: Differentiable, args: Sequence[Any]) -> Any:
        if function.backward is None:
            return self._inside(function.forward, args, {})
        found = _Walked.apply(self, function, *args)
        return found

    def forward(self, function: Differentiable, context: Context, args: Sequence[Any]) -> Any:
        """The forward pass of a function, which leaves in the context what it saves."""
        found = self._inside(function.forward, [context, *args] if function.takes_context else args, {})
        if function.setup is not None:
            self._inside(function.setup, [context, tuple(args), found], {})
        return found

    def backward(self, function: Differentiable, context: Context, upstream: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients that its backward pass gives."""
        assert function.backward is not None
        found = self._inside(function.backward, [context, *upstream], {})
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)


class _Walked(torch.autograd.Function):
    """A function of the source, for autograd."""

    @staticmethod
    def forward(ctx: Any, walk: HostWalk, function: Differentiable, *args: Any) -> Any:
        needs = tuple(isinstance(one, Tensor) and one.requires_grad for one in args)
        ctx.context = Context(needs)
        ctx.walk, ctx.function, ctx.count = walk, function, len(args)
        return walk.forward(function, ctx.context, args)

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        found = ctx.walk.backward(ctx.function, ctx.context, upstream)
        if len(found) != ctx.count:
            raise NotWalked("too many gradients, or too few")
        return (None, None, *found)


def _is_operator(decorator: ast.expr) -> bool:
    return called(decorator).rpartition(".")[2] in ("triton_op", "custom_op")


_STATEMENTS: dict[type, Callable[[HostWalk, Any, Names], None]] = {
    ast.Assign: HostWalk._assign, ast.AnnAssign: HostWalk._assign, ast.AugAssign: HostWalk._augmented,
    ast.Expr: HostWalk._expression, ast.Return: HostWalk._return, ast.If: HostWalk._if, ast.For: HostWalk._for,
    ast.With: HostWalk._with, ast.FunctionDef: HostWalk._define, ast.Pass: HostWalk._nothing,
    ast.Assert: HostWalk._nothing, ast.Delete: HostWalk._nothing, ast.Raise: HostWalk._raise,
}  # fmt: skip
