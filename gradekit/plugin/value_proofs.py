"""What a check of correctness proves beside its examples: that a call computes its reference for all values.

One of the calls that the examples made is taken, the one that is best to look at. Its kernels and its reference are
compared as formulas (gradekit.formulas); values for which these differ are run and judged as any example is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.findings import Kind
from gradekit.plugin.check_points import worth

if TYPE_CHECKING:
    from gradekit.judge.reference import Asked, Reference
    from gradekit.plugin.run_state import GradingRun
    from gradekit.subject.subject import Call, Subject

MOST_ELEMENTS = 160
"""Elements of the largest tensor of a call that is made into formulas."""
USUAL_ELEMENTS = 16
"""As many tell as much as more do, and cost less."""


@dataclass
class ComparedCalls:
    """The call among those of a check that is best made into formulas, and the reference that it was compared with."""

    subject: Subject
    best: tuple[Call, Asked] | None = None
    _rank: tuple[float, ...] = field(default=(math.inf,))

    def __call__(self, actual: Any, wanted: Sequence[Reference]) -> None:
        """Takes note of a result that is right."""
        call = self.subject.calls[-1] if self.subject.calls else None
        asked = wanted[0].asked
        if (
            asked is None
            or call is None
            or call.observation is None
            or any(reference.asked is not asked for reference in wanted)
        ):
            return
        if getattr(actual, "program", None) is not call.observation.program or len(actual.results) != len(wanted):
            return
        if len(wanted) != len(call.observation.program.results):
            return
        rank = _rank(call)
        if rank is not None and rank < self._rank:
            self._rank, self.best = rank, (call, asked)


def _rank(call: Call) -> tuple[float, ...] | None:
    """Small where a call is good to look at; None where it is not to be."""
    from gradekit.inputs.spec import Input

    specs = [arg for arg in call.args if isinstance(arg, Input)]
    largest = max((spec.numel for spec in specs), default=0)
    if not 0 < largest <= MOST_ELEMENTS or min(spec.numel for spec in specs) == 0:
        return None
    plain = all(spec.is_contiguous for spec in specs)
    ones, twos = (sum(size == few for spec in specs for size in spec.shape) for few in (1, 2))
    narrow = any(spec.dtype not in ("float32", "int32") for spec in specs)
    off = math.log2(largest / USUAL_ELEMENTS)
    return (not plain, narrow, ones > 0, max(2 * off, -off) + twos / 4)  # large ones cost more than small ones hide


def compared_calls(item: pytest.Item, run: GradingRun) -> ComparedCalls | None:
    """What is to be told of the results of a check that are right; None where nothing is to be proved of its values."""
    return ComparedCalls(run.subject) if run.subject is not None and _wanted(run, item) else None


def _wanted(run: GradingRun, item: pytest.Item) -> bool:
    mine, options = worth(item), run.request.options
    usual = options.trivial is None and options.inputs is None
    return mine.kind is Kind.CORRECTNESS and mine.prove and run.profile.name != "quick" and usual


def value_proofs(compared: ComparedCalls | None, run: GradingRun) -> dict[str, Any]:
    """The details of a check whose examples have passed.

    Raises:
        Failure: the call is wrong for values at which its formulas differ.
    """
    if compared is None or compared.best is None:
        return {}
    call, asked = compared.best
    key = _question(call, asked)
    if key in run.values_asked:
        return {}
    run.values_asked.add(key)
    from gradekit.subject.value_trial import ValueTrial

    return {"values": ValueTrial(compared.subject, call, asked).verdict()}


def _question(call: Call, asked: Asked) -> Any:
    floating = any(getattr(arg, "dtype", "").startswith(("float", "bfloat")) for arg in call.args)
    return call.entry, call.wanted, getattr(asked.function, "__code__", asked.function), floating
