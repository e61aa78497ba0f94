"""The domain of an assignment's entries, as data: what they take, what they return, and what holds between results.

`assignments/<id>/domain.toml` declares it once. Draws, the handout's table, hidden tests and proofs read it from here.
No torch and no Hypothesis: every process may import this.

    [softmax]                                        one table for each entry
    arguments = ["x"]                                in the order of its signature: tensors and scalars
    result = { shape = ["M", "N"], dtype = "T" }     a list of such tables where it returns several tensors
    limits = ["M * N <= 2**24"]                      beside those of each size and of `MOST_ELEMENTS`
    relations = { alone = ["M"] }                    see `Relations`
    aliases = ["x y"]                                pairs of tensors of one shape and dtype that may be one tensor,
                                                     or views of one storage that overlap

    [softmax.dtypes]                                 variables for dtypes: tensors of one variable have one dtype
    T = ["float32", "float16"]

    [softmax.sizes]                                  sizes of dimensions; `least` is 1 where it is not said
    M = { most = 2147483647, drawn = 60 }            promised up to `most`; examples have up to `drawn` where a test
    says nothing N = { most = 32768, drawn = 1100 } "..." = { dims = [0, 2], most = 2147483647 }     zero to two
    dimensions, each of its own size D = { only = [16, 32], most = 32, least = 16 }   one of these nnz = { derived =
    true, most = 2147483647 }      computed from the others by the assignment's tests

    [softmax.choices]                                what else decides an example, and is no argument
    pattern = ["even", "ragged"]

    [softmax.tensors.x]
    shape = ["M", "N"]                               expressions of sizes
    dtype = "T"                                      a variable or a dtype
    layouts = ["contiguous", "expanded:0"]           those of `gradekit.inputs.layouts`; all where it is not said
    values = ["normal", "col:{K}:{seed}"]            kinds of values, with sizes, choices and a seed in braces
    range = ["0", "K - 1"]                           whole numbers: the least and the largest
    ascending = true                                 whole numbers that never decrease

    [softmax.scalars.eps]
    type = "float"                                   int, float or bool
    least = 0                                        what is promised; a bool has neither
    most = 1
    values = [1e-5, "N ** -0.5"]                     what is drawn: numbers, or expressions of sizes
    optional = true                                  it may be left out
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradekit.arithmetic import OF_TWO, SIGNS
from gradekit.program import ITEMSIZE

MOST_ELEMENTS = (1 << 31) - (1 << 21) - 1
"""Every tensor is promised to have at most so many elements, also its storage from the view's first element to its
last, so that offsets of 32 bits reach all of them, and the padding of a tile beyond the last."""

ANY_DIMENSIONS = "..."
"""Stands in a shape for dimensions that are not named."""


class DomainError(Exception):
    """A domain.toml that is missing or wrong: one sentence with the file and the key."""


# --- the nouns -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SizeDomain:
    """The size of a dimension: promised from `least` to `most`, and up to `drawn` in
    examples of a test that says nothing.

    With `dims`, it stands for that many dimensions (least, most), each with a size of its own in these ranges. A
    `derived` size is computed from the others. With `only`, it is one of these.
    """

    name: str
    most: int
    least: int = 1
    drawn: int = 0
    dims: tuple[int, int] = (1, 1)
    derived: bool = False
    only: tuple[int, ...] = ()


@dataclass(frozen=True)
class Tensor:
    """A tensor argument: see the module's docstring. No `layouts` means all."""

    name: str
    shape: tuple[str, ...]
    dtype: str
    layouts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    range: tuple[str, str] | None = None
    ascending: bool = False


@dataclass(frozen=True)
class ScalarDomain:
    """A scalar argument of `type` int, float or bool; promised from `least` to `most`, drawn from `values`."""

    name: str
    type: str
    values: tuple[Any, ...]
    least: float | None = None
    most: float | None = None
    optional: bool = False


@dataclass(frozen=True)
class ResultDomain:
    """A tensor that the entry returns; its dtype is a variable or a name."""

    shape: tuple[str, ...]
    dtype: str


@dataclass(frozen=True)
class Relations:
    """What holds between results of different calls. Names are those of sizes and tensors.

    independent: a call's result does not depend on earlier calls, of whatever sizes and values
    alone: a part of the result along this dimension depends on the same part of the arguments alone, so that a row by
        itself, or half of a batch, gives what it gives among others
    permuted: arguments permuted along this dimension give the result permuted
    shifted: adding a constant to a row of this tensor (its last dimension) changes nothing
    linear: this tensor times a power of two gives the result times it
    """

    independent: bool = True
    alone: tuple[str, ...] = ()
    permuted: tuple[str, ...] = ()
    shifted: tuple[str, ...] = ()
    linear: tuple[str, ...] = ()


@dataclass(frozen=True)
class EntryDomain:
    """An entry's domain. `arguments` are in the order of its signature; `results` are what it returns.

    `gradients` names the tensors in which it is differentiable, `aliases` the pairs of them ("x y") that may be one,
    or overlap.
    """

    name: str
    arguments: tuple[Tensor | ScalarDomain, ...]
    results: tuple[ResultDomain, ...]
    sizes: Mapping[str, SizeDomain]
    dtypes: Mapping[str, tuple[str, ...]]
    limits: tuple[str, ...] = ()
    choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    relations: Relations = Relations()
    gradients: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors among the arguments, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Tensor))

    @property
    def scalars(self) -> tuple[ScalarDomain, ...]:
        """The scalars among the arguments, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, ScalarDomain))

    def argument(self, name: str) -> Tensor | ScalarDomain:
        """The argument called `name`.

        Raises:
            KeyError: there is none.
        """
        return {argument.name: argument for argument in self.arguments}[name]

    def dtype_choices(self, dtype: str) -> tuple[str, ...]:
        """The dtypes that `dtype`, a variable or a name, can be."""
        return self.dtypes.get(dtype, (dtype,))

    def within(self, sizes: Mapping[str, int]) -> bool:
        """Whether calls with these sizes are promised, as far as they tell: ranges, limits, and `MOST_ELEMENTS`.

        Of a shape with dimensions that are not named, the others are counted.
        """
        ranges = all(self.sizes[name].least <= size <= self.sizes[name].most for name, size in sizes.items())
        return ranges and all(evaluate(limit, sizes) for limit in self.limits) and self.elements(sizes) <= MOST_ELEMENTS

    def elements(self, sizes: Mapping[str, int]) -> int:
        """The elements of the largest tensor, arguments and results, for these sizes."""
        shapes = [t.shape for t in self.tensors] + [r.shape for r in self.results]
        named = [[part for part in shape if part != ANY_DIMENSIONS] for shape in shapes]
        return max((math.prod(evaluate(part, sizes) for part in parts) for parts in named), default=0)


# --- expressions -----------------------------------------------------------------------------------------------------

_ALLOWED = ("+", "-", "*", "//", "/", "%", "**", "<", "<=", ">", ">=", "==", "!=")



def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an arithmetic expression or one comparison: "M + 1", "M * N <= 2**24".

    `names` may map to anything that has Python's operators: ints here, a solver's terms in a proof.

    Raises:
        ValueError: it is no such expression, or has a name that is not among `names`.
    """
    try:
        return _value(_parsed(expression), names)
    except (KeyError, SyntaxError, TypeError) as error:
        raise ValueError(f"no value of {expression!r} ({error})") from None


@functools.lru_cache(maxsize=1024)
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=left, op=sign, right=right):
            return _of_two(sign)(_value(left, names), _value(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            return _of_two(sign)(_value(left, names), _value(right, names))
    raise SyntaxError(f"{type(node).__name__} is not allowed here")


def _of_two(operator: ast.AST) -> Callable[[Any, Any], Any]:
    if SIGNS[type(operator)] not in _ALLOWED:
        raise SyntaxError(f"{type(operator).__name__} is not allowed here")
    return OF_TWO[SIGNS[type(operator)]]


def names_in(expression: str) -> set[str]:
    """The names that the expression has.

    Raises:
        ValueError: it is no expression.
    """
    try:
        return {node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name)}
    except SyntaxError as error:
        raise ValueError(f"{expression!r} is no expression ({error})") from None


# --- reading ---------------------------------------------------------------------------------------------------------


def load(path: Path) -> dict[str, EntryDomain]:
    """The entries of a domain.toml, by name.

    Raises:
        DomainError: it cannot be read, or says what makes no sense.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DomainError(f"{path} cannot be opened: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DomainError(f"{path} is not valid TOML: {error}") from None
    return {name: _entry(name, table, f"{path} [{name}]") for name, table in tables.items()}


_KEYS = (
    "arguments",
    "result",
    "limits",
    "relations",
    "gradients",
    "dtypes",
    "sizes",
    "choices",
    "tensors",
    "scalars",
    "aliases",
)


def _entry(name: str, table: Any, where: str) -> EntryDomain:
    _no_other_keys(table, _KEYS, where)
    tensors = {n: _made(Tensor, n, t, f"{where} tensors.{n}") for n, t in table.get("tensors", {}).items()}
    scalars = {n: _made(ScalarDomain, n, t, f"{where} scalars.{n}") for n, t in table.get("scalars", {}).items()}
    results = table.get("result", [])
    relations = _frozen(table.get("relations", {}))
    _no_other_keys(relations, _fields(Relations), f"{where} relations")
    entry = EntryDomain(
        name,
        _arguments(table.get("arguments", []), tensors | scalars, where),
        tuple(
            _made(ResultDomain, None, r, f"{where} result")
            for r in (results if isinstance(results, list) else [results])
        ),
        {n: _made(SizeDomain, n, t, f"{where} sizes.{n}") for n, t in table.get("sizes", {}).items()},
        _frozen(table.get("dtypes", {})),
        _frozen(table.get("limits", [])),
        _frozen(table.get("choices", {})),
        Relations(**relations),
        _frozen(table.get("gradients", [])),
        _frozen(table.get("aliases", [])),
    )
    _check(entry, where)
    return entry


def _arguments(
    names: Sequence[str], known: Mapping[str, Tensor | ScalarDomain], where: str
) -> tuple[Tensor | ScalarDomain, ...]:
    if sorted(names) != sorted(known):
        raise DomainError(f"{where}: arguments are {names}, but described are {sorted(known)}")
    return tuple(known[name] for name in names)


def _made(noun: type, name: str | None, table: Any, where: str) -> Any:
    _no_other_keys(table, [key for key in _fields(noun) if name is None or key != "name"], where)
    try:
        return noun(**({} if name is None else {"name": name}), **_frozen(table))
    except TypeError as error:
        raise DomainError(f"{where}: {error}") from None


def _fields(noun: type) -> list[str]:
    return [f.name for f in dataclasses.fields(noun)]


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _no_other_keys(table: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(table, dict):
        raise DomainError(f"{where} is {table!r}, but must be a table")
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise DomainError(f"{where} has {key!r}, which is no key" + (f" (did you mean {near[0]}?)" if near else ""))


def _check(entry: EntryDomain, where: str) -> None:
    """Everything that is named must be there, and ranges must not be empty."""
    for size in entry.sizes.values():
        if not 0 <= size.least <= size.most:
            raise DomainError(f"{where} sizes.{size.name}: no sizes from {size.least} to {size.most}")
    shapes = [t.shape for t in entry.tensors] + [r.shape for r in entry.results]
    for expression in (*(part for shape in shapes for part in shape if part != ANY_DIMENSIONS), *entry.limits):
        _check_names(expression, entry, where)
    for dtype in [*(t.dtype for t in entry.tensors), *(r.dtype for r in entry.results)]:
        if not set(entry.dtype_choices(dtype)) <= set(ITEMSIZE):
            raise DomainError(f"{where}: no dtype {dtype!r}")
    relations = entry.relations
    unknown = {*relations.alone, *relations.permuted} - set(entry.sizes)
    unknown |= {*relations.shifted, *relations.linear, *entry.gradients} - {tensor.name for tensor in entry.tensors}
    for name in {*relations.alone, *relations.permuted}:
        if any(
            part != name and part != ANY_DIMENSIONS and name in names_in(part) for shape in shapes for part in shape
        ):
            raise DomainError(f"{where}: relations along {name} need it by itself in every shape")
    for pair in entry.aliases:
        alike = {(tensor.shape, tensor.dtype) for tensor in entry.tensors if tensor.name in pair.split()}
        if len(alike) != 1 or len({*pair.split()} & {tensor.name for tensor in entry.tensors}) != 2:
            raise DomainError(f"{where}: aliases have {pair!r}, which are not two tensors of one shape and dtype")
    if unknown:
        raise DomainError(f"{where}: relations or gradients name {sorted(unknown)}, which are not there")


def _check_names(expression: str, entry: EntryDomain, where: str) -> None:
    try:
        unknown = names_in(expression) - set(entry.sizes)
    except ValueError as error:
        raise DomainError(f"{where}: {error}") from None
    if unknown:
        raise DomainError(f"{where}: {expression!r} has {sorted(unknown)}, which are no sizes")
