"""What is said of the changes that make calls right, as mends.

A change is named where no other seems right, or a few of one line alone, which do the same. Of one of many on a line
the line alone is told: another of these is often right by chance, and the line seldom.
"""

import ast
import copy
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradekit.causes import Cause
from gradekit.repair.mend import Family, Mend
from gradekit.repair.operators.changes import LIKELY, PLAIN, Change, ChangeKind, parsed
from gradekit.repair.operators.words import hint_of
from gradekit.repair.work import Limit, Rank
from gradekit.source.draft import Draft, draft_of
from gradekit.source.kernel import KernelDraft, target_of
from gradekit.submission.parsed_source import Edit, ParsedSource, called, shown

LOCATED = (
    ChangeKind.NAME, ChangeKind.OTHER_ROLE, ChangeKind.OPERATOR, ChangeKind.BRACKET,
    ChangeKind.FACTOR, ChangeKind.TERM,
)  # fmt: skip
"""Of these, the line is told and what stands there, and not what to put in its place."""

_LACKED: dict[type[ast.operator] | None, str] = {
    ast.Mult: "as a factor", ast.Div: "as a divisor", ast.FloorDiv: "as a divisor", ast.Add: "as a term",
    ast.Sub: "where it must be subtracted",
}  # fmt: skip
"""How it is said that a name is missing which an operation would bring in."""

LOOK = "compare it with the formula: one change there makes the result right"


def mends_of(found: Sequence[Change], source: ParsedSource) -> list[Mend]:
    """The likeliest of the changes with which all calls are right, in the order in which they are to be tried; no line
    where changes of several would do."""
    if not found:
        return []
    found = without_other_names(without_idle_parts(found))
    draft = draft_of(source.text)
    found = [one for one in found if not makes_void(one, draft)] or found
    alike = [one for one in found if makes_alike(one, draft)]
    if len(_lines(alike)) == 1:
        return mends_each([*alike[:1], *(one for one in found if one is not alike[0])][: Limit.SURVIVORS], source)
    seen, kept = found, sorted(found, key=lambda change: change.kind)
    idle = [change for change in kept if change.kind is ChangeKind.IDLE]
    in_place = [change for change in idle if not change.lacks]
    beside = [change for change in idle if change.lacks and change.line in _lines(in_place)]
    kept = [*in_place, *beside] or idle or kept  # in the place of another, or put to it
    if len(_lines(kept)) > 1:  # one place is likelier than several
        kept = [change for change in kept if not change.also] or kept
    if any(change.kind is ChangeKind.DROPPED for change in kept):  # what is too many may also be taken away again
        kept = [change for change in kept if not change.lacks]
    of_the_handout = [one for one in kept if one.hint == hint_of("number-handout", number=one.new)]
    if of_the_handout:  # its digits are not right by chance
        return mends_each(of_the_handout[:1], source)
    if lacking := _lacking(kept, source) or _lacking_somewhere(kept, source):
        return lacking
    plain = [change for change in kept if change.kind in PLAIN]
    plain = plain or [change for change in kept if change.kind is ChangeKind.OPERATOR]
    less_likely: list[Change] = []
    if len(_lines(kept)) > 1:
        less_likely = [change for change in kept if change.kind in LIKELY and change not in plain]
        kept = plain if len(_lines(plain)) == 1 else []
    if not kept:
        unused = [change for change in found if change.kind is ChangeKind.IDLE][:1]
        return _of_one_of_several(found, source) or mends_each(unused, source)
    is_left_out = all(change.kind is ChangeKind.DROPPED for change in kept)
    is_told = len(kept if is_left_out else seen) <= Limit.ALIKE_ON_A_LINE
    turned = [change for change in kept if change.kind is ChangeKind.SIDES]
    named = [change for change in kept if is_told or change.kind in PLAIN and change.kind not in LOCATED]
    named = named or (turned if len(turned) == 1 else [])
    located = [change for change in kept if change not in named]
    is_one = len(located) == 1
    told = located[: Limit.SURVIVORS - len(named[: Limit.SURVIVORS])]
    lines = (_located(change, source, is_one) for change in told)
    likelier = [*mends_each(named[: Limit.SURVIVORS], source), *filter(None, lines)]
    return [*likelier, *mends_each(less_likely[: Limit.FEW], source)]


def makes_void(change: Change, draft: Draft | None) -> bool:
    """Whether both operands of an operation are one name with a change: nothing is computed of `max(a, a)`."""
    kernel = _kernel_of(change, draft)
    parent = kernel.parents.get(change.node) if kernel is not None else None
    operands = [parent.left, parent.right] if isinstance(parent, ast.BinOp) else getattr(parent, "args", [])
    others = [one for one in operands if one is not change.node]
    return change.kind is ChangeKind.NAME and len(others) == 1 and getattr(others[0], "id", "") == change.new


def makes_alike(change: Change, draft: Draft | None) -> bool:
    """Whether a change of one name makes two calls of a statement alike: in `f(a - c) + f(b - d)`, that of d to c."""
    kernel = _kernel_of(change, draft)
    if change.kind is not ChangeKind.NAME or change.also or kernel is None:
        return False
    calls = [one for one in ast.walk(kernel.statement(change.node)) if isinstance(one, ast.Call)]
    mine = [one for one in calls if any(part is change.node for part in ast.walk(one))]
    twins = [(one, twin) for one in mine for twin in calls if twin not in mine and _form(twin) == _form(one)]
    pairs = (pair for one, twin in twins for pair in zip(ast.walk(one), ast.walk(twin), strict=True))
    return any(node is change.node and getattr(other, "id", "") == change.new for node, other in pairs)


def _kernel_of(change: Change, draft: Draft | None) -> KernelDraft | None:
    kernels = draft.kernels if draft is not None else ()
    return next((one for one in kernels if one.name == change.within and change.node in one.parents), None)


def _form(node: ast.AST) -> list[Any]:
    """What a tree is made of, but for names that are no functions."""
    return [called(one) if isinstance(one, ast.Call) else type(one) for one in ast.walk(node)]


def without_other_names(found: Sequence[Change]) -> list[Change]:
    """Of names that changes add in the same places and ways, the changes of one: all have the same value there."""
    places: dict[str, set[Any]] = {}
    for one in found:
        places.setdefault(one.lacks, set()).add((one.node, _operator(one)))
    first: dict[Any, str] = {}
    kept = {name for name, mine in places.items() if first.setdefault(frozenset(mine), name) == name}
    return [one for one in found if one.lacks in kept or not one.lacks]


def without_idle_parts(found: Sequence[Change], asked: Sequence[Change] | None = None) -> list[Change]:
    """Those (all, or those `asked` for) that have nothing which can as well be left out: where `s` is right for
    `s * c`, `s + c` is so by chance, for nothing depends on c there; and of two edits made together, one may do."""
    alone = [one for one in found if not one.also]
    less = [(one.node, tree) for one in alone if one.kind is ChangeKind.DROPPED and (tree := parsed(one)) is not None]
    enough = {(one.node, one.new) for one in alone}

    def is_idle(one: Change) -> bool:
        if one.also:
            return any((part.node, part.new) in enough for part in one.parts)
        tree = parsed(one) if less and one.kind in _BRING_IN else None
        return tree is not None and any(_keeps_more(one.node, tree, *pair) for pair in less)

    return [one for one in (found if asked is None else asked) if not is_idle(one)]


_BRING_IN = (
    ChangeKind.OPERATOR, ChangeKind.NUMBER, ChangeKind.OTHER_ROLE, ChangeKind.WRAPPED, ChangeKind.FACTOR,
    ChangeKind.TERM,
)  # fmt: skip
"""What keeps or brings in a piece; a piece that is turned round may matter where the examples are more than these."""


def _keeps_more(node: ast.AST, new: ast.AST, other: ast.AST, less: ast.AST) -> bool:
    """Whether a `new` tree for a node is that of `less` for another, around it or in it, with more operands."""
    if any(part is node for part in ast.walk(other)):
        return _has_more(_put(other, node, new), less)
    return any(part is other for part in ast.walk(node)) and _has_more(new, _put(node, other, less))


def _put(tree: ast.AST, node: ast.AST, new: ast.AST) -> ast.AST:
    """A copy of a tree with another in the place of one of its nodes."""
    if tree is node:
        return new
    made = copy.copy(tree)
    for name, value in ast.iter_fields(tree):
        if isinstance(value, ast.AST):
            setattr(made, name, _put(value, node, new))
        elif isinstance(value, list):
            setattr(made, name, [_put(one, node, new) if isinstance(one, ast.AST) else one for one in value])
    return made


def _has_more(tree: ast.AST, less: ast.AST) -> bool:
    """Whether a tree is another once operands of operations, and functions of one argument, are left out."""
    if ast.dump(tree) == ast.dump(less):
        return True
    sides = [tree.left, tree.right] if isinstance(tree, ast.BinOp) else tree.args if isinstance(tree, ast.Call) else []
    if any(_has_more(side, less) for side in (sides if isinstance(tree, ast.BinOp) or len(sides) == 1 else ())):
        return True
    one, other = list(ast.iter_child_nodes(tree)), list(ast.iter_child_nodes(less))
    is_alike = type(tree) is type(less) and len(one) == len(other) and bool(one)
    return is_alike and all(map(_has_more, one, other))


def mends_of_host(found: Sequence[Change], source: ParsedSource) -> list[Mend]:
    """The same of changes of host code, where an operator of one line is as likely wrong as any other of another. What
    changes several places comes last: all strides of another tensor, where a dtype on another line seems to do, too."""
    alone = [change for change in found if not change.also] or list(found)
    several = [change for change in found if change not in alone][: Limit.SURVIVORS] if len(alone) < len(found) else []
    sure = len(_lines(alone)) == 1 or {change.lacks for change in alone} != {""} or not mends_of(alone, source)
    first = mends_of(alone, source) if sure else _of_one_of_several(alone, source)
    return [*first, *mends_each(several, source)]


def halves_of(found: Sequence[Change], source: ParsedSource) -> list[Mend]:
    """The likeliest of the changes that help in part, of which `found` has those first that help most: a part of what
    one brings in is idle only where leaving it out helps as much."""
    most = found[: 2 * Limit.SURVIVORS_IN_PART]
    likeliest = [one for at, one in enumerate(most) if without_idle_parts(most[: at + 1], [one])]
    return mends_each(likeliest[: Limit.SURVIVORS_IN_PART], source)


def mends_each(found: Sequence[Change], source: ParsedSource) -> list[Mend]:
    """The changes as mends, without those that would move lines."""
    return [mend for one in found if (mend := mend_of(one, source)) is not None]


def mend_of(change: Change, source: ParsedSource) -> Mend | None:
    """The change as a mend, by its name; None where it would move lines."""
    edits = [_edit(part, source) for part in change.parts]
    if None in edits:
        return None
    every = tuple(dict.fromkeys(edit for edit in edits if edit is not None))
    return Mend(
        Family.FORMULA, Rank.SCREENED, change.line, every, change.sentence, change.hint, change.cause, change.within
    )


def _edit(change: Change, source: ParsedSource) -> Edit | None:
    node = change.edited or change.node
    start, end = source.span(node)
    new = _on_as_many_lines(change.new, source.of(node).count("\n"))
    return Edit(start, end, new, change.hint) if new is not None else None


def _located(change: Change, source: ParsedSource, is_one: bool) -> Mend | None:
    """The change as a mend that tells the line, and what stands there where this `is_one` of one place."""
    mend = mend_of(change, source)
    if mend is None:
        return None
    where = change.sentence[:1].lower() + change.sentence[1:]
    if not is_one:
        where = f"line {mend.line} has {shown(source.text.splitlines()[mend.line - 1].strip())}."
    rank = Rank.SCREENED if is_one else Rank.OF_SEVERAL
    return replace(mend, rank=rank, sentence=f"Something is wrong where {where}", hint=LOOK)


def _lacking(found: Sequence[Change], source: ParsedSource) -> list[Mend]:
    """Of changes that put one name to several pieces of one line, that name is told; it is put to the largest piece
    first."""
    names = {change.lacks for change in found}
    if len(found) < 2 or len(names) > 1 or names == {""} or len(_lines(found)) > 1:
        return []
    largest_first = sorted(found, key=lambda change: len(source.of(change.node)), reverse=True)[: Limit.SURVIVORS]
    mends = mends_each(largest_first, source)
    name, hint = names.pop(), "see in the formula where in this line it belongs"
    if any(change.cause is Cause.IGNORES_STRIDES for change in found):
        hint = "multiply each index by the stride of its dimension"
    operators = {_operator(change) for change in found}
    how = _LACKED.get(operators.pop(), "") if len(operators) == 1 else ""
    says = lambda at: f"`{name}` is missing {how}, in line {at}." if how else f"`{name}` is missing from line {at}."
    rank = Rank.SCREENED if how else Rank.OF_SEVERAL
    return [replace(one, rank=rank, sentence=says(one.line), hint=hint) for one in mends]


def _lacking_somewhere(found: Sequence[Change], source: ParsedSource) -> list[Mend]:
    """Of changes that put one name or number to pieces of several lines, all in one way, that is told, and a line that
    does more than load: one that has the name already, or else most of these pieces. A few others may do as well, but
    none that is likelier."""
    ((name, family), count), *_ = Counter(map(_way, found)).most_common(1)
    mine = [change for change in found if _way(change) == (name, family)]
    operator = Counter(map(_operator, mine)).most_common(1)[0][0]
    others = [change for change in found if change not in mine]
    says_why = lambda one: one.kind is ChangeKind.COMPARISON or one.new.startswith("tl.cdiv(")
    if name == "1" and any(map(says_why, others)):
        return mends_each([one for one in others if says_why(one)][:1], source)
    is_most = Limit.OTHERS * count >= len(others) and not any(one.kind in LIKELY for one in others)
    if not is_most or len(_lines(mine)) < 2 or name == "" or operator not in _LACKED:
        return []
    line = _likeliest(mine, name, source)
    mends = mends_each([change for change in mine if change.line == line][: Limit.SURVIVORS], source)
    rest = [each for each in _lines(mine) if each != line]
    where = f"most likely in line {line}" if len(rest) > 1 else f"in line {line} or in line {rest[0]}"
    unused = ", which the kernel never uses," if all(change.kind is ChangeKind.IDLE for change in mine) else ""
    says = f"`{name}`{unused} is missing {_LACKED[operator]}, {where}."
    hint = "put it there"
    for one in [one for one in others if one.kind is ChangeKind.NUMBER][:1]:
        hint = f"put it there, or take {one.new} for {source.of(one.node)} in line {one.line}"
    return [replace(mend, rank=Rank.OF_SEVERAL, sentence=says, hint=hint) for mend in mends]


def _likeliest(found: Sequence[Change], name: str, source: ParsedSource) -> int:
    """The line that is the likeliest to lack a name: it does more than load, or does nothing but to give something
    another name. What was loaded and is never used is likeliest to be missing at the end, in what is stored."""
    lines, texts = Counter(one.line for one in found), source.text.splitlines()
    loads = [function.name for function in source.kernels if re.search(r"return tl\.load\(", source.of(function))]
    is_load = lambda line: any(f"{one}(" in texts[line - 1] for one in ("tl.load", *loads))
    is_alias = lambda line: re.fullmatch(r"\s*\w+ = \w+\s*(#.*)?", texts[line - 1]) is not None
    has_name = lambda line: name.isidentifier() and re.search(rf"\b{name}\b", texts[line - 1]) is not None
    was_loaded = any(re.match(rf"\s*{re.escape(name)} = ", one) and is_load(at) for at, one in enumerate(texts, 1))
    at_end = lambda line: was_loaded and "tl.store(" in texts[line - 1]
    does_more = lambda line: (not is_load(line), is_alias(line), has_name(line), at_end(line))
    own = _reading_with(name, source)
    return max(lines, key=lambda line: (line in own, *does_more(line), lines[line], -line))


def _reading_with(stride: str, source: ParsedSource) -> set[int]:
    """The lines that access the tensor one of whose strides a launch passes by this name."""
    draft, found = draft_of(source.text), set[int]()
    for launch in draft.launches if draft is not None else ():
        given = {param: source.of(value) for param, value in launch.given.items()}
        tensor = re.match(r"\*?(\w+)\.stride\(", given.get(stride, ""))
        mine = (one for one in launch.kernel.accesses if tensor and given.get(one.pointer) == tensor[1])
        found.update(one.line for one in mine)
    return found


def is_against_names(change: Change, draft: Draft) -> bool:
    """Whether all names that a change replaces agree with what they are loaded to, or passed for: `x` is loaded through
    `x_ptr`. Then what is passed is wrong, rather than the kernel, or in another call."""
    kernel, meant = _kernel_of(change, draft), dict[ast.AST, str]()
    functions = {one.name: [each.arg for each in one.args.args] for one in draft.source.host}
    for launch in draft.launches:
        meant |= {value: name for name, value in launch.given.items()}
    for call in (one for one in ast.walk(draft.source.tree) if isinstance(one, ast.Call)):
        meant |= zip(call.args, functions.get(called(call), ()), strict=False)
    for node in (part.node for part in change.parts if kernel is not None):
        target = target_of(kernel.statement(node)) if kernel is not None else None
        meant[node] = target if target and target != getattr(node, "id", "") else ""
    names = [(stem(meant.get(part.node, "")), stem(getattr(part.node, "id", "")), part.new) for part in change.parts]
    return all(target == old != stem(new) and target for target, old, new in names)


def stem(name: str) -> str:
    """A name of a tensor without what tells that it is a pointer."""
    return re.sub(r"_?(ptrs?|pointer|buffer)$", "", name.lower())


def _way(change: Change) -> tuple[str, Any]:
    """The name that a change puts to a piece, and the kind of its operation: what is taken from a part that is taken
    away is added to the whole."""
    operator = _operator(change)
    return change.lacks, ast.Add if operator is ast.Sub else operator


def _operator(change: Change) -> type[ast.operator] | None:
    """The operation that the change puts around a piece."""
    return type(change.built.op) if isinstance(change.built, ast.BinOp) else None


def _of_one_of_several(found: Sequence[Change], source: ParsedSource) -> list[Mend]:
    """Of likely changes of one kind on a few lines, any of which makes all calls right, the largest of each line: that
    of the first line is tried first, and the others beside it, unless a change is of several places. Changes that put
    an unused name to use keep the order they are made in."""
    least = min(change.kind for change in found)
    mine = [change for change in found if change.kind is least]
    lines = _lines(mine)
    if least not in (*LIKELY, ChangeKind.DROPPED) or not 1 < len(lines) <= Limit.LINES:
        return []
    place = lambda one: found.index(one) if least is ChangeKind.IDLE else one.line
    size = lambda one: len(source.of(one.node))
    least_first = lambda one: -size(one) if least is ChangeKind.SIDES else 0  # what differs alone
    texts = source.text.splitlines()
    is_there = lambda one: least is ChangeKind.NAME and one.new in re.findall(r"\w+", texts[one.line - 1])
    weight = lambda one: (least_first(one), is_there(one), -place(one), size(one), -len(one.new))
    largest = [max((one for one in mine if one.line == line), key=weight) for line in lines]
    mends = mends_each(sorted(largest, key=weight, reverse=True), source)
    if not mends or any(one.also for one in largest):
        return [replace(one, rank=Rank.OF_SEVERAL) for one in mends]
    beside = lambda one: tuple(other for other in mends if other != one)
    return [replace(one, rank=Rank.OF_SEVERAL, others=beside(one)) for one in mends]


def _lines(found: Sequence[Change]) -> list[int]:
    return sorted({change.line for change in found})


def _on_as_many_lines(text: str, wanted: int) -> str | None:
    missing = wanted - text.count("\n")
    if missing == 0:
        return text
    return f"{text[:-1]}{chr(10) * missing})" if missing > 0 and text.endswith(")") else None
