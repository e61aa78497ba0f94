"""Holds a call in exact arithmetic against its reference in float64, for values at which formulas part.

Exact results may be off by an eighth of what float32 arithmetic excuses at the same values, whatever the inputs' dtype:
a function that is good to float32 is right, and another one is not. Constants are text, rounded to float32: what moving
each of them by CONSTANT would change is excused too, as it is measured.

A program may decide by rounded values (random numbers, a threshold): then it is another one in exact arithmetic, and
its usual results differ from the exact ones by more than the tolerance although they are right. Nothing is compared
with it, and the record says why.
"""

import dataclasses
import functools
import math
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from gradekit.causes import Cause
from gradekit.engine import executor
from gradekit.engine.budget import Budget, OverBudget, Unsupported
from gradekit.engine.def_use import ATOMICS, STORES, DefUse
from gradekit.engine.executor import Setup
from gradekit.engine.host import ForbiddenOp
from gradekit.engine.kernel_facts import every_operation, operations, parsed
from gradekit.engine.memory import anywhere, everywhere, index_of
from gradekit.engine.observer import Observer
from gradekit.engine.ttir_locations import line_of
from gradekit.exact.places import NARROW, RESULTS, RoundingPlace, rounding_places
from gradekit.exact.widening import Exact, NotExact, Place, wide_tensors, widened
from gradekit.inputs.in_words import in_words
from gradekit.inputs.spec import Input
from gradekit.inputs.value_kinds import CHOSEN, FAR, PEAKS
from gradekit.judge.compare import show, wrong_values
from gradekit.judge.comparison import Comparison
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Asked, Reference
from gradekit.program import Program, View

CONSTANT = 2.0**-21  # by how much a constant may be off: float32 rounds to 2**-24, and seven digits are good to 2**-21
EXCUSED = 0.125  # of what float32 arithmetic excuses, this share. A hundred right submissions use a fortieth at most
FLOAT32 = torch.finfo(torch.float32).eps
MOST_BYTES = 1 << 30  # what a run may allocate: four times as much as a usual one, for float64 is so much wider
ROUNDED = "it decides by rounded values"


@dataclasses.dataclass(frozen=True)
class ExactCall:
    """A call whose formula is looked at: its program, its arguments as specs and numbers, what its reference was asked
    for, which results of the program are looked at, and which of the reference's they are (None: the same, where there
    are as many).

    `slots` says of each argument of the reference which tensor of the call it is; `allowed` which uses of rounded
    values (gradekit.exact.places) the assignment allows, None where it does not say; `names` what the tensors are
    called. Of a `backward` pass, the last of them is the gradient of the result. Calls of equal `content` are equal.
    """

    program: Program
    args: Sequence[Any]
    asked: Asked
    slots: Sequence[int | None]
    parts: Sequence[tuple[int, int | None]]
    allow: Collection[str]
    allowed: Collection[str] | None = None
    names: Sequence[str] = ()
    backward: bool = False
    option: int = 0
    work: int = 200_000_000
    content: Hashable = None

    @property
    def specs(self) -> list[Input]:
        """Its tensors."""
        return [arg for arg in self.args if isinstance(arg, Input)]

    @property
    def dtype(self) -> torch.dtype:
        """The narrowest float among its tensors."""
        floats = [d for spec in self.specs if (d := getattr(torch, spec.dtype)).is_floating_point]
        return max(floats, key=lambda dtype: torch.finfo(dtype).eps, default=torch.float32)

    @functools.cached_property
    def misused(self) -> list[RoundingPlace]:
        """The places that use what they round as is not allowed, or round to less than the inputs have."""
        if self.allowed is None:
            return []
        every = rounding_places(self.program, self.specs[-1] if self.backward else None)
        is_narrow = lambda place: torch.finfo(getattr(torch, place.dtype)).eps > torch.finfo(self.dtype).eps
        return [place for place in every if place.use not in (RESULTS, *self.allowed) or is_narrow(place)]


@dataclasses.dataclass(frozen=True)
class Seen:
    """What a trial has shown: why it shows nothing, or the largest error relative to the largest result."""

    why_not: str = ""
    off: float = 0.0


NOT_TRIED = (NotExact, Unsupported, ForbiddenOp, OverBudget)

Outcome = Seen | Failure  # of one result of a call: what a trial has shown of it, or why it is wrong


def tried(call: ExactCall, specs: Sequence[Input]) -> list[Outcome]:
    """Holds each of the call's `parts` against its reference, with these tensors; at far values, as usual too."""
    trial = _Trial(call, specs)
    return [trial.outcome(*part) for part in call.parts]


def run_exactly(call: ExactCall, specs: Sequence[Input], observer: Observer) -> None:
    """Runs the call, with these tensors, in exact arithmetic under an observer; raises what is in NOT_TRIED."""
    _run(call, widened(call.program), wide_tensors([spec.tensor() for spec in specs]), observer)


def _run(call: ExactCall, exact: Exact, tensors: Sequence[Tensor], observer: Observer | None = None) -> list[Any]:
    budget = Budget(call.work, MOST_BYTES)
    setup = Setup(exact.program, tensors, call.option, call.allow, observer=observer, reader=exact.reader)
    return executor.run_setup(setup, budget).results


class _Trial:
    def __init__(self, call: ExactCall, specs: Sequence[Input]) -> None:
        self.call, self.specs = call, specs
        self.far = any(spec.profile.partition(":")[0] in (FAR, CHOSEN, PEAKS) for spec in specs)
        self.tensors = [spec.tensor() for spec in specs]
        self.wide = wide_tensors(self.tensors)
        self._rounded: dict[RoundingPlace, list[Any]] = {}

    def outcome(self, part: int, place: int | None) -> Outcome:
        try:
            place = self._same(part) if place is None else place
            seen = self._seen(part, place)
            if self.far:
                self._hold_usual(part, place)
        except Failure as failure:
            return failure
        except NOT_TRIED as error:
            return Seen(str(error))
        return seen

    def _seen(self, part: int, place: int) -> Seen:
        try:
            return Seen(off=self._held(part, place))
        except NOT_TRIED as error:
            return Seen(str(error))

    def _same(self, part: int) -> int:
        if len(self._in_float32) != len(self.call.parts):
            raise NotExact("the reference has other results")
        return part

    def _held(self, part: int, place: int) -> float:
        """How far the result is off, as a share of the largest."""
        expected, exact = self._in_float32[place], self._exact[part]
        if not expected.native.is_floating_point():
            return 0.0
        _same_form(exact, expected)
        error, known = (exact.double() - expected.exact).abs(), expected.exact.isfinite() & expected.native.isfinite()
        wrong = known & ~(error <= (bound := expected.surely * EXCUSED))
        if bool(wrong.any()):
            wrong &= ~(error <= (bound := expected.allowance * EXCUSED))
        if bool(wrong.any()):
            wrong &= ~(error <= bound + self._of_constants(part))
        if bool(wrong.any()):
            self._hold_formula(part, place, wrong & self._own[place].native.isfinite())
        self._hold_roundings(part, place)
        if not anywhere(known):
            return 0.0
        which = ... if everywhere(known) else known
        size = torch.maximum(expected.exact[which].abs().amax(), bound[which].amax() / (8 * FLOAT32)).clamp(min=1e-300)
        return float(error[which].amax() / size)

    def _hold_formula(self, part: int, place: int, wrong: Tensor) -> None:
        """Raises Failure where what is `wrong` in exact arithmetic is wrong or as far off in the program's own, too."""
        expected, exact, usual = self._own[place], self._exact[part], self._usual[part]
        _same_form(usual, expected)
        alike = (usual.double() - exact).abs() <= expected.allowance
        certain = wrong & (Comparison(usual, expected).wrong | alike)
        if bool(certain.any()):
            if not everywhere(exact[certain].isfinite()):  # out of the range of floats: no matter of formulas
                self._hold_usual(part, place)
            raise self._of_formula(part, expected, exact, certain, (exact - expected.exact).abs())
        if bool(wrong.any()):
            raise NotExact(ROUNDED)

    def _hold_usual(self, part: int, place: int) -> None:
        """Raises Failure where what the program itself gives is wrong, and torch's own result is not."""
        expected, usual = self._own[place], self._usual[part]
        _same_form(usual, expected)
        comparison = Comparison(usual, expected)
        if comparison.wrong_count and bool((comparison.wrong & self._known(place)).any()):
            raise wrong_values(comparison, "the result").naming(f"{self._values[:1].upper()}{self._values[1:]}: ")

    # --- runs --------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def exact(self) -> Exact:
        """The program with every float as float64; raises NotExact."""
        return widened(self.call.program)

    @functools.cached_property
    def _exact(self) -> list[Any]:
        return _run(self.call, self.exact, self.wide)

    @functools.cached_property
    def _usual(self) -> list[Any]:
        call, budget = self.call, Budget(self.call.work, MOST_BYTES)
        ran = executor.run(call.program, self.tensors, option=call.option, allow=call.allow, budget=budget)
        if ran.findings:
            raise NotExact("memory goes wrong for these values")
        return ran.results

    # --- what is expected --------------------------------------------------------------------------------------------

    def _given(self, tensors: Sequence[Any]) -> list[Any]:
        pairs = zip(self.call.asked.args, self.call.slots, strict=True)
        return [a if slot is None else tensors[slot] for a, slot in pairs]

    @functools.cached_property
    def _own(self) -> Sequence[Reference]:
        """At the inputs' own dtype."""
        return self.call.asked.again(self._given(self.specs))

    @functools.cached_property
    def _in_float32(self) -> Sequence[Reference]:
        """The same values as float32, where nothing may round to less than that."""
        single = [tensor.float() if tensor.is_floating_point() else tensor for tensor in self.tensors]
        asked = dataclasses.replace(self.call.asked, stay=True)
        return asked.again(self._given(single), input_precision="ieee", terms=1)

    def _of_constants(self, part: int) -> Tensor:
        """What moving each constant a little would change, all together."""
        moved = torch.zeros_like(self._exact[part])
        for place in _constants(self.call.program):
            other = _run(self.call, self.exact.with_constant(place, CONSTANT), self.wide)[part]
            moved += (other - self._exact[part]).abs()
        return moved.nan_to_num(0.0)

    # --- roundings ---------------------------------------------------------------------------------------------------

    def _hold_roundings(self, part: int, place: int) -> None:
        """Raises Failure where one place that may not round moves the results by more than float32 arithmetic may."""
        for rounding in self.call.misused:
            if rounding not in self._rounded:
                self._rounded[rounding] = _run(self.call, self.exact.rounding_at(rounding), self.wide)
            result, allowance = self._rounded[rounding][part], self._in_float32[place].allowance
            moved = (result - self._exact[part]).abs()
            wrong = self._known(place) & (moved > allowance)
            once = self._exact[part].to(self._own[place].native.dtype)  # what the dtype of the result makes of it
            wrong &= (result - once.double()).abs() > allowance
            if bool(wrong.any()):
                raise self._of_rounding(rounding, self._own[place], wrong, moved)

    def _known(self, place: int) -> Tensor:
        return self._own[place].exact.isfinite() & self._own[place].native.isfinite()

    # --- words -------------------------------------------------------------------------------------------------------

    def _of_formula(self, part: int, expected: Reference, exact: Tensor, wrong: Tensor, error: Tensor) -> Failure:
        worst = _place(torch.where(wrong, error / self._scale(expected), -1.0))
        line = _last_store(self.call.program, self.call.program.results[part])
        facts = {"formula": {"got": show(exact[worst]), "expected": show(expected.exact[worst]), "at": list(worst)}}
        place = f" at {list(worst)}" if worst else ""
        message = (
            f"Computed without any rounding, the result{place} is "
            f"{exact[worst]:.10g}, and must be {expected.exact[worst]:.10g}, {self._values}."
        ) + (f" Line {line} stores it." if line else "")
        return Failure(Cause.WRONG_FORMULA, message, line=line, facts=facts)

    def _of_rounding(self, place: RoundingPlace, expected: Reference, wrong: Tensor, moved: Tensor) -> Failure:
        worst = _place(torch.where(wrong, moved / self._scale(expected), -1.0))
        line = f"Line {place.line}" if place.line else "The kernel"
        where = f" at {list(worst)}" if worst else ""
        message = (
            f"{line} rounds to {place.dtype} on the way: that alone moves the result{where} by {show(moved[worst])}, "
            f"where {show(expected.exact[worst])} is expected {self._values}."
        )
        facts = {"rounding": {"line": place.line, "dtype": place.dtype, "use": place.use, "moved": show(moved[worst])}}
        return Failure(Cause.LOW_PRECISION, message, line=place.line, facts=facts)

    @staticmethod
    def _scale(expected: Reference) -> Tensor:
        """What an error is compared with to find the worst: elements that are nearly 0 show little."""
        known = expected.exact.abs().nan_to_num(0.0, 0.0, 0.0)
        return known + known.mean() + expected.allowance + torch.finfo(torch.float64).tiny

    @property
    def _values(self) -> str:
        """The tensors, as a sentence names them."""
        named = zip(self.call.names, self.specs, strict=True)
        floats = [(name, spec) for name, spec in named if spec.dtype.startswith(("float", "bfloat"))]
        return "with " + ", ".join(
            f"{name} {spec.dtype} {list(spec.shape)}"
            + (f" ({in_words(spec.profile)})" if spec.profile != "normal" else "")
            for name, spec in floats
        )


def _same_form(result: Any, expected: Reference) -> None:
    if not isinstance(result, Tensor) or result.shape != expected.native.shape:
        raise NotExact("its results have another form")


def _place(values: Tensor) -> tuple[int, ...]:
    return index_of(int(values.flatten().argmax()), values.shape)


@functools.lru_cache(maxsize=256)
def _inexact(ttir: str) -> tuple[Place, ...]:
    """The constants of a kernel that a dtype may have rounded: not those of few bits, such as 0.5."""
    ops = every_operation(parsed(ttir))
    floats = (op for op in ops if op.name == "arith.constant" and op.result_types[0].element in (*NARROW, "f32"))
    return tuple((ttir, op.number) for op in floats if not _has_few_bits(op.attributes["value"]))


def _has_few_bits(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_has_few_bits, value))
    number = float(value)
    return not math.isfinite(number) or (math.frexp(number)[0] * 256).is_integer()


def _constants(program: Program) -> list[Place]:
    texts = dict.fromkeys(kernel.unaligned for kernel in program.kernels.values())
    return [place for ttir in texts for place in _inexact(ttir)]


def _last_store(program: Program, result: Any) -> int | None:
    """The line of the last store into a result; of the last store of all, where none goes straight into it."""
    lines = list[int | None]()
    for launch in reversed(list(program.launches())):
        entry = parsed(program.kernels[launch.kernel].unaligned).entry
        flow, given = DefUse([entry]), dict(zip(entry.arguments, launch.args, strict=False))
        for op in [op for op in operations(entry.body) if op.name in STORES or op.name in ATOMICS][::-1]:
            lines.append(line_of(op.location, program.path))
            views = map(given.get, flow.behind(op.operands[:1], sources=flow.pointed))
            if any(isinstance(one, View) and one.storage == getattr(result, "storage", None) for one in views):
                return lines[-1]
    return next((line for line in lines if line is not None), None)
