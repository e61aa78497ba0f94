"""What an entry takes, returns and promises, as values; and arithmetic on sizes, as in "M + 1" and "M * N <= 2**24"."""

import ast
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradekit.arithmetic import OF_TWO, SIGNS

MOST_ELEMENTS = (1 << 31) - (1 << 21) - 1
"""Every tensor is promised to have at most so many elements, also its storage from the view's first element to its
last, so that offsets of 32 bits reach all of them, and the padding of a tile beyond the last."""

COMMON_KINDS = ("ones", "integers", "grid", "normal", "positive", "mixed")
"""The kinds of values that are drawn unless a domain or a test says otherwise: finite, and far from overflow and
underflow."""

RANGE_KINDS, ASCENDING_KINDS = ("between", "few", "least", "most"), ("sorted", "least", "most")
"""Those of a tensor of whole numbers that has a range, and of one that ascends."""

ANY_DIMENSIONS = "..."
"""Stands in a shape for dimensions that are not named."""


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
    range: whole numbers, the least and the largest as expressions of sizes: no call has others
    ascending: whole numbers that never decrease
    written: "in place" where a call may read and write it, "out" where it writes it and cannot know what it held
    optional: None may be passed for it; then also for those after it
    far: a dimension along which its elements may lie so far apart that offsets need more than 32 bits
    """

    name: str
    shape: tuple[str, ...]
    dtype: str
    layouts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    range: tuple[str, str] | None = None
    ascending: bool = False
    written: str = ""
    optional: bool = False
    far: str = ""


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
    def scalars(self) -> tuple[ScalarDomain, ...]:
        """The scalars among the arguments, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, ScalarDomain))

    def argument(self, name: str) -> Tensor | ScalarDomain:
        """The argument called `name`; KeyError where there is none."""
        return {argument.name: argument for argument in self.arguments}[name]

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
