"""What may be missing at an expression: a function around it, a factor, a term."""

import ast
import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gradekit.interpreter.tile_values import ValueKind, fitted
from gradekit.repair.operators.changes import Change, ChangeKind, ChangeSite
from gradekit.repair.operators.words import hint_of, sentence_of, unused, words
from gradekit.repair.work import Limit, Turn
from gradekit.source.kernel import ACCESSES, counter_of, counts_steps, head_of, target_of, without_conversions
from gradekit.submission.parsed_source import called, shown

_WRAPS = (
    ("tl.exp({})", "function"), ("-{}", "minus"), ("(1.0 / {})", "inverse"), ("tl.sqrt({})", "root"),
    ("({} * {})", "square"), ("tl.log({})", "function"), ("tl.trans({})", "function"), ("(1 - {})", "less"),
    ("tl.exp2({})", "function"), ("tl.log2({})", "function"), ("(2 * {})", "twice"), ("(0.5 * {})", "half"),
    ("(1.0 + {})", "more"),
)  # fmt: skip
"""What may be missing around an expression, and the role of that in the table of words."""

_LACKED = {"(2 * {})": "2", "(0.5 * {})": "0.5", "(1.0 + {})": "1.0"}
"""The number that is missing at an expression."""

_COMBINED: tuple[tuple[ChangeKind, str, type[ast.operator], str], ...] = (
    (ChangeKind.FACTOR, "*", ast.Mult, "lacks-factor"), (ChangeKind.FACTOR, "/", ast.Div, "lacks-divisor"),
    (ChangeKind.TERM, "-", ast.Sub, "lacks-less"), (ChangeKind.TERM, "+", ast.Add, "lacks-term"),
    (ChangeKind.TERM, "%", ast.Mod, "lacks-modulo"), (ChangeKind.TERM, "//", ast.FloorDiv, "lacks-divisor"),
)  # fmt: skip
"""What a name may be to an expression: the symbol and its node, its role in the table of words."""

_LOG2E = "1.4426950408889634"


def around(site: ChangeSite, node: ast.expr) -> Iterator[Change]:
    """What an expression may lack."""
    kind = site.kind(node)
    if kind is None or not _is_part(site, node):
        return
    if kind.of == "condition":
        yield from _with_another_condition(site, node, kind)
        return
    part = shown(site.source.of(node))
    text = site.source.operand(node)
    whole = _is_whole(site, node)
    if kind.of == "float" and not isinstance(node, ast.Constant) and called(node) not in ("tl.zeros", "tl.full"):
        inverse = f"{_INVERSE[site.exp.replace('math.', '')]}({{}})"
        for form, role in _WRAPS:
            if (form != "tl.trans({})" or len(kind.shape) == 2) and ("2({})" not in form or site.has_powers_of_2):
                holes = {"part": part, "number": _LACKED.get(form), "function": form.removesuffix("({})")}
                told = words(f"around-{role}", place=site.context(node), it=site.source.of(node), **holes)
                new, built = form.format(text, text), _around(form, node)
                squared = node.id if isinstance(node, ast.Name) and form == "({} * {})" else ""
                lacks = _LACKED.get(form, squared)
                is_likely = whole or form in ("-{}", inverse)
                yield site.change(ChangeKind.WRAPPED, node, new, told, 2 + (not is_likely), built, lacks)
        yield from _without_lanes(site, node, kind, whole)
        yield from _with_a_sign(site, node, text) if whole or isinstance(getattr(node, "op", None), ast.Div) else ()
        yield from _of_base_2(site, node, text)
        yield from _to_one_maximum(site, node, text, kind)
    if not isinstance(node, ast.Constant):
        yield from _with_another(site, node, kind, (text, part, whole))


def _of_base_2(site: ChangeSite, node: ast.expr, text: str) -> Iterator[Change]:
    """`x * log2(e)` and `x / log2(e)` for x, where kernels compute powers or logarithms to the base 2."""
    for symbol, role in (("*", "powers-of-2"), ("/", "powers-of-2-undone")) if site.has_powers_of_2 else ():
        says = words(role, part=shown(site.source.of(node)), place=site.context(node))
        operator, turn = ast.Mult() if symbol == "*" else ast.Div(), _soon(site, symbol, float(_LOG2E))
        built = ast.BinOp(node, operator, ast.Constant(float(_LOG2E)))
        change = site.change(ChangeKind.FACTOR, node, f"({text} {symbol} {_LOG2E})", says, turn, built, "log2(e)")
        powers = (one for one in site.kernel.nodes if isinstance(one, ast.Call) and called(one).endswith("exp2"))
        at = min((one.lineno for one in powers), default=0) if symbol == "*" else 0
        yield replace(change, at=at, sentence=f"Line {at} {says[0]}") if at else change


def _soon(site: ChangeSite, symbol: str, value: Any, turn: int = Turn.COMBINED) -> int:
    """When a number is put to an expression as a factor: soon, where that is what all of the result lacks."""
    if site.lacks is None or symbol not in ("*", "/") or type(value) not in (int, float) or not value:
        return turn
    fits = abs((value if symbol == "*" else 1 / value) / site.lacks - 1) < Limit.SMALL
    return min(turn, 1) if fits else turn


def _to_one_maximum(site: ChangeSite, node: ast.expr, text: str, kind: ValueKind) -> Iterator[Change]:
    """`x * tl.exp(a - b)` for what is summed up, where b is the maximum of a, or of a and another."""
    parent = site.kernel.parents[node]
    is_term = isinstance(parent, (ast.BinOp, ast.AugAssign)) and isinstance(parent.op, ast.Add)
    is_summed = is_term or called(parent) in ("tl.sum", "tl.dot")
    for less, shape in site.less_maxima(node).items() if is_summed else ():
        if (factor := fitted(less, shape, kind.shape)) is not None:
            says = words("unscaled-part", part=shown(site.source.of(node)), place=site.context(node), factor=factor)
            built = ast.BinOp(node, ast.Mult(), _tree(factor))
            yield site.change(ChangeKind.UPDATE, node, f"({text} * {factor})", says, 1, built)


def _with_a_sign(site: ChangeSite, node: ast.expr, text: str) -> Iterator[Change]:
    """`tl.where(x < 0, -f, f)` for f, where the kernel has tl.abs(x)."""
    sized = (one.args[0] for one in site.kernel.nodes if isinstance(one, ast.Call) and called(one) == "tl.abs")
    for name in dict.fromkeys(map(site.source.of, sized)):
        if name in site.names(node) and not isinstance(node, ast.Constant):
            says = words("around-sign", it=site.source.of(node), name=name, place=site.context(node))
            yield site.change(ChangeKind.GUARD, node, f"tl.where({name} < 0, -{text}, {text})", says, 2)


def _without_lanes(site: ChangeSite, node: ast.expr, kind: ValueKind, is_whole: bool) -> Iterator[Change]:
    """`tl.where(m, x, 0.0)` for x, and with -inf: what lies outside of a mask takes no part."""
    for name, other in (*site.names(node).items(), *_masks(site, node)) if kind.shape and is_whole else ():
        condition = fitted(name, other.shape, kind.shape) if other.of == "condition" else None
        for value in ("0.0", 'float("-inf")') if condition is not None and other.shape else ():
            new = f"tl.where({condition}, {site.source.of(node)}, {value})"
            it, mask = shown(site.source.of(node)), ast.unparse(_tree(name))
            role = "lanes-past-the-end" if _ends(site, _tree(name)) else "lanes"
            says = sentence_of(role, it=it, mask=mask), hint_of("lanes", value=value, new=shown(new))
            yield site.change(ChangeKind.LANES, node, new, says, 2)


def _ends(site: ChangeSite, mask: ast.expr) -> bool:
    """Whether a mask holds up to where a tensor ends, and only there is False."""
    compared = [one for one in ast.walk(site.kernel.resolved(mask)) if isinstance(one, ast.Compare)]
    lengths = (site.role(getattr(one.comparators[0], "id", "")) for one in compared if isinstance(one.ops[0], ast.Lt))
    return compared != [] and [*lengths] == ["length"] * len(compared)


def _masks(site: ChangeSite, node: ast.expr) -> Iterator[tuple[str, ValueKind]]:
    """Masks of accesses that have no name, and could stand at an expression too."""
    masks = [access.mask for access in site.kernel.accesses if access.mask is not None]
    here = [mask for mask in masks if site.kernel.names(mask) <= site.names(node).keys()]
    kinds = {site.source.of(mask): site.kind(mask) for mask in here}
    yield from _bounds(site, node)
    yield from ((f"({text})", kind) for text, kind in kinds.items() if kind is not None and not text.isidentifier())


def _bounds(site: ChangeSite, node: ast.expr) -> Iterator[tuple[str, ValueKind]]:
    """Conditions that are comparisons of this function's indices: with lengths, and with each other, as a causal mask
    has it; spread over a tile."""
    wanted, names = site.kind(node), site.names(node)
    if wanted is None or len(wanted.shape) == 0:
        return
    kind = ValueKind("condition", wanted.shape)
    yield from ((f"({one})", kind) for one in _below_lengths(site, names, wanted))
    if len(wanted.shape) == 2:
        indices = [(name, names[name].shape) for name in site.kernel.indices if name in names]
        rows, columns = (
            [f"{name}{form}" for name, shape in indices if shape == (wanted.shape[axis],)]
            for axis, form in ((0, "[:, None]"), (1, "[None, :]"))
        )
        pairs = [f"{m} {op} {n}" for m in rows for n in columns for op in (">=", "<=") if m[:-9] != n[:-9]]
        flags = _flags(site, node)
        yield from ((f"({pair})", kind) for pair in pairs if not flags)
        yield from ((f"(({pair}) | ({flag} == 0))", kind) for pair in pairs for flag in flags)


def _below_lengths(site: ChangeSite, names: Mapping[str, ValueKind], wanted: ValueKind) -> Iterator[str]:
    """Indices, spread over a tile, each less than what bounds it, or else than what bounds any, or a length."""
    every = dict.fromkeys([*itertools.chain(*site.kernel.bounds.values()), *site.kernel.lengths])
    known = [one for one in every if {n.id for n in ast.walk(_tree(one)) if isinstance(n, ast.Name)} <= names.keys()]
    known = [one for one in known if one not in site.kernel.lengths or site.role(one) == "length"]
    for name in (one for one in site.kernel.indices if one in names):
        if (spread := fitted(name, names[name].shape, wanted.shape)) is not None:
            own = site.kernel.bounds.get(name, known)
            yield from (f"{spread} < {length}" for length in own if length in known)


def _known(site: ChangeSite, node: ast.AST) -> Mapping[str, Any]:
    """The values of names where an expression stands."""
    return site.watched.names.get(site.kernel.statement(node), {})


def _flags(site: ChangeSite, node: ast.expr) -> list[str]:
    """The constants of a kernel that are 0 or 1 where an expression stands."""
    known = _known(site, node)
    return [name for name in site.kernel.constexprs if type(known.get(name)) in (bool, int) and known[name] in (0, 1)]


def _with_another_condition(site: ChangeSite, node: ast.expr, kind: ValueKind) -> Iterator[Change]:
    """`m & other` for a mask, or for what is chosen by: another name, a comparison that stands in the source, or one of
    an index that nothing bounds."""
    if not _is_whole(site, node):
        return
    names, kind = site.names(node), _kind_of_access(site, node) or kind
    known = [fitted(name, other.shape, kind.shape) for name, other in names.items() if other.of == "condition"]
    every = [one for one in site.comparisons if one is not node]
    compared = [site.source.of(one) for one in every if site.kernel.names(one) <= names.keys()]
    compared += [text for one in every for text in _of_other_names(site, one, names)]
    compared += _below_lengths(site, names, kind) if kind.shape else ()
    text = site.source.operand(node)
    whole, place = shown(site.source.of(node)), site.context(node)
    for one in dict.fromkeys([*filter(None, known), *(f"({text})" for text in compared)]):
        if one != text:
            says = words("condition", it=whole, place=place, new=shown(one))
            yield site.change(ChangeKind.CONDITION, node, f"({text} & {one})", says, 1)


def _of_other_names(site: ChangeSite, node: ast.Compare, names: Mapping[str, ValueKind]) -> Iterator[str]:
    """A comparison with a number, of other values of the same kind."""
    first, *others = node.left, *node.comparators
    if isinstance(first, ast.Name) and all(isinstance(one, ast.Constant) for one in others) and first.id in names:
        rest = site.source.of(node).removeprefix(first.id)
        yield from (f"{name}{rest}" for name, kind in names.items() if kind == names[first.id] and name != first.id)


def _kind_of_access(site: ChangeSite, node: ast.expr) -> ValueKind | None:
    """The kind of the address where an expression is the mask, or is given its name: it may bound one dimension."""
    parent = site.kernel.parents.get(node)
    name = target_of(parent) if isinstance(parent, ast.Assign) else ""
    is_mask = lambda mask: mask is node or name != "" and getattr(mask, "id", "") == name
    return next((site.kind(one.address) for one in site.kernel.accesses if is_mask(one.mask)), None)


def _with_another(site: ChangeSite, node: ast.expr, kind: ValueKind, told: tuple[str, str, bool]) -> Iterator[Change]:
    text, part, whole = told
    place, later = site.context(node), (not whole) + _is_loaded(site, node)  # sooner to all of a formula
    is_value = kind.of == "float" or _becomes_a_value(site, node)
    mine = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    further = [
        *_come_so_far(site, node), *_behind_idle_pointers(site, node),
        *_functions_of_values(site, node),
        *((one, ValueKind("float", ())) for one in site.missing_numbers if float(one) >= Limit.SMALL),
        *([("1", ValueKind("integer", ()))] if kind.of != "float" else []),
    ]  # fmt: skip
    loop = site.kernel.in_loop(node)
    bounds = site.kernel.names(head_of(loop)) if loop is not None else set()
    every = [*sorted(site.names(node).items(), key=lambda one: one[0] not in bounds), *further]
    for name, other, one in ((*pair, one) for pair in every for one in _spread(pair[0], pair[1].shape, kind.shape)):
        wanted = "integer" if kind.of.startswith("pointer") else kind.of
        if other.of != wanted and not (wanted == "float" and other.of == "integer" and not other.shape):
            continue
        if name in mine and kind.of != "float":
            continue
        says, right = sentence_of("number", it=part, place=place), _tree(one)
        is_idle = site.is_idle(idle := re.split(r"\W", name.removeprefix("tl.load("))[0])
        is_close = not name.isidentifier() or site.is_near(name, node, Limit.CLOSE)
        turn = Turn.IDLE if is_idle else min(Turn.COMBINED + (not is_close) + later, Turn.LAST)
        known = _known(site, node).get(name)
        is_one = isinstance(known, int) and known == 1 and site.role(name) != "length"
        for change, symbol, operator, role in _COMBINED:
            if is_one and kind.of != "float" and symbol != "*" or name == "1" and symbol not in "+-":
                continue  # modulo 1 is 0, and a term of 1 says nothing of the name
            if symbol in "+-" and other.of != wanted:
                continue  # a count may be a factor of values, and is no term of them
            again = symbol == "/" and name in mine and not is_idle  # once more by the same
            soon = Turn.COMBINED - 1 if again else _soon(site, symbol, known if kind.of == "float" else None, turn)
            if soon in site.turns and _may_be(symbol, kind) and _may_join(site, name, symbol, is_value):
                new, built = f"({text} {symbol} {one})", ast.BinOp(node, operator(), right)
                role = "lacks-stride" if symbol == "*" and site.role(name) == "stride" else role
                said = unused(says, idle) if is_idle else says, hint_of(role, name=name, part=part)
                yield site.change(ChangeKind.IDLE if is_idle else change, node, new, said, soon, built, name)


def _spread(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> list[str]:
    """How a name may be written beside a tile: along its rows or its columns where it is as high as it is wide."""
    if len(shape) == 1 and wanted == 2 * shape:
        return [f"{name}[:, None]", f"{name}[None, :]"]
    return [one for one in [fitted(name, shape, wanted)] if one is not None]


def _may_join(site: ChangeSite, name: str, symbol: str, is_value: bool) -> bool:
    """Whether a name may be what an expression lacks: a factor of an index is a parameter, or a number of programs; no
    stride is one of values."""
    if is_value:
        return site.role(name) != "stride"
    return symbol in "+-" or name in site.kernel.all_params or not name.isidentifier()


def _becomes_a_value(site: ChangeSite, node: ast.AST) -> bool:
    """Whether a whole number takes part in values where it stands, as the divisor of a mean does, and in no address."""
    while isinstance(parent := site.kernel.parents.get(node), ast.expr) and called(parent) not in ACCESSES:
        node = parent
        if (kind := site.kind(node)) is not None and kind.of == "float":
            return True
    return False


def _is_loaded(site: ChangeSite, node: ast.expr) -> bool:
    """Whether an expression belongs to a statement that loads, and computes nothing of what it loads."""
    value = getattr(site.kernel.statement(node), "value", None)
    return value is not None and called(without_conversions(value)) == "tl.load"


def _come_so_far(site: ChangeSite, node: ast.expr) -> Iterator[tuple[str, ValueKind]]:
    """`k * BLOCK` in a loop that counts steps of a block."""
    loop = site.kernel.in_loop(node)
    if loop is not None and counts_steps(loop) and (counter := counter_of(loop)):
        used = site.kernel.names(head_of(loop))
        yield from ((f"{counter} * {c}", ValueKind("integer", ())) for c in site.kernel.constexprs if c in used)


_INVERSE = {"tl.exp": "tl.log", "tl.exp2": "tl.log2", "tl.log": "tl.exp", "tl.log2": "tl.exp2"}


def _functions_of_values(site: ChangeSite, node: ast.expr) -> Iterator[tuple[str, ValueKind]]:
    """`tl.log(total)` beside what is stored, where the kernel has tl.exp: the result of a sum of powers is often its
    logarithm."""
    if not any(access.value is node for access in site.kernel.accesses):
        return
    for function in dict.fromkeys(_INVERSE[name] for name in map(called, site.kernel.nodes) if name in _INVERSE):
        values = ((name, kind) for name, kind in site.names(node).items() if kind.of == "float")
        yield from ((f"{function}({name})", kind) for name, kind in values)


def _behind_idle_pointers(site: ChangeSite, node: ast.expr) -> Iterator[tuple[str, ValueKind]]:
    """What lies behind a pointer that nothing uses: a number, or a tile in the places of another pointer's."""
    every = site.names(node).items()
    idle = [name for name, kind in every if kind.of.startswith("pointer") and not kind.shape and site.is_idle(name)]
    yield from ((f"tl.load({name})", ValueKind("float", ())) for name in idle)
    for name, one in itertools.product(idle, [one for one in site.kernel.accesses if one.is_load] if idle else ()):
        kind, address = site.kind(one.call), site.source.of(one.address)
        if kind is not None and kind.of == "float" and one.pointer and one.mask is not None:
            moved = re.sub(rf"\b{one.pointer}\b", name, address)
            yield f"tl.load({moved}, mask={site.source.of(one.mask)}, other=0.0)", kind


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
    if isinstance(parent, ast.Call) and called(parent).rpartition(".")[2] in _OF_SHAPES:
        return False
    return not isinstance(parent, (ast.Slice, ast.Tuple, ast.Expr))


_OF_SHAPES = {"arange", "zeros", "full", "program_id", "cdiv"}
