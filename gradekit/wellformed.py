"""Whether a program that came over the wire is one that the tracer could have sent.

`program.decode` holds data to the schema; this holds it to itself: views lie in their storages, storages exist, kernels
are there, and nothing is larger than any call of a submission needs. What passes is safe to hand to the engine and to
the card's process, which still meter what it does. Data only; a program that honest code makes is never refused.
"""

import functools
import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from gradekit.program import (
    ITEMSIZE,
    LARGEST_GRID,
    MOST_IN_A_TILE,
    Allocate,
    Aten,
    Choice,
    Descriptor,
    Kernel,
    Launch,
    Literal,
    Program,
    ProgramError,
    Source,
    Step,
    View,
    views_in,
)

MOST_STEPS = 100_000
MOST_KERNELS = 4096
MOST_TTIR = 4 << 20  # characters in all kernels together: a long one has 200,000, with its locations

MOST_BYTES = 1 << 30
"""Of one tensor whose elements share memory, counted element by element, where no tensor that the call was given is as
large; what is allocated is counted by the engine."""

WIDER = 8  # so many times the bytes of a given tensor its elements may take in another dtype

MOST_NAME = 10_000
_SHAPE = re.compile(r"<((?:\d{1,18}x)+)")
_DEEPEST = 4
_LARGEST = 1 << 62
_WIDEST = 25  # torch itself has no tensors of more than 64 dimensions, and its iterators stop at 25


class KernelsTooLarge(ProgramError):
    """A program that may be honest, with kernels of more than grading takes: a sentence for the student."""


def check(program: Program, given: Sequence[View], known: Collection[str] = ()) -> None:
    """Holds `program` against the views that were `given` to the call, in order; a gradient's upstream comes after
    them. Its kernels of these `known` keys are those of an earlier program, and were examined with that. Raises
    KernelsTooLarge for more than MOST_TTIR of kernels, and ProgramError for what does not fit."""
    _inputs(program, given)
    _kernels(program.kernels, known)
    _Checker(program).check()


def _inputs(program: Program, given: Sequence[View]) -> None:
    _expect(program.inputs[: len(given)] == tuple(given), "other inputs than were given")
    _expect(len(program.inputs) <= len(given) + 1, "more inputs than were given")
    _expect(set(program.storages) == {view.storage for view in program.inputs}, "storages that are no input's")


def _kernels(kernels: dict[str, Kernel], known: Collection[str]) -> None:
    _expect(len(kernels) <= MOST_KERNELS, f"more than {MOST_KERNELS} kernels")
    _short(list(kernels.values()))
    for key, kernel in kernels.items():
        if key not in known:
            _text(key, kernel.name)
            _kernel_text(kernel.ttir)
            _plain(kernel.options)
            _plain(kernel.constants)


def _short(kernels: Sequence[Kernel]) -> None:
    """What an honest submission may come to as well: it is told what was too large, and what to do."""
    size = sum(len(kernel.ttir) for kernel in kernels)
    if size <= MOST_TTIR:
        return
    largest = max(kernels, key=lambda kernel: len(kernel.ttir))
    name = " ".join(largest.name[:80].split())
    versions = sum(kernel.name == largest.name for kernel in kernels)
    raise KernelsTooLarge(
        f"The compiled kernels of one call take {size / (1 << 20):.1f} MiB as TTIR, and grading takes "
        f"{MOST_TTIR >> 20} MiB at most. The largest is {name}: {len(largest.ttir) >> 10:,} KiB in one of the "
        f"{versions} versions that the call compiles. A loop over tl.static_range is written out step by step: "
        "use range, or fewer steps, and fewer configurations."
    )


@functools.lru_cache(maxsize=512)
def _kernel_text(ttir: str) -> None:
    """Once for all programs that launch the kernel."""
    _printable(ttir)
    for shape in set(_SHAPE.findall(ttir)):
        size = math.prod(map(int, shape.split("x")[:-1]))
        _expect(size <= MOST_IN_A_TILE, "a tile that is larger than Triton's")


class _Checker:
    """One pass over the steps; `sizes` are the bytes of the storages that exist so far."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.sizes = dict(program.storages)
        self.repeated = max([MOST_BYTES, *(WIDER * view.numel * ITEMSIZE[view.dtype] for view in program.inputs)])
        self.steps = 0

    def check(self) -> None:
        """The whole program. Raises ProgramError where the tracer could not have sent it."""
        _text(self.program.returned, self.program.path)
        _expect(0 <= self.program.kept <= len(self.program.steps), "more steps before the call than there are")
        _expect(0 <= self.program.multiprocessors < 1 << 16, "a GPU that nobody builds")
        for number, size in (*self.sizes.items(), *self.program.addresses.items()):
            _expect(0 <= number < _LARGEST and 0 <= size < 2 * _LARGEST, "a storage of no size")
        for source in self.program.empty_grids:
            _source(source)
        self.views(self.program.inputs)
        self.run(self.program.steps, 0)
        self.values(self.program.results, 0)

    def run(self, steps: Iterable[Step], depth: int) -> None:
        """Steps, which stand in `depth` choices."""
        _expect(depth <= _DEEPEST, "choices in choices")
        for step in steps:
            self.steps += 1
            _expect(self.steps <= MOST_STEPS, f"more than {MOST_STEPS} steps")
            self.step(step, depth)
            _source(step.source)

    def step(self, step: Step, depth: int) -> None:
        """One step, which stands in `depth` choices."""
        match step:
            case Allocate(storage=storage, nbytes=nbytes):
                _expect(0 <= storage < _LARGEST and 0 <= nbytes < _LARGEST, "an allocation of no size")
                _expect(storage not in self.program.storages, "an allocation in place of an input")
                self.sizes[storage] = nbytes  # later views may be of it
            case Literal(target=target, values=values):
                self.views([target])
                _expect(len(values) == target.numel, "a literal of another size")
            case Aten():
                _text(step.op, *step.kwargs)
                self.values([*step.args, *step.kwargs.values(), *step.outputs], 0)
            case Launch(grid=grid):
                _expect(step.kernel in self.program.kernels, "a launch of no kernel")
                fits = all(0 <= size <= most for size, most in zip(grid, LARGEST_GRID, strict=True))
                _expect(fits, f"a grid of {grid}")
                self.values(step.args, 0)
            case Choice(options=options, tuning=tuning):
                _expect(0 < len(options) == len(step.labels), "a choice without labels")
                _expect(tuning is None or 0 < tuning < len(options), "a choice without configurations")
                _text(*step.labels)
                for option in options:
                    self.run(option, depth + 1)
            case _:
                self.views(views_in(step))

    def values(self, values: Iterable[Any], depth: int) -> None:
        """Arguments or results, in tuples at most _DEEPEST levels deep."""
        _expect(depth <= _DEEPEST, "lists in lists")
        for value in values:
            if isinstance(value, View):
                self.views([value])
            elif isinstance(value, Descriptor):
                self.views([value.view])
                _expect(len(value.block) == len(value.view.shape), "a descriptor of other dimensions")
                _expect(all(0 < size < 1 << 20 for size in value.block), "a descriptor of no block")
            elif isinstance(value, tuple):
                self.values(value, depth + 1)

    def views(self, views: Iterable[View]) -> None:
        """Tensors, each inside of a storage that exists by now."""
        for view in views:
            _expect(view.dtype in ITEMSIZE, "a dtype that torch does not have")
            _expect(len(view.shape) == len(view.stride) <= _WIDEST, "a tensor of other dimensions")
            numbers = (*view.shape, *view.stride, view.offset)
            _expect(min(numbers) >= 0 and max(numbers) < _LARGEST, "a negative size")
            size = self.sizes.get(view.storage, -1)
            bytes = view.numel * ITEMSIZE[view.dtype]
            _expect((view.reach * ITEMSIZE[view.dtype] if bytes else 0) <= size, "a tensor outside of its storage")
            _expect(bytes <= max(size, self.repeated), "a tensor that repeats itself for ever")


def _source(source: Source | None) -> None:
    if source is not None:
        _text(source.function)
        _expect(0 <= source.line < 1 << 31, "a line that no file has")


def _plain(value: Any, depth: int = 0) -> None:
    """Numbers, words and lists of them, as Triton's options are."""
    _expect(depth <= _DEEPEST, "lists in lists")
    if isinstance(value, str):
        _text(value)
    elif isinstance(value, dict):
        _plain(tuple(value) + tuple(value.values()), depth + 1)
    elif isinstance(value, tuple):
        for item in value:
            _plain(item, depth + 1)
    else:
        _expect(value is None or isinstance(value, (bool, int, float)), "an option that is no number or word")


def _text(*texts: str) -> None:
    for text in texts:
        _expect(len(text) <= MOST_NAME, "a name that is too long")
        _printable(text)


def _printable(text: str) -> None:
    """Half characters travel through JSON, and through nothing else."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ProgramError("text that no encoding can carry") from None


def _expect(fits: bool, otherwise: str) -> None:
    if not fits:
        raise ProgramError(otherwise)
