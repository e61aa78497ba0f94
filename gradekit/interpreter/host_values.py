"""Values of host code that are no numbers or tensors: functions, kernels, and what autograd knows."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from gradekit.interpreter.context import Names
from gradekit.interpreter.host_vocabulary import Dotted, of_dotted


@dataclass(frozen=True, eq=False)
class HostFunction:
    """A function, method or lambda of the source, with the names around it."""

    node: ast.FunctionDef | ast.Lambda
    around: Names


@dataclass(frozen=True)
class Launcher:
    """A kernel by its name, with a grid once it has one."""

    kernel: str
    grid: Any = None


@dataclass(frozen=True, eq=False)
class Differentiable:
    """A torch.autograd.Function of the source, or an operator that autograd was registered for."""

    forward: HostFunction
    backward: HostFunction | None = None
    setup: HostFunction | None = None
    takes_context: bool = False


@dataclass(eq=False)
class Context:
    """What a forward pass leaves for its backward pass."""

    needs: tuple[bool, ...]
    saved: tuple[Any, ...] = ()
    names: dict[str, Any] = field(default_factory=dict)


def imported(node: ast.Import | ast.ImportFrom) -> Names:
    """The names that an import gives, with what they stand for."""
    if isinstance(node, ast.Import):
        pairs = [(one.asname or one.name.partition(".")[0], one.name if one.asname else one.name.partition(".")[0])
                 for one in node.names]  # fmt: skip
    else:
        pairs = [(one.asname or one.name, f"{node.module}.{one.name}") for one in node.names]
    return {name: of_dotted(path) for name, path in pairs}


def class_of(node: ast.ClassDef, names: Names) -> Any:
    """What a class of the source is: a function with a backward pass, or a name."""
    methods = {one.name: HostFunction(one, names) for one in node.body if isinstance(one, ast.FunctionDef)}
    if "forward" not in methods or "backward" not in methods:
        return Dotted(node.name)
    setup = methods.get("setup_context")
    return Differentiable(methods["forward"], methods["backward"], setup, takes_context=setup is None)
