"""The functions of tl on tiles, by the last part of their names: `tl.math.exp2` is exp2. tl.rand and its like are
Philox 4x32 with ten rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.casts import round_to_tf32
from gradekit.interpreter.tile_values import NotWalked, TileBlocks, aligned, chosen, computed, converted, tile_of
from gradekit.program import MOST_IN_A_TILE

_ROUNDS = 10
_WORD = 0xFFFFFFFF
_FACTORS = 0xD2511F53, 0xCD9E8D57
_KEYS = 0x9E3779B9, 0xBB67AE85
_TO_UNIT = 4.6566127342e-10


def _product(word: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """The upper and the lower half of a product of words."""
    low = (word & 0xFFFF) * factor
    high = (word >> 16) * factor + (low >> 16)
    return high >> 16, ((high & 0xFFFF) << 16) | (low & 0xFFFF)


def randint4x(seed: Any, offset: Any, n_rounds: int = _ROUNDS) -> tuple[Tensor, ...]:
    """Four tiles of random words for each offset."""
    counter = tile_of(offset).long()
    return philox(seed, counter, counter >> 32, 0, 0, n_rounds)


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = _ROUNDS) -> tuple[Tensor, ...]:
    """The four words that rounds make of those of a counter."""
    a, b, c, d = torch.broadcast_tensors(*(tile_of(one).long() & _WORD for one in (c0, c1, c2, c3)))
    key = tile_of(seed).long()
    key = key.reshape(key.shape[:1] + (1,) * (a.dim() - 1)) if key.dim() < a.dim() else key
    k, j = key & _WORD, (key >> 32) & _WORD
    for _ in range(min(n_rounds, _ROUNDS)):
        high_c, low_c = _product(c, _FACTORS[1])
        high_a, low_a = _product(a, _FACTORS[0])
        a, b, c, d = high_c ^ b ^ k, low_c, high_a ^ d ^ j, low_a
        k, j = (k + _KEYS[0]) & _WORD, (j + _KEYS[1]) & _WORD
    return a, b, c, d


def _uniform(word: Tensor) -> Tensor:
    """Between 0 and 1, as Triton makes it of a signed word."""
    signed = torch.where(word > 0x7FFFFFFF, word - (1 << 32), word)
    return torch.where(signed < 0, -signed - 1, signed).float() * _TO_UNIT


def rand4x(seed: Any, offsets: Any, n_rounds: int = _ROUNDS) -> tuple[Tensor, ...]:
    """Four tiles of numbers between 0 and 1."""
    return tuple(_uniform(word) for word in randint4x(seed, offsets, n_rounds))


def rand(seed: Any, offset: Any, n_rounds: int = _ROUNDS) -> Tensor:
    """Numbers between 0 and 1."""
    return _uniform(randint4x(seed, offset, n_rounds)[0])


def randint(seed: Any, offset: Any, n_rounds: int = _ROUNDS) -> Tensor:
    """Words."""
    return randint4x(seed, offset, n_rounds)[0]


def randn(seed: Any, offset: Any, n_rounds: int = _ROUNDS) -> Tensor:
    """Normal numbers, by Box and Muller."""
    first, second, _, _ = randint4x(seed, offset, n_rounds)
    radius = torch.sqrt(-2.0 * torch.log(_uniform(first).clamp(min=1.0e-7)))
    return radius * torch.cos(2 * math.pi * _uniform(second))


# --- the functions by their names -------------------------------------------------------------------------------------


def _elementwise(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def applied(x: Any, **_: Any) -> Tensor:
        tile = tile_of(x)
        return function(tile if tile.is_floating_point() else tile.float())

    return applied


def _extreme(function: Callable[[Tensor, Tensor], Tensor], of_numbers: Callable[..., Any]) -> Callable[..., Any]:
    def applied(x: Any, y: Any, **_: Any) -> Any:
        if not isinstance(x, Tensor) and not isinstance(y, Tensor):
            return of_numbers(x, y)
        known = x if isinstance(x, Tensor) else y
        x, y = (v if isinstance(v, Tensor) else torch.full((1,), v, dtype=_wide(known, v)) for v in (x, y))
        return function(*aligned(x, y))

    return applied


def _wide(known: Tensor, number: float) -> torch.dtype:
    return torch.float32 if isinstance(number, float) and not known.is_floating_point() else known.dtype


def _reduction(function: Callable[..., Any], index: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A reduction; `index` gives the places of what it gives, where these can be asked for."""
    def applied(
        input: Any, axis: int | None = None, keep_dims: bool = False, return_indices: bool = False, **_: Any
    ) -> Any:
        tile = input if input.is_floating_point() or input.dtype is not torch.bool else input.long()
        if axis is None:
            if return_indices or keep_dims:
                raise NotWalked("a reduction of all dimensions")
            return function(tile.reshape(tile.shape[0], -1), 1, False)
        where = dimension(tile, axis), keep_dims
        return (function(tile, *where), index(tile, *where)) if return_indices and index else function(tile, *where)

    return applied


def dimension(tile: Tensor, axis: int) -> int:
    """Where the axis of a tile is in a tensor that has the programs first."""
    own = tile.dim() - 1
    if not isinstance(axis, int) or not -own <= axis < own:
        raise NotWalked("an axis that a tile lacks")
    return axis % own + 1


def _sum(tile: Tensor, axis: int, keep: bool) -> Tensor:
    return tile.sum(axis, keepdim=keep, dtype=torch.float32 if tile.dtype is torch.bfloat16 else None)


def _outermost(function: Callable[..., Tensor], nothing: float) -> Callable[..., Tensor]:
    """A maximum or minimum, which counts NaN as `nothing`: Triton's leaves it out."""
    def applied(tile: Tensor, axis: int, keep: bool) -> Tensor:
        known = tile.nan_to_num(nothing, math.inf, -math.inf) if tile.is_floating_point() else tile
        return function(known, axis, keepdim=keep)

    return applied


def _dot(input: Any, other: Any, acc: Any = None, input_precision: Any = None, **given: Any) -> Tensor:
    """A product of matrices, of float32 as tf32 unless another precision is asked for."""
    if min(input.dim(), other.dim()) < 3 or input.dtype != other.dtype:
        raise NotWalked("matrices that do not fit")
    is_tf32 = input_precision == "tf32" or input_precision is None and given.get("allow_tf32", True)
    if input.dtype is torch.float32 and is_tf32:
        input, other = round_to_tf32(input), round_to_tf32(other)
    found = torch.matmul(input.float(), other.float())
    if isinstance(acc, Tensor) and acc.shape[1:] != found.shape[1:]:
        raise NotWalked("an accumulator that does not fit")
    return found if acc is None else computed("+", acc, found)


def _trans(input: Tensor, *dims: Any) -> Tensor:
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    if input.dim() < 3:
        raise NotWalked("a transpose of a vector")
    return input.permute(0, *(d + 1 for d in order)) if order else input.transpose(-1, -2)


def _reshape(input: Tensor, *shape: Any, **_: Any) -> Tensor:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return tile_of(input).reshape(input.shape[0], *sizes)


def _broadcast_to(input: Any, *shape: Any) -> Tensor:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    tile = tile_of(input)
    return tile.expand(tile.shape[0], *_sized(sizes))


def _sized(shape: Any) -> list[int]:
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if not all(isinstance(size, int) and size > 0 and size & (size - 1) == 0 for size in sizes):
        raise NotWalked("a size that no tile has")
    if math.prod(sizes) > MOST_IN_A_TILE:
        raise NotWalked("a shape that is too large")
    return sizes


def _full(shape: Any, value: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    if isinstance(value, Tensor):
        return aligned(value.to(dtype), torch.empty(1, *_sized(shape)))[0].expand(value.shape[0], *_sized(shape))
    return torch.full((1, *_sized(shape)), value, dtype=dtype)


def _zeros(shape: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(1, *_sized(shape), dtype=dtype)


def _arange(start: int, end: int) -> Tensor:
    _sized((max(end - start, 1),))
    return torch.arange(start, end)[None]


def _expand_dims(input: Tensor, axis: Any) -> Tensor:
    for one in axis if isinstance(axis, (tuple, list)) else (axis,):
        input = input.unsqueeze(one + 1 if one >= 0 else one)
    return input


def _join(a: Any, b: Any) -> Tensor:
    return torch.stack(torch.broadcast_tensors(*aligned(tile_of(a), tile_of(b))), -1)


def _running(function: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    def applied(input: Tensor, axis: int = 0, reverse: bool = False, **_: Any) -> Tensor:
        at = dimension(input, axis)
        return function(input.flip(at), at).flip(at) if reverse else function(input, at)

    return applied


def _clamp(x: Any, min: Any, max: Any, **_: Any) -> Any:
    return FUNCTIONS["minimum"](FUNCTIONS["maximum"](x, min), max)


def _softmax(x: Tensor, axis: int | None = None, **_: Any) -> Tensor:
    return torch.softmax(x.float(), dimension(x, 0 if axis is None else axis))


def _power(x: Any, y: Any) -> Tensor:
    return torch.pow(*aligned(tile_of(x).float(), tile_of(y)))


def _histogram(input: Tensor, num_bins: int, mask: Tensor | None = None) -> Tensor:
    counted = torch.ones_like(input, dtype=torch.bool) if mask is None else mask
    input, counted = torch.broadcast_tensors(input, counted)
    found = torch.zeros(input.shape[0], *_sized(num_bins), dtype=torch.int32)
    return found.scatter_add_(1, (input % num_bins).long(), counted.int())


def _sort(x: Tensor, dim: int | None = None, descending: bool = False) -> Tensor:
    return x.sort(dimension(x, -1 if dim is None else dim), descending=descending).values


def _gather(src: Tensor, index: Tensor, axis: int) -> Tensor:
    at, programs = dimension(src, axis), max(src.shape[0], index.shape[0])
    src, index = (one.expand(programs, *one.shape[1:]) for one in (src, index))
    return src.gather(at, index.long())


def _like(value: float) -> Callable[..., Tensor]:
    return lambda input, **_: torch.full_like(input, value)


def descriptor(base: Any, shape: Any, strides: Any, block_shape: Any, **_: Any) -> TileBlocks:
    """tl.make_tensor_descriptor, of tiles that are not too large."""
    return TileBlocks(base, tuple(shape), tuple(strides), tuple(_sized(block_shape)))


def _block_pointer(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any = ()) -> TileBlocks:
    return replace(descriptor(base, shape, strides, block_shape), offsets=tuple(offsets))


def sizes_of(tile: Tensor) -> Sequence[int]:
    """The shape of a tile, without the programs."""
    return tuple(tile.shape[1:])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: _elementwise(getattr(torch, name))
        for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor", "ceil",
                     "sigmoid", "log1p", "expm1", "tan", "atan", "asin", "acos", "sinh", "cosh")
    },
    "sqrt_rn": _elementwise(torch.sqrt), "abs": abs, "rint": _elementwise(torch.round),
    "maximum": _extreme(torch.fmax, max), "minimum": _extreme(torch.fmin, min), "clamp": _clamp,
    "fmax": _extreme(torch.fmax, max), "fmin": _extreme(torch.fmin, min),
    "sum": _reduction(_sum), "max": _reduction(_outermost(torch.amax, -math.inf), torch.argmax),
    "min": _reduction(_outermost(torch.amin, math.inf), torch.argmin), "argmax": _reduction(torch.argmax),
    "argmin": _reduction(torch.argmin), "dot": _dot, "trans": _trans, "permute": _trans, "reshape": _reshape,
    "view": _reshape, "broadcast_to": _broadcast_to, "full": _full, "zeros": _zeros, "arange": _arange,
    "cdiv": lambda x, y: computed("//", computed("+", x, computed("-", y, 1)), y),
    "expand_dims": _expand_dims, "split": lambda a: (a[..., 0], a[..., 1]), "join": _join,
    "cumsum": _running(torch.cumsum), "cumprod": _running(torch.cumprod), "softmax": _softmax, "pow": _power,
    "histogram": _histogram, "sort": _sort, "gather": _gather, "flip": lambda x, dim=-1: x.flip(dimension(x, dim)),
    "make_tensor_descriptor": descriptor, "make_block_ptr": _block_pointer,
    "advance": TileBlocks.advanced,
    "fma": lambda x, y, z: computed("+", computed("*", x, y), z),
    **dict.fromkeys(("div_rn", "fdiv"), lambda x, y, **_: computed("/", x, y)),
    "where": chosen, "cast": converted, "to": converted, "zeros_like": _like(0), "ones_like": _like(1),
    **dict.fromkeys(("multiple_of", "max_contiguous", "max_constancy", "constexpr"), lambda x, *_, **__: x),
    **dict.fromkeys(
        ("assume", "static_assert", "static_print", "device_assert", "debug_barrier"), lambda *_, **__: None
    ),
    "rand": rand, "rand4x": rand4x, "randint": randint, "randint4x": randint4x, "randn": randn,
    "philox": philox, "uint_to_uniform_float": _uniform,
    "int": int, "float": float,
}  # fmt: skip
"""What needs no more than its arguments."""


def combined(tile: Any, axis: int | None, combine: Callable[..., Any]) -> Any:
    """tl.reduce: halves of a tile (or of each of several) combined, until one is left."""
    parts = list(tile) if isinstance(tile, tuple) else [tile]
    if axis is None:
        parts, axis = [part.reshape(part.shape[0], -1) for part in parts], 0
    at = dimension(parts[0], axis)
    while parts[0].shape[at] > 1:
        halves = [part.chunk(2, at) for part in parts]
        made = combine(*(first for first, _ in halves), *(second for _, second in halves))
        parts = list(made) if isinstance(made, tuple) else [made]
    found = [part.squeeze(at) for part in parts]
    return tuple(found) if isinstance(tile, tuple) else found[0]


def scanned(tile: Any, axis: int, combine: Callable[..., Any], reverse: bool = False) -> Any:
    """tl.associative_scan: each element combined with all that come before it, over twice as many in each step."""
    several = tile if isinstance(tile, tuple) else (tile,)
    at, step = dimension(several[0], axis), 1
    parts = [part.flip(at) if reverse else part for part in several]
    while (left := parts[0].shape[at] - step) > 0:
        made = combine(*(one.narrow(at, 0, left) for one in parts), *(one.narrow(at, step, left) for one in parts))
        made = made if isinstance(made, tuple) else (made,)
        parts = [torch.cat([one.narrow(at, 0, step), new], at) for one, new in zip(parts, made, strict=True)]
        step *= 2
    parts = [part.flip(at) if reverse else part for part in parts]
    return tuple(parts) if isinstance(tile, tuple) else parts[0]
