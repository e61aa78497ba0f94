"""Diagnoses of what a submission's text says, whatever values it was given: what no kernel uses,
operators that torch would not take, gradients that autograd refuses for their shape, and what is kept between calls."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from gradekit.causes import Cause
from gradekit.judge.evidence import Diagnosis, Evidence
from gradekit.source.draft import draft_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import ParsedSource, called, dotted, is_decorated


def _kernels(evidence: Evidence) -> Sequence[KernelDraft]:
    """The kernels of a wrong result, as they are written; none where no result was compared."""
    draft = draft_of(evidence.text) if evidence.comparison is not None else None
    launched = {kernel.name for kernel in evidence.program.kernels.values()} if evidence.program is not None else set()
    return [kernel for kernel in draft.kernels if kernel.name in launched] if draft is not None else []


def never_used(evidence: Evidence) -> Diagnosis | None:
    """A kernel of a wrong result computes something that nothing uses."""
    for kernel in _kernels(evidence):
        idle = {name: value.lineno for name, value in kernel.assigned if name not in kernel.uses and name[0] != "_"}
        if idle:
            (name, line), *others = idle.items()
            more = f", nor `{others[0][0]}`" if len(others) == 1 else f", nor {len(others)} others" if others else ""
            sentence = f"Nothing in {kernel.name} uses `{name}`, which line {line} computes{more}."
            return Diagnosis(evidence.failure.cause, sentence, line)
    return None


_KEEP_SHAPES = {"to", "type", "float", "half", "bfloat16", "contiguous", "clone"}

_REFUSED = re.compile(r"invalid gradient at index (\d+) - got (\[.*?\]) but expected shape compatible with (\[.*?\])")


def line_of_refused(text: str, message: str) -> int | None:
    """Where gradients are returned of which autograd has refused one for its shape; None where that is not clear."""
    source = ParsedSource.parsed(text) if _REFUSED.search(message) is not None else None
    lines = [statement.lineno for statement in _returns(source)] if source is not None else []
    return lines[0] if len(lines) == 1 else None


def refused_gradient(text: str, entry: str, message: str, cause: Cause) -> Diagnosis | None:
    """Which gradient has a shape that its input has not, where torch has said in a `message` that it refuses one; None
    where the text does not show it. The diagnosis keeps the `cause` for which the check failed."""
    said = _REFUSED.search(message)
    source = ParsedSource.parsed(text) if said is not None else None
    if said is None or source is None:
        return None
    number, got, wanted = int(said[1]), said[2], said[3]
    returns, names = _returns(source), source.differentiated or _arguments(source, entry)
    if len(returns) != 1 or number >= len(names):
        return None
    name, value = names[number], returns[0].value
    if isinstance(value, ast.Tuple):
        value = value.elts[number] if number < len(value.elts) else None
    line = _made_at(source.backwards[0], value)
    hint = (
        f"a gradient has the shape of its input: add it up over the dimensions that `{name}` lacks, as in "
        ".reshape(-1, N).sum(0)"
    )
    sentence = f"The gradient of `{name}`, which line {line} makes, has the shape {got}, and `{name}` has {wanted}."
    return Diagnosis(cause, sentence, line, hint)


def missing_gradient(text: str, message: str, cause: Cause) -> Diagnosis | None:
    """Which return gives None for a gradient that a `message` misses, and under which condition; None where the text
    has not just one. The diagnosis keeps the `cause` for which the check failed."""
    source, missed = ParsedSource.parsed(text), re.search(r"gives no gradient for (\w+)", message)
    if source is None or missed is None or (name := missed[1]) not in source.differentiated:
        return None
    number = source.differentiated.index(name)
    found = [(function, one) for function in source.backwards for one in ast.walk(function) if _is_none(one, number)]
    if len(found) != 1:
        return None
    (function, taken), where = found[0], ""
    for test in (one for one in ast.walk(function) if isinstance(one, ast.If) and taken in one.body + one.orelse):
        where = f", where `{source.of(test.test)}` {'holds' if taken in test.body else 'does not hold'}"
    line = taken.lineno
    return Diagnosis(cause, f"Line {line} returns None for `{name}` from `{function.name}`{where}.", line)


def _is_none(node: ast.AST, number: int) -> TypeGuard[ast.Return]:
    """Whether a statement returns None in place of the gradient of this number."""
    value = node.value if isinstance(node, ast.Return) else ast.Name("")
    values = value.elts[number:][:1] if isinstance(value, ast.Tuple) else [value]
    return all(one is None or isinstance(one, ast.Constant) for one in values)


def _returns(source: ParsedSource) -> list[ast.Return]:
    return [node for function in source.backwards for node in ast.walk(function) if isinstance(node, ast.Return)]


def _arguments(source: ParsedSource, entry: str) -> list[str]:
    function = next((function for function in source.host if function.name == entry), None)
    return [argument.arg for argument in function.args.args] if function is not None else []


def _made_at(function: ast.FunctionDef, value: ast.expr | None) -> int:
    """Where a returned value was last given its shape: in a line that assigns it, or else where it is returned."""
    if value is None:
        return function.lineno
    first = value
    while isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute) and first.func.attr in _KEEP_SHAPES:
        first = first.func.value
    name = first.id if isinstance(first, ast.Name) else ""
    made = [
        node.lineno for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)
    ]  # fmt: skip
    return max(made) if made else value.lineno


_MAKES_OPERATORS = ("triton_op", "custom_op")


def operator_mistake(text: str, cause: Cause) -> Diagnosis | None:
    """What is wrong with how an operator is made, by a submission's text; the check keeps its `cause`."""
    source = ParsedSource.parsed(text)
    if source is None:
        return None
    rules = (_unregistered, _claims_to_write, _not_wrapped, _hidden)
    return next((found for rule in rules for found in rule(source, cause)), None)


def _unregistered(source: ParsedSource, cause: Cause) -> Iterator[Diagnosis]:
    """A derivative is registered for a function of the submission that is no operator."""
    functions = {function.name: function for function in source.host}
    for node in ast.walk(source.tree):
        name, _, method = called(node).rpartition(".")
        if method == "register_autograd" and name in functions and not _made_by(functions[name]):
            line, hint = functions[name].lineno, f'write @triton_op("course::{name}", mutates_args={{}}) above it'
            sentence = (
                f"Line {node.lineno} registers a derivative for `{name}`, which is not an operator: nothing stands "  # type: ignore[attr-defined]
                f"above its definition in line {line} that makes it one."
            )
            yield Diagnosis(cause, sentence, line, hint)


def _not_wrapped(source: ParsedSource, cause: Cause) -> Iterator[Diagnosis]:
    """A triton_op launches a kernel as host code does elsewhere."""
    kernels = {kernel.name for kernel in source.kernels}
    for function in source.host:
        if _made_by(function) != "triton_op":
            continue
        for node in ast.walk(function):
            is_launch = isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
            launched = dotted(node.func.value) if is_launch else ""  # type: ignore[attr-defined]
            if launched in kernels:
                line, hint = node.lineno, f"launch with wrap_triton({launched})[grid](...)"  # type: ignore[attr-defined]
                sentence = (
                    f"Line {line} launches `{launched}` without wrap_triton: where torch runs an operator without "
                    "data, there is nothing to launch on."
                )
                yield Diagnosis(cause, sentence, line, hint)


def _claims_to_write(source: ParsedSource, cause: Cause) -> Iterator[Diagnosis]:
    """An operator with a derivative whose schema says that it changes an input."""
    for function in source.host:
        for node in function.decorator_list if _made_by(function) else ():
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                changed = getattr(keyword.value, "elts", None)
                if keyword.arg == "mutates_args" and changed:
                    line, name = keyword.value.lineno, source.of(changed[0])
                    sentence = (
                        f"Line {line} says by mutates_args that `{function.name}` changes {name}: torch takes no "
                        "derivative of such an operator."
                    )
                    yield Diagnosis(cause, sentence, line, "an operator that writes a new tensor has mutates_args={}")


def _hidden(source: ParsedSource, cause: Cause) -> Iterator[Diagnosis]:
    """A custom_op whose result nobody describes."""
    described = {name for node in ast.walk(source.tree) if (name := _described(node))}
    for function in source.host:
        if _made_by(function) == "custom_op" and function.name not in described:
            line = function.decorator_list[0].lineno
            sentence = (
                f"Line {line} makes `{function.name}` an operator with custom_op, which hides its body from torch, and "
                "no register_fake says what its result looks like."
            )
            hint = f"make it with triton_op, or register a function with @{function.name}.register_fake"
            yield Diagnosis(cause, sentence, line, hint)


def _described(node: ast.AST) -> str:
    """The operator that a decorator or a call `NAME.register_fake` describes."""
    name, _, method = (called(node) or dotted(node)).rpartition(".")
    return name if method == "register_fake" else ""


def _made_by(function: ast.FunctionDef) -> str:
    """What makes an operator of a function; "" where nothing does."""
    return next((name for name in _MAKES_OPERATORS if is_decorated(function, name)), "")


def right_alone(text: str) -> Diagnosis | None:
    """What to say of a call that is wrong after others and right in a process of its own; None where the submission's
    `text` keeps nothing between calls, so that none need be tried."""
    line = next(iter(keeping(text)), None)
    return None if line is None else Diagnosis(
        Cause.DEPENDS_ON_EARLIER_CALLS,
        "As the first call of a new process, this very call is right: what an earlier call has left behind (a compiled "
        f"kernel, a choice, a tensor) does not fit it. Does line {line} keep something for too many calls?",
        line,
        "let what is kept stand for all that it depends on: each size, dtype, stride and argument; or keep nothing",
    )  # fmt: skip


def keeps(text: str) -> bool:
    """Whether host code keeps something for later calls: what tuners keep is known, and run for each call."""
    lines = text.split("\n")
    return any("autotune" not in lines[number - 1] for number in keeping(text))


def keeping(text: str) -> Iterator[int]:
    """Lines at which something is kept for later calls: in a name of the module, by a tuner or a cache of results."""
    try:
        module = ast.parse(text)
    except SyntaxError:
        return
    stored = (node.id for each in module.body for node in ast.walk(each) if isinstance(node, ast.Name) and _sets(node))
    names = {*stored, *(each.name for each in module.body if isinstance(each, (ast.FunctionDef, ast.ClassDef)))}
    for each in filter(lambda node: isinstance(node, ast.FunctionDef), ast.walk(module)):
        assert isinstance(each, ast.FunctionDef)
        yield from (one.lineno for one in each.decorator_list if re.search("cache|autotune", ast.unparse(one)))
        inside = (node for node in ast.walk(each) if isinstance(node, (ast.stmt, ast.expr)))
        yield from (node.lineno for node in inside if isinstance(node, ast.Global) or _changes(node, names))


def _sets(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _changes(node: ast.AST, names: set[str]) -> bool:
    """Whether a part of one of the `names` is set, or one of their methods called that add something."""
    adds = isinstance(node, ast.Attribute) and node.attr in ("append", "add", "setdefault", "update", "extend")
    of = node
    while isinstance(of, (ast.Attribute, ast.Subscript)):
        of = of.value
    return of is not node and isinstance(of, ast.Name) and of.id in names and (adds or _sets(node))
