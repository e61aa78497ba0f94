"""Single changes of a kernel's source: at each expression what a beginner may have meant in its place.

What fits is seen from the values that a walk has met (`Watched`): a name of a kind for another of its kind, a factor
that fits a tile. Sentences name what is there, hints what to try.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from gradekit.mending.kernel_text import KernelDraft
from gradekit.screening.kinds import ValueKind, fitted, kind_of
from gradekit.screening.tiles import TilePointer
from gradekit.screening.walk import Watched
from gradekit.submission.parsed_source import ParsedSource, called, dotted, shown


class ChangeKind(IntEnum):
    """What a change is; of two that are both right, that which comes first here is the likelier mistake."""

    NAME = 0
    FUNCTION = 1
    OPERATOR = 2
    SIDES = 3
    AXIS = 4
    COMPARISON = 5
    NUMBER = 6
    UPDATE = 7
    BRACKET = 8
    DROPPED = 9
    WRAPPED = 10
    FACTOR = 11
    TERM = 12


@dataclass(frozen=True)
class Change:
    """A `new` text for a `node` of the function `within`; `sentence` and `hint` as a mend has them. `turn` is when it is
    tried: the likely ones first. `other` is the name that the new text brings in."""

    kind: ChangeKind
    within: str
    node: ast.AST
    new: str
    sentence: str
    hint: str
    turn: int = 0
    other: str = ""


class Site:
    """One function of a source, as it was walked."""

    def __init__(self, kernel: KernelDraft, watched: Watched) -> None:
        self.kernel, self.source, self.watched = kernel, kernel.source, watched
        self._kinds: dict[ast.AST, ValueKind | None] = {}

    def kind(self, node: ast.AST) -> ValueKind | None:
        """The kind of the value that an expression had when it was met first; None where it was not met."""
        if node not in self._kinds:
            self._kinds[node] = kind_of(self.watched.values.get(node))
        return self._kinds[node]

    def names(self, node: ast.AST) -> dict[str, ValueKind]:
        """The names that are known where an expression stands, with their kinds."""
        known = self.watched.names.get(self.kernel.statement(node), {})
        return {name: kind for name, value in known.items() if (kind := kind_of(value)) is not None}

    def change(self, kind: ChangeKind, node: ast.AST, new: str, says: tuple[str, str], turn: int = 0, other: str = "") -> Change:
        """A change with what it says: a sentence without its "Line n", and a hint."""
        line = getattr(node, "lineno", 0)
        return Change(kind, self.kernel.name, node, new, f"Line {line} {says[0]}", says[1], turn, other)


Rule = Callable[[Site, ast.AST], Iterator[Change]]


def changes_of(site: Site) -> Iterator[Change]:
    """All changes of a function; of those that bring in different names of one value, the first."""
    seen: set[Hashable] = set()
    for change in _all(site):
        key = _effect(site, change)
        if key is not None and key not in seen:
            seen.add(key)
            yield change


def _effect(site: Site, change: Change) -> Hashable:
    """What a change does here, equal for those that do the same; None where it does nothing."""
    if not change.other or not _is_steady(site, change.node, change.other):
        return change.node, change.new
    value = site.watched.names[site.kernel.statement(change.node)][change.other]
    told = _digest(value)
    if change.kind in (ChangeKind.NAME, ChangeKind.NUMBER):
        before = change.node.id if isinstance(change.node, ast.Name) else ""
        same = _is_steady(site, change.node, before) and told == _digest(site.watched.values.get(change.node))
        return None if same else (change.node, told)
    if told in _NEUTRAL[change.kind is ChangeKind.FACTOR]:
        return None
    return change.node, re.sub(rf"\b{change.other}\b", "", change.new), told


def _digest(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        flat = value.reshape(-1)
        if flat.numel() and bool((flat == flat[0]).all()):
            return flat[0].item()
        return tuple(value.shape), value.contiguous().view(torch.uint8).numpy().tobytes()
    return (value.storage, _digest(value.offset)) if isinstance(value, TilePointer) else value


_NEUTRAL = {True: (1,), False: (0,)}


def _is_steady(site: Site, node: ast.AST, name: str) -> bool:
    """Whether a name has one value wherever an expression is met: nothing in a loop around it assigns it."""
    loop = site.kernel.in_loop(node)
    outer = loop
    while outer is not None:
        loop, outer = outer, site.kernel.in_loop(outer)
    inside = ast.walk(loop) if loop is not None else ()
    return not any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in inside)


def _all(site: Site) -> Iterator[Change]:
    for node in site.kernel.nodes:
        if isinstance(node, (ast.expr, ast.stmt)) and (isinstance(node, ast.stmt) or node in site.watched.values):
            for rule in _RULES.get(type(node), ()):
                yield from rule(site, node)
            if isinstance(node, ast.expr):
                yield from _around(site, node)


# --- names and numbers ------------------------------------------------------------------------------------------------


def _other_name(site: Site, node: Any) -> Iterator[Change]:
    mine = site.kind(node)
    if mine is None or not isinstance(node.ctx, ast.Load) or _is_called(site, node):
        return
    says = f"uses `{node.id}` in {_context(site, node)}."
    of = "pointer" if mine.of.startswith("pointer") else mine.of
    for name, kind in site.names(node).items():
        if name != node.id and kind.of.startswith(of) and kind.shape == mine.shape:
            yield site.change(ChangeKind.NAME, node, name, (says, f"try `{name}` in its place"), 0, name)


def _is_called(site: Site, node: ast.AST) -> bool:
    parent = site.kernel.parents.get(node)
    return isinstance(parent, ast.Call) and parent.func is node or isinstance(parent, ast.Attribute)


def _other_number(site: Site, node: Any) -> Iterator[Change]:
    value = node.value
    if type(value) not in (int, float) or _is_axis(site, node):
        return
    says = f"has {value:g} in {_context(site, node)}."
    others = [0, 1, -1, 2, value + 1, value - 1] if isinstance(value, int) else [0.0, 1.0, -value, value * 2, value / 2]
    texts = dict.fromkeys(repr(other) for other in others if other != value)
    if isinstance(value, float):
        texts |= dict.fromkeys(['float("-inf")', 'float("inf")'])
    for text in texts:
        yield site.change(ChangeKind.NUMBER, node, text, (says, f"try {text} in its place"), 1)
    mine = site.kind(node)
    for name, kind in site.names(node).items():
        if mine is not None and kind == mine:
            yield site.change(ChangeKind.NUMBER, node, name, (says, f"try `{name}` in its place"), 1, name)


def _negative(site: Site, node: Any) -> Iterator[Change]:
    if isinstance(node.op, ast.USub) and site.kind(node) is not None:
        says = f"has a minus before {shown(site.source.of(node.operand))}."
        yield site.change(ChangeKind.DROPPED, node, site.source.operand(node.operand), (says, "is it meant to be there?"))


def _is_axis(site: Site, node: ast.AST) -> bool:
    parent = site.kernel.parents.get(node)
    return isinstance(parent, (ast.Slice, ast.Subscript)) or isinstance(parent, ast.keyword) and parent.arg == "axis"


# --- operators --------------------------------------------------------------------------------------------------------

_SIBLINGS: dict[type, tuple[str, ...]] = {
    ast.Add: ("-", "*"), ast.Sub: ("+", "*"), ast.Mult: ("/", "+", "-"), ast.Div: ("*",), ast.FloorDiv: ("%", "*"),
    ast.Mod: ("//",), ast.BitAnd: ("|",), ast.BitOr: ("&",),
}  # fmt: skip

_WRITTEN: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.Pow: "**", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def _operator(site: Site, node: Any) -> Iterator[Change]:
    op = _WRITTEN.get(type(node.op))
    if op is None:
        return
    left, right = site.source.operand(node.left), site.source.operand(node.right)
    says = f"computes {shown(site.source.of(node))}."
    for other in _SIBLINGS.get(type(node.op), ()):
        if other == "/" and site.kind(node.right) is not None and site.kind(node.right).of == "integer":  # type: ignore[union-attr]
            continue
        hint = f"try `{other}` in place of `{op}`"
        yield site.change(ChangeKind.OPERATOR, node, f"({left} {other} {right})", (says, hint))
    if op == "//":
        hint = f"the last, partial one is left out: is `tl.cdiv` meant, which rounds up?"
        yield site.change(ChangeKind.OPERATOR, node, f"tl.cdiv({left}, {right})", (says, hint))
    if op in ("-", "/"):
        sides = f"the two sides of `{op}` seem to be swapped"
        yield site.change(ChangeKind.SIDES, node, f"({right} {op} {left})", (says, sides))
    yield from _without_a_side(site, node, (left, op, right))
    yield from _other_brackets(site, node, op)


def _without_a_side(site: Site, node: Any, parts: tuple[str, str, str]) -> Iterator[Change]:
    left, op, right = parts
    if op not in ("+", "-", "*", "/", "&"):
        return
    says = f"has `{op} {site.source.of(node.right)}` in {_context(site, node)}."
    yield site.change(ChangeKind.DROPPED, node, left, (says, "is it meant to be there?"))
    if op in ("+", "*", "&"):
        says = f"has `{site.source.of(node.left)} {op}` in {_context(site, node)}."
        yield site.change(ChangeKind.DROPPED, node, right, (says, "is it meant to be there?"))


def _other_brackets(site: Site, node: Any, op: str) -> Iterator[Change]:
    """`a * b + c` for `a * (b + c)`, and the other way round."""
    source = site.source
    says = (f"computes {shown(source.of(node))}.", "look at the brackets: what is it that they hold together?")
    if isinstance(node.left, ast.BinOp) and (first := _WRITTEN.get(type(node.left.op))) and first != op:
        a, b, c = (source.operand(part) for part in (node.left.left, node.left.right, node.right))
        yield site.change(ChangeKind.BRACKET, node, f"({a} {first} ({b} {op} {c}))", says)
    if isinstance(node.right, ast.BinOp) and (second := _WRITTEN.get(type(node.right.op))) and second != op:
        a, b, c = (source.operand(part) for part in (node.left, node.right.left, node.right.right))
        yield site.change(ChangeKind.BRACKET, node, f"(({a} {op} {b}) {second} {c})", says)
    for inner, outer in ((node.left, node.right), (node.right, node.left)):
        if isinstance(inner, ast.Call) and inner.args and called(inner).rpartition(".")[2] in _OF_ONE:
            at_end = inner is node.left
            a, c = source.operand(inner.args[0]), source.operand(outer)
            within = f"{a} {op} {c}" if at_end else f"{c} {op} {a}"
            rest = "".join(f", {source.of(one)}" for one in (*inner.args[1:], *inner.keywords))
            yield site.change(ChangeKind.BRACKET, node, f"{source.of(inner.func)}({within}{rest})", says)


def _comparison(site: Site, node: Any) -> Iterator[Change]:
    if len(node.ops) != 1 or (op := _WRITTEN.get(type(node.ops[0]))) is None:
        return
    left, right = site.source.operand(node.left), site.source.operand(node.comparators[0])
    says = f"compares {shown(site.source.of(node))}."
    for other in ("<", "<=", ">", ">=", "!=", "=="):
        if other != op:
            hint = f"try `{other}` in place of `{op}`"
            yield site.change(ChangeKind.COMPARISON, node, f"({left} {other} {right})", (says, hint))


def _axes(site: Site, node: Any) -> Iterator[Change]:
    """`m[None, :]` for `m[:, None]`."""
    text = site.source.of(node.slice).replace(" ", "")
    other = {":,None": "None, :", "None,:": ":, None"}.get(text)
    if other is not None:
        says = f"spreads `{site.source.of(node.value)}` with `[{site.source.of(node.slice)}]`."
        yield site.change(ChangeKind.AXIS, node, f"{site.source.of(node.value)}[{other}]", (says, f"try `[{other}]`"))


# --- calls ------------------------------------------------------------------------------------------------------------

_FUNCTIONS = (
    ("exp", "exp2"), ("log", "log2"), ("sqrt", "rsqrt"), ("sum", "max", "min"), ("maximum", "minimum"), ("sin", "cos"),
    ("tanh", "sigmoid"), ("argmax", "argmin"), ("floor", "ceil"), ("atomic_add", "atomic_max"),
)  # fmt: skip

_OF_ONE = {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "sum", "abs", "max", "min"}

_DROPPABLE = {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "abs", "trans"}


def _call(site: Site, node: Any) -> Iterator[Change]:
    path = called(node)
    name = path.rpartition(".")[2]
    source, whole = site.source, shown(site.source.of(node))
    arguments = ", ".join(source.of(one) for one in (*node.args, *node.keywords))
    if path.startswith("tl."):
        for group in _FUNCTIONS:
            for other in (one for one in group if name in group and one != name):
                new = f"{path[: len(path) - len(name)]}{other}({arguments})"
                says = f"calls `{path}`.", f"is `tl.{other}` meant?"
                yield site.change(ChangeKind.FUNCTION, node, new, says)
    if name in _DROPPABLE and node.args:
        says = f"takes `{path}` of {shown(source.of(node.args[0]))}.", "is it meant to be there?"
        yield site.change(ChangeKind.DROPPED, node, source.operand(node.args[0]), says)
    if name == "where" and len(node.args) == 3:
        new = f"{path}({source.of(node.args[0])}, {source.of(node.args[2])}, {source.of(node.args[1])})"
        yield site.change(ChangeKind.SIDES, node, new, (f"chooses by {whole}.", "its two choices seem to be swapped"))
    if name == "dot" and len(node.args) >= 2:
        yield from _product(site, node, path)
    if name in ("program_id", "sum", "max", "min", "argmax", "argmin"):
        yield from _axis(site, node, name)


def _product(site: Site, node: Any, path: str) -> Iterator[Change]:
    source = site.source
    rest = "".join(f", {source.of(one)}" for one in (*node.args[2:], *node.keywords))
    a, b = source.of(node.args[0]), source.of(node.args[1])
    says = f"multiplies {shown(source.of(node))}."
    yield site.change(ChangeKind.SIDES, node, f"{path}({b}, {a}{rest})", (says, "its two factors seem to be swapped"))


def _axis(site: Site, node: Any, name: str) -> Iterator[Change]:
    first = [*node.args] if name == "program_id" else [*node.args[1:2]]
    places = [*first, *(keyword.value for keyword in node.keywords if keyword.arg == "axis")]
    for place in (one for one in places if isinstance(one, ast.Constant) and isinstance(one.value, int)):
        for axis in (0, 1, 2):
            if axis != place.value:
                says = f"has the axis {place.value} in {shown(site.source.of(node))}.", f"try the axis {axis}"
                yield site.change(ChangeKind.AXIS, place, str(axis), says)


# --- statements -------------------------------------------------------------------------------------------------------


def _assignment(site: Site, node: Any) -> Iterator[Change]:
    """`a = x` where what `a` was is lost; `a += x` where it was to be replaced."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if not isinstance(target, ast.Name):
        return
    name, value = target.id, site.source.of(node.value)
    if isinstance(node, ast.AugAssign):
        op = _WRITTEN.get(type(node.op), "")
        says = f"has `{name} {op}= ...`."
        for other in (one for one in ("+=", "-=", "*=", "/=", "=") if one != f"{op}="):
            hint = f"try `{other}` in place of `{op}=`"
            yield site.change(ChangeKind.UPDATE, node, f"{name} {other} {value}", (says, hint))
    elif site.kernel.in_loop(node) is not None and name in site.names(node):
        says = f"overwrites `{name}` in each step of the loop."
        yield site.change(ChangeKind.UPDATE, node, f"{name} += {value}", (says, "is it to be added up?"))
        hint = "is the largest of all steps wanted?"
        yield site.change(ChangeKind.UPDATE, node, f"{name} = tl.maximum({name}, {value})", (says, hint))


# --- what is missing --------------------------------------------------------------------------------------------------

_WRAPS = (
    ("tl.exp({})", "`tl.exp` is missing"), ("-{}", "a minus is missing"), ("(1.0 / {})", "its inverse is wanted"),
    ("tl.sqrt({})", "a square root is missing"), ("({} * {})", "it is to be squared"), ("tl.log({})", "`tl.log` is missing"),
    ("tl.trans({})", "`tl.trans` is missing"), ("(1 - {})", "1 minus it is wanted"), ("tl.exp2({})", "`tl.exp2` is missing"),
)  # fmt: skip

_LOG2E = "1.4426950408889634"


def _around(site: Site, node: ast.expr) -> Iterator[Change]:
    kind = site.kind(node)
    if kind is None or kind.of == "condition" or not _is_part(site, node):
        return
    part = shown(site.source.of(node))
    text = site.source.operand(node)
    whole = _is_whole(site, node)
    if kind.of == "float" and not isinstance(node, ast.Constant):
        for form, hint in _WRAPS:
            if form != "tl.trans({})" or len(kind.shape) == 2:
                says = f"takes {part} as it is, in {_context(site, node)}.", f"look at `{site.source.of(node)}`: {hint}"
                yield site.change(ChangeKind.WRAPPED, node, form.format(text, text), says, 2 + (not whole))
        says = f"has {part} in {_context(site, node)}.", "powers of 2 want log2(e) as a factor: exp(x) is exp2(x * log2(e))"
        yield site.change(ChangeKind.FACTOR, node, f"({text} * {_LOG2E})", says, 3)
    if isinstance(node, ast.Constant):
        return
    yield from _with_another(site, node, kind, (text, part, whole))


def _with_another(site: Site, node: ast.expr, kind: ValueKind, told: tuple[str, str, bool]) -> Iterator[Change]:
    text, part, whole = told
    context = _context(site, node)
    mine = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for name, other in site.names(node).items():
        wanted = "integer" if kind.of.startswith("pointer") else kind.of
        one = fitted(name, other.shape, kind.shape)
        if one is None or other.of != wanted and not (wanted == "float" and other.of == "integer" and not other.shape):
            continue
        if name in mine and kind.of != "float":
            continue
        says = f"has {part} in {context}."
        if not kind.of.startswith("pointer"):
            hint = f"`{name}` is missing as a factor of {part}"
            yield site.change(ChangeKind.FACTOR, node, f"({text} * {one})", (says, hint), 3 + (not whole), name)
        if kind.of == "float":
            hint = f"it is to be divided by `{name}`"
            yield site.change(ChangeKind.FACTOR, node, f"({text} / {one})", (says, hint), 4 + (not whole), name)
            hint = f"`{name}` is to be subtracted from it"
            yield site.change(ChangeKind.TERM, node, f"({text} - {one})", (says, hint), 4 + (not whole), name)
        hint = f"`{name}` is missing as a term"
        yield site.change(ChangeKind.TERM, node, f"({text} + {one})", (says, hint), 4 + (not whole), name)


def _is_whole(site: Site, node: ast.expr) -> bool:
    """Whether an expression is all that a statement assigns, or that a function takes."""
    return not isinstance(site.kernel.parents.get(node), (ast.BinOp, ast.UnaryOp, ast.Compare))


def _is_part(site: Site, node: ast.expr) -> bool:
    """Whether an expression is one that something could be missing at: no dtype, no shape, no slice."""
    parent = site.kernel.parents.get(node)
    if isinstance(parent, ast.keyword):
        return parent.arg in ("other", "value", "acc", "mask")
    if isinstance(parent, ast.Attribute):
        return False
    if isinstance(parent, ast.Call) and parent.func is node:
        return False
    if isinstance(parent, ast.Call) and called(parent).rpartition(".")[2] in ("arange", "zeros", "full", "program_id", "cdiv"):
        return False
    return not isinstance(parent, (ast.Slice, ast.Tuple, ast.Expr))


def _context(site: Site, node: ast.AST) -> str:
    """The piece of source around a node that a sentence shows."""
    best, around = node, site.kernel.parents.get(node)
    while isinstance(around, (ast.expr, ast.keyword)):
        if len(site.source.of(around)) > _LONGEST:
            break
        best, around = around, site.kernel.parents.get(around)
    if best is node and isinstance(around, (ast.expr, ast.stmt)):
        best = around
    return shown(site.source.of(best))


_LONGEST = 60

_RULES: dict[type, tuple[Rule, ...]] = {
    ast.Name: (_other_name,), ast.Constant: (_other_number,), ast.UnaryOp: (_negative,), ast.BinOp: (_operator,),
    ast.Compare: (_comparison,), ast.Subscript: (_axes,), ast.Call: (_call,), ast.Assign: (_assignment,),
    ast.AugAssign: (_assignment,),
}  # fmt: skip
