"""Inputs as small specs: dtype, shape, strides, offset, kind of values, seed.

Known to every process of the grader, also where there is no Hypothesis. A spec (`Input`) is hashable and JSON-codable,
and `Input.tensor()` builds the same tensor from it on every machine.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from gradekit.inputs import value_kinds
from gradekit.inputs.layouts import is_row_major, row_major
from gradekit.program import ITEMSIZE, View
from gradekit.reuse import SharedCache, shared
from gradekit.schemas import nearest

FLOATS = ("float32", "float16", "bfloat16")  # the floating-point dtypes of most assignments, simplest first

_DTYPE_ORDER = {name: place for place, name in enumerate((*FLOATS, *(n for n in ITEMSIZE if n not in FLOATS)))}


SALTED = 1 << 40  # seeds from here on were made by a salt: nobody who does not know it can tell which values they give

_salt: ContextVar[int | None] = ContextVar("gradekit salt", default=None)


@contextlib.contextmanager
def salted(salt: int) -> Iterator[None]:
    """While open, every spec that is made gets a seed that depends on `salt` too, so
    that its values cannot be predicted.

    Specs of equal seeds, shapes and kinds of values still have equal values; of other shapes they have others, for a
    report shows the seed of what failed. A spec keeps its seed afterwards: it gives the same values anywhere.
    """
    token = _salt.set(salt)
    try:
        yield
    finally:
        _salt.reset(token)


def _salted(spec: Input, salt: int) -> int:
    sizes = (spec.base,) if spec.base else spec.shape
    digest = hashlib.sha256(repr((salt, spec.seed, spec.profile, sizes)).encode()).digest()
    return SALTED | int.from_bytes(digest[:5], "big")


@dataclass(frozen=True, repr=False)
class Input:
    """A tensor to be: `stride` and `offset` count elements, `profile` names its kind of values (see `value_kinds`).

    `name` is the parameter that the tensor is passed as; it is for messages and no part of what the tensor is. With
    `base`, it is a view of a storage of so many elements, all of which have values of that kind: specs that agree on
    dtype, base, kind and seed are views of one storage, and may overlap. `within` are the least and the largest value
    that the domain promises, `ascending` says that they never decrease: a tensor with others is never made. Raises
    ValueError where there is no such dtype or profile, shape and strides do not go together, or the base is too small.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    profile: str = "normal"
    seed: int = 0
    name: str = field(default="", compare=False)
    base: int = 0
    within: tuple[int, int] | None = None
    ascending: bool = False

    def __post_init__(self) -> None:
        _known("dtype", self.dtype, ITEMSIZE)
        if not value_kinds.is_known(self.profile):
            _known("kind of values", self.profile, value_kinds.known())
        if len(self.shape) != len(self.stride):
            raise ValueError(f"shape {self.shape} and strides {self.stride} differ in length")
        if min((*self.shape, *self.stride, self.offset)) < 0:
            raise ValueError(f"a size, stride or offset is negative in {self}")
        if self.base and self.base < self._reach:
            raise ValueError(f"{self} reaches beyond the {self.base} elements of its storage")
        salt = _salt.get()
        if salt is not None and 0 <= self.seed < SALTED:
            object.__setattr__(self, "seed", _salted(self, salt))

    def __repr__(self) -> str:
        return self._text

    @functools.cached_property
    def _text(self) -> str:
        parts = [f"{self.dtype} {list(self.shape)}"]
        if not self.is_contiguous:
            parts.append(f"strides {self.stride}")
        parts += [f"offset {self.offset}"] if self.offset else []
        parts += [f"values {self.profile}"] if self.profile != "normal" else []
        parts += [f"seed {self.seed}"] if self.seed else []
        parts += [f"in a shared storage of {self.base}"] if self.base else []
        return ", ".join(parts)

    @property
    def numel(self) -> int:
        """The number of elements of the view."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the view's elements, counted once for each index."""
        return self.numel * ITEMSIZE[self.dtype]

    @property
    def is_contiguous(self) -> bool:
        """Whether the strides are row-major where they matter, that is where a size is not 1."""
        return is_row_major(self.shape, self.stride)

    @property
    def storage_size(self) -> int:
        """The elements of its storage in memory: the smallest that holds the view, where it is no view of a `base`."""
        return self.base or self._reach

    @property
    def _reach(self) -> int:
        return self.view(0).in_memory.reach

    @property
    def identity(self) -> Any:
        """Equal for specs that lie in one storage: those of one base, and else one and the same object."""
        return (self.dtype, self.base, self.profile, self.seed) if self.base else id(self)

    @property
    def whole(self) -> Input:
        """All of the storage that it is a view of, where there is a base."""
        return replace(self, shape=(self.base,), stride=(1,), offset=0, base=0, name="")

    @property
    def simplicity(self) -> tuple[int, ...]:
        """What sorts examples, the one that is easiest to read first: strides or a base, elements, dimensions, offset,
        dtype, values and seed. What fails without strides has nothing to do with them."""
        kinds = value_kinds.known()
        profile = kinds.index(self.profile) if self.profile in kinds else len(kinds)
        strided = int(not self.is_contiguous) + 2 * bool(self.base)
        return (strided, self.numel, len(self.shape), self.offset, _DTYPE_ORDER[self.dtype], profile, self.seed)

    def tensor(self) -> torch.Tensor:
        """The CPU tensor, with these strides and offset, or those of `View.in_memory`; it is shared: treat it as
        read-only. Elements of its storage that the view does not reach are poison: NaN, or the largest integer. Raises
        BrokenPromise where its kind of values gives others than the domain promises."""
        found = _tensors.get(self)
        if found is None and (found := _large.get(self)) is None:
            whole = self.whole.tensor() if self.base else None
            found = made(self, self.seed) if whole is None else whole.as_strided(self.shape, self.stride, self.offset)
            (_tensors if _bytes(found) <= _tensors.current.largest else _large).put(self, found)
        return found

    def view(self, storage: int) -> View:
        """The same tensor as a view of storage number `storage` of a program."""
        return View(storage, self.dtype, self.shape, self.stride, self.offset)

    def named(self, name: str) -> Input:
        """The same tensor, to be called `name` in messages."""
        return replace(self, name=name)

    def to_json(self) -> dict[str, Any]:
        """The spec as data that `json.dumps` accepts; `base` and what is promised are left out where there is none."""
        data = asdict(self) | {"shape": list(self.shape), "stride": list(self.stride)}
        return {name: value for name, value in data.items() if value or name not in ("base", "within", "ascending")}

    @staticmethod
    def from_json(data: Any) -> Input:
        """The inverse of `to_json`; contiguous without `stride`. Raises ValueError where it describes no input."""
        try:
            values = dict(data)
            shape = _sizes_from(values.pop("shape"))
            stride = _sizes_from(values.pop("stride", row_major(shape)))
            if "within" in values:
                values["within"] = _sizes_from(values["within"])
            return Input(shape=shape, stride=stride, **values)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not an input: {data!r} ({error})") from None


class BrokenPromise(ValueError):
    """A kind of values that does not keep to what the domain promises of its tensor: a mistake of the assignment's."""


def _kept(spec: Input, made: torch.Tensor) -> torch.Tensor:
    """The tensor, whose values are as they are promised to be."""
    if spec.within is None or not made.numel():
        return made
    least, most = spec.within
    outside = made[(made < least) | (made > most)]
    what = f'{spec.name or "a tensor"}: its kind of values "{spec.profile}" gives'
    if len(outside):
        raise BrokenPromise(f"{what} {outside[0].item()} for {spec}, and domain.toml promises {least} to {most}")
    if spec.ascending and bool((made.flatten().diff() < 0).any()):
        raise BrokenPromise(f"{what} values that decrease for {spec}, and domain.toml promises that they ascend")
    return made


def _known(kind: str, word: str, table: Any) -> None:
    if word not in table:
        raise ValueError(f"there is no {kind} {word!r} ({nearest(word, table)})")


def _sizes_from(data: Any) -> tuple[int, ...]:
    if not all(type(size) is int for size in data):
        raise TypeError(f"{data!r} are not whole numbers")
    return tuple(data)


def normal(shape: Sequence[int], dtype: str = "float32", *, seed: int = 0) -> Input:
    """The spec of a contiguous tensor of `shape` with bell-shaped values: what is timed, as a rule."""
    return Input(dtype, tuple(shape), row_major(shape), seed=seed)


def values_of(arg: Any) -> Any:
    """The tensor of a spec; anything else as it is."""
    return arg.tensor() if isinstance(arg, Input) else arg


def laid_out_as(arg: Input | torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """`values` in a storage of their own, with the strides and the offset of `arg`, and poison around them. Where `arg`
    is contiguous, so are they: a check of contiguous tensors is none of strides."""
    like = values_of(arg)
    strides = row_major(tuple(values.shape)) if like.is_contiguous() else like.stride()
    size = like.untyped_storage().nbytes() // like.element_size()
    of_own = values[tuple(slice(0, n) for n in _own_sizes(values.shape, strides))]
    return _laid_out(of_own, values.dtype, values.shape, strides, like.storage_offset(), size)


def with_other_values(spec: Input) -> Input | torch.Tensor:
    """Another tensor of the same kind, laid out alike: of another seed; where that changes nothing of numbers that keep
    to a range, they are mirrored in it, those that ascend in reverse order."""
    other = replace(spec, seed=spec.seed + 1, name="an input of the other call")
    if spec.within is None or not torch.equal(other.tensor(), spec.tensor()):
        return other
    values = sum(spec.within) - spec.tensor()
    return laid_out_as(spec, values.flatten().flip(0).view(spec.shape) if spec.ascending else values)


# --- its tensor ------------------------------------------------------------------------------------------------------

SMALL, REMEMBERED = 1 << 19, 32 << 20
"""Bytes of a tensor that a class keeps for the next who asks, and of all that are kept; as many are of larger ones."""


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()


_tensors: SharedCache[Input, torch.Tensor] = shared(REMEMBERED, _bytes, SMALL)
_large: SharedCache[Input, torch.Tensor] = shared(REMEMBERED, _bytes)


def remember(size: int) -> None:
    """Let this process keep so many bytes of tensors, of whatever size: where all that it forks share them."""
    _tensors.current.most = _tensors.current.largest = size


def sharing(args: Sequence[Any]) -> tuple[int | None, ...]:
    """For each argument of a call that is a spec, the first place at which one of the same storage stands: specs that
    are equal are one tensor there, and two where they were drawn apart. None for any other argument."""
    first = {arg.identity: place for place, arg in reversed(list(enumerate(args))) if isinstance(arg, Input)}
    return tuple(first[arg.identity] if isinstance(arg, Input) else None for arg in args)


def overlapping(spec: Input, distance: int, steps: tuple[int, ...] = ()) -> tuple[Input, Input]:
    """Two views of a storage laid out as `spec`, the second so many elements on (or before), with `steps` if given."""
    if distance < 0:
        return overlapping(spec, -distance)[::-1]
    second = replace(spec, stride=steps or spec.stride, offset=spec.offset + distance, base=0)
    base = max(spec.storage_size, second.storage_size)
    return replace(spec, base=base), replace(second, base=base)


def made(spec: Input, seed: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """The tensor of a spec without a base, with values from `seed` by the generator of `device`: each device has its
    own numbers, and a card has them in no more time than it takes to read them. Raises BrokenPromise as `tensor`."""
    dtype, held = getattr(torch, spec.dtype), spec.view(0).in_memory
    generator = torch.Generator(device).manual_seed(seed)
    with contextlib.nullcontext() if device == "cpu" else torch.device(device):
        values = value_kinds.make(spec.profile, _own_sizes(spec.shape, spec.stride), dtype, generator)
    return _laid_out(_kept(spec, values), dtype, spec.shape, held.stride, held.offset, spec.storage_size)


def _own_sizes(shape: Sequence[int], stride: Sequence[int]) -> tuple[int, ...]:
    """The sizes of what is in memory: one element along a dimension that has a stride of 0."""
    return tuple(n if s or n == 0 else 1 for n, s in zip(shape, stride, strict=True))


def _laid_out(
    values: torch.Tensor, dtype: torch.dtype, shape: Sequence[int], stride: Sequence[int], offset: int, size: int
) -> torch.Tensor:
    """The values in a storage of so many elements, as a view of `shape`, with poison around it."""
    storage = torch.full((size,), value_kinds.poison(dtype), dtype=dtype, device=values.device)
    storage.as_strided(values.shape, stride, offset).copy_(values)
    return storage.as_strided(tuple(shape), stride, offset)
