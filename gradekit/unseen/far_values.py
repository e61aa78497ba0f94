"""Values for long dimensions that make what a kernel computes large: sums, maxima, counts and products that it compares
with a number beyond all that the examples have made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradekit.engine.branch_coverage import CLAMP
from gradekit.inputs.draws import Draws
from gradekit.unseen.further import values_of, widest
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.missing_ways import COMPARING, Missing
from gradekit.unseen.special_values import far_kinds

LEAST = 2.0
"""Numbers nearer to zero than this are reached, or passed, by values of any kind."""


def far_values(draws: Draws, forms: Sequence[TracedForm], missing: Sequence[Missing]) -> list[Mapping[str, Any]]:
    """What picks such values in calls of a check, one choice for each kind; none where no comparison that is `missing`
    asks for them."""
    form = widest(draws, forms)
    if form is None or not any(map(_is_far, missing)):
        return []
    dtypes = {tensor.name: view.dtype for tensor, view in zip(draws.tensors, form.views, strict=False)}
    return [values_of(draws, kinds) for kinds in far_kinds(draws, dtypes)]


def _is_far(one: Missing) -> bool:
    """Whether it compares what was computed from loaded elements with a number away from zero."""
    op = one.text.ops[one.number]
    if op.name not in (*COMPARING, CLAMP, "arith.cmpi"):
        return False
    numbers = [n for n in map(one.text.number, op.operands) if n is not None]
    return any(abs(n) > LEAST for n in numbers) and (one.is_of_many if op.name == "arith.cmpi" else one.is_computed)
