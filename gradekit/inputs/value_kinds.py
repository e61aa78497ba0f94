"""Kinds of values: what a tensor of an `Input` is filled with, by the name of the kind.

A kind is a function of (shape, dtype, generator) that returns float64 or int64 values of that shape. All of them use
random whole numbers and exact arithmetic on them, for torch.randn may differ in the last bit between processors.

An assignment adds kinds of its own with `value_kind`. They may have parameters, which stand in the name after colons:
"lengths:300:7" is the kind `lengths` with the parameters "300" and "7".
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from gradekit.schemas import nearest

Kind = Callable[[tuple[int, ...], torch.dtype, torch.Generator], torch.Tensor]  # a kind without parameters

Maker = Callable[..., torch.Tensor]  # a kind with or without parameters

# --- making them -----------------------------------------------------------------------------------------------------


def make(name: str, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Values of the kind `name` for a tensor of `shape`, on the CPU, float64 or int64. Raises ValueError where there is
    no such kind, or its parameters do not fit the shape."""
    word, *parameters = name.split(":")
    if word in _added:
        return _added[word].make(name, shape, dtype, generator)
    if word in WITH_PARAMETERS:
        return WITH_PARAMETERS[word](shape, dtype, generator, *parameters)
    if word in WHOLE:
        return WHOLE[word](shape, _bounds(word, parameters, dtype), generator)
    if parameters or word not in PROFILES:
        raise ValueError(f"no kind of values {name!r} ({nearest(name, known())})")
    if dtype.is_floating_point:
        return PROFILES[word](shape, dtype, generator)
    return _ints(*_integer_range(word, dtype), shape, generator)


def known() -> tuple[str, ...]:
    """The names of all kinds, simplest first; those of assignments last."""
    return (*PROFILES, *WHOLE, *_added)


def is_known(name: str) -> bool:
    """Whether there is such a kind; its parameters are not looked at."""
    word = name.partition(":")[0]
    return name in PROFILES or word in (*WHOLE, *_added, *WITH_PARAMETERS)


def poison(dtype: torch.dtype) -> float | int | bool:
    """What lies where nobody may read: NaN, or the largest integer."""
    if dtype.is_floating_point:
        return math.nan
    return True if dtype == torch.bool else torch.iinfo(dtype).max


# --- kinds of an assignment ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Added:
    """A kind that an assignment has added; `source` is the text of its module, so that another process can make it."""

    function: Maker
    parameters: bool
    source: str

    def make(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        _, *parameters = name.split(":")
        try:
            return self.function(shape, *parameters) if self.parameters else self.function(shape, dtype, generator)
        except (TypeError, ValueError, KeyError, RuntimeError, IndexError) as error:
            raise ValueError(f"no values {name!r} for shape {list(shape)} ({error})") from None


_added: dict[str, _Added] = {}
_SOURCE = "__kind_source__"


def value_kind(name: str, *, parameters: bool = False) -> Callable[[Maker], Maker]:
    """Add a kind of values, from the assignment's own Python: a decorator of the function that makes them.

    With `parameters`, it is called with the shape and the texts between the colons, and everything that the values
    depend on must stand there, a seed too; so two tensors that must agree can be made apart. Its module may import
    torch, the standard library and `gradekit.inputs`, and nothing beside it: it also runs where inputs are made on a
    GPU. Raises ValueError where the name is one of gradekit's own kinds, or has a colon.
    """
    if name in (*PROFILES, *WHOLE) or ":" in name:
        raise ValueError(f"no kind of values can be called {name!r}: gradekit has one of that name, or it has a colon")

    def add(function: Maker) -> Maker:
        _added[name] = _Added(function, parameters, _source(function))
        return function

    return add


def _source(function: Maker) -> str:
    given = function.__globals__.get(_SOURCE)  # where it was itself made from a text
    return given if isinstance(given, str) else Path(function.__code__.co_filename).read_text(encoding="utf-8")


def sources(names: Iterable[str]) -> list[str]:
    """The texts of the modules that are needed to make these kinds in another process: see `add_from`."""
    return sorted({_added[word].source for name in names if (word := name.partition(":")[0]) in _added})


def add_from(texts: Iterable[str]) -> None:
    """Add the kinds of modules whose texts the grader sent."""
    for text in texts:
        # the instructor's own text, from the grader: where inputs are made, no assignment can be read
        exec(compile(text, "<kinds of values>", "exec"), {"__name__": "gradekit_kinds", _SOURCE: text})  # noqa: S102


# --- gradekit's own --------------------------------------------------------------------------------------------------


def _ints(low: int, high: int, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randint(low, high + 1, shape, generator=generator, dtype=torch.int64)


PARTS = 1 << 24  # of so many parts of 1, numbers in [0, 1) have a whole number: all their sums are exact


def _parts(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, PARTS, shape, generator=generator, dtype=torch.float64)


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _parts(shape, generator).div_(PARTS)


def _sign(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _ints(0, 1, shape, generator) * 2 - 1


def _grid(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    steps = 1 << (7 if dtype == torch.bfloat16 else 10)
    return _ints(-steps, steps, shape, generator).double() / steps


def _normal(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    total = _parts(shape, generator)  # the sum of four uniform numbers is bell-shaped enough
    for _ in range(3):
        total += _parts(shape, generator)
    return total.sub_(2 * PARTS).mul_(math.sqrt(3) / PARTS)


POSITIVE = 0.125, 2.125  # where values of the kind "positive" begin, and where they end


def _positive(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return _uniform(shape, generator) * (POSITIVE[1] - POSITIVE[0]) + POSITIVE[0]


def _trend(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    size = (*shape, 1, 1)[max(len(shape) - 2, 0)]
    along = 1.0 - 2.0 * torch.arange(size, dtype=torch.float64) / max(size - 1, 1)
    along = along.unsqueeze(-1) if len(shape) > 1 else along.reshape(shape)
    return along + _normal(shape, dtype, generator) / 16


def _large(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    top = torch.finfo(dtype).max
    size = (0.5 + _uniform(shape, generator) * 0.5625).clamp(max=1) * top  # one in nine is the maximum itself
    return size * _sign(shape, generator)


def _exponents(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    info = torch.finfo(dtype)
    least, most = round(math.log2(info.smallest_normal)), math.frexp(info.max)[1] - 3
    values = (1 + _uniform(shape, generator)) * _sign(shape, generator)
    return torch.ldexp(values, _ints(least, most, shape, generator))


def _places(shape: tuple[int, ...], generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """All places of a row, and one of each row."""
    size = (1, *shape)[-1]
    one = _ints(0, max(size - 1, 0), (*shape[:-1], *[1] * len(shape[-1:])), generator)
    return torch.arange(size).view(shape[-1:]), one


def _rows_apart(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Normal values, those of each row around -256, 0 or 256: no one number can stand for -inf in all of them."""
    level = _ints(-1, 1, (*shape[:-1], *[1] * len(shape[-1:])), generator)
    return _normal(shape, dtype, generator) + level * 256


def _neg_inf(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values, gone = _normal(shape, dtype, generator), _ints(0, 3, shape, generator) == 0
    # what stands for -inf in a kernel weighs as much as these
    values.view(math.prod(shape[:-1]), (1, *shape)[-1])[1::2] = torch.finfo(dtype).min
    every, kept = _places(shape, generator)  # in each row one value stays finite
    return values.masked_fill(gone & (every != kept), -math.inf)


def _neg_inf_first(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = _rows_apart(shape, dtype, generator)
    every, first = _places(shape, generator)  # the first that stays finite
    first.view(-1)[:1] = every.numel() - 1
    return values.masked_fill(every < first, -math.inf)


def _neg_inf_runs(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = _rows_apart(shape, dtype, generator)
    every, kept = _places(shape, generator)  # all but the run that this one is in
    return values.masked_fill(every // RUN != kept // RUN, -math.inf)


RUN = 8  # in rows of neg_inf_runs, so many neighbours stay finite; all others are -inf, whole tiles of a long row


def _spike(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = _normal(shape, dtype, generator)
    every, one = _places(shape, generator)
    one.view(-1)[:1] = 0
    return values.masked_fill(every == one, 1024.0)


def _some_nan(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = _normal(shape, dtype, generator).masked_fill_(_ints(0, 7, shape, generator) == 0, math.inf).to(dtype)
    bits = values.view(getattr(torch, f"int{8 * dtype.itemsize}"))
    payload = _ints(1, round(1 / torch.finfo(dtype).eps) - 1, shape, generator)
    bits |= torch.where(values.isinf(), payload, 0).to(bits.dtype)
    return values


def _far_below(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, dtype, generator) * 4 - 1024


def _faded(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = -4 - 12 * _uniform(shape, generator)
    if shape and shape[-1]:
        values[..., 0] = 0.0
    return values


def _sunk(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = _uniform(shape, generator) / 8
    rows = values.view(math.prod(shape[:-1]), (1, *shape)[-1])
    if rows.numel():
        depth, pairs = math.log(rows.shape[1]) + STILL_SEEN, (len(rows) + 1) // 2
        rows -= depth * (1 - torch.arange(len(rows)).div(2, rounding_mode="floor") / pairs).unsqueeze(-1)
        rows[::2, 0], rows[1::2, -1] = 0.0, 0.0
    return values


STILL_SEEN = 10.0  # all but one of a row's exponentials are together e**-10 of that one: what float32 still tells


def _risen(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    size = (1, *shape)[-1]
    left = torch.arange(size, 0, -1, dtype=torch.float64)
    alike = torch.where(4 * left > size, size / 2, left)
    both = torch.stack([alike, torch.full_like(alike, size / 2)])
    risen = (OVERFLOWING - both.log()).masked_fill_(4 * left > 3 * size, 0.0)
    return _uniform(shape, generator) / 8 + risen[torch.arange(math.prod(shape[:-1])) % 2].view(shape)


OVERFLOWING = 88.9  # exp of this is more than float32 has room for, and so is a sum of n values of exp(OVERFLOWING) / n


def _as_scores(kind: Kind) -> Kind:
    """Of each row of the kind, rows of one value each that give it as scores, for queries of 1."""

    def rows(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        size = (1, 1, *shape)[-1]
        values = kind(shape[:-1], dtype, generator).unsqueeze(-1).expand(shape) if shape else torch.zeros(shape)
        return values.double() / math.sqrt(max(size, 1))

    return rows


def _first_row_zero(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = _positive(shape, dtype, generator)
    if len(shape) > 1 and shape[-2]:
        values[..., 0, :] = 0.0
    return values


def _alternating(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    signs = 1 - 2 * (torch.arange(shape[-1] if shape else 1) % 2)
    return (_positive(shape, dtype, generator) * signs).reshape(shape)


# --- whole numbers ---------------------------------------------------------------------------------------------------

WholeKind = Callable[[tuple[int, ...], tuple[int, int], torch.Generator], torch.Tensor]
"""Whole numbers of a shape from a least to a largest one."""


def _bounds(word: str, parameters: list[str], dtype: torch.dtype) -> tuple[int, int]:
    """The least and the largest of a kind: what its name says, or what suits the kind and the dtype holds."""
    try:
        said = [int(each) for each in parameters]
    except ValueError:
        raise ValueError(f"{word}:{':'.join(parameters)}: {word} is followed by whole numbers") from None
    if word == "index" and len(said) == 1:
        return 0, max(said[0] - 1, 0)
    if len(said) == 2 and word != "index":
        return said[0], max(said)
    if said or word == "index":
        raise ValueError(f"{word}:{':'.join(parameters)}: write index:SIZE, or {word}:LEAST:MOST")
    if dtype == torch.bool:
        return 0, 1
    top = 1 << 24 if dtype.is_floating_point else torch.iinfo(dtype).max - 1  # the largest integer is poison
    low = -top if dtype.is_floating_point else torch.iinfo(dtype).min
    return (low, top) if word == "full" else (max(low, -100), min(top, 100))


def _between(shape: tuple[int, ...], bounds: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    """Any, and where there is room both ends: what is off by one shows there."""
    values = torch.randint(bounds[0], bounds[1] + 1, shape, generator=generator, dtype=torch.int64)
    if values.numel() > 1:
        ends = torch.randperm(values.numel(), generator=generator)[:2]
        values.view(-1)[ends] = torch.tensor(bounds)
    return values


def _sorted(shape: tuple[int, ...], bounds: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    """They rise along the last dimension, with equal ones among them."""
    values = _between(shape, bounds, generator)
    return values.flatten().sort().values.view(shape) if len(shape) < 2 else values.sort(dim=-1).values


def _few(shape: tuple[int, ...], bounds: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    """Three different ones at most, so that nearly all are equal to others."""
    pool = _between((3,), bounds, generator)
    return pool[_ints(0, 2, shape, generator)]


def _one_hot(shape: tuple[int, ...], bounds: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    every, one = _places(shape, generator)
    return (every == one).long()


WHOLE: dict[str, WholeKind] = {
    "between": _between,  # any from LEAST to MOST; without them from -100 to 100
    "index": _between,  # index:SIZE is any from 0 up to SIZE
    "sorted": _sorted,
    "few": _few,
    "permutation": lambda shape, bounds, generator: (
        torch.rand(shape, generator=generator, dtype=torch.float64).argsort(dim=-1) if shape else torch.zeros(())
    ),
    "one_hot": _one_hot,
    "mask": lambda shape, bounds, generator: _ints(0, 1, shape, generator),  # 0 and 1
    "full": _between,  # all that the dtype holds, but the largest, which is poison
    "least": lambda shape, bounds, generator: torch.full(shape, bounds[0], dtype=torch.int64),
    "most": lambda shape, bounds, generator: torch.full(shape, bounds[1], dtype=torch.int64),
}
"""Kinds of whole numbers, for any dtype: between, sorted, few, least and most may be followed by :LEAST:MOST, and of a
tensor that has a range they are."""

RANGED = ("between", "sorted", "few", "least", "most")


FAR = "far"  # the kind of rows that lie by turns beside a large number (first in far:0) and around one (first in far:1)


def _far(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, number: str) -> torch.Tensor:
    """Normal numbers, moved by what float `dtype` has room for."""
    info, size = torch.finfo(dtype), max((*shape, 1)[len(shape) and -2], 1)
    one, beside = 2.0 ** min(math.frexp(info.max)[1] - 3, 16), 0.125 / info.eps
    values = _normal(shape, dtype, generator)
    rows = values.view(-1, size)
    rows[int(number) :: 2] += beside
    rows[1 - int(number) :: 2, :1] = one
    return values


PEAKS = "peaks"
"""The kind of tensors whose values are normal, but large at some places of each row, such as "peaks:0;511"."""


def _peaks(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, places: str) -> torch.Tensor:
    values = _normal(shape, dtype, generator)
    values[..., [int(place) for place in places.split(";")]] += 4096.0
    return values


SCALED = "scaled"
"""The kind of tensors whose values are positive, times the number that follows, such as "scaled:-1024"."""

BEGUN = "begun"
"""The kind of tensors whose rows begin as one kind, or one number, and go on as another: "begun:16:ones:-8.5"."""



def _begun(
    shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, count: str, first: str, rest: str
) -> torch.Tensor:
    at = torch.arange((1, *shape)[-1]).view(shape[-1:])
    both = (_kind_or_number(one, shape, dtype, generator) for one in (first, rest))
    return torch.where(at < int(count), next(both), next(both))


def _kind_or_number(told: str, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    is_kind = told.partition(":")[0] in (*PROFILES, *WHOLE)
    return make(told, shape, dtype, generator).double() if is_kind else torch.full(shape, float(told)).double()


HOLDING = "holding"
"""The kind of tensors with one value in each row beside another, or beside a kind, such as "holding:-1e9:normal"."""


def _holding(
    shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, value: str, rest: str
) -> torch.Tensor:
    every, one = _places(shape, generator)
    return torch.where(every == one, float(value), _kind_or_number(rest, shape, dtype, generator))


SPECIAL = "special"
"""The kind of tensors that hold what follows, such as "special:infinity;NaN": one in each row of normal numbers,
and nothing else in the first row and the last. In a domain it stands alone, for what the tensor is said to hold."""


def _special(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, words: str) -> torch.Tensor:
    if not dtype.is_floating_point:
        return make("large", shape, dtype, generator)
    numbers = torch.finfo(dtype)
    sizes = {"largest": numbers.max, "subnormal": 3 * numbers.smallest_normal * numbers.eps}
    pool = [sign * sizes[word] if word in sizes else float(word) for word in words.split(";") for sign in (1, -1)]
    values = torch.tensor(pool, dtype=torch.float64)[_ints(0, len(pool) - 1, shape, generator)]
    every, one = _places(shape, generator)
    one.view(-1)[[0, -1][: one.numel()]] = -1
    return torch.where((every == one) | (one < 0), values, _normal(shape, dtype, generator))


CHOSEN = "chosen"  # the kind of tensors that are made of a few given values, such as "chosen:cells:1:1.5;-2.0"


def _chosen(
    shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, pattern: str, step: str, values: str
) -> torch.Tensor:
    """Each value in turn for `step` cells, or for so many rows."""
    pool = torch.tensor([float(value) for value in values.split(";")], dtype=torch.float64)
    at = torch.arange(math.prod(shape)).reshape(shape)
    if pattern == "rows" and shape and shape[-1]:
        at = torch.div(at, shape[-1], rounding_mode="floor")
    return pool[torch.div(at, max(int(step), 1), rounding_mode="floor") % len(pool)]


WITH_PARAMETERS: dict[str, Maker] = {
    CHOSEN: _chosen, BEGUN: _begun, FAR: _far, PEAKS: _peaks, HOLDING: _holding, SPECIAL: _special,
    SCALED: lambda shape, dtype, generator, factor: _positive(shape, dtype, generator) * float(factor),
}  # fmt: skip
"""Kinds that gradekit makes for a submission: but for `SPECIAL`, never those of a tensor in a domain."""

PROFILES: dict[str, Kind] = {
    "ones": lambda shape, dtype, generator: torch.ones(shape, dtype=torch.float64),
    "integers": lambda shape, dtype, generator: _ints(-8, 8, shape, generator),  # whole numbers from -8 to 8
    "grid": _grid,  # multiples of 2**-10 (bfloat16: 2**-7) in [-1, 1]: exact in float16 and TF32, not in bfloat16
    "normal": _normal,
    "positive": _positive,  # in [0.125, 2.125)
    # positive, with all signs changed
    "below_zero": lambda shape, dtype, generator: -_positive(shape, dtype, generator),
    "trend": _trend,  # from 1 down to -1 along the rows, so that no two parts of a sum are alike
    # normal, divided by 2**20: gradients of a mean are so small
    "faint": lambda shape, dtype, generator: _normal(shape, dtype, generator) / (1 << 20),
    # normal, times a power of two from 2**-10 to 2**10
    "mixed": lambda shape, dtype, generator: (
        _normal(shape, dtype, generator) * (1 << _ints(0, 20, shape, generator)) / 1024
    ),
    "exponents": _exponents,  # each power of two that the dtype has, up to an eighth of its maximum, as often
    # normal, plus 8192: far from zero beside its spread
    "shifted": lambda shape, dtype, generator: _normal(shape, dtype, generator) + 8192,
    # normal, in every second row the least number; a quarter of them -inf, but never a whole row (the last dimension)
    "neg_inf": _neg_inf,
    # around 0, -256 or 256; -inf up to some place in each row, in the first up to its end, or but for a few neighbours
    "neg_inf_first": _neg_inf_first, "neg_inf_runs": _neg_inf_runs,
    "spike": _spike,  # normal, and one 1024 in each row, in the first at its beginning
    "some_nan": _some_nan,  # normal, an eighth of them NaN, of any bits, also signalling: for what is said of NaN
    # normal, times 8: scores made of two such rows are spread over hundreds
    "spread": lambda shape, dtype, generator: _normal(shape, dtype, generator) * 8,
    "faded": _faded,  # 0 first in each row, and -4 to -16 after it: many small weights together
    "faded_rows": _as_scores(_faded),  # such scores, for queries that are all 1: rows of one value each
    "sunk": _sunk,  # 0 first or last in each row, and all others equally far below: each pair of rows less far
    "sunk_rows": _as_scores(_sunk),
    # around 0 in the first quarter of each row, then so high that exponentials of the next half overflow together
    # wherever a running maximum has stayed behind, then higher from one to the next, or no higher in every second row
    "risen": _risen,
    "first_row_zero": _first_row_zero,  # positive, but 0 in the first row: the greatest weight has nothing to carry
    "far_below": _far_below,  # around -1024
    "far_above": lambda shape, dtype, generator: -_far_below(shape, dtype, generator),  # around 1024
    "alternating": _alternating,  # positive, with the sign of every second element changed
    # 1 and -1: many largest and many smallest
    "ties": lambda shape, dtype, generator: _ints(0, 1, shape, generator) * 2.0 - 1.0,
    "zeros": lambda shape, dtype, generator: 0.0 * _sign(shape, generator).double(),  # 0 and -0
    # up to nine of the smallest steps that the dtype has
    "subnormal": lambda shape, dtype, generator: (
        _ints(-9, 9, shape, generator) * torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    ),
    # from the smallest normal number to four times as much
    "tiny": lambda shape, dtype, generator: (
        torch.finfo(dtype).tiny * (1 + 3 * _uniform(shape, generator)) * _sign(shape, generator)
    ),
    "negative": lambda shape, dtype, generator: -_large(shape, dtype, generator).abs(),  # as large, but all below 0
    "large": _large,  # from half the dtype's maximum to the maximum itself
}
"""gradekit's own kinds by name, simplest first; integer dtypes know fewer."""


def _integer_range(profile: str, dtype: torch.dtype) -> tuple[int, int]:
    if dtype == torch.bool:
        return (1, 1) if profile == "ones" else (0, 1)
    info = torch.iinfo(dtype)
    ranges = {"ones": (1, 1), "integers": (-8, 8), "positive": (1, 100), "large": (info.max - 100, info.max - 1)}
    low, high = ranges.get(profile, (-100, 100))
    return max(low, info.min), min(high, info.max - 1)  # the largest integer is poison
