"""Mends by counterparts: lines that do the same for another side, another tensor or in another kernel, one of which
is made otherwise."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from gradekit.repair.idioms.roles import is_index_line
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.kernel import ACCESSES, KernelDraft, is_call, target_of, value_of
from gradekit.submission.parsed_source import Edit, called

NEAR = 12
"""So many statements may lie between two counterparts."""

LEAST = 3
"""So many names and numbers, at least, must be in each other's place for two lines to be counterparts."""


@dataclass
class _Alignment:
    """Two expressions laid upon each other: which names of a model stand for which, and the `places` that differ."""

    names: list[tuple[str, str]] = field(default_factory=list)
    places: list[tuple[ast.AST, ast.AST, str]] = field(default_factory=list)

    @property
    def is_consistent(self) -> bool:
        """Whether each name of the model always stands for the same, and no two for one."""
        pairs = set(self.names)
        return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _aligned(mine: ast.AST, model: ast.AST) -> _Alignment:
    found = _Alignment()
    _align(mine, model, found)
    return found


def _align(mine: ast.AST, model: ast.AST, found: _Alignment) -> None:
    if type(mine) is not type(model):
        found.places.append((mine, model, "part"))
    elif isinstance(mine, ast.Name) and isinstance(model, ast.Name):
        found.names.append((model.id, mine.id))
    elif isinstance(mine, ast.Constant) and isinstance(model, ast.Constant):
        if mine.value != model.value:
            found.places.append((mine, model, "part"))
    elif isinstance(mine, ast.Call) and isinstance(model, ast.Call):
        _align_calls(mine, model, found)
    elif isinstance(mine, (ast.BinOp, ast.UnaryOp)) and type(mine.op) is not type(model.op):  # type: ignore[attr-defined]
        found.places.append((mine, model, "operator"))
        _align_children(mine, model, found)
    elif isinstance(mine, ast.Compare) and isinstance(model, ast.Compare):
        if list(map(type, mine.ops)) != list(map(type, model.ops)):
            found.places.append((mine, model, "comparison"))
        for one, other in zip([mine.left, *mine.comparators], [model.left, *model.comparators], strict=False):
            _align(one, other, found)
    elif isinstance(mine, ast.Attribute) and isinstance(model, ast.Attribute) and mine.attr != model.attr:
        found.places.append((mine, model, "part"))
    else:
        _align_children(mine, model, found)


def _align_children(mine: ast.AST, model: ast.AST, found: _Alignment) -> None:
    one, other = (list(ast.iter_child_nodes(node)) for node in (mine, model))
    if len(one) != len(other):
        found.places.append((mine, model, "part"))
        return
    for a, b in zip(one, other, strict=True):
        if not isinstance(a, (ast.operator, ast.unaryop, ast.expr_context)):
            _align(a, b, found)


def _align_calls(mine: ast.Call, model: ast.Call, found: _Alignment) -> None:
    """Calls by their function, arguments and keywords; the addresses of accesses are left alone."""
    if called(mine) != called(model) or len(mine.args) != len(model.args):
        found.places.append((mine, model, "function" if len(mine.args) == len(model.args) else "part"))
    elif not called(mine):
        _align(mine.func, model.func, found)
    first = 1 if called(mine) in ACCESSES else 0
    for a, b in zip(mine.args[first:], model.args[first:], strict=False):
        _align(a, b, found)
    given = {k.arg: k.value for k in mine.keywords}
    for keyword in model.keywords:
        if keyword.arg in given:
            _align(given[keyword.arg], keyword.value, found)
        else:
            found.places.append((mine, keyword, "keyword"))


@dataclass(frozen=True)
class _Line:
    """A statement of a kernel with what it computes."""

    kernel: KernelDraft
    statement: ast.stmt
    value: ast.expr

    @property
    def pointer(self) -> str:
        """The pointer that it stores through; "" where it stores nothing, or that is not seen."""
        return next((a.pointer for a in self.kernel.accesses if a.call is self.value), "")


def other_than_its_twin(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A line that differs in one place from a line beside it that does the same for other values."""
    found = [mend for mine, model in _pairs(kernel) for mend in _like_its_twin(mine, model)]
    yield from found
    yield from _both(found)


def _pairs(kernel: KernelDraft) -> Iterator[tuple[_Line, _Line]]:
    lines = list(_lines(kernel))
    for i, mine in enumerate(lines):
        for model in lines[max(0, i - NEAR) : i + NEAR]:
            if model is not mine and _are_counterparts(mine, model):
                yield mine, model


def _are_counterparts(mine: _Line, model: _Line) -> bool:
    """Whether two lines of one block compute names that differ in one letter (`iw` and `ih`), or store through one
    pointer."""
    one, other = mine.statement, model.statement
    if mine.kernel.parents[one] is not mine.kernel.parents[other] or type(one) is not type(other):
        return False
    if isinstance(one, ast.Expr):
        return bool(mine.pointer) and mine.pointer == model.pointer
    first, second = target_of(one), target_of(other)
    return len(first) == len(second) and sum(a != b for a, b in zip(first, second, strict=True)) == 1


def _lines(kernel: KernelDraft) -> Iterator[_Line]:
    for statement in kernel.statements:
        value = _whole_value(statement)
        if value is not None and not is_index_line(kernel, statement):
            yield _Line(kernel, statement, value)


def _whole_value(statement: ast.stmt) -> ast.expr | None:
    """What an assignment computes; the whole call of a store."""
    if isinstance(statement, ast.Expr):
        return statement.value if is_call(statement.value, "tl.store", "tl.atomic_add") else None
    return value_of(statement) if target_of(statement) else None


def _like_its_twin(mine: _Line, model: _Line) -> Iterator[Mend]:
    found = _aligned(mine.value, model.value)
    if not found.places:
        return
    if len(found.places) == 1 and len(found.names) >= LEAST and found.places[0][2] != "part":
        if not found.is_consistent:
            return
        yield from _changed(mine, model, found.names, *found.places[0])
    elif len(found.names) >= LEAST and all(kind in ("operator", "comparison") for _, _, kind in found.places):
        yield from _with_other_signs(mine, model, found)
    else:
        yield from _wrapped(mine, model, found)


def _with_other_signs(mine: _Line, model: _Line, found: _Alignment) -> Iterator[Mend]:
    """One that differs in several signs, or comparisons, and in nothing else."""
    made = [_other_sign(mine.kernel, place, like) for place, like, _ in found.places]
    if not found.is_consistent or None in made:
        return
    edits, told = zip(*filter(None, made), strict=True)
    line, beside = mine.statement.lineno, model.statement.lineno
    yield Mend(
        Family.FORMULA, 4, line, edits,
        f"Line {line} is not made like its counterpart, line {beside}: {'; '.join(dict.fromkeys(told))}.",
        f"compare line {line} with line {beside}: both do the same for different values", None, mine.kernel.name,
    )  # fmt: skip


def _wrapped(mine: _Line, model: _Line, found: _Alignment) -> Iterator[Mend]:
    """One that lacks what its model has around it, or has around it what its model lacks."""
    place, like, _ = found.places[0] if len(found.places) == 1 else (mine.value, model.value, "part")
    apart = found.names if len(found.places) == 1 else []
    for inner in itertools.islice(ast.walk(like), 1, 40):
        within = _aligned(place, inner)
        known = [*apart, *within.names]
        if isinstance(inner, ast.expr) and not within.places and _is_map(known) and len(set(known)) >= LEAST - 1:
            yield from _changed(mine, model, known, place, like, "part")
            return
    for inner in itertools.islice(ast.walk(place), 1, 40):
        within = _aligned(inner, like)
        known = [*apart, *within.names]
        if isinstance(inner, ast.expr) and not within.places and _is_map(known) and len(set(known)) >= LEAST:
            yield from _changed(mine, model, known, place, like, "part")
            return
    named = {k.value for call in (mine.value, model.value) if isinstance(call, ast.Call) for k in call.keywords}
    if len(found.places) == 1 and place in named and like in named:
        yield from _changed(mine, model, apart, place, like, "part")


def _is_map(names: Sequence[tuple[str, str]]) -> bool:
    return _Alignment(list(names)).is_consistent


def _changed(
    mine: _Line, model: _Line, names: Sequence[tuple[str, str]], place: ast.AST, like: ast.AST, kind: str
) -> Iterator[Mend]:
    """The mend that makes a place like its counterpart, with the names that stand for the counterpart's."""
    kernel, line, beside = mine.kernel, mine.statement.lineno, model.statement.lineno
    made = _edit(mine, model, names, place, like, kind)
    if made is None:
        return
    edit, what = made
    is_mask = kind == "keyword" and isinstance(like, ast.keyword) and like.arg == "mask"
    family = Family.MASK if is_mask else Family.FORMULA
    yield Mend(
        family, 3, line, (edit,),
        f"Line {line} is not made like its counterpart, line {beside}: {what}.",
        f"compare line {line} with line {beside}: both do the same for different values", None, kernel.name,
    )  # fmt: skip


def _edit(
    mine: _Line, model: _Line, names: Sequence[tuple[str, str]], place: ast.AST, like: ast.AST, kind: str
) -> tuple[Edit, str] | None:
    """The edit of a place, and how it differs from its counterpart."""
    kernel = mine.kernel
    if kind == "function" and isinstance(place, ast.Call) and isinstance(like, ast.Call):
        what = f"it calls {called(place)} where that calls {called(like)}"
        return kernel.replaced(place.func, called(like)), what
    if kind in ("operator", "comparison"):
        return _other_sign(kernel, place, like)
    if kind == "keyword" and isinstance(place, ast.Call) and isinstance(like, ast.keyword):
        edit = kernel.with_keyword(place, f"{like.arg}={_renamed(model, like.value, names, kernel)}")
        return edit, f"it lacks `{like.arg}={kernel.source.of(like.value)}`"
    if kind == "part" and isinstance(place, ast.expr) and isinstance(like, ast.expr):
        what = f"it has `{_short(mine, place)}` where that has `{_short(model, like)}`"
        what += ", another sign" if isinstance(place, ast.UnaryOp) is not isinstance(like, ast.UnaryOp) else ""
        return kernel.replaced(place, _renamed(model, like, names, kernel)), what
    return None


def _other_sign(kernel: KernelDraft, place: ast.AST, like: ast.AST) -> tuple[Edit, str] | None:
    if isinstance(place, ast.BinOp) and isinstance(like, ast.BinOp):
        old, new = _SIGNS.get(type(place.op), ""), _SIGNS.get(type(like.op), "")
        edit = kernel.source.between_replaced(place.left, place.right, old, new)
        return (edit, f"it has the sign {old} where that has {new}") if old and new else None
    if isinstance(place, ast.Compare) and isinstance(like, ast.Compare):
        old, new = _ORDER.get(type(place.ops[0]), ""), _ORDER.get(type(like.ops[0]), "")
        edit = kernel.source.between_replaced(place.left, place.comparators[0], old, new)
        return (edit, f"its comparison has {old} where that has {new}") if old and new else None
    return None


_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_ORDER = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def _short(line: _Line, node: ast.AST) -> str:
    text = re.sub(r"\s+", " ", line.kernel.source.of(node))
    return text if len(text) <= 90 else f"{text[:87]}..."


def _renamed(model: _Line, node: ast.AST, names: Sequence[tuple[str, str]], kernel: KernelDraft) -> str:
    """The model's text with the names that stand for its own: as aligned, else the other way round, else by analogy."""
    known = {kernel_name for kernel_name in (*kernel.values, *kernel.all_params)}
    stands_for = dict(names)
    back = {b: a for a, b in names}

    def new(match: re.Match[str]) -> str:
        name = match[0]
        if name in stands_for or name in back:
            return stands_for.get(name) or back[name]
        return _by_analogy(name, stands_for, known) if name in model.kernel.values else name

    return re.sub(r"(?<![\w.])[A-Za-z_]\w*(?!\w)", new, model.kernel.source.of(node))


def _by_analogy(name: str, stands_for: dict[str, str], known: set[str]) -> str:
    """`outer_w` for `outer_h` where `inter_w` stands for `inter_h`."""
    for old, new in stands_for.items():
        differing = [(a, b) for a, b in zip(old, new, strict=False) if a != b]
        if len(old) == len(new) and len(differing) == 1:
            other = name.replace(*differing[0])
            if other != name and other in known:
                return other
    return name


def _both(found: Sequence[Mend]) -> Iterator[Mend]:
    """Two lines that differ from their counterparts in the same way."""
    for first, second in itertools.combinations(found, 2):
        places = {str(first.line), str(second.line), _beside(first), _beside(second)}
        if _shape(first) == _shape(second) and len(places) == 4:
            yield replace(first, edits=(*first.edits, *second.edits), rank=4)


def _shape(mend: Mend) -> str:
    """The text that comes in, without its names, signs and comparisons."""
    return re.sub(r"[^x(),.]", "", re.sub(r"\w+", "x", mend.edits[0].new))


def _beside(mend: Mend) -> str:
    return mend.sentence.partition("counterpart, line ")[2].partition(":")[0]


RULES = (other_than_its_twin,)
