"""Constants say where to look: numbers of a kernel that its values meet in a comparison, a choice, an extreme or a sum.

On the other side of such a number (-1e9 for what is masked, 88 before exp) a program may be another one. Which values
of a call's tensors lead there is seen by running it: one tensor is made larger or smaller, with values of one sign,
until what meets the number is mostly beyond it.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gradekit.engine import Observer
from gradekit.engine.def_use import LOADS, MOVED, DefUse
from gradekit.engine.frame import Frame, LaunchContext, Observe
from gradekit.engine.kernel_facts import parsed
from gradekit.engine.memory import Memory
from gradekit.engine.ttir import Op, Type
from gradekit.engine.values import FLOAT, dense
from gradekit.exact.trial import NOT_TRIED, ExactCall, run_exactly
from gradekit.inputs.value_kinds import POSITIVE, SCALED
from gradekit.program import Launch, run_steps

MOST = 4
"""Numbers of one program that are looked at, the largest first."""
BEYOND = POSITIVE[1] / POSITIVE[0]
"""How many times as large as the number the largest values are then, or as small the smallest: so all are beyond it."""
_MEETING = {
    "arith.cmpf", "arith.select", "arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf", "arith.addf",
    "arith.subf", "tt.clampf",
}  # fmt: skip
_SAME = {*MOVED, "arith.extf", "arith.truncf", "tt.fp_to_fp"}


@dataclass(frozen=True)
class Threshold:
    """The operation `op` of a kernel in which the value `met` meets the finite `number`, which is not 0."""

    op: int
    met: str
    type: Type
    number: float


@functools.lru_cache(maxsize=256)
def thresholds(ttir: str) -> tuple[Threshold, ...]:
    """The thresholds in a kernel's text."""
    flow = DefUse(parsed(ttir).functions.values())
    return tuple(one for op in flow.ops for one in _of(flow, op) if one.number and math.isfinite(one.number))


def _of(flow: DefUse, op: Op) -> Iterator[Threshold]:
    typed = [(n, t) for n, t in zip(op.operands, op.operand_types, strict=True) if t.element in FLOAT]
    numbers = [number for name, _ in typed if (number := _number(flow, name)) is not None]
    if op.name in LOADS:
        others = [(name, type) for name, type in zip(op.results, op.result_types, strict=True) if type.element in FLOAT]
    else:
        others = [each for each in typed if _number(flow, each[0]) is None] if op.name in _MEETING else []
    for name, type in others[:1]:
        yield from (Threshold(op.number, name, type, number) for number in numbers)


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


def rows_beyond(call: ExactCall, free: Sequence[str], most: float) -> Iterator[dict[str, str]]:
    """Kinds of values, by the names of tensors, that take what the call computes beyond its numbers. Tensors in `free`
    may have any values, of absolute size up to `most`."""
    launches = (step for step in run_steps(call.program.steps, call.option) if isinstance(step, Launch))
    wanted = [thresholds(call.program.kernels[step.kernel].unaligned) for step in launches]
    if not free or not any(wanted):
        return
    sizes = functools.lru_cache(lambda name, scale: _sizes(call, wanted, _row(free, name, scale)))
    before, tried = sizes("", 1.0), set[float]()
    for one in sorted(before, key=lambda one: -abs(one[1].number)):
        number, size = abs(one[1].number), before[one]
        if number in tried or len(tried) == MOST:
            continue
        tried.add(number)
        up = number > size
        factor = 2.0 ** math.ceil(math.log2(BEYOND * number / size if up else BEYOND * size / number))
        scales = sorted({most, min(factor, most)}) if up else [1 / factor]
        for sign in (1, -1)[: 1 + up]:
            farthest = (name for name in free if (sizes(name, sign * scales[-1]).get(one, size) > number) is up)
            for name, scale in itertools.product(itertools.islice(farthest, 1), scales):
                if (sizes(name, sign * scale).get(one, size) > number) is up:
                    yield _row(free, name, sign * scale)


def _row(free: Sequence[str], name: str, scale: float) -> dict[str, str]:
    return {one: f"{SCALED}:{scale if one == name else 1:.17g}" for one in free}


_Place = tuple[int, Threshold]
"""The number of a launch, and a threshold of its kernel."""


def _sizes(call: ExactCall, wanted: Sequence[Sequence[Threshold]], row: Mapping[str, str]) -> Mapping[_Place, float]:
    """The usual size of what meets each number."""
    observer = _Sizes(wanted)
    specs = [
        replace(spec, profile=row.get(name, spec.profile)) for spec, name in zip(call.specs, call.names, strict=True)
    ]
    try:
        run_exactly(call, specs, observer)
    except NOT_TRIED:
        return {}
    return {place: statistics.median(sizes) for place, sizes in observer.found.items()}


@dataclass
class _Sizes(Observer):
    wanted: Sequence[Sequence[Threshold]]
    found: dict[_Place, list[float]] = field(default_factory=dict)

    def launch(self, context: LaunchContext, memory: Memory) -> Observe | None:
        mine: dict[int, list[Threshold]] = {}
        for one in self.wanted[context.launch]:
            mine.setdefault(one.op, []).append(one)

        def look(frame: Frame, op: Op) -> None:
            for one in mine.get(op.number, ()):
                sizes = dense(frame.values[one.met], FLOAT[one.type.element], frame.shape(one.type)).abs().flatten()
                sizes = sizes[(sizes > 0) & sizes.isfinite() & (sizes != abs(one.number))]
                if sizes.numel():
                    self.found.setdefault((context.launch, one), []).append(float(sizes.median()))

        return look if mine else None
