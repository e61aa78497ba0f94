"""Where a kernel's values pass a border, its program may be another one: a number that they meet in a comparison, a
choice, an extreme or a sum (0.125 for a series, -1e9 for what is masked, a limit that the host passes).

A call's tensors are scaled together until what meets a border lies just before it, and then behind it. The factor is
looked for by a few runs in exact arithmetic, each of which shows how large the values at all borders are.
"""

import contextlib
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from gradekit.engine.def_use import LOADS, MOVED, DefUse
from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.kernel_facts import parsed
from gradekit.engine.memory import Memory, index_in
from gradekit.engine.observer import Observer, touched
from gradekit.engine.ttir import Op, Type
from gradekit.engine.values import FLOAT, dense
from gradekit.exact.places import spread
from gradekit.exact.trial import NOT_TRIED, ExactCall, run_exactly
from gradekit.inputs.value_kinds import PEAKS, POSITIVE, SCALED
from gradekit.program import Launch, run_steps

MOST = 4  # borders of one program that are looked at: numbers that decide first, the largest first
RUNS = 5  # how often a call is run for one border
NEAR = 0.3  # how far before a border values may end, as a power of two
DRAWN = 10
"""Numbers that decide nothing are looked at from here on, as a power of two: examples are as much larger or smaller."""
_DECIDING = {"arith.cmpf", "arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf", "tt.clampf"}
_MEETING = {*_DECIDING, "arith.select", "arith.addf", "arith.subf"}
_SAME = {*MOVED, "arith.extf", "arith.truncf", "tt.fp_to_fp"}


@dataclass(frozen=True)
class Border:
    """The size that the value `met` may pass at the operation `op` of a kernel: a number, or the value of that name.
    Whether it `decides` there which of two ways is gone; the kernel's arguments that the value is made `of`."""

    op: int
    met: str
    type: Type
    size: float | str
    decides: bool
    of: frozenset[str]


@functools.lru_cache(maxsize=256)
def borders(ttir: str) -> tuple[Border, ...]:
    """Those in a kernel's text."""
    flow = DefUse(parsed(ttir).functions.values())
    arguments = {*parsed(ttir).entry.arguments}
    loaded = {name for op in flow.ops if op.name in LOADS for name in op.results}
    return tuple(one for op in flow.ops for one in _of(flow, op, loaded, arguments))


def _of(flow: DefUse, op: Op, loaded: set[str], arguments: set[str]) -> Iterator[Border]:
    typed = [(n, t) for n, t in zip(op.operands, op.operand_types, strict=True) if t.element in FLOAT]
    numbers = [number for name, _ in typed if (number := _number(flow, name)) is not None]
    others = [each for each in typed if _number(flow, each[0]) is None] if op.name in _MEETING else []
    if op.name in LOADS:
        others = [(name, type) for name, type in zip(op.results, op.result_types, strict=True) if type.element in FLOAT]
    given = [name for name, _ in others if not flow.behind([name]) & loaded] if op.name in _DECIDING else []
    sizes: list[float | str] = [*(abs(number) for number in numbers if number and math.isfinite(number)), *given]
    for name, type in [each for each in others if each[0] not in given][:1]:
        of = frozenset(flow.behind([name]) & arguments)
        yield from (Border(op.number, name, type, size, op.name in _DECIDING, of) for size in sizes)


def _number(flow: DefUse, name: str) -> float | None:
    """The number that a value is, or that a loop begins with; of a choice between two, the larger."""
    op = flow.made.get(name)
    if op is None:
        return _number(flow, flow.begun[name]) if name in flow.begun else None
    if op.name == "arith.constant":
        value = op.attributes["value"]
        return float(value) if isinstance(value, (int, float)) else None
    if op.name == "arith.select":
        both = [number for each in op.operands[1:] if (number := _number(flow, each)) is not None]
        return max(both, key=abs) if both[1:] else None
    return _number(flow, op.operands[0]) if op.name in _SAME and op.operands else None


# --- looking for the factor ------------------------------------------------------------------------------------------

_Place = tuple[int, Border]  # the number of a launch, and a border of its kernel


@dataclass(frozen=True)
class _Met:
    """How large values were beside a border, as powers of two: the least and the largest of them, but for a few."""

    least: float
    largest: float
    sign: float


def rows_at_borders(call: ExactCall, free: Sequence[str], most: float) -> Iterator[dict[str, str]]:
    """Kinds of values, by the names of tensors, that take what the call computes to its borders. Tensors in `free` may
    have any values, of absolute size up to `most`."""
    search = _Search(call, free, most)
    if free and any(search.wanted):
        yield from search.rows()


Signs = tuple[int, ...]
"""How each tensor is scaled: 1 with the factor, -1 with its negative, 0 where it may only hide what is small."""


class _Search:
    def __init__(self, call: ExactCall, free: Sequence[str], most: float) -> None:
        self.call, self.free, self.most = call, free, math.log2(most / POSITIVE[1])
        self.launches = [step for step in run_steps(call.program.steps, call.option) if isinstance(step, Launch)]
        self.wanted = [borders(call.program.kernels[step.kernel].unaligned) for step in self.launches]
        self.met = functools.cache(self._met)

    def rows(self) -> Iterator[dict[str, str]]:
        first = self.met((1,) * len(self.free), 0.0)
        looked_at, made = set[tuple[Signs, int, int]](), set[tuple[Signs, int]]()
        for place in sorted(first, key=lambda place: (not place[1].decides, first[place].largest)):
            reach, met = self._reach(place), first[place]
            key = reach, round(met.least), round(met.largest)
            if not (place[1].decides or met.largest < -DRAWN or met.least > DRAWN):
                continue
            if not any(reach) or key in looked_at or len(looked_at) == MOST:
                continue
            looked_at.add(key)
            for signs in self._signs(place, reach):
                for power in self._powers(place, signs):
                    if (signs, round(4 * power)) not in made:
                        made.add((signs, round(4 * power)))
                        yield self._row(signs, power)

    def _reach(self, place: _Place) -> Signs:
        """1 for each tensor that what meets the border may be made of."""
        number, border = place
        launch, inputs = self.launches[number], self.call.program.inputs
        names = parsed(self.call.program.kernels[launch.kernel].unaligned).entry.arguments
        views = [view for name, view in zip(names, spread(launch), strict=False) if view and name in border.of]
        known = {view.storage: name for name, view in zip(self.call.names, inputs, strict=True)}
        reach = {known.get(view.storage) for view in views}
        return tuple(int(name in reach or None in reach) for name in self.free)

    def _signs(self, place: _Place, reach: Signs) -> Iterator[Signs]:
        """Signs of the tensors with which what meets the border is of either sign."""
        yield reach
        one, before = reach.index(1), self.met(reach, 0.0)[place].sign
        for signs in dict.fromkeys([tuple(-n for n in reach), (*reach[:one], -1, *reach[one + 1 :])]):
            met = self.met(signs, 0.0).get(place)
            if met and met.sign != before:
                yield signs
                return

    def _powers(self, place: _Place, signs: tuple[int, ...]) -> Iterator[float]:
        """The factors, as powers of two, with which values end just before the border, and begin behind it."""
        power, slope, met = 0.0, 1.0, self.met(signs, 0.0)[place]
        for _ in range(RUNS):
            if -NEAR <= met.largest < 0:
                yield power
                break
            following = max(-self.most, min(power - (met.largest + NEAR / 2) / slope, self.most))
            seen = self.met(signs, following).get(place)
            if following == power or seen is None:
                break
            change = (seen.largest - met.largest) / (following - power)
            slope, power, met = change if abs(change) > NEAR else slope, following, seen
        behind = power - (met.least - NEAR / 2) / slope
        if abs(behind) <= self.most:
            yield behind
            yield self.most

    def _row(self, signs: Sequence[int], power: float) -> dict[str, str]:
        named = zip(self.free, signs, strict=True)
        return {name: f"{SCALED}:{sign * 2.0**power if sign else 2.0 ** min(power, 0):.6g}" for name, sign in named}

    def _met(self, signs: Signs, power: float) -> Mapping[_Place, _Met]:
        """What meets each border with values of a row."""
        row, observer = self._row(signs, power), _Sizes(self.wanted)
        named = zip(self.call.specs, self.call.names, strict=True)
        specs = [replace(spec, profile=row.get(name, spec.profile)) for spec, name in named]
        try:
            run_exactly(self.call, specs, observer)
        except NOT_TRIED:
            return {}
        return {place: _as_met(torch.cat(parts)) for place, parts in observer.found.items()}


def _as_met(ratios: torch.Tensor) -> _Met:
    sizes = ratios.abs().sort().values
    few = len(sizes) // 50
    least, largest = sizes[few].log2(), sizes[len(sizes) - 1 - few].log2()
    return _Met(float(least), float(largest), float(ratios.sum().sign()))


# --- places that decide for a row -------------------------------------------------------------------------------------

FEW = 8
"""A load takes few places of rows where these are no more than one in so many."""


def rows_with_peaks(call: ExactCall, free: Sequence[str]) -> Iterator[dict[str, str]]:
    """For each of the tensors in `free` of which a kernel loads few places of each row by themselves, for an estimate
    of the row's mean, say: a kind of values that are large there."""
    observer = _Loads()
    if free and any(_loads_twice(kernel.unaligned) for kernel in call.program.kernels.values()):
        with contextlib.suppress(*NOT_TRIED):
            run_exactly(call, call.specs, observer)
    for name, view in zip(call.names, call.program.inputs, strict=True):
        places = set[int]()
        for storage, parts in observer.found.items() if name in free and view.shape else ():
            index, inside = index_in(view, torch.cat(parts))
            mine = index[-1][inside].unique().tolist() if storage[0] == view.storage else []
            places |= {*mine} if FEW * len(mine) <= view.shape[-1] else set()
        if 0 < 2 * len(places) < (1, *view.shape)[-1]:
            yield {name: f"{PEAKS}:{';'.join(map(str, sorted(places)))}"}


@functools.lru_cache(maxsize=256)
def _loads_twice(ttir: str) -> bool:
    """Whether two loads of a kernel take floats from one of its arguments."""
    flow, arguments = DefUse(parsed(ttir).functions.values()), {*parsed(ttir).entry.arguments}
    loads = (op for op in flow.ops if op.name in LOADS and op.result_types[0].element in FLOAT)
    taken = [name for op in loads for name in flow.behind(op.operands[:1]) & arguments]
    return len(taken) > len({*taken})


@dataclass
class _Loads(Observer):
    """Keeps the elements that each load takes, by the storage and the place of the load."""

    found: dict[tuple[int, ...], list[torch.Tensor]] = field(default_factory=dict)

    def launch(self, context: LaunchContext, memory: Memory) -> Observe | None:
        def look(frame: Frame, op: Op) -> None:
            seen = touched(frame, op, memory) if op.name in LOADS else None
            if seen is not None and seen.storage is not None:
                key = seen.storage.id, context.launch, op.number
                self.found.setdefault(key, []).append(seen.index[seen.active].unique())

        return look


@dataclass
class _Sizes(Observer):
    """Keeps what meets each border, as a multiple of it."""

    wanted: Sequence[Sequence[Border]]
    found: dict[_Place, list[torch.Tensor]] = field(default_factory=dict)

    def launch(self, context: LaunchContext, memory: Memory) -> Observe | None:
        mine: dict[int, list[Border]] = {}
        for one in self.wanted[context.launch]:
            mine.setdefault(one.op, []).append(one)

        def look(frame: Frame, op: Op) -> None:
            for one in mine.get(op.number, ()):
                ratios = _value(frame, one, one.met) / _value(frame, one, one.size).abs()
                ratios = ratios[(ratios != 0) & ratios.isfinite() & (ratios.abs() != 1)]
                if ratios.numel():
                    self.found.setdefault((context.launch, one), []).append(ratios)

        return look if mine else None


def _value(frame: Frame, border: Border, value: float | str) -> torch.Tensor:
    if not isinstance(value, str):
        return torch.tensor(value, dtype=torch.float64)
    return dense(frame.values[value], torch.float64, frame.shape(border.type))
