"""What a beginner may have meant in the place of what is there: another name, number, operator, function, axis."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gradekit.arithmetic import SIGNS
from gradekit.repair.operators.changes import Change, ChangeKind, ChangeSite, Site, at_once, digits
from gradekit.repair.operators.statement_changes import STATEMENTS
from gradekit.repair.operators.words import hint_of, sentence_of, unused, words
from gradekit.repair.work import Limit, Turn
from gradekit.source.kernel import EXP, RANGES, counter_of
from gradekit.submission.parsed_source import called, shown

Rule = Callable[[ChangeSite, Any], Iterator[Change]]


# --- names and numbers ------------------------------------------------------------------------------------------------


def _other_name(site: ChangeSite, node: Any) -> Iterator[Change]:
    mine = site.kind(node)
    yield from _number_of_the_module(site, node)
    if mine is None or not isinstance(node.ctx, ast.Load) or _is_called(site, node):
        return
    says = _use_of_a_name(site, node)
    of = "pointer" if mine.of.startswith("pointer") else mine.of
    is_for_this = node.id in site.kernel.values and site.kernel.uses.get(node.id) == 1
    parent = site.kernel.parents.get(node)
    is_count = isinstance(getattr(parent, "op", None), (ast.FloorDiv, ast.Mod)) and site.role(node.id) != "stride"
    here = site.kernel.names(site.kernel.statement(node))  # of names that have one value, those are likelier
    for name, kind in sorted(site.names(node).items(), key=lambda one: one[0] not in here):
        is_by_stride = is_count and site.role(name) == "stride"  # which may be 1, and nothing is counted in strides
        if is_for_this and not site.is_idle(name) or site.is_number(name, node) or is_by_stride:
            continue  # what is computed for this place alone would be of no use
        is_divisor = not mine.shape and kind.of == "float" and _divides_values(site, node)
        if name != node.id and (kind.of.startswith(of) or is_divisor) and kind.shape == mine.shape:
            is_alike = site.role(name) == site.role(node.id)
            likely, turn = (ChangeKind.NAME, 0) if is_alike else (ChangeKind.OTHER_ROLE, 1)
            is_far = kind.of == "float" and bool(kind.shape) and not site.is_near(name, node)
            turn = Turn.LAST if is_far else turn
            told = says, hint_of("name" if is_alike else "name-other-role", name=name)
            if site.is_idle(name):
                likely, turn, told = ChangeKind.IDLE, Turn.IDLE, _where_an_idle_one_belongs(says, name)
            yield site.change(likely, node, name, told, turn, ast.Name(name, ast.Load()))
    if any(access.value is node for access in site.kernel.accesses) and mine.of in _ONE:  # to count is to add 1
        told = says, hint_of("number", new=_ONE[mine.of])
        yield site.change(ChangeKind.NUMBER, node, _ONE[mine.of], told, 1)


_ONE = {"integer": "1", "float": "1.0"}


def _use_of_a_name(site: ChangeSite, node: ast.Name) -> str:
    """What a name is used for, by where it stands."""
    parent = site.kernel.parents.get(node)
    if isinstance(parent, ast.Compare) and parent.comparators == [node]:
        return sentence_of("use-bound", it=shown(site.source.of(parent.left)), name=node.id, place=site.context(node))
    is_stride = "the stride " if site.role(node.id) == "stride" else ""
    return sentence_of("use", stride=is_stride, name=node.id, place=site.context(node))


def _divides_values(site: ChangeSite, node: ast.AST) -> bool:
    """Whether values are divided by a name or multiplied with it, so that it may be no whole number as well."""
    parent = site.kernel.parents.get(node)
    kind = site.kind(parent) if isinstance(parent, ast.BinOp) else None
    return kind is not None and kind.of == "float"


def _is_called(site: ChangeSite, node: ast.AST) -> bool:
    """Whether a name is that of a function or a module, or of what a dtype is asked of."""
    parent = site.kernel.parents.get(node)
    is_asked = isinstance(parent, ast.Attribute) and parent.attr in ("dtype", "type", "shape")
    return isinstance(parent, ast.Call) and parent.func is node or is_asked


def _other_number(site: ChangeSite, node: Any) -> Iterator[Change]:
    value = node.value
    if type(value) not in (int, float) or _is_axis(site, node):
        return
    if value in map(float, site.numbers) and len(digits(repr(value))) > Limit.SHORT:
        return
    says = sentence_of("number", it=f"{value:g}", place=site.context(node))
    others = [0, 1, -1, 2, value + 1, value - 1] if isinstance(value, int) else [0.0, 1.0, -value, value * 2, value / 2]
    if _stands_in_for_an_integer(site, node):
        others = [-1]
    parent = site.kernel.parents.get(node)
    given = parent.args if isinstance(parent, ast.Call) else []
    function = called(parent) if parent is not None and given[:1] == [node] else ""
    if function.endswith("range"):
        others = [other for other in others if other >= 0]  # no loop and no tile begins before that
    texts = dict.fromkeys(repr(other) for other in others if other != value)
    if isinstance(value, float):
        texts |= dict.fromkeys(['float("-inf")', 'float("inf")'])
        yield from _number_of_the_handout(site, node, says)
    if isinstance(parent, ast.BinOp) and parent.right is node and SIGNS.get(type(parent.op)) in ("*", "/", "//"):
        texts.pop(repr(type(value)(1)), None)  # which is to leave out that side
    fills = isinstance(parent, ast.keyword) and parent.arg == "other"
    begins = function in RANGES and given[1:]
    likely = ChangeKind.CONDITION if fills else ChangeKind.NUMBER
    for text in texts:
        told = words("number-filled", it=f"{value:g}", new=text) if fills else (says, hint_of("number", new=text))
        if begins and text == "0":
            told = sentence_of("number-first", it=value, place=site.context(node)), told[1]
        yield site.change(likely, node, text, told, 1)
    mine = site.kind(node)
    nearest = sorted(site.names(node).items(), key=lambda one: not site.is_near(one[0], node, Limit.CLOSE))
    is_factor = isinstance(getattr(parent, "op", None), ast.Mult)
    for name, kind in nearest if others != [-1] else ():
        if not is_factor and site.role(name) == "stride" and not site.is_idle(name):
            continue  # nothing but an index has one
        if mine is not None and kind == mine and site.is_idle(name):
            yield site.change(ChangeKind.IDLE, node, name, _where_an_idle_one_belongs(says, name), Turn.IDLE)
        elif mine is not None and kind == mine:
            yield site.change(ChangeKind.NUMBER, node, name, (says, hint_of("name", name=name)), 1)


def _number_of_the_module(site: ChangeSite, node: ast.Name) -> Iterator[Change]:
    """Another number for what a name of the module stands for, wherever the function uses it."""
    given = site.module_numbers.get(node.id)
    uses = [one for one in site.kernel.nodes if given and isinstance(one, ast.Name) and one.id == node.id]
    if given is None or uses[0] is not node:
        return
    place = shown(site.source.text.splitlines()[given.lineno - 1].strip())
    says = sentence_of("number", it=f"{float(ast.unparse(given)):g}", place=place)
    for one in _number_of_the_handout(site, given, says):
        yield at_once(replace(one, node=use, at=given.lineno, edited=given) for use in uses)


def _number_of_the_handout(site: ChangeSite, node: Any, says: str) -> Iterator[Change]:
    """A number of the handout that begins with the same digits, or that the source lacks; the root of a number."""
    for number in (one for one in site.numbers if float(one) != node.value):
        is_alike = digits(number)[: Limit.SHORT] == digits(repr(node.value))[: Limit.SHORT]
        if is_alike or number in site.missing_numbers:
            hint = hint_of("number-handout", number=number)
            yield site.change(ChangeKind.NUMBER, node, number, (says, hint), 1 - is_alike)
    if node.value > 1:
        yield site.change(ChangeKind.NUMBER, node, repr(node.value**0.5), (says, hint_of("number-root")), 1)


def _where_an_idle_one_belongs(says: str, name: str) -> tuple[str, str]:
    """What is said of a name that nothing uses, and where it belongs."""
    return unused(says, name), hint_of("name-other-role", name=name)


def _stands_in_for_an_integer(site: ChangeSite, node: ast.AST) -> bool:
    """Whether a number is what a masked load of integers gives in other lanes: it decides little, but whether it is one
    of those that are counted."""
    parent = site.kernel.parents.get(node)
    kind = site.kind(site.kernel.parents[parent]) if isinstance(parent, ast.keyword) and parent.arg == "other" else None
    return kind is not None and kind.of == "integer"


def _negative(site: ChangeSite, node: Any) -> Iterator[Change]:
    if isinstance(node.op, ast.USub) and site.kind(node) is not None:
        says = words("minus", it=shown(site.source.of(node.operand)))
        yield site.change(ChangeKind.DROPPED, node, site.source.operand(node.operand), says)
        parent = site.kernel.parents.get(node)
        fills = isinstance(parent, ast.keyword) and parent.arg == "other" and isinstance(node.operand, ast.Constant)
        for text in ("0.0", 'float("-inf")') if fills else ():
            says = words("number-filled", it=site.source.of(node), new=text)
            yield site.change(ChangeKind.CONDITION, node, text, says, 1)


def _is_axis(site: ChangeSite, node: ast.AST) -> bool:
    parent = site.kernel.parents.get(node)
    is_scan = isinstance(parent, ast.Call) and called(parent) in ("tl.reduce", "tl.associative_scan")
    is_of_reduction = is_scan and isinstance(parent, ast.Call) and parent.args[1:2] == [node]
    is_named = isinstance(parent, ast.keyword) and parent.arg == "axis"
    return isinstance(parent, (ast.Slice, ast.Subscript)) or is_named or is_of_reduction


# --- operators --------------------------------------------------------------------------------------------------------

_SIBLINGS: dict[type, tuple[str, ...]] = {
    ast.Add: ("-", "*"), ast.Sub: ("+", "*"), ast.Mult: ("/", "+", "-"), ast.Div: ("*", "-"), ast.FloorDiv: ("%", "*"),
    ast.Mod: ("//",), ast.BitAnd: ("|",), ast.BitOr: ("&",),
}  # fmt: skip


def _operator(site: ChangeSite, node: Any) -> Iterator[Change]:
    op = SIGNS.get(type(node.op))
    if op is None:
        return
    left, right = site.source.operand(node.left), site.source.operand(node.right)
    whole = shown(site.source.of(node))
    kind = site.kind(node.left)
    are_conditions = kind is not None and kind.of == "condition"
    for other in "&|".replace(op, "") if are_conditions else _SIBLINGS.get(type(node.op), ()):
        if other == "/" and site.kind(node.right) is not None and site.kind(node.right).of == "integer":  # type: ignore[union-attr]
            continue
        is_one = any(getattr(side, "value", None) == 1 for side in (node.left, node.right))
        if other in "*/" and (is_one or called(node.right) in EXP):
            continue  # which is to leave out that side, or to give its exponent the other sign
        role = "operation-masks" if are_conditions else "operation-less" if other == "-" else "operation"
        says = words(role, it=whole, new=other, old=op)
        yield site.change(ChangeKind.OPERATOR, node, f"({left} {other} {right})", says)
    if op == "*" and kind is not None and kind.of == "float" and len(kind.shape) == 2 and kind == site.kind(node.right):
        new = f"tl.dot({site.source.of(node.left)}, {site.source.of(node.right)})"
        yield site.change(ChangeKind.FUNCTION, node, new, words("operation-product", it=whole))
    yield from _clamped(site, node, op)
    yield from _by_an_idle_number(site, node, op)
    yield from _of_other_names(site, node)
    if op == "//":
        says = words("operation-rounded-down", it=whole)
        yield site.change(ChangeKind.OPERATOR, node, f"tl.cdiv({left}, {right})", says)
    if op in ("-", "/"):
        sides = words("operation-sides", it=whole, old=op)
        yield site.change(ChangeKind.SIDES, node, f"({right} {op} {left})", sides)
    yield from _without_a_side(site, node, (left, op, right))
    yield from other_brackets(site, node, op)


def _clamped(site: ChangeSite, node: Any, op: str) -> Iterator[Change]:
    """`tl.maximum(a - b, 0)` for `a - b`, a length or how many are left."""
    kind, text = site.kind(node), site.source.of(node)
    if op == "-" and kind is not None and kind.of in ("float", "integer") and (kind.shape or kind.of == "integer"):
        new = f"tl.maximum({text}, {'0.0' if kind.of == 'float' else '0'})"
        yield site.change(ChangeKind.GUARD, node, new, words("guard-length", it=shown(text)))


def _by_an_idle_number(site: ChangeSite, node: Any, op: str) -> Iterator[Change]:
    """`x * scale` for `x / d`, where nothing uses scale."""
    kind, right = site.kind(node), site.kind(node.right)
    if op not in ("*", "/") or kind is None or kind.of != "float" or right is None or right.shape:
        return
    for name, value in site.names(node).items():
        if value.of == "float" and not value.shape and site.is_idle(name):
            for symbol, way in (("*", "multiplied"), ("/", "divided")):
                new = f"({site.source.operand(node.left)} {symbol} {name})"
                says = words("operation-unused", it=shown(site.source.of(node)), name=name, way=way)
                yield site.change(ChangeKind.IDLE, node, new, says, Turn.IDLE)


def _of_other_names(site: ChangeSite, node: Any) -> Iterator[Change]:
    """`right - left` for `bottom - top`, where that stands somewhere else: a line that was copied for another axis."""
    own, kind, names = _names_of(node), site.kind(node), site.names(node)
    if len(own) != 2 or kind is None or kind.of != "float":
        return
    every = (one for one in site.kernel.nodes if isinstance(one, ast.BinOp) and type(one.op) is type(node.op))
    for other in dict.fromkeys(site.source.of(one) for one in every if len(_names_of(one) - own) == 2):
        if _names_of(ast.parse(other, mode="eval").body) <= names.keys():
            says = words("other-names", it=shown(site.source.of(node)), place=site.context(node), new=other)
            yield site.change(ChangeKind.NAME, node, f"({other})", says, 1)


def _names_of(node: ast.expr) -> set[str]:
    """The names on both sides of an operation of two names; nothing of any other."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    return names if len(names) == len(sides) else set()


def _without_a_side(site: ChangeSite, node: Any, parts: tuple[str, str, str]) -> Iterator[Change]:
    left, op, right = parts
    if op not in ("+", "-", "*", "/", "&") and not (op == "//" and isinstance(node.right, ast.Constant)):
        return
    says = words("dropped", one=op, other=site.source.of(node.right), place=site.context(node))
    yield site.change(ChangeKind.DROPPED, node, left, says)
    if op not in ("/", "//") or isinstance(node.left, ast.Constant):
        says = words("dropped", one=site.source.of(node.left), other=op, place=site.context(node))
        yield site.change(ChangeKind.DROPPED, node, right, says)


def other_brackets(site: Site, node: Any, op: str) -> Iterator[Change]:
    """`a * b + c` for `a * (b + c)`, and the other way round."""
    source = site.source
    says = words("brackets", it=shown(source.of(node)))
    if isinstance(node.left, ast.BinOp) and (first := SIGNS.get(type(node.left.op))) and (
        first != op or op not in "+*"
    ):
        a, b, c = (source.operand(part) for part in (node.left.left, node.left.right, node.right))
        kind = ChangeKind.IDLE_SIDE if first in "*/" and b == "1" else ChangeKind.BRACKET  # nobody divides by 1
        for large, text in ((b, f"({a} {first} ({b} {op} {c}))"), (a, f"(({a} {op} {c}) {first} {b})")):
            rounded = words("brackets-rounded", it=source.of(node.left), of=c, large=large)
            yield site.change(kind, node, text, rounded if (first, op) == ("+", "-") else says)
    if isinstance(node.right, ast.BinOp) and (second := SIGNS.get(type(node.right.op))) and second != op:
        a, b, c = (source.operand(part) for part in (node.left, node.right.left, node.right.right))
        yield site.change(ChangeKind.BRACKET, node, f"(({a} {op} {b}) {second} {c})", says)
        if op == "*" and second in "+-":
            yield site.change(ChangeKind.BRACKET, node, f"({a} * {b} * (1 {second} {c}))", says, 1)
    for inner, outer in ((node.left, node.right), (node.right, node.left)):
        if isinstance(inner, ast.Call) and inner.args and called(inner).rpartition(".")[2] in _OF_ONE:
            at_end = inner is node.left
            a, c = source.operand(inner.args[0]), source.operand(outer)
            within = f"{a} {op} {c}" if at_end else f"{c} {op} {a}"
            rest = "".join(f", {source.of(one)}" for one in (*inner.args[1:], *inner.keywords))
            yield site.change(ChangeKind.BRACKET, node, f"{source.of(inner.func)}({within}{rest})", says)


def _comparison(site: ChangeSite, node: Any) -> Iterator[Change]:
    if (apart := _in_brackets(node)) is not node:
        told = words("brackets-joined")
        yield site.change(ChangeKind.BRACKET, node, f"({ast.unparse(apart)})", told)
    if len(node.ops) != 1 or (op := SIGNS.get(type(node.ops[0]))) is None:
        return
    left, right = site.source.operand(node.left), site.source.operand(node.comparators[0])
    for other in ("<", "<=", ">", ">=", "!=", "=="):
        if other != op:
            says = sentence_of(_compared(site, node, op, other), it=shown(site.source.of(node)))
            told = says, hint_of("comparison", new=other, old=op)
            yield site.change(ChangeKind.COMPARISON, node, f"({left} {other} {right})", told)


def _in_brackets(node: ast.Compare) -> ast.expr:
    """`(a < b) & (c < d)` for `a < b & c < d`, which is `a < (b & c) < d`; the same node where nothing joins."""
    for place, side in enumerate(node.comparators):
        match side:
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right):
                first = ast.Compare(node.left, node.ops[: place + 1], [*node.comparators[:place], left])
                more = ast.Compare(right, node.ops[place + 1 :], node.comparators[place + 1 :])
                return ast.BinOp(first, op, _in_brackets(more) if more.ops else right)
    return node


def _compared(site: ChangeSite, node: ast.Compare, old: str, new: str) -> str:
    """The role of a comparison by `old`, where `new` belongs."""
    kind, bound = site.kind(node.left), node.comparators[0]
    is_integer = kind is not None and kind.of == "integer"
    if {old, new} in ({"<", "<="}, {">", ">="}):
        is_guard = is_integer and isinstance(site.parents.get(node), ast.If)
        return "comparison-too-many" if "=" in old else "comparison-skipped" if is_guard else "comparison-too-few"
    if {old[0], new[0]} != {*"<>"}:
        return "comparison"
    is_index = old[0] == ">" and is_integer and kind is not None and kind.shape != ()
    is_outside = is_index and isinstance(bound, ast.Name) and site.role(bound.id) == "length"
    return "comparison-outside" if is_outside else "comparison-turned"


def _axes(site: ChangeSite, node: Any) -> Iterator[Change]:
    """`m[None, :]` for `m[:, None]`."""
    text = site.source.of(node.slice).replace(" ", "")
    other = {":,None": "None, :", "None,:": ":, None"}.get(text)
    if other is not None:
        says = words("axis-spread", it=site.source.of(node.value), old=site.source.of(node.slice), new=other)
        yield site.change(ChangeKind.AXIS, node, f"{site.source.of(node.value)}[{other}]", says)


# --- calls ------------------------------------------------------------------------------------------------------------

_FUNCTIONS = (
    ("exp", "exp2"), ("log", "log2"), ("sqrt", "rsqrt"), ("sum", "max", "min"), ("maximum", "minimum"), ("sin", "cos"),
    ("tanh", "sigmoid"), ("argmax", "argmin"), ("floor", "ceil"), ("atomic_add", "atomic_max"),
)  # fmt: skip

_OF_ONE = {
    "exp", "exp2", "log", "log2", "sqrt", "sqrt_rn", "rsqrt", "tanh", "sigmoid", "erf", "sum", "abs", "max", "min",
}  # fmt: skip

_DROPPABLE = {"exp", "exp2", "log", "log2", "sqrt", "sqrt_rn", "rsqrt", "tanh", "sigmoid", "abs", "trans"}


def _call(site: ChangeSite, node: Any) -> Iterator[Change]:
    path = called(node)
    name = path.rpartition(".")[2]
    source, whole = site.source, shown(site.source.of(node))
    arguments = ", ".join(source.of(one) for one in (*node.args, *node.keywords))
    if path.startswith("tl."):
        it = path if source.text.splitlines()[node.lineno - 1].count(f"{path}(") <= 1 else whole.strip("`")
        kind, to_helper = site.kind(node), called(site.parents.get(node, node)) in site.functions
        is_bound = site.kernel.bounds_a_loop(node) or to_helper and kind is not None and kind.of == "integer"
        known = ("max",) if is_bound else None  # a longer loop still is right by its masks
        for group in _FUNCTIONS:
            for other in (one for one in group if name in group and one != name and one in (known or group)):
                new = f"{path[: len(path) - len(name)]}{other}({arguments})"
                yield site.change(ChangeKind.FUNCTION, node, new, words("function", it=it, new=other))
    if name == "arange":
        yield from _for_a_range(site, node)
        yield from _from_its_beginning(site, node)
    if len(node.args) == 1 and (name in _OF_ONE or path in site.functions):
        yield from _out_of_brackets(site, node)
    if name in _DROPPABLE and node.args:
        says = words("function-dropped", it=path, of=shown(source.of(node.args[0])))
        yield site.change(ChangeKind.DROPPED, node, source.operand(node.args[0]), says)
    if name == "where" and len(node.args) == 3:
        new = f"{path}({source.of(node.args[0])}, {source.of(node.args[2])}, {source.of(node.args[1])})"
        yield site.change(ChangeKind.SIDES, node, new, words("choice", it=whole))
    if name in ("program_id", "sum", "max", "min", "argmax", "argmin", "reduce", "associative_scan"):
        yield from _axis(site, node, name)


def _out_of_brackets(site: ChangeSite, node: Any) -> Iterator[Change]:
    """`f(a) + c` for `f(a + c)`."""
    inner = node.args[0]
    op = SIGNS.get(type(inner.op)) if isinstance(inner, ast.BinOp) else None
    if op not in ("+", "-", "*", "/"):
        return
    start, rest = site.source.of(node.func), "".join(f", {site.source.of(one)}" for one in node.keywords)
    a, c = site.source.operand(inner.left), site.source.operand(inner.right)
    says = words("brackets-outside", it=start, of=shown(site.source.of(inner)))
    yield site.change(ChangeKind.BRACKET, node, f"({start}({a}{rest}) {op} {c})", says)
    if op in "+*":
        yield site.change(ChangeKind.BRACKET, node, f"({a} {op} {start}({c}{rest}))", says)


def _for_a_range(site: ChangeSite, node: ast.Call) -> Iterator[Change]:
    """A name for `tl.arange(...)`, where that is part of an expression: positions for places in a tile."""
    mine = site.kind(node)
    names = site.names(node) if isinstance(site.kernel.parents.get(node), ast.expr) else {}
    for name in (one for one, kind in names.items() if kind == mine):
        says = sentence_of("number", it=shown(site.source.of(node)), place=site.context(node))
        yield site.change(ChangeKind.NAME, node, name, (says, hint_of("name", name=name)))


def _from_its_beginning(site: ChangeSite, node: ast.Call) -> Iterator[Change]:
    """`tl.program_id(0) * B + tl.arange(0, B)` for the range alone, where its statement knows no program, and for that
    without the factor; in a loop that its statement does not go on with, `start + tl.arange(0, B)`."""
    kernel, source = site.kernel, site.source
    statement, whole, width = kernel.statement(node), source.of(node), source.operand(node.args[-1])
    loop = kernel.in_loop(node)
    counter = counter_of(loop) if loop is not None else ""
    if counter and counter not in kernel.names(statement):
        says = words("same-in-steps", it=whole, counter=counter)
        for first in (counter, f"{counter} * {width}"):
            yield site.change(ChangeKind.STEP, node, f"({first} + {whole})", says, 1)
    parent = site.parents.get(node)
    for one in (parent.left, parent.right) if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add) else ():
        if source.of(one) in (counter, *kernel.pids) or called(one) == "tl.program_id":
            says = words("one-apart", it=source.of(one), width=width)
            yield site.change(ChangeKind.STEP, one, f"({source.of(one)} * {width})", says)
    if "tl.program_id" in kernel.calls_behind(getattr(statement, "value", node)):
        return
    asked = {source.of(one) for one in kernel.nodes if isinstance(one, ast.Call) and called(one) == "tl.program_id"}
    axes = (text for text in (f"tl.program_id({axis})" for axis in range(3)) if text not in asked)
    for program in [*(name for name in kernel.pids if name in site.names(node)), *axes]:
        says = words("same-in-programs", it=whole, program=program, width=width)
        yield site.change(ChangeKind.STEP, node, f"({program} * {width} + {whole})", says, 1)


def _over_all_programs(site: ChangeSite, loop: Any) -> Iterator[Change]:
    """`range(p * B, n, tl.num_programs(0) * B)` for a loop from `p * B`, the place of a program, by any other step."""
    node, source = loop.iter, site.source
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return
    first = node.args[0]
    named = ((one, site.kernel.resolved(one)) for one in ast.walk(first) if isinstance(one, (ast.Name, ast.Call)))
    for one, call in ((one, part) for one, value in named for part in ast.walk(value)):
        if called(call) == "tl.program_id":
            (start, end), (before, behind) = source.span(first), source.span(one)
            count = f"tl.num_programs{source.of(call).removeprefix('tl.program_id')}"
            step = f"{source.between(start, before)}{count}{source.between(behind, end)}"
            new = f"{source.of(node.func)}({source.of(first)}, {source.of(node.args[1])}, {step})"
            says = words("over-all-programs", first=source.of(first), step=step)
            yield site.change(ChangeKind.STEP, node, new, says)


def _axis(site: ChangeSite, node: Any, name: str) -> Iterator[Change]:
    first = [*node.args] if name == "program_id" else [*node.args[1:2]]
    places = [*first, *(keyword.value for keyword in node.keywords if keyword.arg == "axis")]
    for place in (one for one in places if isinstance(one, ast.Constant) and isinstance(one.value, int)):
        for axis in (0, 1, 2):
            if axis != place.value:
                says = words("axis", it=repr(place.value), place=shown(site.source.of(node)), new=axis)
                yield site.change(ChangeKind.AXIS, place, str(axis), says)
    has_more = len(node.args) + len(node.keywords) > 1 + len(places)
    tile = site.kind(node.args[0]) if node.args and name != "program_id" and not has_more else None
    rank, old = len(tile.shape) if tile is not None else 0, [site.source.of(one) for one in places]
    for axis in (one for one in range(rank) if rank > 1 and str(one) not in old):
        new = f"{site.source.of(node.func)}({site.source.of(node.args[0])}, axis={axis})"
        spread = ("[None, :]", "[:, None]")[axis] if rank == 2 else ""  # as it meets the tile again
        said = {"it": "".join(old), "place": shown(site.source.of(node)), "new": axis}
        says = words("axis" if old else "axis-all", **said)
        ways = [new + spread] if old else dict.fromkeys((new, new + spread))
        yield from (site.change(ChangeKind.AXIS, node, text, says) for text in ways)


RULES: dict[type, tuple[Rule, ...]] = {
    ast.Name: (_other_name,), ast.Constant: (_other_number,), ast.UnaryOp: (_negative,), ast.BinOp: (_operator,),
    ast.Compare: (_comparison,), ast.Subscript: (_axes,), ast.Call: (_call,), ast.For: (_over_all_programs,),
    **STATEMENTS,
}  # fmt: skip
