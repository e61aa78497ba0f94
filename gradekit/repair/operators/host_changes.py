"""Single changes of host code: at each expression what a beginner may have meant in its place.

What fits is seen from the values that a walk has met: a tensor for a tensor, a size for a size, a factor that fits a
number.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradekit.causes import Cause
from gradekit.interpreter.host_values import Launcher
from gradekit.interpreter.host_walk import HostWalk
from gradekit.repair.operators.changes import Change, ChangeKind, around
from gradekit.submission.parsed_source import ParsedSource, called, shown

LATER = 1
"""The turn of changes that bring in something: tried where nothing else was right."""

_WRITTEN: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip

_SIBLINGS = {"+": "-*", "-": "+", "*": "/+", "/": "*", "//": "%*", "%": ("//",), "**": "*"}

_OF_SIZES = {"shape", "stride", "size"}

_IDLE_ATTRIBUTES = {"device", "dtype", "is_cuda", "requires_grad"}

_DROPPABLE = {"clamp", "clamp_min", "sum", "mean", "sqrt", "t", "transpose", "float", "to", "contiguous", "abs"}

_MAKERS = {"torch.empty": "torch.zeros", "torch.empty_like": "torch.zeros_like"}


class HostSite:
    """Host code as it was walked."""

    def __init__(self, source: ParsedSource, walk: HostWalk) -> None:
        self.source, self.walk = source, walk
        self.parents = {part: node for node in ast.walk(source.tree) for part in ast.iter_child_nodes(node)}
        self.functions = {one.name: one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)}

    @property
    def nodes(self) -> Iterator[ast.expr]:
        """The expressions that were met, in the order of the text."""
        met = (node for node in self.source.on_host() if isinstance(node, ast.expr) and node in self.walk.values)
        return (node for node in met if not isinstance(getattr(node, "ctx", None), ast.Store))

    def value(self, node: ast.AST) -> Any:
        """What an expression was when it was met first."""
        return self.walk.values.get(node)

    def statement(self, node: ast.AST) -> ast.AST:
        """The statement that a node is part of."""
        while not isinstance(node, ast.stmt) and node in self.parents:
            node = self.parents[node]
        return node

    def names(self, node: ast.AST) -> dict[str, Any]:
        """The names that a function knows where a node stands, without the module's."""
        known = self.walk.names.get(self.statement(node), {})
        return {name: value for name, value in known.items() if name not in self.walk.module}

    def change(self, kind: ChangeKind, node: ast.AST, new: str, says: tuple[str, str], turn: int = 0) -> Change:
        """A change with what it says: a sentence without its "Line n", and a hint."""
        line = getattr(node, "lineno", 0)
        return Change(kind, "", node, new, f"Line {line} {says[0]}", says[1], turn)

    def context(self, node: ast.AST) -> str:
        """The piece of source around a node that a sentence shows."""
        return around(self.source, self.parents, node)


def host_changes(site: HostSite) -> Iterator[Change]:
    """All changes of the host code that was walked."""
    for node in site.nodes:
        if not _is_idle(site, node):
            for rule in _RULES.get(type(node), ()):
                yield from rule(site, node)
            yield from _missing(site, node)


def _is_idle(site: HostSite, node: ast.AST) -> bool:
    """Whether an expression only says where a tensor is, or of what dtype; or what is called."""
    parent = site.parents.get(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _IDLE_ATTRIBUTES
    if isinstance(parent, ast.keyword):
        return parent.arg == "device"
    return isinstance(parent, ast.Call) and parent.func is node


def _kind(value: Any) -> str:
    """What may stand in the place of a value."""
    if isinstance(value, Tensor):
        return "tensor" if value.dim() else "number of a tensor"
    if isinstance(value, bool):
        return "condition"
    return "size" if isinstance(value, int) else "number" if isinstance(value, float) else ""


def _other_name(site: HostSite, node: Any) -> Iterator[Change]:
    kind = _kind(site.value(node))
    if not kind or not isinstance(node.ctx, ast.Load):
        return
    says = f"uses `{node.id}` in {site.context(node)}."
    for name, value in site.names(node).items():
        if name != node.id and (_kind(value) == kind or isinstance(value, Tensor) and kind.endswith("tensor")):
            yield site.change(ChangeKind.NAME, node, name, (says, f"try `{name}` in its place"))


def _other_number(site: HostSite, node: Any) -> Iterator[Change]:
    value, parent = node.value, site.parents.get(node)
    if isinstance(value, bool):
        says = f"has {value} in {site.context(node)}."
        yield site.change(ChangeKind.NUMBER, node, str(not value), (says, f"write {not value}"))
    elif _is_dimension(site, node):
        for other in (one for one in range(-1, 4) if one != value):
            told = f"takes the dimension {value} in {site.context(node)}.", f"try the dimension {other}"
            yield site.change(ChangeKind.AXIS, node, str(other), told)
    elif isinstance(value, (int, float)) and isinstance(parent, (ast.BinOp, ast.UnaryOp)):
        others: list[float] = [value + 1, value - 1, 2 * value, 0.5 * value, *([1 / value] if value else [])]
        for number in dict.fromkeys(one for one in others if one != value):
            told = f"has the number {value!r} in {site.context(node)}.", f"try {number!r}"
            yield site.change(ChangeKind.NUMBER, node, repr(number), told)


def _is_dimension(site: HostSite, node: ast.AST) -> bool:
    """Whether a number says which dimension is meant."""
    parent = site.parents.get(node)
    if isinstance(parent, ast.UnaryOp):
        return False
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.value, ast.Attribute) and parent.value.attr == "shape"
    if isinstance(parent, ast.keyword):
        return parent.arg in ("dim", "axis")
    of = ("stride", "size", "sum", "mean", "transpose", "unsqueeze", "squeeze", "amax")
    return isinstance(parent, ast.Call) and node in parent.args and called(parent).rpartition(".")[2] in of


def _operator(site: HostSite, node: Any) -> Iterator[Change]:
    op = _WRITTEN.get(type(node.op))
    if op is None or not _kind(site.value(node)):
        return
    source = site.source
    left, right = source.operand(node.left), source.operand(node.right)
    says = f"computes {shown(source.of(node))}."
    for other in _SIBLINGS[op]:
        if other in ("*", "/") and getattr(node.right, "value", None) == 1:
            continue  # which is to leave out that side
        new = f"({left} {other} {right})"
        yield site.change(ChangeKind.OPERATOR, node, new, (says, f"try `{other}` in place of `{op}`"))
    if op in ("-", "/", "//"):
        hint = f"the two sides of `{op}` seem to be swapped"
        yield site.change(ChangeKind.SIDES, node, f"({right} {op} {left})", (says, hint))
    if op == "//":
        hint = "the last, partial one is left out: round up, with `triton.cdiv`"
        yield site.change(ChangeKind.STEP, node, f"triton.cdiv({left}, {right})", (says, hint))
    for one, said in ((node.left, f"{op} {right}"), (node.right, f"{left} {op}")):
        if op in ("+", "*") or one is node.left:
            told = f"has `{said}` in {site.context(node)}.", "leave it out"
            yield site.change(ChangeKind.DROPPED, node, source.operand(one), told)
    yield from _other_brackets(site, node, (left, op, right))
    if op == "/":
        yield from _other_divisor(site, node)


def _other_divisor(site: HostSite, node: Any) -> Iterator[Change]:
    """Another number, be it one of a tensor, to divide by."""
    mine = _kind(site.value(node.right))
    says = f"divides by {shown(site.source.of(node.right))} in {site.context(node)}."
    for name, value in site.names(node).items():
        kind = _kind(value)
        if kind in ("size", "number", "number of a tensor") and (kind != mine or not isinstance(node.right, ast.Name)):
            yield site.change(ChangeKind.NAME, node.right, name, (says, f"divide it by `{name}`"))


def _other_brackets(site: HostSite, node: Any, parts: tuple[str, str, str]) -> Iterator[Change]:
    """`a / (b * c)` for `a / b * c`, and the other way round."""
    left, op, right = parts
    source = site.source
    says = f"computes {shown(source.of(node))}.", "look at the brackets: other parts belong together"
    if isinstance(node.left, ast.BinOp) and (first := _WRITTEN.get(type(node.left.op))):
        a, b = source.operand(node.left.left), source.operand(node.left.right)
        yield site.change(ChangeKind.BRACKET, node, f"({a} {first} ({b} {op} {right}))", says)
    if isinstance(node.right, ast.BinOp) and (second := _WRITTEN.get(type(node.right.op))):
        b, c = source.operand(node.right.left), source.operand(node.right.right)
        yield site.change(ChangeKind.BRACKET, node, f"(({left} {op} {b}) {second} {c})", says)


def _call(site: HostSite, node: Any) -> Iterator[Change]:
    path = called(node)
    if path in _MAKERS:
        new = f"{_MAKERS[path]}{site.source.of(node).removeprefix(path)}"
        says = f"allocates with {path}, which holds no values yet, in {site.context(node)}."
        yield site.change(ChangeKind.FUNCTION, node, new, (says, f"use {_MAKERS[path]}"))
    if path in ("math.sqrt", "abs", "int", "float") and node.args:
        told = f"takes {shown(site.source.of(node))}.", f"leave `{path}` out"
        yield site.change(ChangeKind.DROPPED, node, site.source.operand(node.args[0]), told)
    if isinstance(node.func, ast.Attribute) and isinstance(site.value(node.func.value), Tensor):
        yield from _method(site, node)
    if path == "torch.empty_like" and node.args and isinstance(site.value(node), Tensor):
        of = site.source.operand(node.args[0])
        says = f"has {path}({of}), which keeps the strides of {of}; the kernel stores as if it were contiguous."
        hint = "allocate the result with torch.empty and its shape, or store with its strides"
        new = f"torch.empty({of}.shape, dtype={of}.dtype, device={of}.device)"
        yield site.change(ChangeKind.FUNCTION, node, new, (says, hint))
    if isinstance(site.value(node.func), Launcher):
        yield from _strides_of_arguments(site, node)
    yield from _exchanged(site, node, node.args)
    yield from _other_tensors(site, node)


def _strides_of_arguments(site: HostSite, node: ast.Call) -> Iterator[Change]:
    """A stride of a tensor that a launch is given, for a number, or the stride of another tensor or dimension."""
    tensors = {site.source.of(one): site.value(one) for one in node.args if isinstance(site.value(one), Tensor)}
    for argument in node.args:
        is_stride = isinstance(argument, ast.Call) and called(argument).endswith(".stride")
        if not is_stride and not isinstance(argument, ast.Constant) or not isinstance(site.value(argument), int):
            continue
        for tensor, value in tensors.items():
            for dimension in range(value.dim()):
                new = f"{tensor}.stride({dimension})"
                passed = f"passes {site.source.of(argument)} in {site.context(argument)}"
                says = f"{passed}, where a stride of {tensor} belongs."
                change = site.change(ChangeKind.NAME, argument, new, (says, f"pass {new}"))
                yield replace(change, cause=Cause.IGNORES_STRIDES)


def _method(site: HostSite, node: Any) -> Iterator[Change]:
    """No method, or its sibling, where a method of a tensor is called."""
    name, of = node.func.attr, site.source.of(node.func.value)
    says = f"calls `.{name}` in {site.context(node)}."
    if name in _DROPPABLE:
        yield site.change(ChangeKind.DROPPED, node, of, (says, "leave it out"))
    other = {"sum": "mean", "mean": "sum"}.get(name)
    if other is not None:
        new = f"{of}.{other}({', '.join(map(site.source.of, (*node.args, *node.keywords)))})"
        yield site.change(ChangeKind.FUNCTION, node, new, (says, f"write `.{other}`"))


def _tuple(site: HostSite, node: Any) -> Iterator[Change]:
    yield from _exchanged(site, node, node.elts)


def _exchanged(site: HostSite, node: ast.AST, parts: list[ast.expr]) -> Iterator[Change]:
    """Two arguments of a call, two results, or two names that are unpacked, in each other's place."""
    known = [part for part in parts if isinstance(part, ast.Constant) and part.value is None or _kind(site.value(part))]
    for one, other in itertools.combinations(known, 2):
        texts = site.source.of(one), site.source.of(other)
        kinds = {_kind(site.value(part)) or "tensor" for part in (one, other)}
        if texts[0] != texts[1] and len(kinds) == 1:
            says = f"has `{texts[0]}` and `{texts[1]}` in each other's place, in {site.context(one)}."
            hint = "exchange the two: they are swapped"
            turn = LATER if _are_named_alike(site, node, (one, other)) else 0
            back = site.change(ChangeKind.SIDES, other, texts[0], ("", ""))
            first = site.change(ChangeKind.SIDES, one, texts[1], (says, hint), turn)
            yield replace(first, also=(back,))


def _are_named_alike(site: HostSite, node: ast.AST, parts: tuple[ast.expr, ast.expr]) -> bool:
    """Whether two arguments are called as the parameters are that they are passed for, or two values as the names that
    they are given to: they are hardly exchanged there."""
    statement = site.statement(node)
    if isinstance(node, ast.Call):
        function = site.functions.get(called(node)) or site.functions.get(getattr(site.value(node.func), "kernel", ""))
        names = [one.arg for one in function.args.args] if function is not None else []
        given: list[ast.expr] = node.args
    else:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is node else None
        given = node.elts if isinstance(node, ast.Tuple) else []
        names = [getattr(one, "id", "") for one in target.elts] if isinstance(target, ast.Tuple) else []
    places = [given.index(part) for part in parts if part in given]
    texts = [site.source.of(part).partition(".")[0] for part in parts]
    return len(places) == 2 and all(
        place < len(names) and names[place].partition("_ptr")[0] == text
        for place, text in zip(places, texts, strict=True)
    )


def _other_tensors(site: HostSite, node: ast.Call) -> Iterator[Change]:
    """All sizes or strides of one tensor in a call replaced by those of another."""
    inside = [one for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(site.value(one), Tensor)]
    used = [one for one in inside if getattr(site.parents[one], "attr", "") in _OF_SIZES]
    for name in dict.fromkeys(one.id for one in used):
        mine = [one for one in used if one.id == name]
        others = [other for other, value in site.names(node).items() if isinstance(value, Tensor) and other != name]
        for start, other in itertools.product(range(len(mine)), others if len(mine) > 1 else ()):
            for end in range(start + 2, len(mine) + 1):
                says = f"passes the strides or sizes of `{name}` in {site.context(mine[start])}."
                hint = f"pass those of `{other}`"
                every = (site.change(ChangeKind.NAME, one, other, (says, hint)) for one in mine[start:end])
                first, *rest = every
                yield replace(first, also=tuple(rest))


def _dtype(site: HostSite, node: Any) -> Iterator[Change]:
    value = site.value(node)
    if isinstance(value, torch.dtype) and value.is_floating_point and value is not torch.float32:
        says = f"has {shown(site.source.of(node))} in {site.context(node)}.", "use float32, which keeps its digits"
        yield site.change(ChangeKind.FUNCTION, node, "torch.float32", says)


def _missing(site: HostSite, node: ast.expr) -> Iterator[Change]:
    """What an expression may lack: a factor, a root, one more."""
    kind, text = _kind(site.value(node)), site.source.operand(node)
    if kind not in ("size", "number", "number of a tensor") or not _is_given(site, node) or _is_made(site, node, kind):
        return
    yield from _idle_parameter(site, node)
    yield from _one_off(site, node, text) if kind == "size" and not isinstance(node, ast.Constant) else ()
    place = f"{shown(site.source.of(node))} in {site.context(node)}."
    for form, hint in (("({} ** 0.5)", "a square root is missing"), ("(1.0 / {})", "its inverse is wanted")):
        if kind != "number of a tensor" and not isinstance(node, ast.Constant):
            yield site.change(ChangeKind.WRAPPED, node, form.format(text), (f"has {place}", hint))
    for name, value in site.names(node).items():
        of = _kind(value)
        if of in ("number", "size", "number of a tensor") and (kind != "size" or of == "size") and name != text:
            for symbol, hint in (("*", f"`{name}` is missing as a factor"), ("/", f"divide it by `{name}`")):
                op = "//" if kind == "size" and symbol == "/" else symbol
                new = f"({text} {op} {name})"
                yield replace(site.change(ChangeKind.FACTOR, node, new, (f"has {place}", hint), LATER), lacks=name)


def _idle_parameter(site: HostSite, node: ast.expr) -> Iterator[Change]:
    """A parameter that nobody uses for a number that is passed to a kernel."""
    names = {one.id for one in site.nodes if isinstance(one, ast.Name)}
    for name, value in site.names(node).items() if not isinstance(node, ast.Name) else ():
        if name not in names and _kind(value) in ("number", "size"):
            says = f"has {shown(site.source.of(node))} in {site.context(node)}, and nothing uses `{name}`."
            yield site.change(ChangeKind.IDLE, node, name, (says, f"use `{name}` there"))


def _one_off(site: HostSite, node: ast.expr, text: str) -> Iterator[Change]:
    for sign in "+-":
        says = f"has {shown(site.source.of(node))} in {site.context(node)}.", f"is it one off? try `{text} {sign} 1`"
        yield site.change(ChangeKind.TERM, node, f"({text} {sign} 1)", says, LATER)


def _is_made(site: HostSite, node: ast.expr, kind: str) -> bool:
    """Whether an expression is the name of a number that the same function computes: it is looked at there."""
    statement = site.statement(node)
    function = site.parents.get(statement)
    made = function.body if isinstance(node, ast.Name) and isinstance(function, ast.FunctionDef) else []
    targets = [target for one in made if isinstance(one, ast.Assign) for target in one.targets]
    return kind == "number" and any(isinstance(one, ast.Name) and one.id == getattr(node, "id", "") for one in targets)


def _is_given(site: HostSite, node: ast.expr) -> bool:
    """Whether an expression is all that is assigned, returned or passed to a kernel, or one side of a quotient."""
    parent = site.parents.get(node)
    if isinstance(parent, ast.Call):
        return isinstance(site.value(parent.func), Launcher) and node in parent.args
    is_side = isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Div, ast.Pow, ast.Mult))
    return is_side or isinstance(parent, (ast.Assign, ast.Return))


_RULES: dict[type, tuple[Callable[[HostSite, Any], Iterator[Change]], ...]] = {
    ast.Name: (_other_name,), ast.Constant: (_other_number,), ast.BinOp: (_operator,), ast.Call: (_call,),
    ast.Tuple: (_tuple,), ast.Attribute: (_dtype,),
}  # fmt: skip
