"""What is assumed of a call's arguments: sizes and strides as variables, and what is known of them.

Tensors of the same form (dtypes, ranks, which of them are contiguous, which sizes agree) share a setting: what is
proved in it holds for every such call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gradekit.domain import MOST_ELEMENTS
from gradekit.program import ITEMSIZE, Argument, Scalar, View
from gradekit.prove.parts import Substitution, atoms
from gradekit.prove.terms import ONE, Atom, Term, Truth, at_most, both, of_atom, term, var
from gradekit.prove.value_of import value_of

ELEMENTS = MOST_ELEMENTS
LARGEST = ELEMENTS
"""No tensor, also none that host code makes, has more elements, and no size is larger."""


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
    """`tensors` in the order of the program's inputs, `scalars` by argument; `hypotheses` hold for all of them.

    `sizes` are the variables that a person would name, by name; `assumptions` say in words what is taken for granted.
    """

    tensors: tuple[Shape, ...]
    scalars: Mapping[int, Term]
    hypotheses: tuple[Truth, ...]
    sizes: Mapping[str, Term]
    assumptions: tuple[str, ...] = ()
    values: Mapping[str, int] = field(default_factory=dict)  # of the example, by the atoms' keys


def product(sizes: Sequence[Term]) -> Term:
    """The product of terms; 1 for none."""
    found = ONE
    for size in sizes:
        found = found * size
    return found


def contiguous(sizes: Sequence[Term]) -> tuple[Term, ...]:
    """The strides of a contiguous tensor without an empty dimension."""
    return tuple(product(sizes[axis + 1 :]) for axis in range(len(sizes)))


def extent(sizes: Sequence[Term], strides: Sequence[Term]) -> Term:
    """One more than the offset of the last element."""
    found = ONE
    for size, stride in zip(sizes, strides, strict=True):
        found = found + (size - 1) * stride
    return found


def dense(view: View) -> bool:
    """Whether the view's strides are those of a contiguous tensor of its shape."""
    step = 1
    for size, stride in zip(reversed(view.shape), reversed(view.stride), strict=True):
        if stride != step:
            return False
        step *= max(size, 1)
    return True


def class_of(args: Sequence[Argument]) -> tuple[object, ...]:
    """What two calls must share to be of one form, but for which of their sizes agree."""
    return tuple(
        (arg.dtype, len(arg.shape), dense(arg), arg.storage, arg.offset * ITEMSIZE[arg.dtype] % 16 == 0)
        if isinstance(arg, View)
        else _class_of(arg)
        for arg in args
    )


def _class_of(arg: Argument) -> tuple[object, ...]:
    value = arg.value if isinstance(arg, Scalar) else arg
    return (type(value).__name__, value if not isinstance(value, int) or isinstance(value, bool) else "")


def setting_of(args: Sequence[Argument], names: Sequence[str], promise: Promise) -> Setting:
    """The setting of a call like `args`, whose arguments are called `names`.

    `promise` says which sizes agree and how large they may be.
    """
    tensors, hypotheses, values = [], list(promise.limits), dict[str, int]()
    scalars: dict[int, Term] = {}
    for position, arg in enumerate(args):
        if isinstance(arg, View):
            shape = _shape(arg, names[position], promise.sizes[position])
            tensors.append(shape)
            hypotheses.append(at_most(shape.extent, term(ELEMENTS)))
            for size, number in zip((*shape.sizes, *shape.strides), (*arg.shape, *arg.stride), strict=True):
                values |= _solved(size, number, values)
        elif isinstance(arg, Scalar) and type(arg.value) is int:
            scalars[position] = promise.scalars.get(names[position], var(names[position], -(1 << 31), LARGEST))
            values |= _solved(scalars[position], arg.value, values)
    for shape in tensors:  # again, for sizes such as H * G of which a later tensor says more
        for size, number in zip(shape.sizes, shape.view.shape, strict=True):
            values |= _solved(size, number, values)
    told = [*(size for shape in tensors for size in shape.sizes), *scalars.values()]
    own = {names[position] for position in scalars}
    sizes = {str(atom.args[0]): of_atom(atom) for atom in atoms(*told).values() if str(atom.args[0]) not in own}
    return Setting(tuple(tensors), scalars, tuple(hypotheses), sizes, tuple(_assumptions(tensors)), values)


@dataclass(frozen=True)
class Promise:
    """What is promised of a call: the sizes of tensor arguments by position, limits, and whole scalars by name."""

    sizes: Mapping[int, tuple[Term, ...]]
    limits: tuple[Truth, ...] = ()
    scalars: Mapping[str, Term] = field(default_factory=dict)


def with_fixed(setting: Setting, fixed: Mapping[Atom, Term]) -> Setting:
    """The setting where some variables are numbers."""
    put = Substitution(fixed.get)
    tensors = tuple(
        replace(shape, sizes=tuple(map(put.term, shape.sizes)), strides=tuple(map(put.term, shape.strides)))
        for shape in setting.tensors
    )
    scalars = {position: put.term(value) for position, value in setting.scalars.items()}
    return replace(setting, tensors=tensors, scalars=scalars, hypotheses=tuple(map(put.truth, setting.hypotheses)))


def _shape(view: View, name: str, sizes: tuple[Term, ...]) -> Shape:
    if dense(view):
        return Shape(name, sizes, contiguous(sizes), view)
    strides = tuple(var(f"{name}.stride({axis})", 0, LARGEST) for axis in range(len(view.shape)))
    return Shape(name, sizes, strides, view)


def _solved(size: Term, number: int, values: Mapping[str, int]) -> dict[str, int]:
    """The one variable of a size that has no value yet, for the size to be `number`; nothing where there are more."""
    unknown = [atom for key, atom in atoms(size).items() if key not in values]
    if len(unknown) != 1 or unknown[0].op != "var":
        return {}
    at = [value_of(size, {**values, unknown[0].key: n}) for n in (0, 1)]
    step = at[1] - at[0]
    return {unknown[0].key: (number - at[0]) // step} if step and (number - at[0]) % step == 0 else {}


def _assumptions(tensors: Sequence[Shape]) -> list[str]:
    unnamed = "" if all(shape.view.offset == 0 for shape in tensors) else ", and views begin where those of the call do"
    return [f"no tensor spans more than {ELEMENTS:,} elements, and none is empty{unnamed}"]


def inside(value: Term, high: Term) -> Truth:
    """0 <= value < high"""
    return both(at_most(term(0), value), below(value, high))


def below(value: Term, high: Term) -> Truth:
    """value < high; of a quotient, as a claim about what is divided: a // b < c is a < b * c."""
    while (atom := value.atom) and atom.op == "div" and (atom.args[1].range[0] or 0) >= 1:
        value, high = atom.args[0], high * atom.args[1]
    return at_most(value + 1, high)
