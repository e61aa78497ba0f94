"""Single changes of host code: at each expression what a beginner may have meant in its place.

What fits is seen from the values that a walk has met: a tensor for a tensor, a size for a size, a factor that fits a
number.
"""

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gradekit.arithmetic import SIGNS
from gradekit.causes import Cause
from gradekit.interpreter.host_vocabulary import Launcher
from gradekit.interpreter.host_walk import HostWalk
from gradekit.repair.idioms.launches import loaded_in
from gradekit.repair.operators.changes import Change, ChangeKind, Site, at_once
from gradekit.repair.operators.replacements import other_brackets
from gradekit.repair.operators.words import hint_of, sentence_of, words
from gradekit.repair.work import Turn
from gradekit.source.draft import Draft, draft_of
from gradekit.source.kernel import KernelDraft, target_of
from gradekit.submission.parsed_source import ParsedSource, called, shown

_SIBLINGS = {"+": "-*", "-": "+", "*": "/+", "/": "*", "//": "%*", "%": ("//",), "**": "*"}

_OF_SIZES = {"shape": "shape", "stride": "strides", "size": "sizes"}  # what words call them

_IDLE_ATTRIBUTES = {"device", "dtype", "is_cuda", "requires_grad"}

_MAKERS = {"torch.empty": "torch.zeros", "torch.empty_like": "torch.zeros_like"}


class HostSite(Site):
    """Host code as it was walked."""

    def __init__(self, source: ParsedSource, walk: HostWalk) -> None:
        super().__init__(source, {part: n for n in ast.walk(source.tree) for part in ast.iter_child_nodes(n)})
        self.walk, self.draft = walk, draft_of(source.text) or Draft(source.text)
        self.functions = {one.name: one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)}
        made = (one for one in source.on_host if isinstance(one, ast.Assign) and called(one.value) in _MAKERS)
        self.made = {source.of(one.targets[0]) for one in made}

    @property
    def nodes(self) -> Iterator[ast.expr]:
        """The expressions that were met, in the order of the text."""
        met = (node for node in self.source.on_host if isinstance(node, ast.expr) and node in self.walk.values)
        return (node for node in met if not isinstance(getattr(node, "ctx", None), ast.Store))

    @cached_property
    def idle_numbers(self) -> dict[str, float]:
        """The numbers of the module that nothing uses."""
        names = (one for one in ast.walk(self.source.tree) if isinstance(one, ast.Name))
        used = {one.id for one in names if isinstance(one.ctx, ast.Load)}
        return {name: one for name, one in self.walk.module.items() if isinstance(one, float) and name not in used}

    @cached_property
    def widths(self) -> dict[int, None]:
        """The constants that launches give as numbers, and each times another: how much a program does, it may be."""
        constants = ((one.kernel.constexprs, one.given) for one in self.draft.launches)
        given = [[getattr(of[name], "value", None) for name in names if name in of] for names, of in constants]
        sizes = [[one for one in each if type(one) is int and one > 1] for each in given]
        pairs = (one * other for each in sizes for one, other in itertools.combinations(each, 2))
        return dict.fromkeys([*(one for each in sizes for one in each), *pairs])

    def value(self, node: ast.AST) -> Any:
        """What an expression was when it was met first."""
        return self.walk.values.get(node)

    def names(self, node: ast.AST) -> dict[str, Any]:
        """The names that a function knows where a node stands, without the module's."""
        known = self.walk.names.get(self.statement(node), {})
        return {name: value for name, value in known.items() if name not in self.walk.module}


def host_changes(site: HostSite) -> Iterator[Change]:
    """All changes of the host code that was walked."""
    yield from _copied(site)
    for node in site.nodes:
        if not _is_idle(site, node):
            for rule in _RULES.get(type(node), ()):
                yield from rule(site, node)
            yield from _missing(site, node)
    yield from _of_grids(site)


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
    if isinstance(value, tuple) and value and all(type(one) is int for one in value):
        return f"{len(value)} sizes"
    return "size" if isinstance(value, int) else "number" if isinstance(value, float) else ""


def _other_name(site: HostSite, node: Any) -> Iterator[Change]:
    kind = _kind(site.value(node))
    if not kind or not isinstance(node.ctx, ast.Load):
        return
    shape = getattr(site.value(node), "shape", None) if isinstance(site.statement(node), ast.Return) else None
    beside = getattr(site.parents.get(node), "elts", ()) if shape is not None else ()
    returned = {getattr(one, "id", "") for one in beside}  # nobody means one of them twice
    for name, value in site.names(node).items():
        is_alike = _kind(value) == kind or isinstance(value, Tensor) and kind.endswith("tensor")
        if name not in {node.id, *returned} and is_alike and (shape is None or getattr(value, "shape", shape) == shape):
            says = sentence_of("use", stride="", name=node.id, place=site.context(node)), hint_of("name", name=name)
            if (asked := getattr(site.parents.get(node), "attr", "")) in _OF_SIZES:
                says = words("of-another", what=_OF_SIZES[asked], name=node.id, place=site.context(node), other=name)
            yield site.change(ChangeKind.NAME, node, name, says)


def _other_number(site: HostSite, node: Any) -> Iterator[Change]:
    value, parent = node.value, site.parents.get(node)
    if isinstance(value, bool):
        says = words("truth", it=value, place=site.context(node), new=not value)
        yield site.change(ChangeKind.NUMBER, node, str(not value), says)
    elif _is_dimension(site, node):
        for other in (one for one in range(-1, 4) if one != value):
            says = words("dimension", it=value, place=site.context(node), new=other)
            yield site.change(ChangeKind.AXIS, node, str(other), says)
    elif isinstance(parent, ast.Call) and called(parent).endswith("cdiv"):
        known = {**site.walk.module, **site.names(node)}
        known = {name: size for name, size in known.items() if name not in map(site.source.of, parent.args)}
        named = [name for name, size in known.items() if type(size) is int and size != value]
        for new in [*named, *(str(one) for one in site.widths if one != value)]:
            says = words("number-on-host", it=repr(value), place=site.context(node), new=new)
            yield site.change(ChangeKind.NUMBER, node, new, says)
    elif isinstance(value, (int, float)) and isinstance(parent, (ast.BinOp, ast.UnaryOp)):
        others: list[float] = [value + 1, value - 1, 2 * value, 0.5 * value, *([1 / value] if value else [])]
        for number in dict.fromkeys(one for one in others if one != value):
            says = words("number-on-host", it=repr(value), place=site.context(node), new=repr(number))
            yield site.change(ChangeKind.NUMBER, node, repr(number), says)


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
    name = getattr(parent.func, "attr", "") if isinstance(parent, ast.Call) and node in parent.args else ""
    return name in of


def _operator(site: HostSite, node: Any) -> Iterator[Change]:
    op = SIGNS.get(type(node.op))
    if op is None or not _kind(site.value(node)):
        return
    source = site.source
    left, right = source.operand(node.left), source.operand(node.right)
    whole = shown(source.of(node))
    for other in _SIBLINGS.get(op, ()):
        if other in ("*", "/") and getattr(node.right, "value", None) == 1:
            continue  # which is to leave out that side
        new = f"({left} {other} {right})"
        yield site.change(ChangeKind.OPERATOR, node, new, words("operation", it=whole, new=other, old=op))
    if op in ("-", "/", "//"):
        yield site.change(ChangeKind.SIDES, node, f"({right} {op} {left})", words("operation-sides", it=whole, old=op))
    if op == "//":
        says = words("operation-rounded-down-on-host", it=whole)
        yield site.change(ChangeKind.STEP, node, f"triton.cdiv({left}, {right})", says)
    for one, said in ((node.left, (op, right)), (node.right, (left, op))):
        if op in ("+", "*") or one is node.left:
            says = words("dropped", one=said[0], other=said[1], place=site.context(node))
            yield site.change(ChangeKind.DROPPED, node, source.operand(one), says)
    yield from other_brackets(site, node, op)
    if op == "/":
        yield from _other_divisor(site, node)


def _other_divisor(site: HostSite, node: Any) -> Iterator[Change]:
    """Another number, be it one of a tensor, to divide by."""
    mine = _kind(site.value(node.right))
    for name, value in site.names(node).items():
        kind = _kind(value)
        if kind in ("size", "number", "number of a tensor") and (kind != mine or not isinstance(node.right, ast.Name)):
            says = words("divisor", it=shown(site.source.of(node.right)), place=site.context(node), name=name)
            yield site.change(ChangeKind.NAME, node.right, name, says)


def _call(site: HostSite, node: Any) -> Iterator[Change]:
    path = called(node)
    if path in _MAKERS and not site.draft.is_stored(target_of(site.statement(node))):  # what is stored begins anywhere
        new = f"{_MAKERS[path]}{site.source.of(node).removeprefix(path)}"
        says = words("allocated-empty", it=path, place=site.context(node), new=_MAKERS[path])
        yield site.change(ChangeKind.FUNCTION, node, new, says)
    if isinstance(site.value(node.func), Launcher):
        yield from _strides_of_arguments(site, node)
    for part in node.args if path in ("min", "max") and len(node.args) == 2 else ():
        says = words("bound-on-host", it=shown(site.source.of(node)), of=site.source.of(part))
        yield site.change(ChangeKind.DROPPED, node, site.source.operand(part), says)
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
                given, place = site.source.of(argument), site.context(argument)
                says = words("stride-passed", it=given, place=place, tensor=tensor, new=new)
                change = site.change(ChangeKind.NAME, argument, new, says)
                yield replace(change, cause=Cause.IGNORES_STRIDES)


def _tuple(site: HostSite, node: Any) -> Iterator[Change]:
    yield from _exchanged(site, node, node.elts)
    inside = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one not in node.elts]
    yield from _exchanged(site, node, [one for one in inside if _kind(site.value(one)) == "size"])


def _exchanged(site: HostSite, node: ast.AST, parts: list[ast.expr]) -> Iterator[Change]:
    """Two arguments of a call, two results, or two names that are unpacked, in each other's place; also what is spread
    out there."""
    parts = [part.value if isinstance(part, ast.Starred) else part for part in parts]
    known = [part for part in parts if isinstance(part, ast.Constant) and part.value is None or _kind(site.value(part))]
    for one, other in itertools.combinations(known, 2):
        texts = site.source.of(one), site.source.of(other)
        kinds = {_kind(site.value(part)) or "tensor" for part in (one, other)}
        if texts[0] != texts[1] and len(kinds) == 1:
            says = words("exchanged-on-host", one=texts[0], other=texts[1], place=site.context(one))
            back = site.change(ChangeKind.SIDES, other, texts[0], ("", ""))
            yield at_once([site.change(ChangeKind.SIDES, one, texts[1], says), back])


def _other_tensors(site: HostSite, node: ast.Call) -> Iterator[Change]:
    """All sizes or strides of one tensor in a call replaced by those of another."""
    inside = [one for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(site.value(one), Tensor)]
    used = [one for one in inside if getattr(site.parents[one], "attr", "") in _OF_SIZES]
    for name in dict.fromkeys(one.id for one in used):
        mine = [one for one in used if one.id == name]
        others = [other for other, value in site.names(node).items() if isinstance(value, Tensor) and other != name]
        for start, other in itertools.product(range(len(mine)), others if len(mine) > 1 else ()):
            for end in range(start + 2, len(mine) + 1):
                says = words("tensor-passed", name=name, place=site.context(mine[start]), other=other)
                yield at_once(site.change(ChangeKind.NAME, one, other, says) for one in mine[start:end])


def _of_grids(site: HostSite) -> Iterator[Change]:
    """As many programs along an axis of a grid as a size counts, or as it has tiles of a constant that the launch
    gives, or as many for each of another size; one more axis, or one alone, where the kernel asks for that."""
    places = {site.source.span(node): node for node in site.nodes}
    for launch in site.draft.launches:
        whole = {name: value for name, value in launch.given.items() if _kind(site.value(value)) == "size"}
        text = {name: site.source.of(value) for name, value in whole.items()}
        sizes = [text[name] for name in launch.kernel.lengths if name in text]
        grid = site.draft.grid_of(launch)
        lambdas = getattr(getattr(site.parents.get(grid), "args", None), "args", ())  # what an autotuner has chosen
        tile = {**{name: f'{one.arg}["{name}"]' for one in lambdas for name in launch.kernel.constexprs}, **text}
        tiles = [tile[name] for name in launch.kernel.constexprs if name in tile]
        counts = [*(f"triton.cdiv({size}, {tile})" for size in sizes for tile in tiles), *sizes]
        parts = getattr(grid, "elts", ())
        last, given = _last_axis(launch.kernel), [site.source.operand(part) for part in parts]
        more = [f"({', '.join(given)}, {one})" for one in counts if one not in given] if last == len(parts) else []
        fewer = [f"({' * '.join(given)},)"] if last == 0 and len(parts) > 1 else []
        for new in [*more, *fewer] if site.source.span(grid) in places else ():
            says = words("grid-axes", it=shown(site.source.of(grid)), kernel=launch.kernel.name, axis=last, new=new)
            yield site.change(ChangeKind.STEP, places[site.source.span(grid)], new, says)
        for axis, node in ((axis, places.get(site.source.span(part))) for axis, part in enumerate(parts)):
            if node is None:
                continue
            known = [name for name, value in site.names(node).items() if _kind(value) == "size"]
            rows = (f"{name} // {size}" for name in known for size in sizes if name != size)
            of_each = (f"{name} * {site.source.operand(node)}" for name in known)
            for new in dict.fromkeys([*counts, *known, *rows, *of_each]):
                says = words("programs", it=shown(site.source.of(node)), axis=axis, new=new)
                yield site.change(ChangeKind.STEP, node, new, says)


def _last_axis(kernel: KernelDraft) -> int:
    """The last axis of its grid that a kernel asks for; -1 where it asks for none."""
    asked = (part for one in kernel.nodes if called(one) == "tl.program_id" for part in ast.walk(one))
    return max((part.value for part in asked if isinstance(part, ast.Constant)), default=-1)  # type: ignore[type-var, return-value]


def _copied(site: HostSite) -> Iterator[Change]:
    """`x.contiguous()` for each view that is passed to a kernel or kept for one; and for all tensors that are, also
    where strides are asked for, or a result is made like them: what is contiguous in this call is a view in others."""
    views = [node for node in site.nodes if isinstance(value := site.value(node), Tensor) and not value.is_contiguous()]
    passed = [node for node in views if _is_kept_or_passed(site, node)]
    used = [n for n in views if called(site.parents[n]) in _MAKERS or getattr(site.parents[n], "attr", "") == "stride"]
    of_each: dict[int, list[ast.expr]] = {id(site.value(node)): [] for node in passed}
    for node in (*passed, *used):
        of_each.get(id(site.value(node)), []).append(node)
    copy = lambda node: site.change(
        ChangeKind.FUNCTION, node, f"{site.source.of(node)}.contiguous()", ("", ""), Turn.HOST_LAST
    )
    tensors = [node for node in site.nodes if isinstance(site.value(node), Tensor)]
    given = [node for node in tensors if _is_kept_or_passed(site, node) or node in used]
    for node in given:
        of_each.setdefault(id(site.value(node)), [node])
    every = [given] if len(given) > 1 and passed else []
    mine = [nodes for nodes in of_each.values() if nodes[0] in passed]
    for nodes in (*mine, *every):
        first, *rest = map(copy, nodes)
        *most, last = dict.fromkeys(site.source.of(of_each[id(site.value(node))][0]) for node in nodes)
        one = of_each[id(site.value(nodes[0]))][0]
        asked = any(getattr(site.parents[node], "attr", "") == "stride" for node in nodes)
        is_clear = not (asked and most)  # of several tensors, some have their own strides
        line, where = loaded_in(site.draft, one, site.value(one).dim()) if is_clear else (None, "")
        role = "copied-with-strides" if asked else "copied"
        sentence, hint = words(role, names=f"{', '.join(most)} and {last}" if most else last, where=where)
        reads = f" Line {line} reads {site.source.of(one)} as if it were contiguous." if line else ""
        told = replace(first, sentence=sentence + reads, hint=hint, at=line or first.line, also=tuple(rest))
        yield replace(told, cause=Cause.IGNORES_STRIDES)


def _is_kept_or_passed(site: HostSite, node: ast.AST) -> bool:
    parent = site.parents[node]
    is_passed = isinstance(parent, ast.Call) and isinstance(site.value(parent.func), Launcher)
    return isinstance(node, ast.Name) and (is_passed and node.id not in site.made or isinstance(parent, ast.Assign))


def _dtype(site: HostSite, node: Any) -> Iterator[Change]:
    value = site.value(node)
    if isinstance(value, torch.dtype) and value.is_floating_point and value is not torch.float32:
        says = words("dtype", it=shown(site.source.of(node)), place=site.context(node))
        yield replace(site.change(ChangeKind.FUNCTION, node, "torch.float32", says), cause=Cause.LOW_PRECISION)


def _missing(site: HostSite, node: ast.expr) -> Iterator[Change]:
    """What an expression may lack: a factor, a root."""
    kind, text = _kind(site.value(node)), site.source.operand(node)
    if kind not in ("size", "number", "number of a tensor") or not _is_given(site, node) or _is_made(site, node, kind):
        return
    yield from _idle_parameter(site, node)
    says = sentence_of("number", it=shown(site.source.of(node)), place=site.context(node))
    for form, role in (("({} ** 0.5)", "lacks-root"), ("(1.0 / {})", "lacks-inverse"), ("(1 - {})", "lacks-rest")):
        if kind != "number of a tensor" and not isinstance(node, ast.Constant):
            yield site.change(ChangeKind.WRAPPED, node, form.format(text), (says, hint_of(role)))
    for name, value in {**site.names(node), **site.idle_numbers}.items():
        of = _kind(value)
        if of in ("number", "size", "number of a tensor") and (kind != "size" or of == "size") and name != text:
            told = says, hint_of("lacks-factor-on-host", name=name)
            yield replace(site.change(ChangeKind.FACTOR, node, f"({text} * {name})", told, Turn.HOST_LATER), lacks=name)


def _idle_parameter(site: HostSite, node: ast.expr) -> Iterator[Change]:
    """A parameter that nothing uses, for a number that is passed to a kernel."""
    names = {one.id for one in site.nodes if isinstance(one, ast.Name)}
    for name, value in site.names(node).items() if not isinstance(node, ast.Name) else ():
        if name not in names and _kind(value) in ("number", "size"):
            says = words("parameter-unused", it=shown(site.source.of(node)), place=site.context(node), name=name)
            yield site.change(ChangeKind.IDLE, node, name, says)


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
