"""The domain of an assignment's entries, as data: what they take, what they return, and what holds between results.

`assignments/<id>/domain.toml` declares it once; draws, the handout's table, hidden tests and proofs read it from here.
`gradekit/schemas/domain.json` says which keys there are, `_senseless` the rest. No torch and no Hypothesis: every
process may import this.
"""

import ast
import functools
import math
import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradekit.arithmetic import OF_TWO, SIGNS
from gradekit.program import ITEMSIZE
from gradekit.schemas import Place, Problem, located, nearest, problems, read, schema

MOST_ELEMENTS = (1 << 31) - (1 << 21) - 1
"""Every tensor is promised to have at most so many elements, also its storage from the view's first element to its
last, so that offsets of 32 bits reach all of them, and the padding of a tile beyond the last."""

COMMON_KINDS = ("ones", "integers", "grid", "normal", "positive", "mixed")
"""The kinds of values that are drawn unless something else is said: finite, far from overflow and underflow."""

RANGE_KINDS, ASCENDING_KINDS = ("between", "few", "least", "most"), ("sorted", "least", "most")
"""Those of a tensor of whole numbers that has a range, and of one that ascends."""

ANY_DIMENSIONS = "..."  # stands in a shape for dimensions that are not named


@dataclass(frozen=True)
class SizeDomain:
    """The size of a dimension: promised from `least` to `most`, and up to `drawn` in examples of a test that says
    nothing. With `dims`, it stands for that many dimensions (least, most), each with a size of its own in these ranges.
    A `derived` size is computed from the others. With `only`, it is one of these."""

    name: str
    most: int
    least: int = 1
    drawn: int = 0
    dims: tuple[int, int] = (1, 1)
    derived: bool = False
    only: tuple[int, ...] = ()


@dataclass(frozen=True)
class Tensor:
    """A tensor argument of this shape (expressions of sizes) and dtype (a variable or a name).

    layouts: those of `gradekit.inputs.layouts` in which it may lie; none means all
    values: kinds of values, with sizes, choices and seeds in braces; where none are said, those that suit the range
    special: which values beside ordinary ones it may hold: the kind "special" has them, one of its `values` then
    range: whole numbers, the least and the largest as expressions of sizes: no call has others
    ascending: whole numbers that never decrease
    steps: of such, the choice that may also list how far each is from the next ("96;0", in turn), and the most
    written: "in place" where a call may read and write it, "out" where it writes it and cannot know what it held
    optional: None may be passed for it; then also for those after it
    far: a dimension along which its elements may lie so far apart that offsets need more than 32 bits
    """

    name: str
    shape: tuple[str, ...]
    dtype: str
    layouts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    range: tuple[str, str] | None = None
    ascending: bool = False
    steps: tuple[str, ...] = ()
    written: str = ""
    optional: bool = False
    far: str = ""

    def may_repeat(self, axis: int) -> bool:
        """Whether its elements may be the same along a dimension."""
        return not self.layouts or not {SHARED, f"{SHARED}:{axis}"}.isdisjoint(self.layouts)


@dataclass(frozen=True)
class ScalarDomain:
    """A scalar of `type` int, float or bool, from `least` to `most`; `values` to draw may be expressions of sizes."""

    name: str
    type: str
    values: tuple[Any, ...]
    least: float | None = None
    most: float | None = None
    optional: bool = False

    @property
    def is_computed(self) -> bool:
        """Whether nothing but expressions of sizes is drawn: no call has another value then, whatever the ends are."""
        return all(isinstance(value, str) and names_in(value) for value in self.values)

    @property
    def is_free(self) -> bool:
        """Whether every value from `least` to `most` is promised, by itself."""
        return self.most is not None and not self.is_computed


@dataclass(frozen=True)
class ResultDomain:
    """A tensor that the entry returns, or that it has written to `argument`; its dtype is a variable or a name."""

    shape: tuple[str, ...]
    dtype: str
    argument: str = ""


@dataclass(frozen=True)
class Relations:
    """What holds between results of different calls. Names are those of sizes, tensors and dtypes.

    independent: a call's result does not depend on earlier calls, of whatever sizes and values
    alone: a part of the result along this dimension depends on the same part of the arguments alone, so that a row by
        itself, or half of a batch, gives what it gives among others
    permuted: arguments permuted along this dimension give the result permuted
    shifted: adding a constant to a row of this tensor (its last dimension) changes nothing
    linear: this tensor times a power of two gives the result times it
    widened: tensors of this dtype, where it is 16 bits wide, give the same result as float32 with the same values
    """

    independent: bool = True
    alone: tuple[str, ...] = ()
    permuted: tuple[str, ...] = ()
    shifted: tuple[str, ...] = ()
    linear: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()


@dataclass(frozen=True)
class EntryDomain:
    """An entry's domain. `arguments` are in the order of its signature; `results` are what it returns.

    `gradients` names the tensors in which it is differentiable, `aliases` the pairs of them ("x y") that may be one,
    or overlap, where they have one shape. `exact` has kinds of values at which formulas part, by the names of tensors,
    `rounding` which uses of values may be rounded to 16 bits (gradekit.exact; None: any). What a call costs grows no
    faster than `grows` says: expressions of sizes, by "memory", "launches" and "work", and it allocates
    "bytes" at most (`assert_growth`). `lists` are the arguments that the entry takes as lists: each the place of the
    first among them, and how many they are.
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
    exact: tuple[Mapping[str, str], ...] = ()
    rounding: tuple[str, ...] | None = None
    grows: Mapping[str, str] = field(default_factory=dict)
    lists: tuple[tuple[int, int], ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors among the arguments, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Tensor))

    @property
    def optional(self) -> tuple[str, ...]:
        """The names of the tensors for which None may be passed; no other tensor comes after them."""
        return tuple(tensor.name for tensor in self.tensors if tensor.optional)

    @property
    def options(self) -> tuple[tuple[int, str], ...]:
        """The place and the name of each scalar to which the signature gives a default, the last of the arguments."""
        every = enumerate(self.arguments)
        return tuple((place, one.name) for place, one in every if isinstance(one, ScalarDomain) and one.optional)

    @property
    def scalars(self) -> tuple[ScalarDomain, ...]:
        """The scalars among the arguments, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, ScalarDomain))

    def dtype_choices(self, dtype: str) -> tuple[str, ...]:
        """The dtypes that `dtype`, a variable or a name, can be."""
        return self.dtypes.get(dtype, (dtype,))

    def within(self, sizes: Mapping[str, int]) -> bool:
        """Whether calls with these sizes are promised, as far as they tell: ranges, limits, and `MOST_ELEMENTS`. Of a
        shape with dimensions that are not named, the others are counted."""
        ranges = all(self.sizes[name].least <= size <= self.sizes[name].most for name, size in sizes.items())
        return ranges and all(evaluate(limit, sizes) for limit in self.limits) and self.elements(sizes) <= MOST_ELEMENTS

    def elements(self, sizes: Mapping[str, int]) -> int:
        """The elements of the largest tensor, arguments and results, for these sizes."""
        shapes = [t.shape for t in self.tensors] + [r.shape for r in self.results]
        named = [[part for part in shape if part != ANY_DIMENSIONS] for shape in shapes]
        return max((math.prod(evaluate(part, sizes) for part in parts) for parts in named), default=0)


_ALLOWED = ("+", "-", "*", "//", "/", "%", "**", "<", "<=", ">", ">=", "==", "!=")


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an arithmetic expression or one comparison: "M + 1", "M * N <= 2**24". `names` may map to anything
    that has Python's operators, such as a solver's terms. Raises ValueError for any other text, or an unknown name."""
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


@functools.lru_cache(maxsize=1024)
def names_in(expression: str) -> frozenset[str]:
    """The names that the expression has. Raises ValueError where it is no expression."""
    try:
        return frozenset(node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name))
    except SyntaxError as error:
        raise ValueError(f"{expression!r} is no expression ({error})") from None


# --- domain.toml to entries, or what is wrong with it -----------------------------------------------------------------


_AS_SAID = ("limits", "choices", "gradients", "aliases", "exact", "rounding", "grows")
"""What an entry has as its table says it."""

GIVEN_NAMES = ("seed", "own")
"""What a kind of values may have in braces beside sizes and choices: seeds, one for all tensors and one for each."""


SHARED = "expanded"  # the layout in which elements of a tensor share memory


class DomainError(Exception):
    """A domain.toml that is missing or wrong: one sentence with the file, the line and the key."""


def load(path: Path) -> dict[str, EntryDomain]:
    """The entries of a domain.toml, by name. Raises DomainError where it cannot be read, or makes no sense."""
    text, tables = read(path, DomainError)
    for problem in wrong(tables):
        raise DomainError(located(path, text, problem))
    return {name: _entry(name, table) for name, table in tables.items()}


def complaints(path: Path) -> list[str]:
    """All that is wrong with a domain.toml, each as one sentence with its file and line."""
    try:
        text, tables = read(path, DomainError)
        return [located(path, text, problem) for problem in wrong(tables)]
    except DomainError as error:
        return [str(error)]


def wrong(tables: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the data of a domain.toml: what its schema refuses, or else what makes no sense."""
    refused = list(problems(tables, schema("domain")))
    return refused or [
        Problem((name, *problem.place), problem.message)
        for name, table in tables.items()
        for problem in _senseless(table)
    ]


# --- nouns from tables -----------------------------------------------------------------------------------------------


def _entry(name: str, table: Mapping[str, Any]) -> EntryDomain:
    given = _frozen(table)
    arguments: dict[str, Tensor | ScalarDomain] = {
        n: Tensor(n, **{"layouts": _layouts(t), **t, "values": _kinds(t)}) for n, t in given.get("tensors", {}).items()
    }
    arguments |= {n: ScalarDomain(n, **t) for n, t in given.get("scalars", {}).items()}
    return EntryDomain(
        name, tuple(arguments[argument] for argument in _arguments(given)),
        tuple(ResultDomain(**result) for result in _results(given)),
        {n: SizeDomain(n, **t) for n, t in given.get("sizes", {}).items()}, given.get("dtypes", {}),
        lists=tuple(_lists(given)), relations=Relations(**given.get("relations", {})),
        **{key: given[key] for key in _AS_SAID if key in given},
    )  # fmt: skip


def _arguments(table: Mapping[str, Any]) -> list[str]:
    return [name for each in table["arguments"] for name in ([each] if isinstance(each, str) else each)]


def _lists(table: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    place = 0
    for each in table["arguments"]:
        count = 1 if isinstance(each, str) else len(each)
        if not isinstance(each, str):
            yield place, count
        place += count


def _kinds(tensor: Mapping[str, Any]) -> tuple[str, ...]:
    usual = COMMON_KINDS if "range" not in tensor else ASCENDING_KINDS if tensor.get("ascending") else RANGE_KINDS
    return (*tensor.get("values", usual), *(["special"] if "special" in tensor else []))


def _layouts(tensor: Mapping[str, Any]) -> tuple[str, ...]:
    """The layouts of a tensor that says none: all (no name), or those in which no two elements share memory."""
    every = schema("domain")["$defs"]["tensor"]["properties"]["layouts"]["items"]["examples"]
    return tuple(one for one in every if one != SHARED) if "written" in tensor else ()


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _results(table: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The results, each with its shape and dtype: those that are said, or each tensor that is written."""
    tensors = table.get("tensors", {})
    said = table.get("result", [{"argument": name} for name, tensor in tensors.items() if "written" in tensor])
    return [
        {key: tensors[result["argument"]][key] for key in ("shape", "dtype")} | result
        if result.get("argument") in tensors
        else result
        for result in ([said] if isinstance(said, dict) else said)
    ]


# --- what a schema cannot say ----------------------------------------------------------------------------------------


def _senseless(table: Mapping[str, Any]) -> Iterator[Problem]:
    """What an entry's table names must be there, ranges must not be empty, and each size must be seen in a call."""
    if unclear := list(_of_results(table)):
        yield from unclear
        return
    for rule in (_of_names, _of_arguments, _of_sizes, _of_optional, _of_expressions, _of_scalars, _of_relations):
        yield from rule(table)


def _of_names(table: Mapping[str, Any]) -> Iterator[Problem]:
    parts = ("tensors", "scalars", "sizes", "dtypes", "choices", "relations")
    tensors, scalars, sizes, dtypes, choices, relations = (table.get(part, {}) for part in parts)
    alone = [each for each in table["arguments"] if isinstance(each, str)]
    in_lists = [name for each in table["arguments"] if not isinstance(each, str) for name in each]
    of_tensors = [(("gradients",), table.get("gradients", []))]
    of_tensors += [(("exact",), row) for row in table.get("exact", [])]
    known: list[tuple[str, Collection[str], Sequence[tuple[Place, Iterable[str]]]]] = [
        ("tensor or scalar", {**tensors, **scalars}, [(("arguments",), alone)]),
        ("tensor, and lists are of tensors", tensors, [(("arguments",), in_lists)]),
        ("tensor", tensors, [*of_tensors, *_related(relations, "shifted", "linear")]),
        ("size", sizes, _related(relations, "alone", "permuted")),
        ("choice", choices, [(("tensors", name, "steps"), one.get("steps", [])[:1]) for name, one in tensors.items()]),
        ("variable of dtypes", dtypes, _related(relations, "widened")),
        ("dtype", ITEMSIZE, [(("dtypes", name), options) for name, options in dtypes.items()]),
        ("dtype or variable of dtypes", {**dtypes, **ITEMSIZE}, [
            *((("tensors", name, "dtype"), [tensor["dtype"]]) for name, tensor in tensors.items()),
            *((("result", "dtype"), [result["dtype"]]) for result in _results(table)),
        ]),
        ("size, choice or seed", [*sizes, *choices, *GIVEN_NAMES], [
            (("tensors", name, "values"), _braced(kind))
            for name, tensor in tensors.items() for kind in tensor.get("values", [])
        ]),
    ]  # fmt: skip
    for what, names, places in known:
        for place, said in places:
            for name in said:
                if name not in names:
                    yield Problem(place, f"has {name!r}, which is no {what} ({nearest(name, names)})")


def _related(relations: Mapping[str, Any], *keys: str) -> list[tuple[Place, Iterable[str]]]:
    return [(("relations", key), relations.get(key, [])) for key in keys]


def _of_results(table: Mapping[str, Any]) -> Iterator[Problem]:
    written = [name for name, tensor in table.get("tensors", {}).items() if "written" in tensor]
    if not _results(table):
        yield Problem((), "has no result")
    for result in _results(table):
        if (name := result.get("argument")) is not None and name not in written:
            message = f"has the argument {name!r}, which is no tensor that is written ({nearest(name, written)})"
            yield Problem(("result",), message)
        elif "shape" not in result or "dtype" not in result:
            yield Problem(("result",), "has neither shape and dtype nor the argument that is written")
    for name in written:
        if SHARED in [one.partition(":")[0] for one in table["tensors"][name].get("layouts", [])]:
            message = f"has {SHARED}, in which elements of what is written share memory"
            yield Problem(("tensors", name, "layouts"), message)


def _of_arguments(table: Mapping[str, Any]) -> Iterator[Problem]:
    for kind in ("tensors", "scalars"):
        for name in table.get(kind, {}):
            if name not in _arguments(table):
                yield Problem((kind, name), f"is no argument; arguments are {', '.join(_arguments(table))}")


def _of_optional(table: Mapping[str, Any]) -> Iterator[Problem]:
    """None stands in the last places, where nothing else moves when it is passed; and nothing else needs the tensor."""
    tensors = table.get("tensors", {})
    ordered = [name for name in _arguments(table) if name in tensors]
    optional = [name for name in ordered if tensors[name].get("optional")]
    relations = table.get("relations", {})
    used = {*table.get("gradients", ()), *relations.get("shifted", ()), *relations.get("linear", ())}
    used |= {name for pair in table.get("aliases", []) for name in pair.split()}
    told = [part for name in ordered if name not in optional for part in tensors[name]["shape"]]
    for name in optional:
        place = ("tensors", name, "optional")
        if table.get("gradients") or name in used or tensors[name].get("written"):
            yield Problem(place, "cannot be: gradients, relations, aliases or writing need it")
        if optional != ordered[len(ordered) - len(optional) :]:
            yield Problem(place, "cannot be: a tensor that must be there comes after it")
        for part in tensors[name]["shape"]:
            for size in _names(part):
                if not _stands(size, told):
                    yield Problem(place, f"cannot be: {size} stands in no tensor that is always there")


def _of_sizes(table: Mapping[str, Any]) -> Iterator[Problem]:
    told = [part for tensor in table.get("tensors", {}).values() for part in tensor["shape"]]
    told += [str(value) for scalar in table.get("scalars", {}).values() for value in scalar["values"]]
    result = [part for result in _results(table) for part in result["shape"]]
    if ANY_DIMENSIONS in (*told, *result) and "dims" not in table.get("sizes", {}).get(ANY_DIMENSIONS, {}):
        yield Problem(("sizes",), 'do not say how many dimensions "..." is; write "..." = { dims = [0, 3], most = 99 }')
    for name, size in table.get("sizes", {}).items():
        if size.get("least", 1) > size["most"]:
            yield Problem(("sizes", name), f"has no sizes: they go from {size.get('least', 1)} to {size['most']}")
        if not _stands(name, told):
            where = "the result's shape alone" if _stands(name, result) else "no shape"
            message = f"stands in {where}: no argument tells it. Put it into a tensor's shape, or a scalar's values"
            yield Problem(("sizes", name), message)


def _stands(name: str, expressions: Sequence[str]) -> bool:
    return any(name == one or name != ANY_DIMENSIONS and name in _names(one) for one in expressions)


def _names(expression: str) -> frozenset[str]:
    try:
        return names_in(expression)
    except ValueError:
        return frozenset()


def _expressions(table: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    yield from ((("limits", number), limit) for number, limit in enumerate(table.get("limits", [])))
    yield from ((("grows", what), law) for what, law in table.get("grows", {}).items())
    for name, tensor in table.get("tensors", {}).items():
        said = {"shape": tensor["shape"], "range": tensor.get("range", []), "steps": tensor.get("steps", [])[1:]}
        each = ((key, part) for key, parts in said.items() for part in parts if part != ANY_DIMENSIONS)
        yield from ((("tensors", name, key), part) for key, part in each)
    for result in _results(table):
        yield from ((("result", "shape"), part) for part in result["shape"] if part != ANY_DIMENSIONS)
    for name, scalar in table.get("scalars", {}).items():
        yield from ((("scalars", name, "values"), value) for value in scalar["values"] if isinstance(value, str))


def _of_expressions(table: Mapping[str, Any]) -> Iterator[Problem]:
    sizes = table.get("sizes", {})
    for place, expression in _expressions(table):
        try:
            for name in sorted(names_in(expression) - set(sizes)):
                yield Problem(place, f"has {name!r} in {expression!r}, which is no size ({nearest(name, sizes)})")
        except ValueError as error:
            yield Problem(place, f"has what is no expression: {error}")


def _of_scalars(table: Mapping[str, Any]) -> Iterator[Problem]:
    for name, scalar in table.get("scalars", {}).items():
        for value in scalar["values"]:
            if scalar["type"] == "int" and (isinstance(value, float) or not is_whole(value)):
                needs = "which need not be whole: an int is made of sizes and whole numbers by + - * // %"
                yield Problem(("scalars", name, "values"), f"has {value!r}, {needs}")


def is_whole(value: Any) -> bool:
    """Whether an expression of sizes gives whole numbers; anything but a text does."""
    return not isinstance(value, str) or not re.search(r"\*\*|\.|\b\d+[eE]|(?<!/)/(?!/)", value)


def _of_relations(table: Mapping[str, Any]) -> Iterator[Problem]:
    tensors, relations = table.get("tensors", {}), table.get("relations", {})
    shapes = [tensor["shape"] for tensor in tensors.values()] + [r["shape"] for r in _results(table)]
    for key in ("alone", "permuted"):
        for name in relations.get(key, []):
            if any(part not in (name, ANY_DIMENSIONS) and name in _names(part) for shape in shapes for part in shape):
                yield Problem(("relations", key), f"names {name}, which must stand by itself in every shape")
    for pair in table.get("aliases", []):
        both = [tensors[name] for name in pair.split() if name in tensors]
        if len(both) != 2 or len({(len(tensor["shape"]), tensor["dtype"]) for tensor in both}) > 1:
            yield Problem(("aliases",), f"has {pair!r}, which are not two tensors of as many dimensions and one dtype")


def _braced(kind: str) -> list[str]:
    try:
        return [word for _, word, _, _ in string.Formatter().parse(kind) if word is not None]
    except ValueError:
        return [kind]
