"""Floats at which a kernel's comparisons with constants turn: one number of a call is moved until a comparison goes the
other way in another lane, and the calls on both sides are made, as near to each other as floats are.

What is right for all numbers beyond a constant may be wrong just before it, as a sum that is rescaled only where a
maximum has grown by much is: in few bits, beside large values, or where there are many such numbers.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from gradekit.engine import executor
from gradekit.engine.budget import Budget, OverBudget, Unsupported
from gradekit.engine.host import ForbiddenOp
from gradekit.engine.ttir_locations import line_of
from gradekit.inputs.draws import Call, Draws
from gradekit.inputs.spec import Input
from gradekit.inputs.value_kinds import BEGUN, POSITIVE, SCALED
from gradekit.plugin.profiles import Limit
from gradekit.program import Launch, Program, Scalar, run_steps
from gradekit.subject.call_spec import call_spec
from gradekit.unseen.further import FurtherCall, Purpose, fits, made, rank_of, values_of
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.kernel_branches import KernelText, kernel_text
from gradekit.unseen.kernel_inputs import PATH, plain_tensors, range_of
from gradekit.unseen.scope import CallScope

if TYPE_CHECKING:
    from gradekit.engine.frame import Frame, LaunchContext, Observe
    from gradekit.engine.memory import Memory
    from gradekit.engine.ttir import Op
    from gradekit.subject.subject import Subject

Comparison = tuple[str, int, int | None]
"""The kernel's name, the number of the operation and its line."""


@dataclass(frozen=True, eq=False)
class Knob:
    """A number of calls like `form` with these `sizes`, from `least` to `most`, as floats of `dtype` are: the scalar
    `name`, or what the values of the tensor `name` are made of, as `kind` has it."""

    name: str
    form: TracedForm
    sizes: Mapping[str, int]
    least: float
    most: float
    kind: str = ""
    dtype: torch.dtype = torch.float32

    def turn(self, seen: Callable[[float], int | None]) -> tuple[float, ...]:
        """Two numbers next to each other for which something else is `seen`; () where it is the same at both ends."""
        least, most = self.least, self.most
        first, last = seen(least), seen(most)
        for _ in range(Limit.HALVINGS if None not in (first, last) and first != last else 0):
            middle = float(torch.tensor((least + most) / 2, dtype=self.dtype))
            if middle in (least, most):
                return least, most
            least, most = (middle, most) if seen(middle) == first else (least, middle)
        return ()

    def call(self, draws: Draws, number: float, beside: Mapping[str, str]) -> Call:
        """That with this number, and these kinds of values of other tensors."""
        places = zip(draws.entry.arguments, self.form.args, strict=False)
        scalars = {argument.name: given.value for argument, given in places if isinstance(given, Scalar)}
        scalars = {name: value for name, value in scalars.items() if isinstance(value, (bool, float))}
        value = 2.0**number if self.kind == SCALED else number
        own = {self.name: f"{self.kind}:{value!r}"} if self.kind else {}
        picks = {**scalars, **values_of(draws, {**beside, **own}), **({} if self.kind else {self.name: value})}
        return made(draws, self.form, self.sizes, 0, picks)


@dataclass
class TrueLanes:
    """An observer: in how many lanes each comparison with a constant is true, in all turns of loops together."""

    program: Program
    found: Counter[Comparison] = field(default_factory=Counter)

    def launch(self, context: LaunchContext, memory: Memory) -> Observe | None:
        """A launch begins."""
        if context.launch == 0:
            self.found.clear()
        launches = [step for step in run_steps(self.program.steps, 0) if isinstance(step, Launch)]
        text = _text(self.program, launches[context.launch].kernel)
        return functools.partial(self._after, text) if text.at_constants else None

    def _after(self, text: KernelText, frame: Frame, op: Op) -> None:
        if op.number in text.at_constants:
            true = int(torch.as_tensor(frame.values[op.results[0]]).sum())
            self.found[text.name, op.number, line_of(op.location, text.path)] += true


class FloatEdges:
    """Makes such calls of one check, as far as its work goes."""

    def __init__(self, subject: Subject, draws: Draws) -> None:
        self._subject, self._draws, self._left = subject, draws, Limit.EDGE_WORK
        self._programs, self._plain = dict[str, Program](), plain_tensors(draws)

    def calls(self, forms: Iterable[TracedForm]) -> Iterator[FurtherCall]:
        """Those for the first form with which a knob turns a comparison, for each knob and group of dtypes."""
        mine, knobs = dict[tuple[str, ...], list[TracedForm]](), list[Knob]()
        for form in sorted(forms, key=lambda form: form.elements):
            program = self._subject.program_of(form.key) if fits(self._draws, form) and form.elements else None
            if program is not None and any(_text(program, kernel).at_constants for kernel in program.kernels):
                mine.setdefault(tuple(view.dtype for view in form.views), []).append(form)
        for known in mine.values():
            longest = sorted(known, key=lambda form: max(size for view in form.views for size in view.shape))
            knobs += [knob for form in longest[-Limit.EDGE_FORMS :] for knob in self._knobs(form)]
            knobs += self._of_rows(known[0])
        turned = set[Hashable]()
        for knob in sorted(knobs, key=lambda knob: knob.kind):
            yield from self._at(knob, turned)

    def _knobs(self, form: TracedForm) -> Iterator[Knob]:
        """Scalars, and of each tensor how large its values are."""
        own = CallScope(self._draws, rank_of(self._draws, form), True).sizes_of(form)
        for one in self._draws.entry.scalars:
            if one.type == "float" and one.is_free and one.name in dict(self._draws.scalars):
                yield Knob(one.name, form, own, float(one.least or 0), float(one.most or 0))
        for name, (least, most) in self._ends(form).items():
            yield Knob(name, form, own, -24.0, math.log2(2 * max(-least, most, 1) / POSITIVE[1]), SCALED)

    def _of_rows(self, form: TracedForm) -> Iterator[Knob]:
        """What a long row of a tensor is made of behind its first value, or behind some tiles."""
        scope = CallScope(self._draws, rank_of(self._draws, form), True, Limit.FAR_SIZES)
        tensors = {tensor.name: (tensor, view) for tensor, view in zip(self._draws.tensors, form.views, strict=False)}
        for name, ends in self._ends(form).items():
            tensor, view = tensors[name]
            long = {**dict.fromkeys(scope.names, 1), **dict.fromkeys(tensor.shape[-1:], Limit.EDGE_ROW)}
            rows = {one: scope.nearest(one, long[one]) for one in scope.names}
            for count, end in itertools.product((1, Limit.SOME_TILES), ends):
                least, most = sorted((0.0, 2 * end))
                kind, dtype = f"{BEGUN}:{count}:0.0", getattr(torch, view.dtype)
                yield Knob(name, form, rows, least, most, kind, dtype)

    def _ends(self, form: TracedForm) -> dict[str, tuple[float, float]]:
        """The least and the largest values that the check's kinds have of each tensor of floats."""
        views = zip(self._draws.tensors, form.views, strict=False)
        mine = ((one.name, view.dtype) for one, view in views if one.name in self._plain and "float" in view.dtype)
        return {name: range_of(self._plain[name], dtype)[:2] for name, dtype in mine}

    def _at(self, knob: Knob, turned: set[Hashable]) -> Iterator[FurtherCall]:
        seen = functools.cache(lambda number: self._true_lanes(knob, number))
        for place in seen(knob.most):
            key = knob.name, knob.kind, knob.form.views[0].dtype, place
            sides = () if key in turned else knob.turn(functools.partial(lambda place, at: seen(at).get(place), place))
            turned |= {key} if sides else set()
            large = {name: f"{SCALED}:{torch.finfo(dtype).max ** 0.75!r}" for name, dtype in self._linear(knob)}
            for number, beside in itertools.product(sides, ({}, large) if large else ({},)):
                why = f"{knob.name} has values at which a comparison in the kernel changes"
                yield FurtherCall(knob.call(self._draws, number, beside), why, place[2], Purpose.BESIDE)

    def _linear(self, knob: Knob) -> Iterator[tuple[str, torch.dtype]]:
        """The other tensors in which results are linear, and which so may be large."""
        for tensor, view in zip(self._draws.tensors, knob.form.views, strict=False):
            if tensor.name in self._draws.entry.relations.linear and tensor.name in {*self._plain} - {knob.name}:
                yield tensor.name, getattr(torch, view.dtype)

    def _true_lanes(self, knob: Knob, number: float) -> Counter[Comparison]:
        """For a call with this number, and the dtypes that the check makes of what it draws."""
        dtypes = (view.dtype for view in knob.form.views)
        given = knob.call(self._draws, number, {})
        call = tuple(replace(arg, dtype=next(dtypes)) if isinstance(arg, Input) else arg for arg in given)
        spec = call_spec(knob.form.entry, call, knob.form.wanted)
        if spec.signature not in self._programs:
            self._programs[spec.signature] = self._subject.program_apart(spec.form)
        observer = TrueLanes(self._programs[spec.signature])
        tensors = [arg.tensor() for arg in call if isinstance(arg, Input)]
        budget = Budget(max(self._left, 0))
        allow = self._subject.assignment.allow
        try:
            run = executor.run(observer.program, tensors, allow=allow, budget=budget, observer=observer)
        except (OverBudget, Unsupported, ForbiddenOp):
            self._left = 0
            return Counter()
        self._left -= run.counters.work
        return observer.found


def _text(program: Program, kernel: str) -> KernelText:
    return kernel_text(program.kernels[kernel].name, program.kernels[kernel].unaligned, PATH)
