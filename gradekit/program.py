"""What a submission becomes: a program of allocations, copies and kernel launches, as plain data.

Runs anywhere and knows nothing: the tracer writes programs, the engine and the replay read them, and this module
is the only thing that they share. It imports the standard library alone, so that the tracer can load it beside
student code, and it decodes JSON from a process that may be hostile: a value outside the schema is a
`ProgramError`, never an attribute lookup or an import.

Vocabulary
    storage   a run of bytes; inputs have one each (or share one), and every allocation makes one
    view      a tensor: a storage seen with a dtype, shape, strides and offset (so view operations need no step)
    step      something that happens on the host, in order: Allocate, Fill, Copy, Aten, Launch, Choice
    kernel    one compiled specialization of a student's jit function, as TTIR text with its compile options
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Union

ITEMSIZE = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Bytes per element of every dtype that a view may have, by torch's name."""

ADDRESS_GAP = 1 << 40
"""Bytes between the addresses of two storages, so that an address tells its storage, and one past the end has none."""

FAR = (1 << 31) - (1 << 21)
"""So many elements from the first to the last, and memory has not all of a tensor's storage (`Fold`)."""

MOST_IN_A_TILE = 1 << 20  # elements of the largest tile that Triton takes

LARGEST_GRID = (2**31 - 1, 65535, 65535)  # programs of a launch along each axis: the most that a card takes

ALIGNMENT = " {tt.divisibility = 16 : i32}"  # what TTIR says of an argument that is a multiple of 16
FUNCTION = re.compile(r"^  tt\.func public @.*$", re.MULTILINE)
"""The line in TTIR that declares a kernel and its arguments."""


class ProgramError(ValueError):
    """The data is not a program: what was found, and where."""


@dataclass(frozen=True)
class Source:
    """A line of the submission: 1-based `line` in its source text, and the `function` that it stands in."""

    line: int
    function: str = ""


@dataclass(frozen=True)
class Fold:
    """How memory holds a tensor whose steps along one dimension are very long: of every `period` bytes the first `kept`
    alone. Kernels know its elements by the storage that it would have."""

    period: int
    kept: int

    def in_memory(self, view: View) -> View:
        """A view of the tensor as one of what memory holds."""
        size = ITEMSIZE[view.dtype]
        ends = (divmod(number * size, self.period) for number in (view.offset, *view.stride))
        offset, *stride = ((periods * self.kept + rest) // size for periods, rest in ends)
        return View(view.storage, view.dtype, view.shape, tuple(stride), offset)


@dataclass(frozen=True)
class View:
    """A tensor: `storage` seen as `dtype`; `shape`, `stride` and `offset` count elements of that dtype."""

    storage: int
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def reach(self) -> int:
        """The elements of the smallest storage that holds it."""
        if self.numel == 0:
            return self.offset
        return self.offset + 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def fold(self) -> Fold | None:
        """How memory holds it; None where that is as it lies."""
        if self.reach <= FAR:
            return None
        step, count = max(zip(self.stride, self.shape, strict=True))
        kept = (self.reach - (count - 1) * step) // 16 * 16 + 32  # and some elements that it does not have
        return Fold(step * ITEMSIZE[self.dtype], kept * ITEMSIZE[self.dtype]) if kept < step else None

    @property
    def in_memory(self) -> View:
        """As a view of what memory holds."""
        return self.fold.in_memory(self) if self.fold else self

    @property
    def expanded(self) -> bool:
        """Whether elements share memory because a dimension longer than 1 has stride 0."""
        return self.numel > 0 and any(n > 1 and s == 0 for n, s in zip(self.shape, self.stride, strict=True))


@dataclass(frozen=True)
class Scalar:
    """A number or None passed to a kernel or returned by the call; `dtype` is Triton's name (i32, fp32, ...) or ''."""

    value: int | float | bool | str | None
    dtype: str = ""


@dataclass(frozen=True)
class Descriptor:
    """A host-side tensor descriptor over `view`, accessed in blocks of `block` elements; `padding` is zero or nan."""

    view: View
    block: tuple[int, ...]
    padding: str = "zero"


Argument = View | Scalar | Descriptor


@dataclass(frozen=True)
class Allocate:
    """`storage` of `nbytes` bytes begins to exist; nothing has been written to it."""

    storage: int
    nbytes: int
    source: Source | None = None


@dataclass(frozen=True)
class Fill:
    """Every element of `target` becomes `value` (zeros, ones, full, fill_, zero_)."""

    target: View
    value: int | float | bool
    source: Source | None = None


@dataclass(frozen=True)
class Copy:
    """`target[...] = origin`, dtypes converted and shapes broadcast as by torch's copy_ (clone, contiguous, to)."""

    target: View
    origin: View
    source: Source | None = None


@dataclass(frozen=True)
class Literal:
    """Numbers that the host wrote out (torch.tensor([...]), torch.arange) become `target`'s elements, row-major."""

    target: View
    values: tuple[int | float | bool, ...]
    source: Source | None = None


@dataclass(frozen=True)
class Aten:
    """A torch operation that computes: run only where the assignment allows `op` by name (for example "aten::sum").
    `args` and `kwargs` hold Views, Scalars and lists of them; the results are written to `outputs`."""

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[View, ...]
    source: Source | None = None


@dataclass(frozen=True)
class Launch:
    """`kernel` (a key of Program.kernels) over `grid` programs; `args` are those that its TTIR function still takes, in
    order. A Descriptor stands for all that Triton expands it to (descriptor, shape, strides)."""

    kernel: str
    grid: tuple[int, int, int]
    args: tuple[Argument, ...]
    source: Source | None = None


@dataclass(frozen=True)
class Choice:
    """An autotuned launch: one list of steps (hooks, then the launch) for each configuration, any of which may run.
    `tuning` is the number of the option, if there is one, that is no configuration but the first call, in which the
    autotuner runs every configuration before it launches one."""

    options: tuple[tuple[Step, ...], ...]
    labels: tuple[str, ...]
    source: Source | None = None
    tuning: int | None = None

    @property
    def configurations(self) -> tuple[int, ...]:
        """The numbers of the options that are configurations; of all, where none is."""
        return tuple(n for n in range(len(self.options)) if n != self.tuning) or tuple(range(len(self.options)))


Step = Allocate | Fill | Copy | Literal | Aten | Launch | Choice


COMPILER_OPTIONS: dict[str, type] = {
    "num_warps": int, "num_stages": int, "num_ctas": int, "maxnreg": int, "enable_fp_fusion": bool,
    "launch_cooperative_grid": bool, "launch_pdl": bool,
}  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """One specialization: its `ttir` text with locations, its compile options, and plain values of parameters."""

    name: str
    ttir: str
    options: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def atomics_wait(self) -> bool:
        """Whether Triton makes an atomic wait for what other lanes of its program have stored."""
        return bool(self.options.get("atomics_wait", True))

    @property
    def compiler_options(self) -> dict[str, Any]:
        """The options that reach a compiler, where set: others name files, and a program is not trusted."""
        given = self.options
        return {name: given[name] for name, kind in COMPILER_OPTIONS.items() if type(given.get(name)) is kind}

    @functools.cached_property
    def unaligned(self) -> str:
        """The text without what it says of alignment, of which Triton makes something only after TTIR."""
        return FUNCTION.sub(lambda line: line[0].replace(ALIGNMENT, ""), self.ttir, count=1)


def key_of(kernel: Kernel) -> str:
    """A name for the kernel made from all that it is."""
    content = json.dumps([kernel.name, kernel.ttir, kernel.options], sort_keys=True)
    return f"{kernel.name}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Program:
    """One call of the entry: `inputs` are its tensor arguments in order, `results`
    what it returned, flattened in order.

    `storages` gives the size in bytes of every input's storage, by id. `returned` is "tensor", "tuple", "none" or the
    name of another Python type. `path` is the file name by which TTIR locations name the submission. `addresses` says
    what `data_ptr()` answered for the storages whose addresses the program holds as numbers (a table of pointers):
    multiples of ADDRESS_GAP. The first `kept` of the steps were made before the call, by the import or by an
    earlier call, and the call uses what they made. `multiprocessors` is how many of them the host was told that the
    GPU has, or 0 where it has not asked. `empty_grids` are the lines of launches without a program, which are no step.
    Of storages that have one, `folds` says how memory holds them: so are views meant then, but for those of launches.
    """

    inputs: tuple[View, ...]
    storages: dict[int, int]
    steps: tuple[Step, ...]
    results: tuple[Argument, ...]
    returned: str
    kernels: dict[str, Kernel]
    path: str = ""
    addresses: dict[int, int] = field(default_factory=dict)
    multiprocessors: int = 0
    kept: int = 0
    empty_grids: tuple[Source, ...] = ()
    folds: dict[int, Fold] = field(default_factory=dict)

    @property
    def kept_allocations(self) -> list[Allocate]:
        """The allocations before the call that it uses."""
        return [step for step in every_step(self.steps[: self.kept]) if isinstance(step, Allocate)]

    @property
    def results_kept(self) -> bool:
        """Whether a result lies in memory that was allocated before the call."""
        made = {step.storage for step in self.kept_allocations}
        return any(isinstance(result, View) and result.numel and result.storage in made for result in self.results)

    def launches(self) -> Iterator[Launch]:
        """The launches of a run that takes the first option of every choice."""
        return (step for step in run_steps(self.steps) if isinstance(step, Launch))

    @property
    def every_launch(self) -> list[Launch]:
        """The launches of every option, in order."""
        return [step for step in every_step(self.steps) if isinstance(step, Launch)]

    @property
    def allocated(self) -> dict[int, int]:
        """The bytes of each storage that the host allocates."""
        return {step.storage: step.nbytes for step in every_step(self.steps) if isinstance(step, Allocate)}

    def choices(self) -> list[Choice]:
        """The autotuned launches, in order."""
        return [step for step in self.steps if isinstance(step, Choice) and step.options]


def run_steps(steps: Iterable[Step], chosen: int | Sequence[int] = 0) -> Iterator[Step]:
    """The steps of one run, in order, without choices: each choice takes the option `chosen`, or the n-th takes
    `chosen[n]` (the first, where that says nothing); numbers are taken modulo how many options there are."""
    numbers = iter(()) if isinstance(chosen, int) else iter(chosen)
    usual = chosen if isinstance(chosen, int) else 0
    for step in steps:
        if not isinstance(step, Choice):
            yield step
        elif step.options:
            yield from run_steps(step.options[next(numbers, usual) % len(step.options)], usual)


def every_step(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps with those of every option of every choice, in order; the choice itself comes before its options."""
    for step in steps:
        yield step
        if isinstance(step, Choice):
            for option in step.options:
                yield from every_step(option)


# --- JSON codec: every dataclass becomes {"is": its name, field: value, ...} -----------------------------------------

_NOUNS: dict[str, type] = {
    noun.__name__: noun for noun in (Source, View, Fold, Scalar, Descriptor, *typing.get_args(Step), Kernel, Program)
}


def views_in(value: Any) -> Iterator[View]:
    """The tensors anywhere in arguments or steps, in nested tuples and dicts too."""
    kind: Any = type(value)
    if kind is View:
        yield value
        return
    parts = value.values() if kind is dict else value
    if kind is not tuple and kind is not list and kind is not dict:
        parts = [getattr(value, name) for name in parts_of(kind)]
    for part in parts:
        if type(part) not in _PLAIN:  # most are numbers
            yield from views_in(part)


def reads(step: Step) -> Iterator[View]:
    """The tensors that a step may read: of a launch, all that it is given."""
    match step:
        case Copy(origin=origin):
            yield origin
        case Aten(args=args, kwargs=named):
            yield from views_in((args, named))
        case Launch(args=args):
            yield from views_in(args)


def writes(step: Step) -> Iterator[View]:
    """The tensors that a step may write: of a launch, all that it is given."""
    match step:
        case Fill(target=target) | Copy(target=target) | Literal(target=target):
            yield target
        case Aten(outputs=outputs):
            yield from outputs
        case Launch(args=args):
            yield from views_in(args)


def needed_for(wanted: Collection[int], steps: Sequence[Step], stored: Sequence[set[int]]) -> list[bool]:
    """Of each step whether the `wanted` storages may depend on it; `stored` has what each launch has written."""
    needed, found = set(wanted), list[bool]()
    for step, mine in zip(reversed(steps), reversed(stored), strict=True):
        own = {step.storage} if isinstance(step, Allocate) else {view.storage for view in writes(step)}
        found.append(bool((mine if isinstance(step, Launch) else own) & needed))
        if found[-1]:
            needed |= {view.storage for view in reads(step)}
    return found[::-1]


def storages_of(value: Any) -> set[int]:
    """The numbers of all storages that a step or a view mentions."""
    made = {step.storage for step in every_step([value]) if isinstance(step, Allocate)}
    return made.union(view.storage for view in views_in(value))


@functools.cache
def parts_of(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a step, among which there may be views."""
    return () if kind is Source or kind is Scalar else field_names(kind)


def replaced(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """`value`, a part of a program, with what `leaf` gives of each part of it in that one's place, where not None."""
    if (found := leaf(value)) is not None:
        return found
    kind: Any = type(value)
    if kind is tuple or kind is list:
        return tuple([replaced(item, leaf) for item in value])
    if kind is dict:
        return {key: replaced(item, leaf) for key, item in value.items()}
    parts = parts_of(kind)
    return kind(*[replaced(getattr(value, name), leaf) for name in parts]) if parts else value


def folded(program: Program) -> Program:
    """The program of a call with tensors that memory does not hold as they lie."""
    folds = {view.storage: view.fold for view in program.inputs if view.fold}

    def in_memory(part: Any) -> Any:
        if isinstance(part, View) and part.storage in folds:
            return folds[part.storage].in_memory(part)
        return part if isinstance(part, Launch) else None

    inputs, steps, results = (replaced(part, in_memory) for part in (program.inputs, program.steps, program.results))
    sizes = {view.storage: view.reach * ITEMSIZE[view.dtype] for view in inputs if view.storage in folds}
    storages = program.storages | sizes
    found = replace(program, inputs=inputs, storages=storages, steps=steps, results=results, folds=folds)
    return found if folds else program


def add_nouns(*nouns: type) -> None:
    """Makes further dataclasses part of what `encode` and `decode` know."""
    _NOUNS.update({noun.__name__: noun for noun in nouns})


_PLAIN = frozenset({int, str, float, bool, type(None)})  # what JSON gives as it stands


def encode(value: Any) -> Any:
    """`value` (a Program or a part of one) as data that `json.dumps` accepts; infinities and NaN as {"is": "float"}."""
    kind: Any = type(value)
    if kind in (int, str, bool, types.NoneType):
        return value
    if names := field_names(kind):
        return {"is": kind.__name__} | {name: encode(getattr(value, name)) for name in names}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {"is": "dict", "items": [[key, encode(item)] for key, item in value.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"is": "float", "value": repr(value)}
    return value


@functools.cache
def field_names(noun: Any) -> tuple[str, ...]:
    """The fields of a noun; none of anything else."""
    return tuple(f.name for f in fields(noun)) if is_dataclass(noun) else ()


def decode(data: Any, expected: type = Program) -> Any:
    """The inverse of `encode`, as `expected` is annotated. Raises ProgramError for what the schema does not have."""
    value = _decode(data)
    if not isinstance(value, expected):
        raise ProgramError(f"expected {expected.__name__}, got {_show(data)}")
    return value


def _decode(data: Any) -> Any:
    if isinstance(data, list):
        return tuple([item if type(item) in _PLAIN else _decode(item) for item in data])
    if not isinstance(data, dict):
        return data
    noun = data.get("is")
    if noun == "dict":
        return _decode_dict(data)
    if noun == "float" and data.get("value") in ("inf", "-inf", "nan"):
        return float(data["value"])
    if not isinstance(noun, str) or noun not in _NOUNS:
        raise ProgramError(f"unknown noun {_show(noun)}")
    values = {name: item if type(item) in _PLAIN else _decode(item) for name, item in data.items() if name != "is"}
    return _build(_NOUNS[noun], values)


def _decode_dict(data: dict[str, Any]) -> dict[Any, Any]:
    items = data.get("items")
    if not isinstance(items, list) or not all(isinstance(i, list) and len(i) == 2 for i in items):
        raise ProgramError(f"malformed dict {_show(items)}")
    if not all(isinstance(key, (str, int)) for key, _ in items):
        raise ProgramError(f"malformed key in {_show(items)}")
    return {key: _decode(item) for key, item in items}


def _build(noun: type, values: dict[str, Any]) -> Any:
    known = _fields(noun)
    for name, value in values.items():
        if name not in known:
            raise ProgramError(f"{noun.__name__} has no field {_show(name)}")
        if not known[name](value):
            raise ProgramError(f"{noun.__name__}.{name} cannot be {_show(value)}")
    if len(values) == len(known):  # as its constructor would, in a third of the time: a call has hundreds of them
        made: Any = object.__new__(noun)
        vars(made).update(values)
        return made
    try:
        return noun(**values)
    except TypeError as error:
        raise ProgramError(f"{noun.__name__}: {error}") from None


@functools.cache
def _fields(noun: type) -> dict[str, Callable[[Any], bool]]:
    return {name: _fits(hint) for name, hint in typing.get_type_hints(noun).items()}


@functools.cache
def _fits(hint: Any) -> Callable[[Any], bool]:
    """What tells whether a value is of the type `hint`: worked out once, for a call has hundreds of values."""
    if hint is Any:
        return lambda value: True
    kinds = _kinds(hint)
    if kinds:
        return lambda value: type(value) in kinds
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return _fits_tuple(args)
    if origin is dict:
        key, item = map(_fits, args)
        return lambda value: type(value) is dict and all(key(k) and item(v) for k, v in value.items())
    raise TypeError(f"no field can be {hint}")


def _kinds(hint: Any) -> frozenset[type]:
    """The types that a value may have where `hint` is one, or several; none where it says more than that."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        each = [_kinds(one) for one in typing.get_args(hint)]
        return frozenset().union(*each) if all(each) else frozenset()
    says_more = hint is Any or typing.get_origin(hint)
    return frozenset() if says_more else frozenset([type(None) if hint is None else hint])


def _fits_tuple(hints: tuple[Any, ...]) -> Callable[[Any], bool]:
    if hints[-1] is Ellipsis:
        kinds, item = _kinds(hints[0]), _fits(hints[0])
        if kinds:
            return lambda value: type(value) is tuple and kinds.issuperset(map(type, value))
        return lambda value: type(value) is tuple and all(map(item, value))
    items = tuple(map(_fits, hints))
    return lambda value: (
        type(value) is tuple and len(value) == len(items) and all(fits(v) for fits, v in zip(items, value, strict=True))
    )


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
