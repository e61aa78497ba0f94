"""What may be missing at an expression: a function around it, a factor, a term."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import replace

from gradekit.screening.changes import Change, ChangeKind, ChangeSite, context
from gradekit.screening.kinds import ValueKind, fitted
from gradekit.submission.parsed_source import called, shown

_WRAPS = (
    ("tl.exp({})", "`tl.exp` is missing"), ("-{}", "a minus is missing"), ("(1.0 / {})", "its inverse is wanted"),
    ("tl.sqrt({})", "a square root is missing"), ("({} * {})", "it is to be squared, or is missing as a factor"),
    ("tl.log({})", "`tl.log` is missing"),
    ("tl.trans({})", "`tl.trans` is missing"), ("(1 - {})", "1 minus it is wanted"),
    ("tl.exp2({})", "`tl.exp2` is missing"),
    ("(2 * {})", "twice as much is wanted"), ("(0.5 * {})", "half of it is wanted"),
)  # fmt: skip

_COMBINED: tuple[tuple[ChangeKind, str, type[ast.operator], int, str], ...] = (
    (ChangeKind.FACTOR, "*", ast.Mult, 3, "`{name}` is missing as a factor of {part}"),
    (ChangeKind.FACTOR, "/", ast.Div, 4, "it is to be divided by `{name}`"),
    (ChangeKind.TERM, "-", ast.Sub, 4, "`{name}` is to be subtracted from it"),
    (ChangeKind.TERM, "+", ast.Add, 4, "`{name}` is missing as a term"),
    (ChangeKind.TERM, "%", ast.Mod, 4, "it is to be taken modulo `{name}`"),
    (ChangeKind.TERM, "//", ast.FloorDiv, 4, "it is to be divided by `{name}`"),
)
"""What a name may be to an expression, in the order in which it is tried: the symbol and its node, the rank, a hint."""

_LOG2E = "1.4426950408889634"


def around(site: ChangeSite, node: ast.expr) -> Iterator[Change]:
    """What an expression may lack."""
    kind = site.kind(node)
    if kind is None or kind.of == "condition" or not _is_part(site, node):
        return
    part = shown(site.source.of(node))
    text = site.source.operand(node)
    whole = _is_whole(site, node)
    if kind.of == "float" and not isinstance(node, ast.Constant):
        for form, hint in _WRAPS:
            if form != "tl.trans({})" or len(kind.shape) == 2:
                says = f"takes {part} as it is, in {context(site, node)}.", f"look at `{site.source.of(node)}`: {hint}"
                new, built = form.format(text, text), _around(form, node)
                yield site.change(ChangeKind.WRAPPED, node, new, says, 2 + (not whole), built)
        says = (
            f"has {part} in {context(site, node)}.",
            "powers of 2 want log2(e) as a factor: exp(x) is exp2(x * log2(e))",
        )
        yield site.change(ChangeKind.FACTOR, node, f"({text} * {_LOG2E})", says, 3)
    if isinstance(node, ast.Constant):
        return
    yield from _with_another(site, node, kind, (text, part, whole))


def _with_another(site: ChangeSite, node: ast.expr, kind: ValueKind, told: tuple[str, str, bool]) -> Iterator[Change]:
    text, part, whole = told
    place = context(site, node)
    mine = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for name, other in [*site.names(node).items(), *_come_so_far(site, node)]:
        wanted = "integer" if kind.of.startswith("pointer") else kind.of
        one = fitted(name, other.shape, kind.shape)
        if one is None or other.of != wanted and not (wanted == "float" and other.of == "integer" and not other.shape):
            continue
        if name in mine and kind.of != "float":
            continue
        says, right = f"has {part} in {place}.", _tree(one)
        for change, symbol, operator, rank, hint in _COMBINED:
            if _may_be(symbol, kind):
                new, built = f"({text} {symbol} {one})", ast.BinOp(node, operator(), right)
                told_here = says, hint.format(name=name, part=part)
                yield replace(site.change(change, node, new, told_here, rank + (not whole), built), lacks=name)


def _come_so_far(site: ChangeSite, node: ast.expr) -> Iterator[tuple[str, ValueKind]]:
    """`k * BLOCK` in a loop that counts steps of a block."""
    loop = site.kernel.in_loop(node)
    given = loop.iter.args if loop is not None and isinstance(loop.iter, ast.Call) else []
    if loop is not None and isinstance(loop.target, ast.Name) and len(given) < 3:
        used = {name for part in given for name in site.kernel.names(part)}
        yield from ((f"{loop.target.id} * {c}", ValueKind("integer", ())) for c in site.kernel.constexprs if c in used)


def _may_be(symbol: str, kind: ValueKind) -> bool:
    """Whether a value of this kind may lack such an operation: a pointer lacks terms alone."""
    if kind.of == "float":
        return symbol in ("+", "-", "*", "/")
    return symbol == "+" or symbol in ("*", "-", "%", "//") and kind.of == "integer"


def _around(form: str, node: ast.expr) -> ast.expr:
    """The tree of a form with a node in its place."""
    return _Filled(node).visit(ast.parse(form.format("_", "_"), mode="eval").body)


class _Filled(ast.NodeTransformer):
    def __init__(self, node: ast.expr) -> None:
        self._node = node

    def visit_Name(self, name: ast.Name) -> ast.expr:
        """The node for `_`."""
        return self._node if name.id == "_" else name


@functools.cache
def _tree(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _is_whole(site: ChangeSite, node: ast.expr) -> bool:
    """Whether an expression is all that a statement assigns, or that a function takes."""
    return not isinstance(site.kernel.parents.get(node), (ast.BinOp, ast.UnaryOp, ast.Compare))


def _is_part(site: ChangeSite, node: ast.expr) -> bool:
    """Whether an expression is one that something could be missing at: no dtype, no shape, no slice."""
    parent = site.kernel.parents.get(node)
    if isinstance(parent, ast.keyword):
        return parent.arg in ("other", "value", "acc", "mask")
    if isinstance(parent, ast.Attribute):
        return False
    if isinstance(parent, ast.Call) and parent.func is node:
        return False
    if isinstance(parent, ast.Call) and called(parent).rpartition(".")[2] in (
        "arange",
        "zeros",
        "full",
        "program_id",
        "cdiv",
    ):
        return False
    return not isinstance(parent, (ast.Slice, ast.Tuple, ast.Expr))
