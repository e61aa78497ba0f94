"""What is wrong with an assignment's Python, by its syntax tree: names that nobody defines, tests without points."""

import ast
import builtins
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import gradekit
from gradekit.causes import Cause
from gradekit.domain import EntryDomain
from gradekit.findings import Kind
from gradekit.schemas import nearest, schema
from gradekit.submission.reach import bound

FIXTURES = ("submission", "tmp_path", "monkeypatch", "request", "capsys", "recwarn", "tmp_path_factory")
_KIND_OF = {"assert_memory_clean": "memory", "assert_speed": "speed", "assert_launches": "structure"}
"""Claims that tell what a test is about."""


@dataclass(frozen=True)
class Remark:
    """Something about a line, from 1, of a file; a `note` is no mistake, but may be one."""

    line: int
    message: str
    is_note: bool = False


@dataclass(frozen=True)
class Known:
    """What an assignment's tests may name: its entries by name, kinds of values, and words of its `handout`."""

    entries: Mapping[str, EntryDomain]
    kinds: Collection[str]
    handout: str = ""


def own_kinds(tree: ast.Module) -> set[str]:
    """The kinds of values that a module adds: @value_kind("boxes")."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == "value_kind"]
    return {text for call in calls for text in _texts(call.args[:1])}


def all_kinds(added: Collection[str]) -> list[str]:
    """The names of gradekit's own kinds of values, and of those that an assignment has added."""
    known = schema("domain")["$defs"]["tensor"]["properties"]["values"]["items"]["examples"]
    return [*known, "chosen", "with", "special", *sorted(added)]


def undefined(tree: ast.Module) -> Iterator[Remark]:
    """Names that nothing in the file binds."""
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return
    known = bound_names(tree) | set(dir(builtins)) | {"__file__"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in known:
            yield Remark(node.lineno, f"{node.id} is not defined{_hint(node.id, known)}")


def _hint(name: str, known: Collection[str]) -> str:
    told = nearest(name, sorted(known))
    return f" ({told})" if told.startswith("did") else ""


def bound_names(tree: ast.Module) -> set[str]:
    """All names that a file binds somewhere."""
    nodes = list(ast.walk(tree))
    imported = [(n.asname or n.name).partition(".")[0] for n in nodes if isinstance(n, ast.alias)]
    return {*imported, *(n.arg for n in nodes if isinstance(n, ast.arg)), *(name for n in nodes for name in bound(n))}


def imports(tree: ast.Module) -> Iterator[Remark]:
    """Names that gradekit does not offer."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "gradekit":
            for alias in node.names:
                if alias.name not in gradekit.__all__:
                    yield Remark(node.lineno, f"gradekit offers no {alias.name}{_hint(alias.name, gradekit.__all__)}")


def tests(tree: ast.Module) -> list[ast.FunctionDef]:
    """The tests of a file."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def titles_and_points(found: Iterable[ast.FunctionDef]) -> Iterator[tuple[str, float]]:
    """What each test says of itself in the first line of its docstring, and what it is worth."""
    for test in found:
        call = _decorator(test, "points")
        worth = [a.value for a in call.args[:1] if isinstance(a, ast.Constant)] if call else []
        yield (ast.get_docstring(test) or test.name).partition("\n")[0], float(str(worth[0])) if worth else 0.0


def points_of(text: str) -> dict[str, str]:
    """What each test of a file is worth, as it is written there; nothing where the text is no Python."""
    with contextlib.suppress(SyntaxError, ValueError):
        calls = ((test.name, _decorator(test, "points")) for test in tests(ast.parse(text)))
        return {name: ast.unparse(call.args[0]) for name, call in calls if call is not None and call.args}
    return {}


def of_tests(tree: ast.Module, known: Known) -> Iterator[Remark]:
    """What is wrong with the tests themselves."""
    for test in tests(tree):
        yield from _points(test, known.handout)
        yield from _parameters(test)
        if ast.get_docstring(test) is None:
            yield Remark(test.lineno, f"{test.name} has no docstring: its first line is what students read", True)
    assigned = [(target, node.value) for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    constants = {target.id: value for target, value in assigned if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        yield from _named(node, known, constants)


def _points(test: ast.FunctionDef, handout: str) -> Iterator[Remark]:
    call = _decorator(test, "points")
    if call is None:
        yield Remark(test.lineno, f"{test.name} has no @points(...): it is worth nothing")
        return
    for words in _texts(_texts_of_keyword(call, "handout")):
        if handout.count(words) != 1:
            yield Remark(call.lineno, f"points: the handout has {words!r} {handout.count(words)} times, not once")
    kinds = _texts(_texts_of_keyword(call, "kind"))
    for kind in kinds:
        if kind not in list(Kind):
            yield Remark(call.lineno, f"points: there is no kind {kind!r} ({nearest(kind, list(Kind))})")
    claimed = {_called(node) for node in ast.walk(test) if isinstance(node, ast.Call)}
    wanted = {kind for claim, kind in _KIND_OF.items() if claim in claimed} if "assert_close" not in claimed else set()
    if wanted and not kinds:
        said = ", ".join(sorted(wanted))
        yield Remark(call.lineno, f'{test.name} is about {said}: write @points(..., kind="{said}")', True)


def _parameters(test: ast.FunctionDef) -> Iterator[Remark]:
    given = [call for call in test.decorator_list if isinstance(call, ast.Call) and _called(call) == "given"]
    known = [*FIXTURES, *(keyword.arg for call in given for keyword in call.keywords if keyword.arg)]
    for call in test.decorator_list:
        if isinstance(call, ast.Call) and _called(call) == "parametrize":
            first = call.args[0]
            names = _texts(first.elts if isinstance(first, (ast.Tuple, ast.List)) else [first])
            known += [name.strip() for text in names for name in text.split(",")]
    for argument in test.args.args:
        if argument.arg not in known and not any(call.args for call in given):
            told = nearest(argument.arg, known)
            yield Remark(
                test.lineno, f"{test.name} takes {argument.arg}, which is neither a fixture nor drawn ({told})"
            )


def _named(node: ast.AST, known: Known, constants: Mapping[str, ast.expr]) -> Iterator[Remark]:
    match node:
        case ast.Attribute(value=ast.Name(id="submission"), attr=name) if known.entries and name != "text":
            if name not in known.entries:
                yield Remark(node.lineno, f"submission.{name}: there is no such entry ({nearest(name, known.entries)})")
        case ast.Attribute(value=ast.Name(id="Cause"), attr=name) if name.isupper() and name not in Cause.__members__:
            yield Remark(node.lineno, f"Cause.{name}: there is no such cause ({nearest(name, Cause.__members__)})")
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=str(name))) if (
            _called(call) == "domain_of"
        ):
            if known.entries and name not in known.entries:
                yield Remark(node.lineno, f"domain.toml has no entry {name!r} ({nearest(name, list(known.entries))})")
        case ast.Call() if _called(node) == "calls":
            yield from _of_calls(node, known, constants)


def _of_calls(call: ast.Call, known: Known, constants: Mapping[str, ast.expr]) -> Iterator[Remark]:
    layouts = schema("domain")["$defs"]["tensor"]["properties"]["layouts"]["items"]["examples"]
    sizes = sorted({size for entry in known.entries.values() for size in entry.sizes})
    words = {"layouts": ("layout", layouts), "values": ("kind of values", known.kinds), "sizes": ("size", sizes)}
    for keyword in call.keywords:
        what, names = words.get(keyword.arg or "", ("", []))
        nodes = list(_spelled_out(keyword.value, constants))
        keys = [key for one in nodes if isinstance(one, ast.Dict) for key in _texts(one.keys)]
        for text in keys if what == "size" else [text for text in _texts(nodes) if text not in keys]:
            if names and text.partition(":")[0] not in names:
                yield Remark(keyword.value.lineno, f"calls: there is no {what} {text!r} ({nearest(text, names)})")


def _spelled_out(expression: ast.expr, constants: Mapping[str, ast.expr]) -> Iterator[ast.AST]:
    """The nodes of an expression, with a constant of the module in the place of its name."""
    for node in ast.walk(expression):
        yield from ast.walk(constants[node.id]) if isinstance(node, ast.Name) and node.id in constants else [node]


def unknown_kinds(entries: Mapping[str, EntryDomain], kinds: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """The entry, the tensor and what is wrong, for each kind of values in a domain that there is not."""
    for name, entry in entries.items():
        for tensor in entry.tensors:
            for kind in tensor.values:
                if (word := kind.partition(":")[0]) not in kinds:
                    yield name, tensor.name, f"has the kind {word!r}, which there is not ({nearest(word, kinds)})"


def _decorator(test: ast.FunctionDef, name: str) -> ast.Call | None:
    return next((d for d in test.decorator_list if isinstance(d, ast.Call) and _called(d) == name), None)


def _called(call: ast.Call) -> str:
    """The last word of what is called: `given` of hypothesis.given(...)."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _texts(nodes: object) -> list[str]:
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]  # type: ignore[attr-defined]


def _texts_of_keyword(call: ast.Call, name: str) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords if keyword.arg == name]
