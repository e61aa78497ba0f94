"""Whether a call of a submission is its reference for all values, and what the engine
says of values that tell them apart.

Formulas accuse nobody (gradekit.formulas): values for which they differ are run and judged as any example is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from gradekit import domain
from gradekit.engine import Unsupported
from gradekit.formulas.both_sides import FormulaCall
from gradekit.formulas.equality import DRAW, DRAWS, ValuePromise, Values
from gradekit.formulas.verdicts import REFUTED, judged
from gradekit.inputs.spec import Input
from gradekit.inputs.value_kinds import with_elements
from gradekit.judge.compare import assert_close
from gradekit.judge.failure import Failure
from gradekit.sandbox import TraceError

if TYPE_CHECKING:
    from gradekit.judge.reference import Asked
    from gradekit.subject.subject import Call, Subject

ANY_NUMBERS = {"normal", "mixed", "integers", "grid"}
"""Kinds of values by which an assignment promises any numbers of usual size."""
AWAY_FROM_ZERO = {"positive", "alternating", "ones"}
FIRST_SEED = 70_000
"""Inputs of other kinds are drawn, with seeds from here on, and never made up."""


class ValueTrial:
    """Compares the formulas of one call with those of its reference, and tries it on values that tell them apart."""

    def __init__(self, subject: Subject, call: Call, asked: Asked) -> None:
        self._subject, self._call, self._asked = subject, call, asked
        self._specs = [arg for arg in call.args if isinstance(arg, Input)]
        self._slots = slots_of(asked.args, self._specs)
        self._tensors = _described(subject, call.entry)
        self._drawn: dict[int, Any] = {}
        self._failure: Failure | None = None

    def verdict(self) -> dict[str, Any]:
        """The verdict, as the report record holds it.

        Raises:
            Failure: the call is wrong for other values.
        """
        assert self._call.observation is not None
        tensors = [spec.tensor() for spec in self._specs]
        call = FormulaCall(self._call.observation.program, tensors, self._subject.assignment.allow)
        reference = (self._asked.function, self._given([spec.tensor() for spec in self._specs]), self._slots)
        found = judged(call, reference, self._promise, self._differs)
        sizes = {self._name(number): list(spec.shape) for number, spec in enumerate(self._specs)}
        data = {"entry": self._call.entry, **found.as_data(), "sizes": sizes}
        if found.verdict == REFUTED and self._failure is not None:
            self._failure.facts["values"] = data
            raise self._failure
        return data

    def _given(self, tensors: Sequence[Any]) -> list[Any]:
        """The reference's arguments with these tensors of the call."""
        return [a if slot is None else tensors[slot] for a, slot in zip(self._asked.args, self._slots, strict=True)]

    def _name(self, number: int) -> str:
        return self._tensors[number].name if number < len(self._tensors) else self._specs[number].name

    # --- what is promised of values ----------------------------------------------------------------------------------

    def _kinds(self, number: int) -> set[str]:
        """The kinds of values that are promised of a tensor; the gradient of a result may be anything."""
        return set(self._tensors[number].values) if number < len(self._tensors) else {"normal"}

    def _is_drawn(self, number: int) -> bool:
        kinds = self._kinds(number)
        return not kinds & ANY_NUMBERS and not kinds <= AWAY_FROM_ZERO

    def _promise(self, name: Any) -> ValuePromise:
        """Of a variable: (storage, element)."""
        number = self._number(name[0])
        dtype = getattr(torch, self._specs[number].dtype)
        if self._is_drawn(number):
            return ValuePromise(dtype, draws=self._draws(number)[:, _places(self._specs[number])[name[1]]])
        kinds = self._kinds(number)
        if kinds & ANY_NUMBERS or not dtype.is_floating_point:
            return ValuePromise(dtype)
        return ValuePromise(dtype, 0.125, 2.0, signed="alternating" in kinds)

    def _number(self, storage: int) -> int:
        """The first tensor argument in a storage of the program."""
        assert self._call.observation is not None
        views = self._call.observation.program.inputs
        return next(number for number, view in enumerate(views) if view.storage == storage)

    def _draws(self, number: int) -> Any:
        """The elements of a tensor in each draw, float64 [DRAWS, elements]."""
        if number not in self._drawn:
            tensors = [self._draw(number, draw).tensor().reshape(-1).double() for draw in range(DRAWS)]
            self._drawn[number] = torch.stack(tensors).numpy()
        return self._drawn[number]

    def _draw(self, number: int, draw: int) -> Input:
        return replace(self._specs[number], seed=FIRST_SEED + len(self._specs) * draw + number)

    # --- trying values -----------------------------------------------------------------------------------------------

    def _differs(self, values: Values) -> bool:
        """Runs and judges the call for these values: wrong ones count, and nothing else that may happen on the way."""
        specs = [self._spec(number, values) for number in range(len(self._specs))]
        queue = iter(specs)
        args = [next(queue) if isinstance(arg, Input) else arg for arg in self._call.args]
        try:
            seen = self._subject.call(self._call.entry, args, self._call.wanted)
            assert_close(seen, self._asked.again(self._given(specs)))
        except Failure as failure:
            if failure.comparison is not None:
                entry = self._call.entry
                self._failure = failure.naming(f"For values at which {entry} is another formula than the reference: ")
        except (TraceError, Unsupported):
            return False
        return self._failure is not None

    def _spec(self, number: int, values: Values) -> Input:
        spec, places = self._specs[number], _places(self._specs[number])
        if self._is_drawn(number):
            return self._draw(number, int(values[DRAW]))
        mine = {
            places[name[1]]: value
            for name, value in values.items()
            if name != DRAW and self._number(name[0]) == number and name[1] in places
        }
        return replace(spec, profile=with_elements(spec.profile, mine)) if mine else spec


def slots_of(args: Sequence[Any], specs: Sequence[Input]) -> list[int | None]:
    """Of each argument of a reference, which of the call's tensors it is."""
    left = list(range(len(specs)))
    slots: list[int | None] = []
    for arg in args:
        same = [n for n in left if isinstance(arg, Input) and specs[n] == arg]
        named = [n for n in same if specs[n].name == arg.name]
        slot = next(iter(named or same), None)
        slots.append(slot)
        left = [n for n in left if n != slot]
    return slots


def _places(spec: Input) -> dict[int, int]:
    """Of each element of a spec's storage, its place in the view, row by row."""
    own = [n if step or n == 0 else 1 for n, step in zip(spec.shape, spec.stride, strict=True)]
    elements = torch.arange(spec.storage_size).as_strided(own, spec.stride, spec.offset)
    return {element: place for place, element in enumerate(elements.reshape(-1).tolist())}


def _described(subject: Subject, name: str) -> list[domain.Tensor]:
    """The tensor arguments of an entry, as the assignment's domain describes them; none where it has no domain."""
    entry = subject.assignment.domain.get(name)
    return [a for a in entry.arguments if isinstance(a, domain.Tensor)] if entry is not None else []
