"""A domain from the signature of a reference: annotations say shapes and dtypes, and what they leave out is asked for.

docs/instructors.md has examples. A tensor is a dtype (float32, float16 and bfloat16 where none is said), a shape in
brackets, a range of whole numbers, "in place" or "out" where the call may write it, and "or None" where it may be left
out; "= EXPRESSION" is a number that sizes decide; what follows "if" is a limit of the sizes. Places may be those of any
equal elements. int and float are numbers, drawn from their default, bool is both. The reference is read, not imported.
"""

import ast
import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gradekit.assignment import UsageError
from gradekit.domain import ANY_DIMENSIONS, evaluate, is_whole, names_in

Ask = Callable[[str], str]  # asks for an annotation that is not there: given a question, answers with its text

_RANGE = r"(?P<least>[^.]+)\.\.(?P<most>.+?)"
_TENSOR = re.compile(rf"\s*(?P<dtype>\w+)?\s*\[(?P<shape>[^\]]*)\]\s*(?:{_RANGE})?\s*(?P<how>in place|out|or None)?\s*")
_NUMBERS = ("int", "float", "bool")


@dataclass
class Signature:
    """A reference's entry: the tables of its domain.toml; `takes` are its parameters as a `def` has them."""

    name: str
    summary: str
    tensors: dict[str, dict[str, Any]] = field(default_factory=dict)
    scalars: dict[str, dict[str, Any]] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    takes: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    up_to: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def sizes(self) -> list[str]:
        """The names of sizes, "..." among them, in the order in which shapes have them."""
        parts = [part for table in (*self.tensors.values(), *self.results) for part in table["shape"]]
        return list(dict.fromkeys(name for part in parts for name in _sizes_in(part)))

    @property
    def named(self) -> list[str]:
        """The sizes that a check lists: those of dimensions with a name, the last of the first tensor first."""
        found = [name for name in self.sizes if name != ANY_DIMENSIONS]
        first = [name for part in next(iter(self.tensors.values()), {"shape": []})["shape"] for name in _sizes_in(part)]
        return sorted(found, key=lambda name: name != (first or found)[-1]) or self.sizes or ["N"]


def signature(text: str, name: str, ask: Ask) -> Signature:
    """The signature of a function in a text. Raises UsageError for none, or an annotation that is unclear."""
    try:
        functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    except SyntaxError as error:
        raise UsageError(f"line {error.lineno}: {error.msg}") from None
    if name not in functions:
        raise UsageError(f"it defines no function {name}; it has {', '.join(functions) or 'none'}")
    function = functions[name]
    summary = (ast.get_docstring(function) or f"{name} of its arguments").partition("\n")[0].rstrip(".")
    found = Signature(name, summary)
    for argument, default in _parameters(function):
        said = _said(argument.annotation) or ask(f"{argument.arg}: a shape such as [M, N], or int, float or bool")
        found.arguments.append(argument.arg)
        found.takes.append(argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}")
        value = None
        with contextlib.suppress(ValueError):  # no literal
            value = ast.literal_eval(default) if default is not None else None
        if value is None and said.strip() in ("int", "float"):
            number = ask(f"{argument.arg}: a number that calls pass, as its default or as = 1e-5")
            value = _computed(argument.arg, number)["values"][0]
        _add(found, argument.arg, said, value)
    if not any("written" in tensor for tensor in found.tensors.values()):
        results = _said(function.returns) or ask(f"what {name} returns: a shape such as [M, N]")
        said, found.up_to = _free(results, found)
        found.results += [_tensor("the result", one) for one in re.split(r"(?<=\])\s*,", said)]
        tensors = found.tensors.values()
        if any(result["dtype"] == "T" for result in found.results) and all(one["dtype"] != "T" for one in tensors):
            raise UsageError(f'the result: say its dtype, such as "int64 {said}": no tensor lends it its own')
    return found


def _parameters(function: ast.FunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    if function.args.vararg or function.args.kwonlyargs or function.args.kwarg:
        raise UsageError(f"{function.name}: calls pass arguments by position: it can have none behind a star")
    arguments = [*function.args.posonlyargs, *function.args.args]
    none: list[ast.expr | None] = [None] * (len(arguments) - len(function.args.defaults))
    defaults = none + function.args.defaults
    yield from zip(arguments, defaults, strict=True)


def _said(annotation: ast.expr | None) -> str:
    """An annotation as text; "" for one that says no shape, such as torch.Tensor."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    text = "" if annotation is None else ast.unparse(annotation)
    return text if text in _NUMBERS else ""


def _add(found: Signature, name: str, annotation: str, default: Any) -> None:
    said, _, limit = annotation.partition(" if ")
    found.limits += [limit.strip()] if limit else []
    if said.strip() in _NUMBERS:
        values = [True, False] if said.strip() == "bool" else [default]
        found.scalars[name] = {"type": said.strip(), "values": values}
    elif said.strip().startswith("="):
        found.scalars[name] = _computed(name, said)
    else:
        found.tensors[name] = _tensor(name, said)


def _computed(name: str, expression: str) -> dict[str, Any]:
    """A scalar that sizes decide, or that is one number; the expression may begin with a sign of equality."""
    expression = expression.strip().removeprefix("=").strip()
    try:
        value = expression if names_in(expression) else evaluate(expression, {})
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    return {"type": "int" if is_whole(expression) else "float", "values": [value]}


def _sizes_in(part: str) -> list[str]:
    return [part] if part == ANY_DIMENSIONS else sorted(names_in(part))


def _free(said: str, found: Signature) -> tuple[str, str]:
    """What is said of the results without what they leave free, and the claim that allows that; "" for nothing."""
    if said.rstrip().endswith("in any order"):
        return said.rstrip().removesuffix("in any order"), "any_order()"
    before, places, name = said.partition(" places in ")
    if not places:
        return said, ""
    results = re.findall(r"\[(.*?)\]", before)
    if name.strip() not in found.tensors or not results:
        raise UsageError(f"the result: it has places in {name.strip()!r}, which is no argument")
    own, shape = re.findall(r"[^ ,]+", results[-1]), found.tensors[name.strip()]["shape"]
    gone = next((dim for dim in reversed(range(len(shape))) if own == shape[:dim] + shape[dim + 1 :]), len(shape) - 1)
    options = [f"dim={gone}"] if gone < len(shape) - 1 else []
    options += [] if len(results) == 2 else [f"result={len(results) - 1}"]
    return before, f"ties({', '.join([f'call[{found.arguments.index(name.strip())}]', *options])})"


def _tensor(name: str, said: str) -> dict[str, Any]:
    match = _TENSOR.fullmatch(said)
    if match is None:
        raise UsageError(f'{name}: {said!r} is no tensor; write one as "[M, N]" or "int64 [N] 0..V - 1"')
    shape = [part.strip() for part in match["shape"].split(",") if part.strip()]
    table: dict[str, Any] = {"shape": shape, "dtype": match["dtype"] or "T"}
    if match["most"] is not None:
        table["range"] = [match["least"].strip(), match["most"].strip()]
    if match["how"] == "or None":
        table["optional"] = True
    elif match["how"]:
        table["written"] = match["how"]
    return table
