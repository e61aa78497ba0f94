"""Changes of several places that are one thought: two names in each other's place, the same mistake in two lines that
are alike."""

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gradekit.interpreter.tile_values import ValueKind
from gradekit.repair.operators.changes import Change, ChangeKind, ChangeSite, at_once
from gradekit.repair.operators.replacements import RULES
from gradekit.repair.operators.words import sentence_of, words
from gradekit.repair.work import Limit, Turn
from gradekit.source.kernel import PointerAccess, counter_of, range_of, target_of
from gradekit.submission.parsed_source import called, shown

_REPEATED = (
    ChangeKind.FUNCTION, ChangeKind.OPERATOR, ChangeKind.SIDES, ChangeKind.AXIS, ChangeKind.COMPARISON,
    ChangeKind.DROPPED, ChangeKind.GUARD,
)  # fmt: skip
"""What is easily made twice: by copying a line."""


def of_several_places(site: ChangeSite) -> Iterator[Change]:
    """All such changes of a function."""
    walked = [one for one in site.kernel.statements if one in site.watched.names]
    for statement in walked:
        yield from _exchanged(site, statement)
        yield from _renamed(site, statement)
    for group in _alike(walked):
        yield from _repeated(site, group)
    for one, other in (*itertools.pairwise(walked), *zip(walked, walked[2:], strict=False)):
        if type(one) is type(other) in (ast.Assign, ast.AugAssign, ast.Expr):
            yield from _exchanged_between(site, one, other)
    for one, other in itertools.pairwise(walked):
        yield from _in_order(site, one, other)
    yield from _by_another_function(site)
    yield from _other_axes(site)
    yield from _bounded_everywhere(site)
    yield from _other_strides(site, walked)


def _exchanged(site: ChangeSite, statement: ast.stmt) -> Iterator[Change]:
    """Two names of one kind that a statement uses once each, in each other's place."""
    head = [statement] if not hasattr(statement, "body") else []
    used = [n for one in head for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    times = Counter(name.id for name in used)
    once = [name for name in used if times[name.id] == 1 and (kind := site.kind(name)) and "pointer" not in kind.of]
    are_strides = lambda pair: all(site.role(name.id) == "stride" for name in pair)
    for one, other in sorted(itertools.combinations(once, 2), key=are_strides, reverse=True):
        if site.kind(one) == site.kind(other) and site.kernel.parents[one] is not site.kernel.parents[other]:
            back = site.change(ChangeKind.SIDES, other, one.id, ("", ""))
            says = words("exchanged-strides" if are_strides((one, other)) else "exchanged", one=one.id, other=other.id)
            yield at_once([site.change(ChangeKind.SIDES, one, other.id, says, 1), back])
    calls: list[Any] = [n for one in head for n in ast.walk(one) if called(n) in ("tl.maximum", "tl.minimum")]
    for pair in itertools.combinations(calls, 2):
        names = [called(node) for node in pair]
        if names[0] != names[1] and pair[1] not in ast.walk(pair[0]):  # which comes first
            says = words("exchanged", one=names[0], other=names[1])
            news = ((node, _with_part_of(site, node, like)) for node, like in (pair, pair[::-1]))
            yield at_once(site.change(ChangeKind.FUNCTION, node, new, says, 1) for node, new in news)


def _by_another_function(site: ChangeSite) -> Iterator[Change]:
    """`tl.exp` for `tl.exp2`, and the like, wherever a function calls it."""
    calls: dict[str, list[Change]] = {}
    for node in (one for one in site.kernel.nodes if called(one).rpartition(".")[2] in ("exp", "exp2", "log", "log2")):
        changes = (one for rule in RULES[ast.Call] for one in rule(site, node))
        calls.setdefault(called(node), []).extend(one for one in changes if one.kind is ChangeKind.FUNCTION)
    for first, *others in filter(None, calls.values()):
        if others:
            lines = ", ".join(dict.fromkeys(str(one.line) for one in others))
            says = sentence_of("again", says=first.sentence.removesuffix("."), lines=lines)
            yield replace(first, sentence=says, turn=1, also=tuple(others))


def _renamed(site: ChangeSite, statement: ast.stmt) -> Iterator[Change]:
    """Another number for one that a statement uses several times, in all places."""
    head = [statement] if not hasattr(statement, "body") else []
    used = [n for one in head for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    times = Counter(name.id for name in used if (mine := site.kind(name)) and mine.of == "float")
    for name in (one for one, count in times.items() if count > 1):
        places = [one for one in used if one.id == name]
        for other, kind in site.names(statement).items():
            if other != name and kind == site.kind(places[0]) and site.is_near(other, statement):
                says = words("name-again", name=name, count=len(places), new=other)
                yield at_once(site.change(ChangeKind.NAME, one, other, says, 1) for one in places)


def _alike(statements: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Statements that differ in names alone, near to each other."""
    plain = [(one, form_of(one)) for one in statements if isinstance(one, (ast.Assign, ast.AugAssign, ast.Expr))]
    for place, (one, shape) in enumerate(plain):
        near = [other for other, like in plain[place + 1 : place + 1 + Limit.BETWEEN] if like == shape]
        if near and near[0].lineno - one.lineno <= Limit.BETWEEN:
            yield [one, near[0]]
        if len(near) > 1:
            yield [one, *near]


def form_of(statement: ast.stmt) -> str:
    """Equal for statements that differ in names alone."""
    return re.sub(r"id='(?!tl')\w+'", "id=''", ast.dump(statement))


def _exchanged_between(site: ChangeSite, one: Any, other: Any) -> Iterator[Change]:
    """What two statements compute in each other's place; of two that are built alike, each part that they have
    differently."""
    apart = dict[tuple[str, str], list[tuple[ast.expr, ast.expr]]]()
    nodes = [list(ast.walk(each.value)) for each in (one, other)]
    if [*map(type, nodes[0])] == [*map(type, nodes[1])]:
        for pair in zip(*nodes, strict=True):
            mine, theirs = map(_own_part, pair)
            if mine != theirs and "" not in (mine, theirs):
                apart.setdefault((mine, theirs), []).append(pair)
    if not isinstance(one, ast.Expr) and not apart and site.kind(one.value) == site.kind(other.value):
        apart[site.source.of(one.value), site.source.of(other.value)] = [(one.value, other.value)]
    for (mine, theirs), pairs in apart.items() if len(apart) > 1 or not isinstance(one, ast.Expr) else ():
        says = words("exchanged-between", one=shown(mine), other=shown(theirs), line=other.lineno)
        news = [(node, _with_part_of(site, node, like)) for pair in pairs for node, like in (pair, pair[::-1])]
        yield at_once(site.change(ChangeKind.SIDES, node, new, says, 1) for node, new in news)


def _in_order(site: ChangeSite, one: Any, other: Any) -> Iterator[Change]:
    """Two statements in the other order, the first of which gives a name a new value that the second uses."""
    name, texts = target_of(one), [site.source.of(each) for each in (one, other)]
    is_used = isinstance(other, (ast.Assign, ast.AugAssign)) and name in site.kernel.names(other.value)
    if is_used and name in site.names(one) and name != target_of(other) and "\n" not in "".join(texts):
        says = words("too-early", name=name, line=other.lineno, at=one.lineno)
        pairs = zip((one, other), reversed(texts), strict=True)
        yield at_once(site.change(ChangeKind.UPDATE, node, new, says, 1) for node, new in pairs)


def _own_part(node: ast.AST) -> str:
    """What an expression has of its own, beside its parts: a name, a number, or the function that it calls."""
    if isinstance(node, ast.Call):
        return called(node)
    return node.id if isinstance(node, ast.Name) else repr(node.value) if isinstance(node, ast.Constant) else ""


def _with_part_of(site: ChangeSite, node: ast.expr, like: ast.expr) -> str:
    if isinstance(node, ast.Call) and isinstance(like, ast.Call) and called(node) != called(like):
        return f"{called(like)}{site.source.of(node).removeprefix(site.source.of(node.func))}"
    return site.source.of(like)


def _bounded_everywhere(site: ChangeSite) -> Iterator[Change]:
    """`k < K` for an index in the masks of all accesses whose place depends on it, where several lack that."""
    for name in site.kernel.indices:
        mine = [(one, form) for one in site.kernel.accesses if (form := site.kernel.atoms(one.address).get(name))]
        for end in _ends(site, name):
            every = dict.fromkeys(change for one, form in mine if (change := _bounded(site, one, name, form, end)))
            in_masks = sorted(every, key=lambda one: (isinstance(one.node, ast.Call), one.new == end))
            if len(in_masks) > 1 and not isinstance(in_masks[0].node, ast.Call):
                yield at_once(in_masks)


def _ends(site: ChangeSite, name: str) -> Iterator[str]:
    """How far an index may go: where the loop ends that it counts in, what it is compared with, the lengths."""
    behind = site.kernel.origins(ast.Name(name, ast.Load()))
    ranges = [range_of(loop)[:2][-1:] for loop in site.kernel.loops if counter_of(loop) in behind]
    loaded = [end.id for ends in ranges for end in ends if isinstance(end, ast.Name)]
    lengths = [one for one in site.kernel.lengths if site.role(one) == "length"]
    yield from dict.fromkeys([*loaded, *site.kernel.bounds.get(name, ()), *lengths])


def _bounded(site: ChangeSite, access: PointerAccess, name: str, form: str, end: str) -> Change | None:
    """`form < end` in the mask of an access, for what it compares the index with; None where it has that."""
    wanted = f"{form} < {end}"
    if access.mask is None:
        new = f"{site.source.of(access.call)[:-1]}, mask={wanted}{', other=0' * access.is_load})"
        return site.change(ChangeKind.CONDITION, access.call, new, ("", ""), 1)
    mask = site.kernel.resolved(access.mask)
    has = [one for one in ast.walk(mask) if isinstance(one, ast.Compare) and name in site.kernel.names(one.left)]
    if any(site.source.of(one).endswith(f"< {end}") for one in has):
        return None
    whole, place = shown(site.source.of(mask)), site.context(mask)
    if upper := [one for one in has if isinstance(one.ops[0], ast.Lt) and len(one.ops) == 1]:
        it = shown(site.source.of(upper[0].comparators[0])).strip("`")
        told = words("condition-bound", name=name, it=it, new=end)
        return site.change(ChangeKind.CONDITION, upper[0].comparators[0], end, told, 1)
    told = words("condition", it=whole, place=place, new=shown(f"({wanted})"))
    return site.change(ChangeKind.CONDITION, mask, f"({site.source.operand(mask)} & ({wanted}))", told, 1)


def _repeated(site: ChangeSite, group: list[ast.stmt]) -> Iterator[Change]:
    """The same change in all statements of a group, or the same two names exchanged in each."""
    walked = zip(*(list(ast.walk(one)) for one in group), strict=True)
    made = lambda n: [c for rule in RULES.get(type(n), ()) for c in rule(site, n) if c.kind in _REPEATED]
    of_nodes = ([*map(made, nodes)] for nodes in walked)
    exchanged = [[*_exchanged(site, one)] for one in group]
    for every in (*of_nodes, exchanged if len({*map(len, exchanged)}) == 1 else ()):
        for first, *others in zip(*every, strict=False):
            if every is exchanged or all((first.kind, first.hint) == (other.kind, other.hint) for other in others):
                lines = " and ".join(str(getattr(other.node, "lineno", 0)) for other in others)
                says = sentence_of("again", says=first.sentence.removesuffix("."), lines=lines)
                parts = (part for other in others for part in other.parts)
                yield replace(first, sentence=says, turn=1, also=(*first.also, *parts))


def _other_strides(site: ChangeSite, walked: list[ast.stmt]) -> Iterator[Change]:
    """All strides of a statement replaced by as many that nothing uses, in their order. Where statements of several
    tensors use the same, a tensor that stands where the unused ones do among the parameters comes first."""
    given = site.names(walked[0]) if walked else {}
    numbers = [name for name in site.kernel.params if given.get(name) == ValueKind("integer", ())]
    idle = [name for name in numbers if not site.kernel.uses.get(name)]
    order, found = site.kernel.params.index, []
    for statement in walked if idle else ():
        names = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id in {*site.kernel.params} & {*given}]
        loads = [n for n in names if n.id in numbers and _is_factor(site, n)]
        used = sorted({n.id for n in loads}, key=order)
        if len(used) == len(idle) and not hasattr(statement, "body"):
            place = max((order(one.id) for one in names if given[one.id].of.startswith("pointer")), default=0)
            found.append((place if order(idle[0]) < order(used[0]) else -place, loads, used))
    for _, loads, used in sorted(found, key=lambda one: one[0]):
        to = dict(zip(used, idle, strict=True))
        says = words("strides-unused", used=", ".join(used), idle=", ".join(idle))
        yield at_once(site.change(ChangeKind.IDLE, node, to[node.id], says, Turn.IDLE) for node in loads)


def _is_factor(site: ChangeSite, node: ast.AST) -> bool:
    parent = site.kernel.parents.get(node)
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult)


def _other_axes(site: ChangeSite) -> Iterator[Change]:
    """The axes of the grid in each other's place, wherever the kernel asks for two."""
    every = (n for n in site.kernel.nodes if isinstance(n, ast.Call) and called(n) == "tl.program_id")
    asked = [axis for n in every for axis in (*n.args, *(one.value for one in n.keywords))]
    text = {node: site.source.of(node) for node in asked}
    pairs = [pair for pair in itertools.combinations(asked, 2) if text[pair[0]] != text[pair[1]]]
    for one, other in pairs:
        both = [node for node in asked if text[node] in (text[one], text[other])]
        for nodes in (both, (one, other)) if len(both) > 2 else (both,):
            says = words("exchanged-axes", one=text[one], other=text[other])
            news = {text[one]: text[other], text[other]: text[one]}
            yield at_once(site.change(ChangeKind.AXIS, node, news[text[node]], says) for node in nodes)
