"""A call traced to learn where its numbers come from: sizes that remember, and the geometry of every tensor.

What a view, a copy or an allocation does to shape, strides and offset is done again here with sizes that remember. A
result is believed as far as it agrees with what torch gave, strides apart from shapes; the rest is opaque. So no rule
has to be right for every call. It takes the arguments (tensors as Geometries), the keywords, and whether the result
lies in the first argument's memory; it gives the result's geometry, or None where it does not know.
"""

import builtins
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode

from gradekit.compat.torch import DisableTorchFunction
from gradekit.compat.triton import JITFunction
from gradekit.origins import LaunchedNames, LaunchOrigin, Origins, ViewOrigin
from gradekit.program import Descriptor, Launch, View, every_step
from gradekit.tracer.cuda import patched
from gradekit.tracer.recorder import Recorder, map_views
from gradekit.tracer.sizes import Table, TracedShape, TracedSize, plain

# --- geometry ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Geometry:
    """`shape`, `stride` and `offset`, in elements."""

    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    offset: Any = 0

    @property
    def is_dense(self) -> bool:
        """Whether it is contiguous, whatever its sizes are."""
        expected = contiguous(self.shape)
        return all(_same(a, b) for a, b in zip(self.stride, expected, strict=True))


def _same(a: Any, b: Any) -> bool:
    """Whether two sizes are the same whatever the inputs are."""
    terms = getattr(a, "term", None), getattr(b, "term", None)
    return terms[0] == terms[1] and (terms[0] is not None or int(a) == int(b))


def contiguous(shape: Sequence[Any]) -> tuple[Any, ...]:
    """The strides of a contiguous tensor, where no size is zero."""
    strides: list[Any] = []
    step: Any = 1
    for size in reversed(shape):
        strides.append(step)
        step = size if type(step) is int and step == 1 else step * size
    return tuple(reversed(strides))


def new(shape: Sequence[Any]) -> Geometry:
    """A contiguous tensor in memory of its own."""
    return Geometry(tuple(shape), contiguous(shape))


Rule = Callable[[Sequence[Any], dict[str, Any], bool], Geometry | None]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enters a rule into the table, by the names of torch's functions."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def _shape(args: Sequence[Any]) -> tuple[Any, ...]:
    """`f(2, 3)` or `f((2, 3))`"""
    return tuple(args[0]) if args and isinstance(args[0], (tuple, list)) else tuple(args)


def _created(place: int) -> Rule:
    """A tensor whose shape stands at that place among the arguments, or is named `size`."""
    return lambda args, kwargs, same: new(_shape(args[place:]) if len(args) > place else tuple(kwargs["size"]))


rule("empty", "zeros", "ones", "rand", "randn", "full")(_created(0))
rule("new_empty", "new_zeros", "new_ones", "new_full")(_created(1))


@rule("empty_strided")
def _strided(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    return Geometry(tuple(args[0]), tuple(args[1]))


@rule("empty_like", "zeros_like", "ones_like", "full_like", "clone", "to", "float", "half", "bfloat16", "double",
      "contiguous",
      "detach", "requires_grad_", "cuda", "type", "alias", "view_as_real", "fill_", "zero_", "copy_")  # fmt: skip
def _like(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    return args[0] if same else new(args[0].shape)


@rule("view", "reshape")
def _view(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, shape = args[0], _shape(args[1:]) or tuple(kwargs.get("shape", ()))
    return _viewed(tensor, _whole(tensor, shape), same)


def _whole(tensor: Geometry, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """`shape` with its -1 worked out."""
    if not any(type(size) is int and size == -1 for size in shape):
        return shape
    others = math.prod(size for size in shape if int(size) != -1)
    left = list(tensor.shape)
    for size in shape:
        matches = [place for place, n in enumerate(left) if _same(n, size)]
        if matches and int(size) != -1:
            del left[matches[0]]
    fits = math.prod(map(int, left)) * int(others) == math.prod(map(int, tensor.shape))
    rest = math.prod(left) if fits else math.prod(tensor.shape) // others
    return tuple(rest if int(size) == -1 else size for size in shape)


def _viewed(tensor: Geometry, shape: tuple[Any, ...], same: bool) -> Geometry:
    if not same:
        return new(shape)
    if tensor.is_dense:
        return Geometry(tuple(shape), contiguous(shape), tensor.offset)
    kept = len(shape) == len(tensor.shape) and all(map(_same, shape, tensor.shape))
    return tensor if kept else Geometry(shape, _merged(tensor, shape), tensor.offset)


def _merged(tensor: Geometry, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The strides where adjacent leading dimensions become one before a last one; else none that torch agrees with."""
    if len(shape) == 2 and len(tensor.shape) > 2 and _same(shape[-1], tensor.shape[-1]):
        return tensor.stride[-2], tensor.stride[-1]
    return (-1,) * len(shape)


@rule("flatten", "ravel")
def _flatten(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, *dims = args
    rank = len(tensor.shape)
    first = int(kwargs.get("start_dim", dims[0] if dims else 0)) % max(rank, 1)
    last = int(kwargs.get("end_dim", dims[1] if len(dims) > 1 else -1)) % max(rank, 1)
    middle = math.prod(tensor.shape[first : last + 1])
    return _viewed(tensor, (*tensor.shape[:first], middle, *tensor.shape[last + 1 :]), same)


@rule("t", "transpose", "swapaxes", "swapdims", "__get__", "adjoint")
def _transposed(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    """`x.T` and `x.mT` are read as a property, whose function is called __get__."""
    tensor = args[0]
    rank = len(tensor.shape)
    dims = [int(d) % rank for d in args[1:3]] if len(args) > 2 else [rank - 2, rank - 1]
    order = list(range(rank))
    order[dims[0]], order[dims[1]] = order[dims[1]], order[dims[0]]
    return _permuted(tensor, order)


@rule("permute")
def _permute(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor = args[0]
    return _permuted(tensor, [int(d) % len(tensor.shape) for d in _shape(args[1:]) or kwargs["dims"]])


def _permuted(tensor: Geometry, order: Sequence[int]) -> Geometry:
    return Geometry(tuple(tensor.shape[d] for d in order), tuple(tensor.stride[d] for d in order), tensor.offset)


@rule("unsqueeze")
def _unsqueeze(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    at = int(args[1] if len(args) > 1 else kwargs["dim"])
    return _along(args[0], at % (len(args[0].shape) + 1), None)


@rule("squeeze")
def _squeeze(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    return _along(args[0], args[1] if len(args) > 1 else kwargs["dim"], 0)


@rule("expand", "broadcast_to")
def _expand(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, wanted = args[0], _shape(args[1:])
    missing = len(wanted) - len(tensor.shape)
    shape: list[Any] = []
    stride: list[Any] = []
    for axis, size in enumerate(wanted):
        old = tensor.shape[axis - missing] if axis >= missing else None
        kept = old is not None and (int(size) == -1 or _same(size, old))
        shape.append(old if kept else size)
        stride.append(tensor.stride[axis - missing] if kept else 0)
    return Geometry(tuple(shape), tuple(stride), tensor.offset)


@rule("select", "narrow")
def _part(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, axis, start, *length = args
    return _along(tensor, axis, slice(start, start + length[0]) if length else start)


def _along(tensor: Geometry, axis: int, part: Any) -> Geometry | None:
    before = int(axis) % len(tensor.shape) if axis < len(tensor.shape) else int(axis)
    return _indexed(tensor, [slice(None)] * before + [part])


@rule("__getitem__")
def _getitem(args: Sequence[Any], kwargs: dict[str, Any], same: bool) -> Geometry | None:
    tensor, index = args
    return _indexed(tensor, list(index) if isinstance(index, tuple) else [index]) if same else None


def parts(tensor: Geometry, count: int, axis: int = 0) -> list[Geometry | None]:
    """What `unbind` gives: the tensor at each place along an axis."""
    return [_along(tensor, axis, place) for place in range(count)]


def _indexed(tensor: Geometry, index: list[Any]) -> Geometry | None:
    """Slices, integers, None and ...; None where something else is among them."""
    if Ellipsis in [part for part in index if part is Ellipsis]:
        at = next(number for number, part in enumerate(index) if part is Ellipsis)
        taken = sum(part is not None for part in index) - 1
        index = index[:at] + [slice(None)] * (len(tensor.shape) - taken) + index[at + 1 :]
    shape: list[Any] = []
    stride: list[Any] = []
    offset, axis = tensor.offset, 0
    for part in index:
        if part is None:
            shape.append(1)
            stride.append(tensor.shape[axis] * tensor.stride[axis] if axis < len(tensor.shape) else 1)
            continue
        size, step = tensor.shape[axis], tensor.stride[axis]
        axis += 1
        if isinstance(part, slice):
            start, length, by = _sliced(part, size)
            shape.append(length)
            stride.append(step * by if by != 1 else step)
        elif isinstance(part, int) and not isinstance(part, bool):
            start = part if part >= 0 else size + part
        else:
            return None
        offset = offset + start * step if not (type(start) is int and start == 0) else offset
    return Geometry((*shape, *tensor.shape[axis:]), (*stride, *tensor.stride[axis:]), offset)


def _sliced(part: slice, size: Any) -> tuple[Any, Any, int]:
    """(start, length, step)"""
    start = 0 if part.start is None else part.start if part.start >= 0 else size + part.start
    stop = size if part.stop is None else min(part.stop if part.stop >= 0 else size + part.stop, size)
    by = 1 if part.step is None else int(part.step)
    length = stop - start if not (type(start) is int and start == 0) else stop
    return start, length if by == 1 else (length + by - 1) // by, by


# --- calls ------------------------------------------------------------------------------------------------------------


FOLLOWED = ("ceil", "floor", "prod", "trunc")  # of `math`: they ask the numbers themselves
MOST_WAYS = 8
MOST_LAUNCHES = 32  # launches of one call that are noted

Key = tuple[int, tuple[int, ...], tuple[int, ...], int]


class Following(TorchFunctionMode):
    """Answers questions about sizes with Sizes, and notes the origins of launches, while it is entered."""

    def __init__(self, recorder: Recorder, around: Any) -> None:
        super().__init__()
        self.around = around  # the mask of the device
        self.recorder = recorder
        self.table = Table(recorder.path)
        self.origins = Origins(())
        self._begin: dict[int, tuple[int, int]] = {}  # of each input's storage: where it begins, and its number
        self._views: dict[Key, list[tuple[View, Geometry]]] = {}  # a view has several where it was made in several ways
        self._launches: dict[int, tuple[Any, LaunchOrigin]] = {}
        self._binding: tuple[dict[str, Any], Sequence[Any]] | None = None
        self._answers: dict[Any, Callable[..., Any]] = {
            torch.Tensor.shape.__get__: lambda t: TracedShape(self.of(t).shape),  # type: ignore[attr-defined]
            torch.Tensor.nbytes.__get__: lambda t: math.prod(self.of(t).shape) * t.element_size(),  # type: ignore[attr-defined]
            torch.Tensor.__len__: lambda t: self.of(t).shape[0],
            torch.Tensor.size: self._size,
            torch.Tensor.stride: self._stride,
            torch.Tensor.storage_offset: self._storage_offset,
            **dict.fromkeys(
                (torch.Tensor.numel, torch.Tensor.nelement, torch.numel), lambda t: math.prod(self.of(t).shape)
            ),
        }

    # --- inputs and results

    def inputs(self, tensors: Sequence[torch.Tensor]) -> None:
        """The tensors that the call is given: their sizes and strides are what everything else comes from."""
        for number, tensor in enumerate(tensors):
            view = self.recorder.view(tensor)
            shape = tuple(self.table.size(n, "size", number, axis) for axis, n in enumerate(view.shape))
            self._given(view, shape, number)

    def like(self, tensor: torch.Tensor, geometry: Geometry, number: int) -> None:
        """A further input, of the shape that `geometry` has: the gradient of a result."""
        with DisableTorchFunction():
            self._given(self.recorder.view(tensor), geometry.shape, number)

    def _given(self, view: View, shape: Sequence[Any], number: int) -> None:
        if view.stride == tuple(map(int, contiguous(view.shape))):
            stride = contiguous(shape)
        else:
            stride = tuple(self.table.size(n, "stride", number, axis) for axis, n in enumerate(view.stride))
        self._begin.setdefault(view.storage, (view.offset, number))
        self._keep(view, Geometry(tuple(shape), stride, view.offset))

    def scalar(self, position: int, value: Any) -> Any:
        """A number that the call is given."""
        return self.table.size(value, "scalar", position) if type(value) is int else value

    def notice(self, steps: Sequence[Any], rename: Callable[[int], int]) -> None:
        """The call is over, and these are its steps."""
        unknown = LaunchOrigin((), ())
        started = [step for step in every_step(steps) if isinstance(step, Launch)]
        launches = [self._launches.get(id(launch), (None, unknown))[1] for launch in started]
        views = [self._encoded(view, geometry) for known in self._views.values() for view, geometry in known]
        self.origins = Origins(
            tuple(tuple(term) for term in self.table.terms), tuple(self.table.conditions), tuple(launches),
            map_views(tuple(views), rename),
        )  # fmt: skip

    def _encoded(self, view: View, geometry: Geometry) -> ViewOrigin:
        number = self.table.number
        return ViewOrigin(view, tuple(map(number, geometry.shape)), tuple(map(number, geometry.stride)),
                          number(geometry.offset))  # fmt: skip

    # --- tensors

    def of(self, tensor: torch.Tensor) -> Geometry:
        """The tensor's geometry in Sizes; opaque ones where nobody knows."""
        view = self.recorder.view(tensor)
        known = self._views.get(_key(view))
        if not known:
            opaque = self.table.opaque
            return Geometry(tuple(map(opaque, view.shape)), tuple(map(opaque, view.stride)), opaque(view.offset))
        return known[0][1]

    def of_offset(self, view: View) -> Any:
        """Where a view begins, if that is known of any view of its storage that begins there; opaque otherwise."""
        views = (pair for known in self._views.values() for pair in known)
        known = (g.offset for v, g in views if (v.storage, v.offset) == (view.storage, view.offset))
        return next(known, 0 if view.offset == 0 else self.table.opaque(view.offset))

    def _keep(self, view: View, geometry: Geometry) -> None:
        """Whether two ways that lead to the same numbers are one is for the grader to find out."""
        known = self._views.setdefault(_key(view), [])
        encoded = self._encoded(view, geometry)
        if len(known) < MOST_WAYS and all(self._encoded(*pair) != encoded for pair in known):
            known.append((view, geometry))

    def _storage_offset(self, tensor: torch.Tensor) -> Any:
        """Where a tensor begins: an input where it does, and its views so much further on."""
        storage, offset = self.recorder.view(tensor).storage, self.of(tensor).offset
        if storage not in self._begin:
            return offset
        first, number = self._begin[storage]
        begin = self.table.size(first, "offset", number)
        return begin if type(offset) is int and offset == first else begin + (offset - first)

    def _size(self, tensor: torch.Tensor, dim: int | None = None) -> Any:
        shape = self.of(tensor).shape
        return TracedShape(shape) if dim is None else shape[dim]

    def _stride(self, tensor: torch.Tensor, dim: int | None = None) -> Any:
        stride = self.of(tensor).stride
        return stride if dim is None else stride[dim]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        answer = self._answers.get(func)
        if answer is not None and args and _followed(args[0]):
            return answer(*args, **kwargs)
        result, name = func(*args, **kwargs), getattr(func, "__name__", "")
        if name == "item":  # of a tensor that host code has made of numbers
            return self.table.made(result)
        if name == "unbind" and isinstance(result, tuple):
            whole = self.of(args[0])
            for made, geometry in zip(result, parts(whole, len(result), *args[1:], **kwargs), strict=True):
                self._believe(made, geometry)
        elif name in RULES and _followed(result):
            self._made(RULES[name], args, kwargs, result)
        return result

    def _made(self, rule: Any, args: Any, kwargs: dict[str, Any], result: torch.Tensor) -> None:
        view = self.recorder.view(result)
        before = [self.of(arg) if _followed(arg) else arg for arg in args]
        same = bool(
            before and isinstance(args[0], torch.Tensor) and self.recorder.view(args[0]).storage == view.storage
        )
        try:
            geometry = rule(before, kwargs, same)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError):
            return
        self._believe(result, geometry)

    def _believe(self, tensor: torch.Tensor, geometry: Geometry | None) -> None:
        """Keeps a tensor's geometry, if torch agrees with the shape; strides or an offset that differ are opaque."""
        view, opaque = self.recorder.view(tensor), self.table.opaque
        if geometry is None or tuple(map(int, geometry.shape)) != view.shape:
            return
        strides = geometry.stride if tuple(map(int, geometry.stride)) == view.stride else map(opaque, view.stride)
        offset = geometry.offset if int(geometry.offset) == view.offset else opaque(view.offset)
        self._keep(view, Geometry(geometry.shape, tuple(strides), offset))

    # --- launches

    @contextmanager
    def launching(self) -> Iterator[None]:
        """Kernels get plain ints, and it is noted which Sizes they were."""
        run, backward = JITFunction.run, BackwardCFunction.apply

        def apply(node: Any, *args: Any) -> Any:
            with self.around, self:  # torch has taken all modes away by the time that a custom backward pass runs
                return backward(node, *args)

        own = lambda jit, *args, grid, warmup, **kwargs: self._run(run, jit, args, grid, warmup, kwargs)
        noted = patched(self.recorder, launched=self._launched)
        known = {name: self.table.noting(function) for name, function in vars(math).items()
                 if isinstance(function, BuiltinFunctionType) and name not in FOLLOWED}  # fmt: skip
        stored = self.table.noting(torch.UntypedStorage.nbytes, always=True)
        numbers = both(patched(math, **known), patched(torch.UntypedStorage, nbytes=stored, size=stored))
        count = builtins.len  # which makes a plain int of what a tensor answers
        length = lambda value: value.__len__() if isinstance(value, torch.Tensor) else count(value)
        numbers = both(numbers, patched(builtins, len=length))
        with patched(JITFunction, run=own), patched(BackwardCFunction, apply=apply), numbers, noted:
            yield

    def _run(self, run: Any, jit: Any, args: Any, grid: Any, warmup: bool, kwargs: dict[str, Any]) -> Any:
        bound = dict(zip(jit.arg_names, args, strict=False)) | kwargs
        traced = {name: value for name, value in bound.items() if isinstance(value, TracedSize)}
        sizes: list[Any] = []

        def numbers(meta: dict[str, Any]) -> Any:
            sizes[:] = grid({**meta, **traced}) if callable(grid) else grid
            return tuple(map(plain, sizes))

        self._binding = bound, sizes
        try:
            return run(jit, *map(plain, args), grid=numbers, warmup=warmup, **{k: plain(v) for k, v in kwargs.items()})
        finally:
            self._binding = None

    def _launched(self, launch: Launch, parameters: Sequence[tuple[str, str]]) -> None:
        """A launch was recorded; `parameters` are the kernel's names and Triton's types of them."""
        if self._binding is None or any(isinstance(kind, tuple) for _, kind in parameters):
            return
        bound, grid = self._binding
        number = self.table.number
        taken = [bound.get(name) for name, kind in parameters if kind != "constexpr"]
        described: Any
        for argument, described in zip(launch.args, taken, strict=True):
            if isinstance(argument, Descriptor) and hasattr(described, "strides"):
                view = argument.view
                self._keep(view, Geometry(tuple(described.shape), tuple(described.strides), self.of_offset(view)))
        constants = [bound.get(name) for name, kind in parameters if kind == "constexpr"]
        origin = LaunchOrigin(
            tuple(number(size) for size in (*grid, 1, 1)[:3]),
            tuple(number(value) for value in taken),
            tuple((value.term, int(value)) for value in constants if isinstance(value, TracedSize)),
        )
        self._launches[id(launch)] = launch, origin


class Exploring(Following):
    """Notes the origins of launches whose kernels are not compiled."""

    def __init__(self, recorder: Any, around: Any) -> None:
        super().__init__(recorder, around)
        self.launched: list[LaunchedNames] = []
        self._answers[torch.Tensor.data_ptr] = self._address

    def _address(self, tensor: torch.Tensor) -> Any:
        """What `data_ptr()` answers, which tells where in its memory a tensor begins."""
        with DisableTorchFunction():
            address, size = self.recorder.address(tensor), tensor.element_size()
        begin = self._storage_offset(tensor)
        return address - int(begin) * size + begin * size if address else address

    def _run(self, run: Any, jit: Any, args: Any, grid: Any, warmup: bool, kwargs: dict[str, Any]) -> Any:
        bound = bound_arguments(jit, args, kwargs)
        sizes = (*(grid(dict(bound)) if callable(grid) else grid), 1, 1)[:3]
        if len(self.launched) < MOST_LAUNCHES:
            number = self.table.number
            names = tuple((name, number(value)) for name, value in bound.items() if type(value) in (int, TracedSize))
            floats = tuple((name, float(value)) for name, value in bound.items() if isinstance(value, float))
            line, name = self.recorder.source(), str(getattr(jit, "__name__", ""))
            grid_of = tuple(map(number, sizes))
            self.launched.append(LaunchedNames(name, line.line if line else None, grid_of, names, floats))


def bound_arguments(jit: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a launch by name, with the defaults of those that are left out."""
    defaults = {p.name: p.default for p in jit.params if p.has_default}
    return {**defaults, **dict(zip(jit.arg_names, args, strict=False)), **kwargs}


@contextmanager
def both(outer: Any, inner: Any) -> Iterator[None]:
    """Two modes, entered one inside of the other."""
    with outer, inner:
        yield


def _key(view: View) -> Key:
    return view.storage, view.shape, view.stride, view.offset


def _followed(value: Any) -> bool:
    with DisableTorchFunction():
        return isinstance(value, torch.Tensor) and value.is_meta
