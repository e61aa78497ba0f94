"""Hypothesis strategies that draw inputs as small specs: dtype, shape, strides, offset, kind of values, seed.

Runs in the grader's own process and knows nothing of submissions. A spec (`Input`) is hashable and JSON-codable, and
`Input.tensor()` builds the same tensor from it on every machine. Nothing is drawn element by element, so Hypothesis
shrinks a failure to a sentence: "float32 [1, 33], strides (66, 2)".

Each strategy draws in the order dtype, shape, layout, values, seed, with the simplest first in every list, so that the
smallest counterexample is float32, small, contiguous, at offset 0 and made of ones, as far as the bug allows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from hypothesis import strategies as st

from gradekit.inputs import boxes, kinds
from gradekit.program import ITEMSIZE, View
from gradekit.reuse import SharedCache, shared

Extent = int | tuple[int, int]
"""A size, or the inclusive range from which one is drawn."""

FLOATS = ("float32", "float16", "bfloat16")
"""The floating-point dtypes of most assignments, simplest first."""

# --- the spec --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Input:
    """A tensor to be: `stride` and `offset` count elements, `profile` names its kind of values (see `PROFILES` and `kinds`).

    `name` is the parameter that the tensor is passed as; it is for messages and no part of what the tensor is.

    Raises:
        ValueError: no such dtype or profile, or shape and strides that do not go together.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    profile: str = "normal"
    seed: int = 0
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _known("dtype", self.dtype, ITEMSIZE)
        if not kinds.is_kind(self.profile):
            _known("profile", self.profile, PROFILES)
        if len(self.shape) != len(self.stride):
            raise ValueError(f"shape {self.shape} and strides {self.stride} differ in length")
        if min((*self.shape, *self.stride, self.offset)) < 0:
            raise ValueError(f"a size, stride or offset is negative in {self}")

    def __repr__(self) -> str:
        return self._told

    @functools.cached_property
    def _told(self) -> str:
        parts = [f"{self.dtype} {list(self.shape)}"]
        if not self.is_contiguous:
            parts.append(f"strides {self.stride}")
        parts += [f"offset {self.offset}"] if self.offset else []
        parts += [f"values {self.profile}"] if self.profile != "normal" else []
        parts += [f"seed {self.seed}"] if self.seed else []
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
        plain = row_major(self.shape)
        return self.numel == 0 or all(s == p for n, s, p in zip(self.shape, self.stride, plain, strict=True) if n != 1)

    @property
    def storage_size(self) -> int:
        """The elements of the smallest storage that holds the view."""
        if self.numel == 0:
            return self.offset
        return self.offset + 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def simplicity(self) -> tuple[int, ...]:
        """A measure by which examples can be sorted, the one that is easiest to read first: whether there are strides,
        elements, dimensions, offset, dtype, values and seed. What fails without strides has nothing to do with them."""
        profile = _PROFILE_ORDER.get(self.profile, len(_PROFILE_ORDER))
        strided = int(not self.is_contiguous)
        return (strided, self.numel, len(self.shape), self.offset, _DTYPE_ORDER[self.dtype], profile, self.seed)

    def tensor(self) -> torch.Tensor:
        """The CPU tensor, with exactly these strides and offset; treat it as read-only, for it is shared.

        Elements of its storage that the view does not reach are poison: NaN, or the largest integer.
        """
        found = _tensors.get(self)
        if found is None:
            found = _tensor(self)
            _tensors.put(self, found)
        return found

    def view(self, storage: int) -> View:
        """The same tensor as a view of storage number `storage` of a program."""
        return View(storage, self.dtype, self.shape, self.stride, self.offset)

    def named(self, name: str) -> Input:
        """The same tensor, to be called `name` in messages."""
        return replace(self, name=name)

    def to_json(self) -> dict[str, Any]:
        """The spec as data that `json.dumps` accepts."""
        return asdict(self) | {"shape": list(self.shape), "stride": list(self.stride)}

    @staticmethod
    def from_json(data: Any) -> Input:
        """The inverse of `to_json`; `stride` may be left out for a contiguous tensor.

        Raises:
            ValueError: data that describes no input.
        """
        try:
            values = dict(data)
            shape = _sizes_from(values.pop("shape"))
            stride = _sizes_from(values.pop("stride", row_major(shape)))
            return Input(shape=shape, stride=stride, **values)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not an input: {data!r} ({error})") from None


def _known(kind: str, word: str, table: Any) -> None:
    if word not in table:
        raise ValueError(f"no {kind} {word!r}; there are {', '.join(table)}")


def _sizes_from(data: Any) -> tuple[int, ...]:
    if not all(type(size) is int for size in data):
        raise TypeError(f"{data!r} are not whole numbers")
    return tuple(data)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor of `shape`, as torch gives them."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * max(size, 1))
    return tuple(reversed(strides))[: len(shape)]


def normal(shape: Sequence[int], dtype: str = "float32", *, seed: int = 0) -> Input:
    """The spec of a contiguous tensor of `shape` with bell-shaped values: what is timed, as a rule."""
    return Input(dtype, tuple(shape), row_major(shape), seed=seed)


# --- values ----------------------------------------------------------------------------------------------------------
# Everything comes from random integers, and exact arithmetic on them: torch.randn may differ in the last bit between
# processors. A stride-0 dimension has one value for all its indices, so values are made for size 1 there.


SMALL, REMEMBERED = 1 << 19, 32 << 20
"""Bytes of a tensor that is kept for the next who asks, and of all that are: a class is graded on the same inputs."""


_tensors: SharedCache[Input, torch.Tensor] = shared(REMEMBERED, lambda tensor: tensor.untyped_storage().nbytes(), SMALL)


def sharing(args: Sequence[Any]) -> tuple[int | None, ...]:
    """For each argument of a call that is a spec, the first place at which the same object stands: specs that are equal
    are one tensor there, and two where they were drawn apart. None for any other argument."""
    first = {id(arg): place for place, arg in reversed(list(enumerate(args))) if isinstance(arg, Input)}
    return tuple(first.get(id(arg)) for arg in args)


@functools.lru_cache(maxsize=16)
def _tensor(spec: Input) -> torch.Tensor:
    dtype = getattr(torch, spec.dtype)
    storage = torch.full((spec.storage_size,), _poison(dtype), dtype=torch.float64 if dtype.is_floating_point else None)
    storage = storage.to(dtype)
    own = tuple(n if s or n == 0 else 1 for n, s in zip(spec.shape, spec.stride, strict=True))
    generator = torch.Generator().manual_seed(spec.seed)
    storage.as_strided(own, spec.stride, spec.offset).copy_(_values(spec, own, generator).to(dtype))
    return storage.as_strided(spec.shape, spec.stride, spec.offset)


def _values(spec: Input, own: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    if kinds.is_kind(spec.profile):
        return kinds.make(spec.profile, own)
    dtype = getattr(torch, spec.dtype)
    make = PROFILES[spec.profile] if dtype.is_floating_point else _integer_profile(spec.profile)
    return make(own, dtype, generator)


def _poison(dtype: torch.dtype) -> float | int | bool:
    if dtype.is_floating_point:
        return math.nan
    return True if dtype == torch.bool else torch.iinfo(dtype).max


Profile = Callable[[tuple[int, ...], torch.dtype, torch.Generator], torch.Tensor]


def _ints(low: int, high: int, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Whole numbers from `low` to `high`, both included."""
    return torch.randint(low, high + 1, shape, generator=generator, dtype=torch.int64)


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _ints(0, (1 << 24) - 1, shape, generator).double() / (1 << 24)


def _sign(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _ints(0, 1, shape, generator) * 2 - 1


def _ones(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.float64)


def _integers(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return _ints(-8, 8, shape, generator)


def _grid(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    steps = 1 << (7 if dtype == torch.bfloat16 else 10)
    return _ints(-steps, steps, shape, generator).double() / steps


def _normal(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    four = _uniform((4, *shape), generator)  # the sum of four uniform numbers is bell-shaped enough
    return (four[0] + four[1] + four[2] + four[3] - 2) * math.sqrt(3)


def _positive(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return _uniform(shape, generator) * 2 + 0.125


def _large(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    top = torch.finfo(dtype).max
    size = (0.5 + _uniform(shape, generator) * 0.5625).clamp(max=1) * top  # one in nine is the maximum itself
    return size * _sign(shape, generator)


def _tiny(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return torch.finfo(dtype).tiny * (1 + 3 * _uniform(shape, generator)) * _sign(shape, generator)


def _mixed(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, dtype, generator) * (1 << _ints(0, 20, shape, generator)) / 1024


def _shifted(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, dtype, generator) + 8192


def _neg_inf(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = _normal(shape, dtype, generator)
    gone = _ints(0, 3, shape, generator) == 0
    if shape and shape[-1]:
        kept = _ints(0, shape[-1] - 1, (*shape[:-1], 1), generator)  # in each row one value stays finite
        gone.scatter_(-1, kept, False)
    return values.masked_fill(gone & bool(shape), -math.inf)


def _neg_inf_first(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = _normal(shape, dtype, generator)
    if not shape or not shape[-1]:
        return values
    first = _ints(0, shape[-1] - 1, (*shape[:-1], 1), generator)  # the first that stays finite
    return values.masked_fill(torch.arange(shape[-1]) < first, -math.inf)


PROFILES: dict[str, Profile] = {
    "ones": _ones,
    "integers": _integers,  # whole numbers from -8 to 8
    "grid": _grid,  # multiples of 2**-10 (bfloat16: 2**-7) in [-1, 1]: exact in float16 and TF32, not in bfloat16
    "normal": _normal,
    "positive": _positive,  # in [0.125, 2.125)
    "mixed": _mixed,  # normal, times a power of two from 2**-10 to 2**10
    "shifted": _shifted,  # normal, plus 8192: far from zero beside its spread
    "neg_inf": _neg_inf,  # normal, a quarter of them -inf, but never a whole row (the last dimension)
    "neg_inf_first": _neg_inf_first,  # normal, but -inf up to some place in each row, as attention masks are
    "tiny": _tiny,  # from the smallest normal number to four times as much
    "large": _large,  # from half the dtype's maximum to the maximum itself
    "boxes": boxes.boxes,  # in the last dimension left, top, right, bottom: see `boxes` for these
    "boxes_even": boxes.boxes_even,
    "boxes_odd": boxes.boxes_odd,
    "boxes_padded": boxes.boxes_padded,
    "boxes_gaps": boxes.boxes_gaps,
    "boxes_junk": boxes.boxes_junk,
    "boxes_none": boxes.boxes_none,
}
"""Kinds of values: functions of (shape, dtype, generator) to float64 or int64 values; integer dtypes know fewer."""

_PROFILE_ORDER = {name: place for place, name in enumerate(PROFILES)}
_DTYPE_ORDER = {name: place for place, name in enumerate((*FLOATS, *(n for n in ITEMSIZE if n not in FLOATS)))}

COMMON = ("ones", "integers", "grid", "normal", "positive", "mixed")
"""The kinds that every strategy draws unless told otherwise: finite, and far from overflow and underflow."""


def _integer_profile(profile: str) -> Profile:
    return lambda shape, dtype, generator: _ints(*_integer_range(profile, dtype), shape, generator)


def _integer_range(profile: str, dtype: torch.dtype) -> tuple[int, int]:
    if dtype == torch.bool:
        return (1, 1) if profile == "ones" else (0, 1)
    info = torch.iinfo(dtype)
    ranges = {"ones": (1, 1), "integers": (-8, 8), "positive": (1, 100), "large": (info.max - 100, info.max - 1)}
    low, high = ranges.get(profile, (-100, 100))
    return max(low, info.min), min(high, info.max - 1)  # the largest integer is poison


# --- layouts ---------------------------------------------------------------------------------------------------------


def _contiguous(shape: tuple[int, ...], gap: int) -> tuple[tuple[int, ...], int]:
    return row_major(shape), 0


def _offset(shape: tuple[int, ...], gap: int) -> tuple[tuple[int, ...], int]:
    return row_major(shape), gap


def _every_second(shape: tuple[int, ...], gap: int) -> tuple[tuple[int, ...], int]:
    return tuple(2 * s for s in row_major(shape)), 0


def _expanded(shape: tuple[int, ...], gap: int) -> tuple[tuple[int, ...], int]:
    lone = gap % len(shape)
    strides = row_major([1 if dim == lone else size for dim, size in enumerate(shape)])
    return tuple(0 if dim == lone else s for dim, s in enumerate(strides)), 0


def _transposed(shape: tuple[int, ...], gap: int) -> tuple[tuple[int, ...], int]:
    *outer, inner, last = row_major((*shape[:-2], shape[-1], shape[-2]))
    return (*outer, last, inner), 0


def _sliced_columns(shape: tuple[int, ...], gap: int) -> tuple[tuple[int, ...], int]:
    return row_major((*shape[:-1], shape[-1] + gap)), gap // 2


def _sliced_rows(shape: tuple[int, ...], gap: int) -> tuple[tuple[int, ...], int]:
    return row_major((*shape[:-2], shape[-2] + gap, shape[-1])), gap * shape[-1]


@dataclass(frozen=True)
class _Layout:
    place: Callable[[tuple[int, ...], int], tuple[tuple[int, ...], int]]  # (shape, gap) -> strides, offset
    rank: int  # the fewest dimensions that it makes sense for
    has_gap: bool = True


_LAYOUTS = {
    "contiguous": _Layout(_contiguous, 0, has_gap=False),
    "offset": _Layout(_offset, 0),  # contiguous, but `gap` elements into its storage: the pointer is not aligned
    "transposed": _Layout(_transposed, 2, has_gap=False),  # x.mT
    "sliced_columns": _Layout(_sliced_columns, 2),  # x[:, a:b]
    "sliced_rows": _Layout(_sliced_rows, 2),  # x[a:, :]
    "every_second": _Layout(_every_second, 1, has_gap=False),  # x[..., ::2]
    "expanded": _Layout(_expanded, 1),  # x.expand(...): stride 0 in dimension gap % rank
}
LAYOUTS = tuple(_LAYOUTS)
"""Ways for a tensor to lie in its storage, simplest first; those that need more dimensions leave themselves out."""

_GAPS = (1, 2, 3, 5, 8, 16)  # elements; 16 keeps the alignment that Triton specializes for
_CONTIGUOUS_SHARE = 3  # of every nine layouts three are contiguous: with three inputs, one case in 27 is all plain
_NORMAL_SHARE = 4


# --- strategies ------------------------------------------------------------------------------------------------------


def sizes(low: int = 1, high: int = 1024) -> st.SearchStrategy[int]:
    """Sizes from `low` to `high`, both included; three in four are 2**k, 2**k + 1 or 2**k - 1, each k alike.

    A failing size shrinks to the smallest that fails, not to the smallest boundary.
    """
    octaves = [(0, 0)] if low <= 0 else []
    octaves += [(1 << k, (2 << k) - 1) for k in range(max(high, 0).bit_length())]
    pieces = [(max(a, low), min(b, high)) for a, b in octaves if a <= high and b >= low]
    return st.sampled_from(pieces).flatmap(_in_octave)


def _in_octave(piece: tuple[int, int]) -> st.SearchStrategy[int]:
    # One integer decides all: up to `high` it is the size itself, and what is above falls on an end (on `high` first,
    # so that it keeps its meaning in the octave below). So every size can be reached by making that integer smaller,
    # which is how Hypothesis shrinks.
    low, high = piece
    span = high - low
    ends = (high, low, low + 1)
    return st.integers(low, high + 3 * span).map(lambda n: n if n <= high else ends[(n - high - 1) // span])


def tensors(
    rank: int = 2,
    *,
    dtypes: Sequence[str] = FLOATS,
    size: Extent | Sequence[Extent] = (1, 128),
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
    max_numel: int = 1 << 18,
) -> st.SearchStrategy[Input]:
    """Tensors of `rank` dimensions; `size` is for all of them (a number or an inclusive range) or one for each.

    Later sizes are drawn smaller where the whole would have more than `max_numel` elements.
    """
    return _inputs(_shapes(_ranges(size, rank), max_numel), dtypes, layouts, profiles)


def vectors(
    *,
    dtypes: Sequence[str] = FLOATS,
    size: Extent = (1, 5000),
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
) -> st.SearchStrategy[Input]:
    """Tensors of one dimension."""
    return tensors(1, dtypes=dtypes, size=size, layouts=layouts, profiles=profiles)


def matrices(
    *,
    dtypes: Sequence[str] = FLOATS,
    rows: Extent = (1, 200),
    cols: Extent = (1, 1100),
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
    max_numel: int = 1 << 18,
) -> st.SearchStrategy[Input]:
    """Tensors of two dimensions; fewer columns where `rows` x `cols` would pass `max_numel`."""
    return tensors(2, dtypes=dtypes, size=[rows, cols], layouts=layouts, profiles=profiles, max_numel=max_numel)


def shaped(
    shape: Sequence[int],
    *,
    dtypes: Sequence[str] = FLOATS,
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
) -> st.SearchStrategy[Input]:
    """Tensors of exactly `shape`."""
    return _inputs(st.just(tuple(shape)), dtypes, layouts, profiles)


def like(
    other: Input,
    *,
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
) -> st.SearchStrategy[Input]:
    """Tensors of the shape and dtype of `other`, with a layout and values of their own.

    For a test of several inputs that must agree, write a composite strategy:

        @st.composite
        def chains(draw):
            x = draw(matrices())
            bias = draw(shaped(x.shape[1:], dtypes=[x.dtype]))
            return x, bias, draw(like(x))
    """
    drawn = shaped(other.shape, dtypes=[other.dtype], layouts=layouts, profiles=profiles)
    return drawn.map(lambda x: replace(x, seed=x.seed + other.seed + 1))  # never the very same values


@st.composite
def matmul_pairs(
    draw: st.DrawFn,
    *,
    dtypes: Sequence[str] = FLOATS,
    rows: Extent = (1, 130),
    inner: Extent = (1, 130),
    cols: Extent = (1, 130),
    layouts: Sequence[str] = LAYOUTS,
    profiles: Sequence[str] = COMMON,
) -> tuple[Input, Input]:
    """Two matrices [rows, inner] and [inner, cols] of one dtype."""
    a = draw(matrices(dtypes=dtypes, rows=rows, cols=inner, layouts=layouts, profiles=profiles))
    n = draw(sizes(*_range(cols)))
    b = draw(shaped((a.shape[1], n), dtypes=[a.dtype], layouts=layouts, profiles=profiles))
    return a, replace(b, seed=b.seed + a.seed + 1)


def _ranges(size: Any, rank: int) -> list[tuple[int, int]]:
    is_one = isinstance(size, int) or (isinstance(size, tuple) and all(type(end) is int for end in size))
    extents = [size] * rank if is_one else list(size)
    if len(extents) != rank:
        raise ValueError(f"{len(extents)} sizes for {rank} dimensions")
    return [_range(extent) for extent in extents]


def _range(extent: Extent) -> tuple[int, int]:
    low, high = extent if isinstance(extent, tuple) else (extent, extent)
    if not 0 <= low <= high:
        raise ValueError(f"no sizes from {low} to {high}")
    return low, high


@st.composite
def _shapes(draw: st.DrawFn, extents: Sequence[tuple[int, int]], max_numel: int) -> tuple[int, ...]:
    shape: list[int] = []
    for low, high in extents:
        room = max_numel // max(math.prod(shape), 1)
        shape.append(draw(sizes(low, max(low, min(high, room)))))
    return tuple(shape)


@st.composite
def _inputs(
    draw: st.DrawFn,
    shapes: st.SearchStrategy[tuple[int, ...]],
    dtypes: Sequence[str],
    layouts: Sequence[str],
    profiles: Sequence[str],
) -> Input:
    dtype = draw(st.sampled_from([str(d).removeprefix("torch.") for d in dtypes]))
    shape = draw(shapes)
    stride, offset = draw(_placements(shape, layouts))
    profile = draw(st.sampled_from(_repeated(profiles, "normal", _NORMAL_SHARE)))
    seed = draw(st.integers(0, 9999))
    return Input(dtype, shape, stride, offset, profile, seed)


@st.composite
def _placements(draw: st.DrawFn, shape: tuple[int, ...], layouts: Sequence[str]) -> tuple[tuple[int, ...], int]:
    for name in layouts:
        _known("layout", name, _LAYOUTS)
    possible = [name for name in layouts if len(shape) >= _LAYOUTS[name].rank]
    layout = _LAYOUTS[draw(st.sampled_from(_repeated(possible, "contiguous", _CONTIGUOUS_SHARE)))]
    gap = draw(st.sampled_from(_GAPS)) if layout.has_gap else 0
    return layout.place(shape, gap)


def _repeated(words: Sequence[str], favourite: str, times: int) -> list[str]:
    """`words` in their order, with `favourite` so often that it is drawn `times` as often as another."""
    return [word for word in words for _ in range(times if word == favourite else 1)]
