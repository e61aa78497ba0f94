"""Patterns of Python with holes, matched against syntax trees, and what is put in the place of what they match.

`$X` stands for one expression (or the name of a keyword or an attribute; as a statement, for a simple one), and for the
same wherever it stands again;
`$$$X` for any number of arguments, keywords, summands or factors; `...` as a statement for any number of statements.
+, *, &, |, minima and maxima match in either order. Two patterns, before and after, make edits: each is as small as
what differs.
"""

import ast
import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradekit.source.kernel import simple
from gradekit.submission.parsed_source import Edit, ParsedSource, called

_HOLE, _MANY = "hole__", "many__"
_COMMUTES = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)
_EITHER_WAY = ("min", "max", "tl.minimum", "tl.maximum")

Found = Mapping[Any, Any]
"""What holes stand for, by their names (a node, or a list of nodes), and the node that each node of a pattern has
matched, by its identity."""


def parsed(text: str, rest: str = "") -> list[ast.stmt] | ast.expr:
    """A pattern as statements, or as the one expression that it is; `rest` is what `$$$` without a name is called.
    Raises SyntaxError where it is not Python but for its holes."""
    text = re.sub(r"\$\$\$(\w*)", lambda found: f"{_MANY}{found[1] or rest}", text)
    body = ast.parse(re.sub(r"\$(\w+)", lambda found: f"{_HOLE}{found[1]}", text)).body
    only = body[0] if len(body) == 1 else None
    return only.value if isinstance(only, ast.Expr) and not _is_gap(only) else body


def hole(node: Any) -> str:
    """The name of the hole that a node (or a name) of a pattern is; "" for anything else."""
    name = node.id if isinstance(node, ast.Name) else node if isinstance(node, str) else ""
    return name.removeprefix(_HOLE) if name.startswith(_HOLE) else ""


def holes(pattern: ast.AST) -> set[str]:
    """The names of a pattern's holes that stand for one expression."""
    named = [(node, getattr(node, "arg", ""), getattr(node, "attr", "")) for node in ast.walk(pattern)]
    return {hole(name) for names in named for name in names} - {""}


def _many(node: Any) -> str | None:
    node = node.value if isinstance(node, ast.Expr) else node
    return node.id if isinstance(node, ast.Name) and node.id.startswith(_MANY) else None


def _is_gap(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


@lru_cache(maxsize=1 << 12)
def _shape(node: ast.AST) -> str:
    return ast.unparse(node)


# --- matching --------------------------------------------------------------------------------------------------------


def matches(pattern: Any, node: Any, found: Found) -> Iterator[Found]:
    """The ways in which a pattern matches a node, a list of statements from its beginning, or a field of a node."""
    if isinstance(pattern, list) and isinstance(node, list):
        yield from _lists(pattern, node, found)
    elif hole(pattern):
        yield from _filled(pattern, node, found)
    elif not isinstance(pattern, ast.AST):
        if pattern == node and isinstance(pattern, bool) is isinstance(node, bool):
            yield found
    elif isinstance(pattern, ast.Expr) and hole(pattern.value):
        if isinstance(node, ast.stmt) and simple(node):
            yield {**found, id(pattern): node, hole(pattern.value): node}
    elif type(pattern) is type(node):
        found = {**found, id(pattern): node}
        if isinstance(pattern, ast.Call) and isinstance(node, ast.Call):
            yield from _calls(pattern, node, found)
        elif isinstance(pattern, ast.BinOp) and isinstance(node, ast.BinOp) and isinstance(pattern.op, _COMMUTES):
            yield from _either_way(pattern, node, found)
        else:
            yield from _fields([name for name in pattern._fields if name != "ctx"], pattern, node, found)


def _filled(pattern: Any, node: Any, found: Found) -> Iterator[Found]:
    name = hole(pattern)
    node = ast.Name(node, ast.Load()) if isinstance(node, str) else node
    if not isinstance(node, ast.expr):
        return
    known = found.get(name)
    if name == "_" or known is None or _shape(known) == _shape(node):
        yield {**found, id(pattern): node, name: known or node}


def _fields(names: Sequence[str], pattern: ast.AST, node: ast.AST, found: Found) -> Iterator[Found]:
    if not names:
        yield found
        return
    for one in matches(getattr(pattern, names[0], None), getattr(node, names[0], None), found):
        yield from _fields(names[1:], pattern, node, one)


def _lists(patterns: Sequence[Any], nodes: Sequence[Any], found: Found) -> Iterator[Found]:
    """All patterns in their order against all nodes; a gap takes any number of nodes."""
    if not patterns:
        if not nodes:
            yield found
        return
    many = _many(patterns[0])
    if many is not None or _is_gap(patterns[0]):
        for count in range(len(nodes) + 1):
            taken = {**found, many: list(nodes[:count])} if many else found
            yield from _lists(patterns[1:], nodes[count:], taken)
    elif nodes:
        for one in matches(patterns[0], nodes[0], found):
            yield from _lists(patterns[1:], nodes[1:], one)


def _calls(pattern: ast.Call, node: ast.Call, found: Found) -> Iterator[Found]:
    """Arguments by position, of a minimum or maximum in either order; keywords in any order, all of them unless the
    pattern has a hole for more."""
    rest = next((many for one in pattern.args if (many := _many(one)) is not None), None)
    for function in matches(pattern.func, node.func, found):
        is_either = called(node) in _EITHER_WAY and len(pattern.args) == len(node.args) == 2
        for args in (node.args, node.args[::-1])[: 2 if is_either else 1]:
            for one in _lists(pattern.args, args, function):
                yield from _keywords(pattern.keywords, node.keywords, rest, one)


def _keywords(
    patterns: Sequence[ast.keyword], given: Sequence[ast.keyword], rest: str | None, found: Found
) -> Iterator[Found]:
    if not patterns:
        if rest is not None:
            yield {**found, rest: [*found.get(rest, ()), *given]}
        elif not given:
            yield found
        return
    for place, keyword in enumerate(given):
        for one in matches(patterns[0], keyword, found):
            yield from _keywords(patterns[1:], [*given[:place], *given[place + 1 :]], rest, one)


def _either_way(pattern: ast.BinOp, node: ast.BinOp, found: Found) -> Iterator[Found]:
    """Two operands in either order, but of lists; with a hole for more, the pattern's in any order among all."""
    if type(pattern.op) is not type(node.op):
        return
    is_ordered = isinstance(pattern.op, ast.Add) and any(isinstance(one, ast.List) for one in ast.walk(pattern))
    if (rest := _rest(pattern)) is not None:
        wanted = [one for one in operands(pattern, type(pattern.op)) if _many(one) is None]
        yield from _among(wanted, operands(node, type(node.op)), rest, found)
        return
    for left, right in ((node.left, node.right), (node.right, node.left))[: 1 if is_ordered else 2]:
        for one in matches(pattern.left, left, found):
            yield from matches(pattern.right, right, one)


@lru_cache(maxsize=1 << 10)
def _rest(pattern: ast.BinOp) -> str | None:
    """The hole of a sum or a product for all else that is joined there."""
    return next((many for one in operands(pattern, type(pattern.op)) if (many := _many(one)) is not None), None)


def _among(wanted: Sequence[ast.expr], given: Sequence[ast.expr], rest: str, found: Found) -> Iterator[Found]:
    if not wanted:
        yield {**found, rest: list(given)}
        return
    for place, node in enumerate(given):
        for one in matches(wanted[0], node, found):
            yield from _among(wanted[1:], [*given[:place], *given[place + 1 :]], rest, one)


def operands(node: ast.expr, operator: type[ast.operator]) -> list[ast.expr]:
    """What an operator joins, in its order: of a sum the summands, those that are subtracted among them."""
    joined = (ast.Add, ast.Sub) if operator is ast.Add else (operator,)
    if isinstance(node, ast.BinOp) and isinstance(node.op, joined):
        return [*operands(node.left, operator), *operands(node.right, operator)]
    return [node]


# --- edits -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A node of a pattern, and what is put in its place, or `behind` it on its line."""

    node: ast.AST
    new: ast.AST
    behind: bool = False


def differences(before: Any, after: Any) -> list[Difference]:
    """The smallest pieces in which two patterns differ. Raises ValueError where they differ in a way that no edits of
    pieces say."""
    if isinstance(before, list) and isinstance(after, list) and _are_statements(before + after):
        return _of_statements(before, after)
    if ast.dump(before) == ast.dump(after):
        return []
    pairs = _children(before, after)
    found = [difference for one, other in pairs or () for difference in differences(one, other)]
    is_other = isinstance(before, ast.Call) and len(found) > 1 and found[0].node is before.func  # another call
    is_whole = not found or is_other or not all(hasattr(one.node, "lineno") for one in found)
    return [Difference(before, after)] if is_whole or any(_many(one.node) for one in found) else found


def _are_statements(nodes: Sequence[Any]) -> bool:
    return all(isinstance(node, ast.stmt) for node in nodes)


def _of_statements(before: Sequence[ast.stmt], after: Sequence[ast.stmt]) -> list[Difference]:
    same = 0
    while same < min(len(before), len(after)) and ast.dump(before[same]) == ast.dump(after[same]):
        same += 1
    if len(after) == len(before) + 1 and same and simple(after[same]):
        return [Difference(before[same - 1], after[same], behind=True)]
    if len(after) != len(before):
        raise ValueError("one statement more is all that a pattern may add")
    return [one for pair in zip(before, after, strict=True) for one in differences(*pair)]


def _children(before: ast.AST, after: ast.AST) -> list[tuple[Any, Any]] | None:
    """The parts of two nodes that may differ on their own; None where the nodes differ as a whole."""
    if type(before) is not type(after) or isinstance(before, (ast.Name, ast.Constant)):
        return None
    pairs: list[tuple[Any, Any]] = []
    for name in before._fields:
        one, other = getattr(before, name, None), getattr(after, name, None)
        if isinstance(one, list) and isinstance(other, list):
            if one and _are_statements(one + other):
                pairs.append((one, other))
            elif len(one) == len(other):
                pairs += zip(one, other, strict=True)
            else:
                return None
        elif isinstance(one, ast.AST) and isinstance(other, ast.AST):
            pairs.append((one, other))
        elif one != other:
            return None
    return pairs if all(isinstance(one, (ast.AST, list)) for pair in pairs for one in pair) else None


def edits(changes: Sequence[Difference], found: Found, source: ParsedSource) -> tuple[Edit, ...] | None:
    """What the differences of two patterns are where the first has matched; None where that would move lines."""
    made = [_edit(change, found, source) for change in changes]
    return tuple(edit for edit in made if edit is not None) if None not in made else None


def _edit(change: Difference, found: Found, source: ParsedSource) -> Edit | None:
    node, new = found.get(id(change.node)), filled(change.new, found)
    if node is None or not hasattr(node, "lineno"):
        return None
    if change.behind:
        end = source.span(node)[1]
        return Edit(end, end, f"; {new}", new)
    if isinstance(change.new, _JOINED) and not (isinstance(node, ast.Compare) and isinstance(change.new, ast.Compare)):
        new = f"({new})" if _is_operand(node, found) else new
    missing = source.of(node).count("\n") - new.count("\n")
    if missing and isinstance(node, ast.expr):
        new = f"{new[:-1] if new.endswith(')') else f'({new}'}{chr(10) * missing})"
    elif missing:
        return None
    return source.replaced(node, new) if source.of(node) != new else None


_JOINED = (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.IfExp)


def _is_operand(node: ast.AST, found: Found) -> bool:
    """Whether an operator, a subscript or an attribute may bind what is put in a node's place: not where that is all
    that is assigned, or an argument of what has matched."""
    around = [one for key, one in found.items() if isinstance(key, int)]
    values = (
        getattr(one, "value", None) for one in around if isinstance(one, (ast.Assign, ast.AugAssign, ast.keyword))
    )
    arguments = (argument for one in around if isinstance(one, ast.Call) for argument in one.args)
    return not any(node is one for one in (*values, *arguments))


def filled(pattern: ast.AST, found: Found) -> str:
    """The text of a pattern, with what its holes stand for."""
    return ast.unparse(_Filling(found).visit(copy.deepcopy(pattern)))


class _Filling(ast.NodeTransformer):
    """Puts into the holes of a pattern what they stand for."""

    def __init__(self, found: Found) -> None:
        self.found = found

    def visit_Name(self, node: ast.Name) -> Any:
        return self.found[name] if (name := hole(node)) else node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if name := hole(node.attr):
            node.attr = self.found[name].id
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        rest = next((many for one in node.args if (many := _many(one)) is not None), None)
        if rest is not None:
            more = self.found.get(rest, [])
            plain = [one for one in more if not isinstance(one, ast.keyword)]
            node.args = [part for one in node.args for part in (plain if _many(one) else [one])]
            node.keywords += [one for one in more if isinstance(one, ast.keyword)]
        for keyword in node.keywords:
            if name := hole(keyword.arg or ""):
                keyword.arg = self.found[name].id
        return self.generic_visit(node)
