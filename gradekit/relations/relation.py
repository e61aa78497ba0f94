"""The relations that an entry's domain declares, each a function from one call to another
whose result is known from the first.

    alone      part of the call along a dimension gives that part of the result: a row by itself, half of a batch
    permuted   the indices of a dimension in another order give the result in that order
    shifted    a number added to a row of a tensor, another for each row, changes nothing
    linear     a tensor that is doubled doubles the result
    widened    tensors of 16-bit floats that become float32, with the same values, give the same result

Works on arguments alone: specs, tensors, numbers. Tensors of the other call lie in memory as those of the first do.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradekit.domain import ANY_DIMENSIONS, EntryDomain, ResultDomain, Tensor
from gradekit.inputs.draws import shape_parts
from gradekit.inputs.spec import laid_out_as, sharing, values_of

SHIFTS = (64.0, 8.0, 1.0)
"""What is added to a row: the first of these that the dtype holds exactly, beside every element."""


@dataclass(frozen=True)
class RelatedCall:
    """The other call: its `args`, its result as a function of the first call's (and how far it may be off as a function
    of that), and what must hold, in the words that a student reads."""

    args: tuple[Any, ...]
    expected: Callable[[torch.Tensor], torch.Tensor]
    says: str


@dataclass(frozen=True)
class Relation:
    """A relation of `kind` that holds for `entry` along the dimension, or of the tensor or the dtype, called `name`."""

    entry: EntryDomain
    kind: str
    name: str

    def of(self, args: Sequence[Any]) -> RelatedCall | None:
        """The other call that belongs to one with `args`; None for none, such as along a dimension of size 1."""
        places = [place for place in sharing(args) if place is not None]
        if len(places) > len({*places}):
            return None  # a tensor that is passed as two arguments cannot be changed in one of them alone
        return _MAKERS[self.kind](self, tuple(args))


def relations_of(entry: EntryDomain) -> tuple[Relation, ...]:
    """All that the domain declares for an entry, but that its results do not depend on earlier calls."""
    declared = entry.relations
    return tuple(Relation(entry, kind, name) for kind in _MAKERS for name in getattr(declared, kind))


# --- each kind -------------------------------------------------------------------------------------------------------


def _alone(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    size = _size(relation, args)
    if size < 2:
        return None
    number = _number(args)
    length = size // 2 if size > 3 and number % 2 else 1
    start = (number // 2) % (size - length + 1)

    def part(values: torch.Tensor, dim: int) -> torch.Tensor:
        return values.narrow(dim, start, length)

    which = f"Index {start} of {relation.name} by itself" if length == 1 else (
        f"Indices {start} to {start + length - 1} of {relation.name} by themselves"
    )  # fmt: skip
    says = f"{which} must give what {'it gives' if length == 1 else 'they give'} among all {size}"
    return _along(relation, args, part, says)


def _permuted(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    size = _size(relation, args)
    if size < 2:
        return None
    order = torch.randperm(size, generator=torch.Generator().manual_seed(_number(args)))
    says = f"With the indices of {relation.name} in another order, the result must be the same"
    says += ", in that order" if _result_dim(relation, args) is not None else ""
    return _along(relation, args, lambda values, dim: values.index_select(dim, order), says)


def _shifted(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    place, values = _tensor(relation, args)
    if not values.is_floating_point() or not values.numel():
        return None
    signs = 1.0 - 2.0 * (torch.arange(values[..., 0].numel()) % 2).reshape(*values.shape[:-1], 1)
    for shift in SHIFTS:
        exact = values.double() + shift * signs
        moved = exact.to(values.dtype)
        if torch.equal(moved.double(), exact) and torch.equal(moved.isfinite(), values.isfinite()):
            says = f"With {shift:g} added to rows of {relation.name}, or taken away, the result must stay the same"
            return RelatedCall(_with(args, place, moved), lambda result: result, says)
    return None


def _linear(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    place, values = _tensor(relation, args)
    doubled = values * 2
    if not values.is_floating_point() or not torch.equal(doubled.isfinite(), values.isfinite()):
        return None
    says = f"With {relation.name} doubled, the result must be doubled"
    return RelatedCall(_with(args, place, doubled), lambda result: result * 2, says)


def _widened(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    pairs = [*zip(args, relation.entry.arguments, strict=False)]
    mine = [isinstance(noun, Tensor) and arg is not None and noun.dtype == relation.name for arg, noun in pairs]
    values = [values_of(arg) for (arg, _), is_mine in zip(pairs, mine, strict=True) if is_mine]
    if not values or not all(one.is_floating_point() and one.itemsize == 2 for one in values):
        return None
    wide = (laid_out_as(arg, _wide(values_of(arg))) if its else arg for arg, its in zip(args, mine, strict=False))
    says = f"With the same values in float32 in place of {str(values[0].dtype).removeprefix('torch.')}"
    return RelatedCall(tuple(wide), _wide, f"{says}, the result must be the same, rounding aside")


def _wide(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


_MAKERS: dict[str, Callable[[Relation, tuple[Any, ...]], RelatedCall | None]] = {
    "alone": _alone, "permuted": _permuted, "shifted": _shifted, "linear": _linear, "widened": _widened,
}  # fmt: skip

# --- dimensions and tensors ------------------------------------------------------------------------------------------

Part = Callable[[torch.Tensor, int], torch.Tensor]
"""What becomes of values along a dimension."""


def _along(relation: Relation, args: tuple[Any, ...], part: Part, says: str) -> RelatedCall:
    """The call whose tensors became `part` of themselves along the dimension, and so must the result."""
    dim = _result_dim(relation, args)
    changed = tuple(
        arg if place is None else laid_out_as(arg, part(values_of(arg), place))
        for arg, place in zip(args, _dims(relation, args), strict=True)
    )
    return RelatedCall(changed, lambda result: result if dim is None else part(result, dim), says)


def _dims(relation: Relation, args: Sequence[Any]) -> list[int | None]:
    """For each argument the dimension of the relation's name; None where it has none."""
    known = dict(zip((argument.name for argument in relation.entry.arguments), args, strict=False))
    described = {name: relation.entry.argument(name) for name in known}
    return [
        _dim(noun, relation.name, len(known[name].shape))
        if isinstance(noun, Tensor) and known[name] is not None
        else None
        for name, noun in described.items()
    ]


def _dim(noun: Tensor | ResultDomain, name: str, dims: int) -> int | None:
    parts = shape_parts(noun, dims - len([part for part in noun.shape if part != ANY_DIMENSIONS]))
    return parts.index(name) if name in parts else None


def _result_dim(relation: Relation, args: Sequence[Any]) -> int | None:
    (result,) = relation.entry.results
    of_any = [
        len(arg.shape) - len(noun.shape)
        for noun, arg in zip(relation.entry.arguments, args, strict=False)
        if isinstance(noun, Tensor) and ANY_DIMENSIONS in noun.shape
    ]
    more = of_any[0] if of_any and ANY_DIMENSIONS in result.shape else 0
    return _dim(result, relation.name, len(result.shape) + more)


def _size(relation: Relation, args: Sequence[Any]) -> int:
    found = [arg.shape[dim] for arg, dim in zip(args, _dims(relation, args), strict=True) if dim is not None]
    return int(found[0]) if found else 0


def _tensor(relation: Relation, args: Sequence[Any]) -> tuple[int, torch.Tensor]:
    """The tensor of the relation's name: its place among the arguments, and its values."""
    place = next(i for i, argument in enumerate(relation.entry.arguments) if argument.name == relation.name)
    return place, values_of(args[place])


def _with(args: tuple[Any, ...], place: int, values: torch.Tensor) -> tuple[Any, ...]:
    return (*args[:place], laid_out_as(args[place], values), *args[place + 1 :])


def _number(args: Sequence[Any]) -> int:
    """A number that is the same for the same call, everywhere."""
    told = [arg if not isinstance(arg, torch.Tensor) else (arg.dtype, arg.shape, arg.stride()) for arg in args]
    return zlib.crc32(repr(told).encode())
