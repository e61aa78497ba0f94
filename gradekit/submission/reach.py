"""Whether a source text could change the process that it runs in, as far as its syntax tells; nothing is run.

What a submission's own process says of it can be believed only where the submission has no means to change that
process. Code that uses torch and Triton, and nothing but their public names, has none: of other modules no more than
`PARTS`, no private names, nothing that turns text into code or names, no attributes set on what is not its own.
Everything else may be honest; it is a person who has to look.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gradekit.submission.modules import binds, without_modules

PACKAGES = frozenset(
    {"torch", "triton", "math", "typing", "functools", "dataclasses", "__future__", "enum", "collections"}
)
"""What may be imported, with all that is below."""

PARTS = {
    "contextlib": {"contextmanager", "nullcontext", "suppress"},
    "logging": {"getLogger", "DEBUG", "INFO", "WARNING", "ERROR"},
    "operator": {"add", "and_", "eq", "floordiv", "ge", "gt", "index", "le", "lt", "mod", "mul", "ne", "or_", "sub"},
    "os": {"getenv", "environ"},
    "warnings": {"warn", "filterwarnings", "simplefilter"},
}
"""What of other modules may be imported, or named by the module: it hands out, and changes, nothing of torch's."""

_PLAIN = {"math", "select", "random", "trace", "typing", "functools", "enum", "dataclasses", "collections"}
"""Modules of the standard library whose names tensors or torch have too, or that hand out nothing."""

MODULES = frozenset(sys.stdlib_module_names - _PLAIN) | {
    "utils", "fx", "hub", "package", "overrides", "distributed", "multiprocessing", "serialization", "save",
    "export", "cpp_extension", "onnx", "futures", "monitor", "knobs", "compiler", "tools", "build", "interpreter",
    "set_active", "load_library", "gradekit", "numpy", "sympy",
    "get_type_hints", "ForwardRef", "evaluate_forward_ref", "get_capture_scope", "used_global_vals",
    "gi_frame", "cr_frame", "ag_frame", "tb_frame", "f_back", "f_globals", "f_locals", "f_builtins",
}  # fmt: skip
"""Attributes that lead from torch and Triton to other modules, running functions, or what runs text, files, hooks."""

REGISTRATIONS = frozenset({
    "Library", "impl", "register_kernel", "register_vmap", "register_torch_dispatch", "define", "fallthrough_kernel",
    "py_impl", "py_kernels", "update_wrapper", "wraps", "global_enum", "make_dataclass", "total_ordering",
    "addFilter", "addHandler", "setFormatter", "setStream",
})  # fmt: skip
"""What can replace the operators of torch itself, set attributes of what it is given, or be handed what torch logs."""

NAMES = frozenset({
    "exec", "eval", "compile", "open", "globals", "locals", "vars", "dir", "setattr", "delattr", "getattr",
    "breakpoint",
    "input", "memoryview", "type", "object",
})  # fmt: skip
"""Built-in functions that reach what stands in no source text."""

TORCHS_OWN = ("aten::", "prims::", "prim::", "higher_order")  # how names of torch's own operators begin

METHODS = frozenset({"__init__", "__call__", "__repr__", "__post_init__"})
"""The special methods that a class may have: others answer for operators and attributes."""


@dataclass(frozen=True)
class Reach:
    """`what` in the source could change the process, and the 1-based `line` where it stands."""

    what: str
    line: int


@functools.lru_cache(maxsize=16)
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
            for alias in names:
                if alias.asname or alias.name not in PARTS:
                    yield from () if _is_harmless_module(alias.name) else (f"import {alias.name}",)
        case ast.ImportFrom(module=module, names=names, level=level):
            for alias in names:
                own = "wraps" if alias.asname is None and module == "functools" else ""
                if not level and alias.name in PARTS.get(str(module), {own}) - {"environ"}:
                    continue
                if level or not _is_harmless_module(f"{module}.{alias.name}"):
                    yield f"from {module} import {alias.name}"
                elif alias.name in RESERVED and alias.asname not in (None, alias.name):
                    yield f"another name for {alias.name}"
        case ast.Attribute(attr=name, ctx=ctx):
            if name == "__version__" or around.keeps_a_name(node):
                return
            if _is_private(name) or name in MODULES | REGISTRATIONS or _is_torchs_own(node):
                yield f".{name}"
            elif not isinstance(ctx, ast.Load) and not around.is_own(node):
                yield f"setting .{name}"
            elif name in RESERVED:
                yield from _unusual(name, node, around)
        case ast.Name(id=name, ctx=ast.Load()) if name in RESERVED:
            yield from _unusual(name, node, around)
        case ast.Name(id=name) if name in around.parts:
            if not around.names_a_part(node):
                yield f"{name} as a value"
        case ast.Name(id=name) if not around.keeps_a_name(node):
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
            if value.startswith(TORCHS_OWN):
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
    """A name that the text spells out, none of torch's, or a function: an operator's own method takes that."""
    if (name := around.spelled(argument)) is not None:
        return not name.startswith(TORCHS_OWN)
    is_function = isinstance(argument, ast.Name) and argument.id not in around.variables
    return is_function or isinstance(argument, (ast.Constant, ast.Lambda)) or _is_static_method(argument, around)


def _is_static_method(argument: ast.expr, around: Surroundings) -> bool:
    """Whether this is CLASS.METHOD of a class of the text that has no bases, where nothing else binds either name."""
    match argument:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner not in around.variables:
            found = [node for node in ast.walk(around.tree) if owner in bound(node)]
            if len(found) != 1 or not isinstance(found[0], ast.ClassDef):
                return False
            inside = [node for node in ast.walk(found[0]) if name in bound(node)]
            return len(inside) == 1 and isinstance(inside[0], _FUNCTIONS) and around.is_static(inside[0])
    return False


def _is_harmless_module(name: str) -> bool:
    if name.startswith(("triton.tools.tensor_descriptor.", "packaging.version")):
        return True
    first, *below = name.split(".")
    if name.startswith("torch.jit"):
        return False
    return first in PACKAGES and not any(part in MODULES | REGISTRATIONS or part.startswith("_") for part in below)


def _is_torchs_own(node: ast.Attribute) -> bool:
    """torch.load runs what it reads, torch.jit what annotations say; tl.load and triton.jit are Triton's."""
    return node.attr in ("load", "jit") and isinstance(node.value, ast.Name) and node.value.id == "torch"


# --- attributes that are set: on the `self` of a new object, or the `ctx` that torch hands to an autograd function.
# Anybody can call a function with a module of torch in their place, so nothing in the text may call those that set
# attributes, nor hand them on.

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
        imports = (alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names)
        self.parts = {alias.name for alias in imports} & PARTS.keys()
        setting = (self.function(node) for node in ast.walk(tree) if self._is_set_on_owner(node))
        self.setters = {function for function in setting if function is not None}
        self._names = {function.name for function in self.setters}
        visible = {function.name for function in self.setters if not isinstance(self._around[function], ast.ClassDef)}
        declared = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
        self._seen_in_functions = self._names & (visible | declared)  # there, a class's own names are not
        parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self.variables = parameters | {name for node in ast.walk(tree) for name in stored(node)}
        bindings = Counter(name for node in ast.walk(tree) for name in bound(node))
        self._constants: dict[str, str] = {}
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if bindings[name] == 1 and name not in parameters and (text := self.spelled(value)) is not None:
                        self._constants[name] = text

    def spelled(self, node: ast.expr) -> str | None:
        """The text that `node` stands for: written out, a constant of the file, or an f-string of these."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return self._constants.get(name)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self.spelled(value)
            case ast.JoinedStr(values=parts):
                texts = [self.spelled(part) for part in parts]
                return None if None in texts else "".join(filter(None, texts))
        return None

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

    def _is_in_a_body(self, node: ast.AST) -> bool:
        """Whether a function's own scope is where `node` looks names up, as its defaults and decorators do not."""
        for around in self.above(node):
            if isinstance(around, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
                return isinstance(around, _FUNCTIONS) and node in around.body
            node = around
        return False

    def is_own(self, attribute: ast.Attribute) -> bool:
        """Whether `attribute`, which is set, is on the first parameter of what only Python or torch calls."""
        function = self.function(attribute)
        return self._is_set_on_owner(attribute) and function is not None and self._is_called_by_others(function)

    def hands_on_setter(self, node: ast.AST) -> bool:
        """Whether `node` names a function that sets attributes, for something other than to register it."""
        if isinstance(node, ast.Attribute) and node.attr == "__init__":
            return not self._calls_the_base(node)
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        is_inside = isinstance(node, ast.Name) and self._is_in_a_body(node)
        names = self._seen_in_functions if is_inside else self._names
        return name in names and isinstance(node.ctx, ast.Load) and not self._is_registered(node)  # type: ignore[attr-defined]

    def decorates(self, node: ast.AST) -> bool:
        """Whether `node` is a decorator, or what a decorator calls."""
        around = next(self.above(node), None)
        if isinstance(around, ast.Call) and around.func is node and not around.args:
            node, around = around, next(self.above(around), None)
        return node in getattr(around, "decorator_list", ())

    def keeps_a_name(self, node: ast.AST) -> bool:
        """Whether `node` is functools.wraps(F) next to a new function, in a function with the parameter F that does
        nothing but decorate: it gives that new function the name and the text of another."""
        call = next(self.above(node), None)
        new = next(self.above(call), None) if isinstance(call, ast.Call) and call.func is node else None
        around = self.function(new) if isinstance(new, _FUNCTIONS) and new.decorator_list[-1:] == [call] else None
        match node, call:
            case (ast.Name(id="wraps") | ast.Attribute(value=ast.Name(id="functools"), attr="wraps"),
                  ast.Call(args=[ast.Name(id=name)], keywords=[])) if around is not None:  # fmt: skip
                named = (one for one in ast.walk(self.tree) if isinstance(one, ast.Name) and one.id == around.name)
                return [one.arg for one in around.args.args] == [name] and all(map(self.decorates, named))
        return False

    def names_a_part(self, node: ast.Name) -> bool:
        """Whether this module is named for what may be had of it; the environment, to read from it."""
        part = next(self.above(node), None)
        if not (isinstance(part, ast.Attribute) and part.attr in PARTS[node.id] and isinstance(part.ctx, ast.Load)):
            return False
        use = next(self.above(part), None)
        return part.attr != "environ" or isinstance(use, ast.Attribute) and use.attr == "get"

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
        if isinstance(self._around[function], ast.ClassDef) and function.name not in CALLED_BY_OTHERS:
            # In a class without bases, Python and torch call methods of certain names alone, which begin with "_".
            return self.is_static(function) and not function.name.startswith("_")
        return self._is_plain(function)

    def is_static(self, function: Function) -> bool:
        """Whether this is a static method of a class that has no bases."""
        around = self._around[function]
        is_bare = isinstance(around, ast.ClassDef) and not (around.bases or around.keywords or around.decorator_list)
        return is_bare and bool(function.decorator_list) and self._is_plain(function)

    def _is_plain(self, function: Function) -> bool:
        names = [one.id if isinstance(one, ast.Name) else "" for one in function.decorator_list]
        return all(name == "staticmethod" or self._passes_on_first(name) for name in names)

    def _passes_on_first(self, name: str) -> bool:
        """Whether the decorator `name` returns a new function that only passes its first parameter on to f as the
        first: what f sets attributes on is then chosen by whoever calls the new function."""
        match [node for node in ast.walk(self.tree) if name in bound(node)]:
            case [ast.FunctionDef(args=ast.arguments(args=[ast.arg(arg=given)]), decorator_list=[], body=[
                *before, ast.FunctionDef() as new, ast.Return(value=ast.Name(id=returned)),
            ]) as outer] if returned == new.name:  # fmt: skip
                inside = [node for node in ast.walk(outer) if isinstance(node, ast.Name)]
                return (
                    all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in before)
                    and all(self.decorates(node) for node in ast.walk(self.tree) if getattr(node, "id", "") == name)
                    and [node.id for node in inside].count(new.name) == 1
                    and all(isinstance(one, ast.Call) and self.keeps_a_name(one.func) for one in new.decorator_list)
                    and all(self._is_handed(node, new) for node in inside if node.id == given)
                )
        return False

    def _is_handed(self, node: ast.Name, new: Function) -> bool:
        """Whether `node` is called in `new`, with the first parameter of that first, or gives its name to `new`."""
        call = next(self.above(node), None)
        match call, [*new.args.posonlyargs, *new.args.args]:
            case ast.Call(func=func, args=[ast.Name(id=first), *_]), [ast.arg(arg=owner), *_] if func is node:
                return first == owner and owner in OWNERS and self.function(node) is new
        return isinstance(call, ast.Call) and call in new.decorator_list

    def _is_registered(self, node: ast.AST) -> bool:
        above = self.above(node)
        call = next((one for one in above if not isinstance(one, ast.keyword)), None)
        name = getattr(call.func, "attr", getattr(call.func, "id", "")) if isinstance(call, ast.Call) else ""
        return isinstance(call, ast.Call) and call.func is not node and name == "register_autograd"

    def _calls_the_base(self, node: ast.Attribute) -> bool:
        function, value = self.function(node), node.value
        is_super = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
        return is_super and not value.args and function is not None and function.name == "__init__"  # type: ignore[attr-defined]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def stored(node: ast.AST) -> Iterator[str]:
    """The names that `node` itself binds by something other than a definition or a parameter."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, ast.alias):
        yield from (name for name in (node.asname or node.name,) if node.asname or name in OWNERS)
    elif not isinstance(node, ast.arg):
        yield from binds(node)


def bound(node: ast.AST) -> Iterator[str]:
    """The names that `node` itself binds, by a definition too; no parameters."""
    yield from stored(node)
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield node.name
