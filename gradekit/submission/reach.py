"""Whether a source text could change the process that it runs in, as far as its syntax tells; nothing is run.

What a submission's own process says of it can be believed only where the submission has no means to change that
process. Code that uses torch and Triton, and nothing but their public names, has none: no imports of other modules, no
private names, nothing that turns text into code or names, no attributes set on what is not its own. Everything else may
be honest; it is a person who has to look.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

PACKAGES = frozenset(
    {"torch", "triton", "math", "typing", "functools", "dataclasses", "__future__", "enum", "collections"}
)
"""What may be imported, with all that is below."""

_PLAIN = {"math", "select", "random", "trace", "typing", "functools", "enum", "dataclasses", "collections"}
"""Modules of the standard library whose names tensors or torch have too, or that hand out nothing."""

MODULES = frozenset(sys.stdlib_module_names - _PLAIN) | {
    "utils", "fx", "hub", "package", "overrides", "distributed", "multiprocessing", "serialization", "save",
    "export", "cpp_extension", "onnx", "futures", "monitor", "knobs", "compiler", "tools", "build", "interpreter",
    "set_active", "load_library", "gradekit", "numpy", "sympy",
}  # fmt: skip
"""Attributes by which one gets from torch and Triton to other modules, or to what runs text, files and hooks."""

REGISTRATIONS = frozenset({
    "Library", "impl", "register_kernel", "register_vmap", "register_torch_dispatch", "define", "fallthrough_kernel",
})  # fmt: skip
"""What can replace the operators of torch itself."""

BY_NAME = frozenset({"register_fake", "register_autograd"})
"""Functions of torch.library, and methods of an operator, that complete an operator: those take its name first."""

NAMES = frozenset({
    "exec", "eval", "compile", "open", "globals", "locals", "vars", "dir", "setattr", "delattr", "getattr",
    "breakpoint",
    "input", "memoryview", "type", "object",
})  # fmt: skip
"""Built-in functions that reach what stands in no source text."""

METHODS = frozenset({"__init__", "__call__", "__repr__", "__post_init__"})
"""The special methods that a class may have: others answer for operators and attributes."""


@dataclass(frozen=True)
class Reach:
    """`what` in the source could change the process, and the 1-based `line` where it stands."""

    what: str
    line: int


def reach(text: str) -> Reach | None:
    """The first thing in a source text by which it could change its process; None where there is none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Reach("a text that Python cannot read", 1)
    found = (Reach(what, getattr(node, "lineno", 1)) for node in ast.walk(tree) for what in _means(node))
    return min(found, key=lambda one: one.line, default=None)


def _means(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (f"import {alias.name}" for alias in names if not _is_harmless_module(alias.name))
        case ast.ImportFrom(module=module, names=names, level=level):
            for alias in names:
                if level or not _is_harmless_module(f"{module}.{alias.name}"):
                    yield f"from {module} import {alias.name}"
        case ast.Attribute(attr=name, ctx=ctx):
            if (
                name in MODULES | REGISTRATIONS
                or _is_torchs_load(node)
                or (name.startswith("_") and name not in METHODS)
            ):
                yield f".{name}"
            elif not isinstance(ctx, ast.Load) and not _is_own(node.value):
                yield f"setting .{name}"
        case ast.Name(id=name):
            if name in NAMES | REGISTRATIONS or (name.startswith("__") and name.endswith("__") and name != "__name__"):
                yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if name.startswith("__") and name not in METHODS:
                yield f"def {name}"
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr=name, value=ast.Attribute(attr="library")), args=args
        ):
            if name in BY_NAME and not (args and isinstance(args[0], ast.Constant)):
                yield f"{name} of an operator that is not named in it"
        case ast.Constant(value=str(value)):
            if value.startswith(("aten::", "prims::", "prim::", "higher_order")):
                yield f'"{value}"'


def _is_harmless_module(name: str) -> bool:
    if name.startswith("triton.tools.tensor_descriptor."):
        return True
    first, *below = name.split(".")
    return first in PACKAGES and not any(part in MODULES | REGISTRATIONS or part.startswith("_") for part in below)


def _is_own(owner: ast.expr) -> bool:
    """`self` and `ctx`: what a class or an autograd function keeps."""
    return isinstance(owner, ast.Name) and owner.id in ("self", "ctx")


def _is_torchs_load(node: ast.Attribute) -> bool:
    """torch.load runs what it reads; tl.load is a kernel's."""
    return node.attr == "load" and isinstance(node.value, ast.Name) and node.value.id == "torch"
