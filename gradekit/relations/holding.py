"""Whether the relations of a domain hold for a submission: claims for tests, in which
results are held against each other.

Both results may be rounded, each within what the reference of the first call allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradekit.findings import Cause
from gradekit.judge.compare import assert_close
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Reference, Worked
from gradekit.relations.relation import RelatedCall, Relation
from gradekit.subject.runs import Observation
from gradekit.subject.subject import Subject


def assert_relation(
    relation: Relation, call: Callable[..., Observation], args: Sequence[Any], expected: Reference
) -> bool:
    """Raise unless `relation` holds between `call(*args)` and the call that belongs
    to it; whether there is such a call.

    `expected` is what the first call must give: how far it may be off says how far both results may lie apart.

    Raises:
        Failure: broken-relation; or whatever is wrong with one of the calls.
    """
    other = relation.of(args)
    if other is None or not isinstance(expected, Reference):
        return False
    first = call(*args)
    wanted = None if first.substitute else _wanted(other, first.tensor, expected.allowance)
    if wanted is None:
        return False
    related = call(*other.args)
    call(*args)  # again the last that was called: it is remembered, and what a report shows
    assert_same(related, [wanted], Cause.BROKEN_RELATION, other.says)
    return True


def assert_independent(subject: Subject, seen: Observation, expected: Sequence[Reference], times: int = 1) -> None:
    """Raise unless the call of `seen` gives what is `expected` so many `times` more, after all calls in between; if it
    has a backward pass, also with another forward pass before it.

    Raises:
        Failure: depends-on-earlier-calls, or whatever else is wrong with that call.
    """
    for again in filter(None, (subject.again(seen) for _ in range(times))):
        says = f"Called again after other calls, {seen.entry} must give the same result"
        assert_same(again, expected, Cause.DEPENDS_ON_EARLIER_CALLS, says)
    if between := subject.interleaved(seen):
        says = (
            f"With another call of {seen.entry} between this one and its backward pass, the gradients must stay "
            "the same"
        )
        assert_same(between, expected, Cause.DEPENDS_ON_EARLIER_CALLS, says)


def _wanted(other: RelatedCall, result: torch.Tensor, allowance: torch.Tensor) -> Reference | None:
    """What the other call must give, give or take what both results may be off; None where it is beyond the dtype."""
    native = other.expected(result)
    if native.isinf().any() and not result.isinf().any():
        return None
    exact = native.double() if native.is_floating_point() else native
    return reference_of(exact, native, 2 * other.expected(allowance))


def reference_of(exact: torch.Tensor, native: torch.Tensor, allowance: torch.Tensor) -> Reference:
    """What a related call must give, give or take `allowance`."""
    worked = Worked(exact, native, allowance, (), lambda *args: exact, lambda others: exact)
    return Reference(lambda: [worked], 0, None)


def assert_same(seen: Observation, expected: Sequence[Reference], cause: Cause, says: str) -> None:
    """Raise unless a related call gave what is `expected`: where values differ, for this `cause`, with what it `says`.

    Raises:
        Failure: as said.
    """
    try:
        assert_close(seen, expected)
    except Failure as failure:
        said = failure.naming(f"{says}: ")
        blamed = cause if failure.comparison is not None else failure.cause
        raise Failure(blamed, said.message, line=said.line, facts=said.facts) from None
