"""What stands at the wrong place: a statement that belongs before or behind others, into a loop or out of it; a term or
factor that belongs to another line of the formula."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradekit.repair.operators.changes import WRITTEN, Change, ChangeKind, ChangeSite
from gradekit.repair.operators.words import words
from gradekit.source.kernel import Loop, simple, target_of

FARTHEST = 6
"""So many statements a statement is moved past, at most."""

LONGEST = 3
"""So many statements, one behind the other, are moved together."""

MOST = 40
"""So many moves are tried in one function, the shorter ones first: each is evaluated alone."""

_OF_TERMS = 2
"""The turn of those; statements are moved first."""


def moves(site: ChangeSite) -> Iterator[Change]:
    """All moves of a function."""
    every = sorted(_of_statements(site), key=lambda one: one[0])
    yield from (_move(site, moved, gap) for _, moved, gap in every[:MOST])
    yield from _of_terms(site)
    yield from _left_out(site)


# --- statements ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Gap:
    """A place between the statements of a block, in the order of the text; `beside` is one of these, and what comes
    there is put `behind` it, or before it. `at` is the statement that it comes behind; None at a block's beginning."""

    beside: ast.stmt
    behind: bool
    place: int
    loop: Loop | None


def _of_statements(site: ChangeSite) -> Iterator[tuple[int, Sequence[ast.stmt], _Gap]]:
    """How far statements are moved, these, and where to."""
    every, blocks = site.kernel.statements, _blocks(site)
    order = {statement: number for number, statement in enumerate(every)}
    names = {statement: _Names.of(site, statement) for statement in every}
    gaps = [gap for block, loop in blocks for gap in _gaps(block, order, loop)]
    for block, own in blocks:
        for length, start in itertools.product(range(1, LONGEST + 1), range(len(block))):
            moved = block[start : start + length]
            if len(moved) < length or not all(map(_is_moved, moved)):
                continue
            first, last = order[moved[0]], order[moved[-1]]
            for gap in gaps:
                crossed = every[gap.place : first] or every[last + 1 : gap.place]
                if len(crossed) > FARTHEST or gap.beside in moved:
                    continue
                is_other = gap.loop is own and all(one in block and _is_moved(one) for one in crossed)
                if is_other and (len(crossed), gap.place) < (length, first):
                    continue  # the same as to move these past the others
                mine, theirs = ([names[one] for one in part] for part in (moved, crossed))
                if (gap.loop is not own or _matters(mine, theirs)) and _is_known(site, mine, gap):
                    yield len(crossed) + length, moved, gap


def _is_moved(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Assign, ast.AugAssign)) and target_of(statement) != ""


def _blocks(site: ChangeSite) -> list[tuple[list[ast.stmt], Loop | None]]:
    """The body of the function, and those of its loops."""
    return [(site.kernel.node.body, None), *((loop.body, loop) for loop in site.kernel.loops)]


def _gaps(block: Sequence[ast.stmt], order: dict[ast.stmt, int], loop: Loop | None) -> Iterator[_Gap]:
    for before, after in zip([None, *block], [*block, None], strict=True):
        if before is not None and simple(before) and before in order:
            yield _Gap(before, True, order[before] + 1, loop)
        elif after is not None and simple(after) and after in order:
            yield _Gap(after, False, order[after], loop)


@dataclass(frozen=True)
class _Names:
    """The name that a statement gives a value, and those that it takes; of a loop or a branch, those of its head."""

    made: str
    used: frozenset[str]

    @staticmethod
    def of(site: ChangeSite, statement: ast.stmt) -> _Names:
        part = statement.iter if isinstance(statement, ast.For) else getattr(statement, "test", None) or statement
        used = site.kernel.names(part if not _is_moved(statement) else statement.value)  # type: ignore[attr-defined]
        made = target_of(statement)
        return _Names(made, frozenset(used | ({made} if isinstance(statement, ast.AugAssign) else set())))


def _matters(moved: Sequence[_Names], crossed: Sequence[_Names]) -> bool:
    """Whether an order decides what is computed: one side takes what the other makes."""
    made, used = {one.made for one in moved}, {name for one in moved for name in one.used}
    return any(one.made in made or one.made in used or made & one.used for one in crossed)


def _is_known(site: ChangeSite, moved: Sequence[_Names], gap: _Gap) -> bool:
    """Whether all that statements use has a value where they are moved to."""
    if gap.beside not in site.watched.names:
        return False
    known = {*site.watched.names[gap.beside], *([target_of(gap.beside)] if gap.behind else ())}
    for one in moved:
        if any(name in site.kernel.values and name not in known for name in one.used):
            return False
        known.add(one.made)
    return True


def _move(site: ChangeSite, moved: Sequence[ast.stmt], gap: _Gap) -> Change:
    text, beside = "; ".join(map(ast.unparse, moved)), site.source.of(gap.beside)
    new = f"{beside}; {text}" if gap.behind else f"{text}; {beside}"
    says = _told(site, moved, gap)
    gone = (site.change(ChangeKind.MOVED, one, _nothing(site, one), says, 0, ast.Pass()) for one in moved)
    first, *rest = gone
    put = site.change(ChangeKind.MOVED, gap.beside, new, says)
    return replace(first, also=(*rest, put))


def _nothing(site: ChangeSite, statement: ast.stmt) -> str:
    """A statement that does nothing, on as many lines as one that it stands for."""
    return "pass" + " \\\n" * site.source.of(statement).count("\n")


def _told(site: ChangeSite, moved: Sequence[ast.stmt], gap: _Gap) -> tuple[str, str]:
    lines = f"line {moved[0].lineno}" if len(moved) == 1 else f"lines {moved[0].lineno} to {moved[-1].lineno}"
    loop, own = gap.loop, site.kernel.in_loop(moved[0])
    if own is not None and loop is None:
        where = "behind" if gap.beside.lineno > moved[-1].lineno else "before"
        return words("moved-out", line=own.lineno, lines=lines, where=where)
    if loop is not None and own is None:
        return words("moved-in", line=loop.lineno, lines=lines)
    name = next((one for one in map(target_of, moved)), "")
    too = "too late" if gap.place <= site.kernel.statements.index(moved[0]) else "too early"
    side = "behind" if gap.behind else "before"
    return words("moved", name=name, too=too, lines=lines, side=side, line=gap.beside.lineno)


def _left_out(site: ChangeSite) -> Iterator[Change]:
    """A statement that gives a name another value than it has, as it is needed once and stands there twice."""
    for statement in site.kernel.statements:
        name = target_of(statement)
        if _is_moved(statement) and name in site.watched.names.get(statement, ()):
            gone = _nothing(site, statement)
            yield site.change(ChangeKind.DROPPED, statement, gone, words("statement", name=name), 0, ast.Pass())


# --- terms and factors --------------------------------------------------------------------------------------------


def _of_terms(site: ChangeSite) -> Iterator[Change]:
    """A term or factor of one line, taken from there and put to all that another computes."""
    lines: list[Any] = list(filter(_is_moved, site.kernel.statements))
    wholes = [one for one in lines if (kind := site.kind(one.value)) is not None and kind.of == "float"]
    for node, moved in _pieces(site):
        kind, mine = site.kind(moved), site.kernel.statement(node)
        for line in (one for one in wholes if one is not mine):
            known = site.watched.names.get(line, {})
            fits = kind is not None and kind.shape in ((), site.kind(line.value).shape)  # type: ignore[union-attr]
            if not fits or not all(name in known for name in site.kernel.names(moved) & site.kernel.values.keys()):
                continue
            op, piece = WRITTEN[type(node.op)], " ".join(site.source.operand(moved).split())
            rest = node.left if moved is node.right else node.right
            says = words("moved-part", op=op, it=piece, line=line.lineno)
            new = f"({site.source.operand(line.value)} {op} {piece})"
            built = ast.BinOp(line.value, node.op, moved)
            put = site.change(ChangeKind.MOVED_PART, line.value, new, says, _OF_TERMS, built)
            gone = site.change(ChangeKind.MOVED_PART, node, site.source.operand(rest), says, _OF_TERMS, rest)
            yield replace(gone, also=(put,))


def _pieces(site: ChangeSite) -> Iterator[tuple[ast.BinOp, ast.expr]]:
    """The operations on values, each with a side that may be taken from it."""
    for node in site.kernel.nodes:
        kind = site.kind(node) if isinstance(node, ast.BinOp) else None
        if isinstance(node, ast.BinOp) and kind is not None and kind.of == "float" and type(node.op) in _SIDES:
            yield node, node.right
            if isinstance(node.op, (ast.Add, ast.Mult)):
                yield node, node.left


_SIDES = (ast.Add, ast.Sub, ast.Mult, ast.Div)
