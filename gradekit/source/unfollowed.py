"""What the text of host code tells: sizes that stand in tables, and decisions that nothing follows.

A traced size remembers where it comes from until it becomes text, a key, a float or an address. What host code decides
by such a thing is named for a person to look at: no input is looked for.
"""

import ast
import builtins
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradekit.submission.parsed_source import ParsedSource, is_kernel, jitted

MOST_NAMED = 20  # decisions that are named, and sizes of tables that are tried

KEEPING = frozenset(
    {"abs", "all", "any", "bool", "callable", "dict", "divmod", "enumerate", "getattr", "hasattr", "isinstance",
     "issubclass", "len", "list", "max", "min", "print", "reversed", "setattr", "super", "tuple", "type", "zip"}
)  # fmt: skip
"""Builtins whose results remember the size that they were made of; of all others that is not known."""

FOLLOWED = frozenset(
    {"collections", "contextlib", "dataclasses", "enum", "functools", "torch", "triton", "typing", "warnings"}
)
EXACT = frozenset({"prod", "ceil", "floor", "mul", "sub", "add", "inf", "nan", "pi", "e", "maxsize", "version_info"})
"""Modules that decide nothing by sizes on their own, and what keeps the origin of sizes, or has none, in others."""

METHODS = frozenset({"bit_count", "to_bytes", "as_integer_ratio", "Size", "broadcast_shapes"})
ADDRESSES = frozenset({"data_ptr", "nbytes", "untyped_storage", "storage"})
"""Methods of sizes, and what is asked of tensors, whose results are not followed."""

FLOATS = frozenset({"float", "math", "a float"})
"""What makes floats: a kernel may be given them like any other number, and only comparisons decide by them."""

_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)

Kinds = frozenset[str]  # what the numbers in an expression went through, by name; empty where all of them are followed


@dataclass(frozen=True)
class HostText:
    """`keys` are what stands in tables: a number, or several together."""

    tree: ast.Module
    keys: tuple[tuple[int, ...], ...]

    def unfollowed(self) -> list[tuple[int, str]]:
        """Decisions of host code by what is not followed: a line, and what."""
        return _named(self.tree)


@functools.lru_cache(maxsize=8)
def _named(tree: ast.Module) -> list[tuple[int, str]]:
    named: dict[int, str] = {}
    for node, kinds in _Unfollowed(tree).decisions():
        through = " and ".join(sorted(kinds))
        named.setdefault(node.lineno, f"`{_short(node)}` depends on {through}, through which sizes are not followed")
    return sorted(named.items())[:MOST_NAMED]


def host_text(text: str) -> HostText:
    """That of a submission; of one that is no Python, that of an empty one."""
    source = ParsedSource.parsed(text)
    tree = source.tree if source is not None else ast.Module([], [])
    keys = dict.fromkeys(key for node in ast.walk(tree) for key in _keys(node))
    return HostText(tree, tuple(keys)[:MOST_NAMED])


# --- numbers ---------------------------------------------------------------------------------------------------------


def _numbers(tree: ast.AST) -> Iterator[int | float]:
    values = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    yield from (n for n in values if isinstance(n, int | float) and not isinstance(n, bool) and abs(n) < 1 << 63)


def _keys(node: ast.AST) -> Iterator[tuple[int, ...]]:
    """The whole numbers, alone or several together, that a table has for keys or members."""
    members = node.keys if isinstance(node, ast.Dict) else node.elts if isinstance(node, (ast.Set, ast.List)) else []
    for member in members:
        parts = member.elts if isinstance(member, ast.Tuple) else [member]
        numbers = [part.value for part in parts if isinstance(part, ast.Constant) and type(part.value) is int]
        if numbers and len(numbers) == len(parts) and min(numbers) > 0:
            yield tuple(numbers)


# --- what is not followed --------------------------------------------------------------------------------------------


class _Unfollowed:
    """Which expressions depend on what is not followed: through names, and through the functions of the module."""

    def __init__(self, tree: ast.Module) -> None:
        functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))]
        kernels = jitted(tree)
        self.functions = [node for node in functions if not is_kernel(node, kernels)]
        self.imported = dict(_imported(tree))
        given = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and _is_table(node.value)]
        named = [(target.id, node.value) for node in given for target in node.targets if isinstance(target, ast.Name)]
        self.tables, changed = {name for name, _ in named}, {*_changed(tree)}
        self.listed = {name for name, value in named if _is_listed(value) and name not in changed}
        self.giving: dict[str, Kinds] = {}
        self.names: dict[ast.AST, Mapping[str, Kinds]] = {}
        before = None
        while before != self.giving:
            before = dict(self.giving)
            for function in self.functions:
                self.names[function] = self._assigned(function)
                if isinstance(function, ast.FunctionDef):
                    returned = (n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value)
                    self.giving[function.name] = self._of_all(returned, self.names[function])

    def decisions(self) -> Iterator[tuple[ast.expr, Kinds]]:
        """The expressions that decide by what is not followed, and what that went through."""
        for function in self.functions:
            known = self.names[function]
            for node in ast.walk(function):
                found = [(one, self._kinds(one, known)) for one in _deciding(node)]
                found += [(one, self._kinds(one, known) - FLOATS) for one in _launched(node)]
                yield from ((one, kinds) for one, kinds in found if kinds)

    def _assigned(self, function: ast.AST) -> Mapping[str, Kinds]:
        known: dict[str, Kinds] = {}
        before = None
        while before != known:
            before = dict(known)
            for node in ast.walk(function):
                for target, value in _assignments(node):
                    for name in (one.id for one in ast.walk(target) if isinstance(one, ast.Name)):
                        alias = {value.id} if isinstance(value, ast.Name) and _is_forgetful(value.id) else set[str]()
                        known[name] = known.get(name, frozenset()) | self._kinds(value, known) | alias
        return known

    def _of_all(self, nodes: Iterable[ast.AST], known: Mapping[str, Kinds]) -> Kinds:
        return frozenset[str]().union(*(self._kinds(node, known) for node in nodes))

    def _kinds(self, node: ast.AST, known: Mapping[str, Kinds]) -> Kinds:
        return frozenset(kind for one in _parts(node) for kind in self._own(one, known))

    def _own(self, node: ast.AST, known: Mapping[str, Kinds]) -> Iterable[str]:
        match node:
            case ast.Name(id=name):
                return known.get(name, ())
            case ast.Call(func=ast.Name(id="__import__")):
                return ("a module",)
            case ast.Call(func=ast.Name(id="min" | "max"), args=args) if any(_is_number(one, float) for one in args):
                return ("a float",)
            case ast.Call(func=ast.Name(id=name), args=args):
                is_unknown = _is_forgetful(name) or name == "len" and _is_made(args)
                if is_unknown and (not args or any(map(_has_number, args))) and not _is_dtype(node):
                    return (name,)
                if module := self.imported.get(name) or name not in self.giving and self.imported.get("*"):
                    return (module,)
                return self.giving.get(name, ())
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in self.imported:
                return () if name in EXACT else (self.imported[module],)
            case ast.Call(func=ast.Call()):
                return ("an unknown call",)
            case ast.Call(func=ast.Attribute(value=value, attr="get")):
                return ("a table",) if self._is_table(value) else ()
            case ast.Attribute(attr=name) if name in ADDRESSES or name in METHODS or name.startswith("__"):
                return (name,)
            case ast.BinOp(op=ast.Pow(), right=exponent):
                return ("a float",) if any(type(n) is float for n in _numbers(exponent)) else ()
            case ast.JoinedStr() | ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str())):
                return ("text",)
            case ast.Subscript(value=value, slice=index):
                return ("a table",) if self._is_table(value) and not _is_plain(index) else ()
            case ast.Compare(left=left, ops=ops, comparators=[*others]):
                if any(isinstance(op, (ast.Is, ast.IsNot)) for op in ops) and any(map(_is_number, others)):
                    return ("an identity",)
                contained = any(isinstance(op, (ast.In, ast.NotIn)) for op in ops)
                exact = all(map(self._is_compared, others)) or _is_dtype(left)
                if contained and not exact:
                    return ("a table",)
                return ("a float",) if any(n != int(n) for n in _numbers(node)) else ()
        return ()

    def _is_compared(self, node: ast.expr) -> bool:
        """Whether what lies in it is told by comparisons, which are followed."""
        return isinstance(node, ast.Name) and node.id in self.listed or _is_compared(node)

    def _is_table(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in self.tables or _is_table(node)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """An expression and all in it, but for questions of alignment, and ranges, which decide how often alone."""
    match node:
        case ast.Compare(
            left=ast.BinOp(left=ast.Call(func=ast.Attribute(attr="data_ptr")), op=ast.Mod()),
            ops=[ast.Eq() | ast.NotEq()],
            comparators=[ast.Constant(value=0)],
        ):
            return
    yield node
    inner = ast.Tuple(_bounds(node.iter), ast.Load()) if isinstance(node, ast.comprehension) else node
    for child in ast.iter_child_nodes(inner):
        yield from _parts(child)
    for test in node.ifs if isinstance(node, ast.comprehension) else ():
        yield from _parts(test)


def _bounds(iterated: ast.expr) -> list[ast.expr]:
    match iterated:
        case ast.Call(func=ast.Name(id="range"), args=args):
            return args
    return [iterated]


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that modules and what is in them have here, each with its module."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                module = (getattr(node, "module", "") or one.name).partition(".")[0]
                if module not in FOLLOWED and not (isinstance(node, ast.ImportFrom) and one.name in EXACT):
                    yield one.asname or one.name, module


def _is_forgetful(name: str) -> bool:
    return name not in KEEPING and hasattr(builtins, name)


def _is_made(args: Sequence[ast.expr]) -> bool:
    """Whether the length is that of something that was made for it."""
    return any(isinstance(one, (ast.Call, ast.BinOp, ast.ListComp)) for one in args)


def _is_table(node: ast.AST) -> bool:
    return isinstance(node, _DISPLAYS)


def _assignments(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.For(target=target, iter=iterated):
            yield from ((target, bound) for bound in _bounds(iterated))


def _deciding(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test
        case ast.Compare() | ast.Call(func=ast.Name(id="min" | "max")):
            yield node
        case ast.comprehension(ifs=tests):
            yield from tests
        case ast.Match(subject=subject):
            yield subject


def _launched(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Subscript(slice=grid), args=args, keywords=named):
            yield from (grid, *args, *(one.value for one in named))


def _is_plain(index: ast.expr) -> bool:
    """Whether an index is a constant, or made of comparisons and dtypes, which can be followed."""
    if isinstance(index, ast.Tuple):
        return all(map(_is_plain, index.elts))
    is_sign = isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant)
    return is_sign or isinstance(index, (ast.Constant, ast.Slice, ast.Compare, ast.BoolOp)) or _is_dtype(index)


def _is_compared(node: ast.expr) -> bool:
    """Whether what lies in it is told by comparisons, which are followed."""
    is_set = isinstance(node, ast.Set) and all(isinstance(one, ast.Constant) for one in node.elts)  # read as a tuple
    return is_set or isinstance(node, (ast.Tuple, ast.List)) or getattr(node, "attr", "") == "shape"


def _is_listed(node: ast.expr) -> bool:
    members = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    return all(isinstance(one, (ast.Constant, ast.Attribute)) for one in members)


def _changed(tree: ast.AST) -> Iterator[str]:
    """Names whose attributes are asked for, or parts set, or that are added to."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
                yield name
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                yield name


def _is_number(node: ast.expr, *types: type) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (types or (int, float))


def _is_dtype(node: ast.AST) -> bool:
    return any(word in ast.unparse(node) for word in ("dtype", "element_size()", "itemsize"))


def _has_number(node: ast.AST) -> bool:
    """Whether it may be a size: anything but constants, numbers of dimensions, and lengths."""
    text = ast.unparse(node)
    is_small = any(word in text for word in ("dim", "len(", "rank", "num_stages"))
    return not isinstance(node, ast.Constant) and not is_small


@functools.lru_cache(maxsize=256)
def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:57] + "..."
