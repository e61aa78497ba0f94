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

from gradekit.submission.modules import without_modules
from gradekit.submission.own_attributes import BY_NAME, RESERVED, Surroundings, bound

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
    "get_type_hints", "ForwardRef", "evaluate_forward_ref", "get_capture_scope", "used_global_vals",
    "gi_frame", "cr_frame", "ag_frame", "tb_frame", "f_back", "f_globals", "f_locals", "f_builtins",
}  # fmt: skip
"""Attributes by which one gets from torch and Triton to other modules, or to what runs text, files and hooks, or to the
names of a running function."""

REGISTRATIONS = frozenset({
    "Library", "impl", "register_kernel", "register_vmap", "register_torch_dispatch", "define", "fallthrough_kernel",
    "py_impl", "py_kernels", "update_wrapper", "wraps", "global_enum", "make_dataclass", "total_ordering",
})  # fmt: skip
"""What can replace the operators of torch itself, or set attributes of what it is given."""

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
        tree = ast.parse(without_modules(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Reach("a text that Python cannot read", 1)
    around = Surroundings(tree)
    found = (Reach(what, getattr(node, "lineno", 1)) for node in ast.walk(tree) for what in _means(node, around))
    return min(found, key=lambda one: one.line, default=None)


def _means(node: ast.AST, around: Surroundings) -> Iterator[str]:
    yield from (f"another {name}" for name in bound(node) if name in RESERVED)
    if around.hands_on_setter(node):
        yield f"the function {getattr(node, 'attr', getattr(node, 'id', ''))}, which sets attributes, as a value"
    match node:
        case ast.Import(names=names):
            yield from (f"import {alias.name}" for alias in names if not _is_harmless_module(alias.name))
        case ast.ImportFrom(module=module, names=names, level=level):
            for alias in names:
                if level or not _is_harmless_module(f"{module}.{alias.name}"):
                    yield f"from {module} import {alias.name}"
                elif alias.name in RESERVED and alias.asname not in (None, alias.name):
                    yield f"another name for {alias.name}"
        case ast.Attribute(attr=name, ctx=ctx):
            if _is_private(name) or name in MODULES | REGISTRATIONS or _is_torchs_own(node):
                yield f".{name}"
            elif not isinstance(ctx, ast.Load) and not around.is_own(node):
                yield f"setting .{name}"
            elif name in RESERVED:
                yield from _unusual(name, node, around)
        case ast.Name(id=name, ctx=ast.Load()) if name in RESERVED:
            yield from _unusual(name, node, around)
        case ast.Name(id=name):
            if name in NAMES | REGISTRATIONS or (name.startswith("__") and name.endswith("__") and name != "__name__"):
                yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if name.startswith("__") and name not in METHODS:
                yield f"def {name}"
        case ast.MatchClass(kwd_attrs=names):
            yield from (f".{name}" for name in names if _is_private(name) or name in MODULES | REGISTRATIONS)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if name in BY_NAME:
            if not (args and _is_named_or_own(args[0], around)):
                yield f"{name} of an operator that is not named in it"
        case ast.Constant(value=str(value)):
            if value.startswith(("aten::", "prims::", "prim::", "higher_order")):
                yield f'"{value}"'


def _is_private(name: str) -> bool:
    return name.startswith("_") and name not in METHODS


def _unusual(name: str, node: ast.AST, around: Surroundings) -> Iterator[str]:
    """A function that has to be called where it stands, or that has to decorate, used as a value."""
    if name == "dataclass" and not around.decorates(node):
        yield "dataclass of what is no class of this file"
    elif name in BY_NAME and not around.is_called(node):
        yield f"{name} as a value"


def _is_named_or_own(argument: ast.expr, around: Surroundings) -> bool:
    """A name written out, or a function: an operator's own method takes that."""
    is_function = isinstance(argument, ast.Name) and argument.id not in around.variables
    return is_function or isinstance(argument, (ast.Constant, ast.Lambda))


def _is_harmless_module(name: str) -> bool:
    if name.startswith("triton.tools.tensor_descriptor."):
        return True
    first, *below = name.split(".")
    if name.startswith("torch.jit"):
        return False
    return first in PACKAGES and not any(part in MODULES | REGISTRATIONS or part.startswith("_") for part in below)


def _is_torchs_own(node: ast.Attribute) -> bool:
    """torch.load runs what it reads, torch.jit what annotations say; tl.load and triton.jit are Triton's."""
    return node.attr in ("load", "jit") and isinstance(node.value, ast.Name) and node.value.id == "torch"
