"""What is assumed of a call's arguments: sizes and strides as variables, and what is known of them.

Tensors of the same form (dtypes, ranks, which of them are contiguous, which sizes agree) share a setting: what is
proved in it holds for every such call.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradekit.domain import (
    ANY_DIMENSIONS,
    MOST_ELEMENTS,
    EntryDomain,
    ResultDomain,
    ScalarDomain,
    SizeDomain,
    Tensor,
    evaluate,
)  # fmt: skip
from gradekit.inputs.draws import shape_of
from gradekit.inputs.layouts import row_major
from gradekit.program import ITEMSIZE, Argument, Scalar, View
from gradekit.prove import Limit
from gradekit.prove.terms import (
    FALSE,
    ONE,
    TRUE,
    Atom,
    Substitution,
    Term,
    Truth,
    atoms,
    both,
    equal,
    of_atom,
    term,
    var,
)
from gradekit.prove.value_of import value_of


@dataclass(frozen=True)
class Shape:
    """A tensor argument: its `name`, and terms for its sizes and strides; `view` is an example of it."""

    name: str
    sizes: tuple[Term, ...]
    strides: tuple[Term, ...]
    view: View

    @property
    def extent(self) -> Term:
        """How many elements its memory spans."""
        return extent(self.sizes, self.strides)


@dataclass(frozen=True)
class Setting:
    """`tensors` in the order of the program's inputs, `scalars` by argument; `hypotheses` hold for all of them. `sizes`
    are the variables that a person would name, by name; `assumptions` say in words what is taken for granted."""

    tensors: tuple[Shape, ...]
    scalars: Mapping[int, Term]
    hypotheses: tuple[Truth, ...]
    sizes: Mapping[str, Term]
    assumptions: tuple[str, ...] = ()
    values: Mapping[str, int] = field(default_factory=dict)  # of the example, by the atoms' keys


def product(sizes: Iterable[Term]) -> Term:
    """The product of terms; 1 for none."""
    return math.prod(sizes, start=ONE)


def contiguous(sizes: Sequence[Term]) -> tuple[Term, ...]:
    """The strides of a contiguous tensor without an empty dimension."""
    return tuple(product(sizes[axis + 1 :]) for axis in range(len(sizes)))


DENSE = frozenset({"contiguous", "offset"})  # layouts in which a tensor is contiguous


def may_lie_so(tensor: Tensor, view: View) -> bool:
    """Whether the domain's layouts may give these strides: contiguous ones, or some that are 0."""
    layouts = [one.partition(":") for one in tensor.layouts]
    if layouts and DENSE.issuperset(name for name, _, _ in layouts):
        return dense(view)
    shared = {axis for name, _, axis in layouts if name == "expanded"}
    steps = enumerate(zip(view.shape, view.stride, strict=True))
    return not layouts or "" in shared or all(step or size < 2 or str(axis) in shared for axis, (size, step) in steps)


def extent(sizes: Sequence[Term], strides: Sequence[Term]) -> Term:
    """One more than the offset of the last element."""
    return sum(((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)), start=ONE)


def dense(view: View) -> bool:
    """Whether the view's strides are those of a contiguous tensor of its shape."""
    return view.stride == row_major(view.shape)


def class_of(args: Sequence[Argument]) -> tuple[object, ...]:
    """What two calls must share to be of one form, but for which of their sizes agree."""
    return tuple(map(_class_of, args))


def _class_of(arg: Argument) -> tuple[object, ...]:
    if isinstance(arg, View):
        return arg.dtype, len(arg.shape), dense(arg), arg.storage, arg.offset * ITEMSIZE[arg.dtype] % 16 == 0
    value = arg.value if isinstance(arg, Scalar) else arg
    return type(value).__name__, value if not isinstance(value, int) or isinstance(value, bool) else ""


def setting_of(args: Sequence[Argument], names: Sequence[str], entry: EntryDomain) -> Setting:
    """The setting of a call like `args`, called `names`; behind the entry's comes the gradient of its result."""
    rank = max((len(arg.shape) for arg in args if isinstance(arg, View)), default=0)
    named = {name: _size(size) for name, size in _by_name(entry, rank).items()}
    whole = [scalar for scalar in entry.scalars if scalar.type == "int"]
    promised = {scalar.name: _scalar(scalar, named) for scalar in whole}
    hypotheses = [_truth(limit, named) for limit in entry.limits]
    hypotheses += [one_of(named[name], size.only) for name, size in entry.sizes.items() if size.only and name in named]
    hypotheses += [one_of(promised[s.name], _values(s, named)) for s in whole if s.is_computed]
    tensors, values, scalars = list[Shape](), dict[str, int](), dict[int, Term]()
    described: list[Any] = [*entry.arguments, *entry.results]
    for position, (arg, what) in enumerate(zip(args, described, strict=False)):
        if isinstance(arg, View):
            parts = shape_of(what, named, len(arg.shape) - len(what.shape) + 1)
            shape = _shape(arg, names[position], tuple(map(term, parts)))
            tensors.append(shape)
            hypotheses.append(shape.extent <= MOST_ELEMENTS)
            for size, number in zip((*shape.sizes, *shape.strides), (*arg.shape, *arg.stride), strict=True):
                values |= _solved(size, number, values)
        elif isinstance(arg, Scalar) and type(arg.value) is int:
            scalars[position] = promised.get(names[position], var(names[position], -(1 << 31), MOST_ELEMENTS))
            values |= _solved(scalars[position], arg.value, values)
    for shape in tensors:  # again, for sizes such as H * G of which a later tensor says more
        for size, number in zip(shape.sizes, shape.view.shape, strict=True):
            values |= _solved(size, number, values)
    told = [*(size for shape in tensors for size in shape.sizes), *scalars.values()]
    own = {names[position] for position in scalars}
    sizes = {str(atom.args[0]): of_atom(atom) for atom in atoms(*told).values() if str(atom.args[0]) not in own}
    begin = "" if all(shape.view.offset == 0 for shape in tensors) else ", and views begin where those of the call do"
    assumed = f"no tensor spans more than {MOST_ELEMENTS:,} elements, and none is empty{begin}"
    return Setting(tuple(tensors), scalars, tuple(hypotheses), sizes, (assumed,), values)


def with_fixed(setting: Setting, fixed: Mapping[Atom, Term]) -> Setting:
    """The setting where some variables are numbers."""
    put = Substitution(fixed.get)
    every = lambda terms: tuple(map(put.term, terms))
    tensors = tuple(replace(s, sizes=every(s.sizes), strides=every(s.strides)) for s in setting.tensors)
    scalars = {position: put.term(value) for position, value in setting.scalars.items()}
    return replace(setting, tensors=tensors, scalars=scalars, hypotheses=tuple(map(put.truth, setting.hypotheses)))


def _shape(view: View, name: str, sizes: tuple[Term, ...]) -> Shape:
    if dense(view):
        return Shape(name, sizes, contiguous(sizes), view)
    strides = tuple(var(f"{name}.stride({axis})", 0, MOST_ELEMENTS) for axis in range(len(view.shape)))
    return Shape(name, sizes, strides, view)


def _solved(size: Term, number: int, values: Mapping[str, int]) -> dict[str, int]:
    """The one variable of a size that has no value yet, for the size to be `number`; nothing where there are more."""
    unknown = [atom for key, atom in atoms(size).items() if key not in values]
    if len(unknown) != 1 or unknown[0].op != "var":
        return {}
    at = [value_of(size, {**values, unknown[0].key: n}) for n in (0, 1)]
    step = at[1] - at[0]
    return {unknown[0].key: (number - at[0]) // step} if step and (number - at[0]) % step == 0 else {}


def inside(value: Term, high: Term) -> Truth:
    """0 <= value < high"""
    return both(value >= 0, below(value, high))


def below(value: Term, high: Term, is_positive: Callable[[Term], bool] = lambda by: (by.range[0] or 0) >= 1) -> Truth:
    """value < high; of a quotient by what is positive, as a claim about what is divided: a // b < c is a < b * c."""
    while (atom := value.atom) and atom.op == "div" and is_positive(atom.args[1]):
        value, high = atom.args[0], high * atom.args[1]
    return value + 1 <= high


# --- what an assignment's domain promises: sizes by name, their ranges, limits ----------------------------------------


def _size(size: SizeDomain) -> Term:
    return var(size.name, max(size.least, 1), min(size.most, MOST_ELEMENTS))


def _scalar(scalar: ScalarDomain, sizes: Mapping[str, Term]) -> Term:
    """A whole scalar: what the sizes make it, or a variable in its range."""
    if scalar.is_computed and len(scalar.values) == 1:
        return _values(scalar, sizes)[0]
    least, most = (None if end is None else int(end) for end in (scalar.least, scalar.most))
    return var(scalar.name, least, most)


def _values(scalar: ScalarDomain, sizes: Mapping[str, Term]) -> list[Term]:
    return [term(evaluate(value, sizes)) for value in scalar.values]


def _by_name(entry: EntryDomain, rank: int) -> dict[str, SizeDomain]:
    """The sizes, with those of `rank` dimensions that have no name, as `shape_of` calls them."""
    found = {name: size for name, size in entry.sizes.items() if name != ANY_DIMENSIONS}
    if (size := entry.sizes.get(ANY_DIMENSIONS)) is not None:
        found |= {f"{ANY_DIMENSIONS}{axis}": replace(size, name=f"dimension {axis}") for axis in range(rank)}
    return found


def one_of(size: Term, only: Sequence[int | Term]) -> Truth:
    """That a size is one of these."""
    return ~both(*(~equal(size, n) for n in only))


def _truth(limit: str, sizes: Mapping[str, Term]) -> Truth:
    found = evaluate(limit, sizes)
    return found if isinstance(found, Truth) else TRUE if found else FALSE


# --- what tensors hold -----------------------------------------------------------------------------------------------


def contents(
    entry: EntryDomain, sizes: Mapping[str, Term], reads: Mapping[str, str], *values: Term | Truth
) -> list[Truth]:
    """What the domain says of the numbers that `values` read; `reads` has the argument for each of their names."""
    tensors = {tensor.name: tensor for tensor in entry.tensors}
    found: list[Truth] = []
    mine = [a for a in atoms(*values).values() if a.op == "read" and len(a.args) == 2 and str(a.args[0]) in reads]
    for atom in mine:
        tensor = tensors.get(reads[str(atom.args[0])])
        if tensor is not None and tensor.range is not None:
            low, high = (term(evaluate(end, sizes)) for end in tensor.range)
            found += [low <= of_atom(atom), of_atom(atom) <= high]
    for a in mine:
        for b in mine:
            tensor = tensors.get(reads[str(a.args[0])])
            if a is not b and a.args[0] == b.args[0] and tensor is not None and tensor.ascending:
                found.append(~both(a.args[1] <= b.args[1], of_atom(b) < of_atom(a)))  # further on, none is smaller
    return found


# --- calls within a domain that tell sizes apart: what host code is followed with, in place of examples ---------------


def calls_of(entry: EntryDomain, gradient: bool = False) -> list[tuple[Argument, ...]]:
    """Calls of the entry: of each kind of scalars and number of dimensions, contiguous ones and ones with any strides.
    With `gradient`, the gradient of the result is the last argument."""
    found = []
    for rank, strided in itertools.product(_ranks(entry), (False, True)):
        for scalars in itertools.product(*(s.values if s.type == "bool" else s.values[:1] for s in entry.scalars)):
            found.append(tuple(_call(entry, rank, scalars, strided, gradient)))
    return list(dict.fromkeys(found))  # one where no tensor may be strided


def names_of(entry: EntryDomain, gradient: bool = False) -> list[str]:
    """What the arguments of such a call are called."""
    return [argument.name for argument in entry.arguments] + (["the gradient of the result"] if gradient else [])


def _ranks(entry: EntryDomain) -> list[int]:
    unnamed = entry.sizes.get(ANY_DIMENSIONS)
    if unnamed is None:
        return [0]
    return sorted({unnamed.dims[0], min(unnamed.dims[1], Limit.RANKS)})


def _sizes(entry: EntryDomain, rank: int) -> dict[str, int]:
    left = list(Limit.PRIMES)
    found: dict[str, int] = {}
    for name, size in _by_name(entry, rank).items():
        if size.only:
            found[name] = size.only[-1]
            continue
        most = min(size.most, max(size.drawn, size.least) or size.most)
        found[name] = next((n for n in left if max(size.least, 2) <= n <= most), max(size.least, 1))
        left = [n for n in left if n != found[name]]
    return found


def _call(entry: EntryDomain, rank: int, scalars: Sequence[Any], strided: bool, gradient: bool) -> Iterator[Argument]:
    dtypes, sizes = {name: options[0] for name, options in entry.dtypes.items()}, _sizes(entry, rank)
    given, storage = iter(scalars), itertools.count()
    for argument in [*entry.arguments, *(entry.results[:1] if gradient else [])]:
        if isinstance(argument, ScalarDomain):
            value = next(given)
            yield Scalar(evaluate(value, sizes) if isinstance(value, str) else value)
        else:
            is_dense = isinstance(argument, ResultDomain) or DENSE.issuperset(argument.layouts or [""])
            shape = tuple(map(int, shape_of(argument, sizes, rank)))
            strides = _strides(shape, strided and not is_dense)
            yield View(next(storage), dtypes.get(argument.dtype, argument.dtype), shape, strides)


def _strides(shape: Sequence[int], strided: bool) -> tuple[int, ...]:
    strides, step = [], 2 if strided else 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size + (Limit.GAP if strided else 0)
    return tuple(reversed(strides))
