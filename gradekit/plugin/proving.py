"""What a memory check proves beside its examples: for all sizes that the assignment promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gradekit.findings import Kind
from gradekit.inputs.spec import Input
from gradekit.judge.reference import Asked, Reference
from gradekit.plugin.check_points import claims, worth
from gradekit.plugin.run_state import GradingRun
from gradekit.subject.subject import Call, Subject

MOST_CLAIMS = 60
"""Claims that a report lists for one pass."""


def proofs(item: pytest.Item, run: GradingRun) -> dict[str, Any]:
    """The details of a check that claims clean memory and whose examples have passed; nothing for other checks: that
    every access lies inside its tensor says nothing of what is allocated.

    Raises:
        Failure: something is refuted, and the engine sees it fail.
    """
    subject = run.subject
    wanted = claims(item, "assert_memory_clean") and worth(item).prove and run.profile.name != "quick"
    if subject is None or run.request.options.trivial is not None or not wanted:
        return {}
    from gradekit.prove.prover import CHECK
    from gradekit.subject.entry_proofs import proved

    found, failures = {}, []
    for name, entry in subject.assignment.domain.items():
        if any(form.entry == name and not form.wanted for form in subject.forms.values()):
            one = proved(subject, entry, CHECK)
            data = one.as_data()
            found[name] = data | {"claims": data["claims"][:MOST_CLAIMS]}
            failures += one.failures
    if failures:
        raise failures[0]
    return {"proofs": found} if found else {}


# --- value proofs -----------------------------------------------------------------------------------------------------


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
    return ComparedCalls(run.subject) if run.subject is not None and _is_compared(run, item) else None


def _is_compared(run: GradingRun, item: pytest.Item) -> bool:
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
    floating = any(getattr(arg, "dtype", "").startswith(("float", "bfloat")) for arg in call.args)
    key = call.entry, call.wanted, getattr(asked.function, "__code__", asked.function), floating
    if key in run.values_asked:
        return {}
    run.values_asked.add(key)
    from gradekit.subject.value_trial import ValueTrial

    return {"values": ValueTrial(compared.subject, call, asked).verdict()}


