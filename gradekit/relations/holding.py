"""Whether the relations of a domain hold for a submission, and whether it may be called in other ways: claims for
tests, in which results are compared with each other.

    forward     under no_grad, in inference mode
    backward    for each of the inputs that want a gradient alone, and in pairs; twice in one graph; of inputs that are
                views of leaves, or results of operations; of a gradient that is larger by a factor, as where a loss is
                scaled so that gradients of half precision do not vanish

Both results may be rounded, each within what the reference of the first call allows.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradekit.findings import Cause
from gradekit.inputs.spec import laid_out_as, values_of
from gradekit.judge.compare import assert_close, telling
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Reference, Worked
from gradekit.relations.relation import RelatedCall, Relation
from gradekit.sandbox import TraceError
from gradekit.subject.runs import Observation
from gradekit.subject.subject import Subject, part_of


def assert_relation(
    relation: Relation, call: Callable[..., Observation], args: Sequence[Any], expected: Reference
) -> bool:
    """Raise Failure unless `relation` holds between `call(*args)`, which gives what is `expected`, and the call that
    belongs to it; whether there is one. How far the first may be off says how far both may lie apart."""
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


def assert_independent(
    subject: Subject, seen: Observation, expected: Sequence[Reference], times: int = 1, turn: int = 0
) -> None:
    """Raise Failure unless the call of `seen` gives what is `expected` so many `times` more, after all calls in
    between, and in a backward pass with another forward pass before it, of which one number is another, in `turn`."""
    for again in filter(None, (subject.again(seen) for _ in range(times))):
        assert_same(again, expected, Cause.DEPENDS_ON_EARLIER_CALLS, CALLED_AGAIN.format(seen.entry))
    if between := subject.interleaved(seen, turn):
        says = (
            f"With another call of {seen.entry} between this one and its backward pass, the gradients must stay "
            "the same"
        )
        assert_same(between, expected, Cause.DEPENDS_ON_EARLIER_CALLS, says)


CALLED_AGAIN = "Called again after other calls, {} must give the same result"
"""What must hold of each entry, as the beginning of a sentence."""


def assert_computes_anew(subject: Subject, seen: Observation, expected: Sequence[Reference]) -> None:
    """Raise unless the call of `seen` gives what is `expected` with tensors that had other values in a call before.
    These were made up for each tensor by itself: what goes wrong in memory with them is nobody's fault. Raises Failure
    (depends-on-earlier-calls)."""
    says = f"Called again with the same tensors, whose values were changed in place, {seen.entry} must compute anew"
    try:
        assert_same(subject.changed_in_place(seen), expected, Cause.DEPENDS_ON_EARLIER_CALLS, says)
    except Failure as failure:
        if failure.cause is Cause.DEPENDS_ON_EARLIER_CALLS:
            raise


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
    """Raise Failure unless a related call gave what is `expected`, with this `cause` and what it `says`."""
    try:
        with telling(lambda actual, wanted: None):  # it may have more inputs than a call that is right
            assert_close(seen, expected)
    except Failure as failure:
        said = failure.naming(f"{says}: ")
        blamed = cause if failure.comparison is not None else failure.cause
        raise Failure(blamed, said.message, line=said.line, facts=said.facts) from None


@dataclass(frozen=True)
class Way:
    """A way of calling by its `name` in `gradekit.tracer.trace`, what `says` it, and whose gradients are `wanted`."""

    name: str
    says: str
    wanted: tuple[int, ...] = ()


FORWARD = (
    Way("no gradients", "Under torch.no_grad()"),
    Way("inference", "In torch.inference_mode()"),
)
TWICE = "backward twice"
BACKWARD = (
    Way(TWICE, "In a second backward pass of one graph (retain_graph=True)"),
    Way("views", "Where the inputs are views of other tensors"),
    Way("results", "Where the inputs are results of other operations"),
)


FACTOR = 2.0**17
"""A power of two that float16 does not hold. Gradients are linear: they grow by it, roundings too."""


def ways_of(seen: Observation, names: Sequence[str]) -> Iterator[Way]:
    """The ways in which the call of `seen` can be made too; `names` are those of its arguments."""
    if not seen.wanted:
        yield from FORWARD
        return
    yield from (Way(way.name, way.says, seen.wanted) for way in BACKWARD)
    looked_at = None if seen.part is None else seen.wanted[seen.part]
    for size in (1, 2):
        for some in itertools.combinations(seen.wanted, size):
            if len(some) < len(seen.wanted) and looked_at in (None, *some):
                which = " and ".join(names[position] for position in some)
                yield Way("", f"Where {which} alone need{'s' * (size == 1)} a gradient", some)


def in_one_memory(
    seen: Observation, expected: Sequence[Reference], one: int, other: int
) -> tuple[Observation, list[Reference]] | None:
    """The call of `seen` whose two arguments at these places are views of one memory (each a leaf of its own where both
    need gradients), and what is expected of it; None where they have different shapes, or the reference other inputs.
    Values that a check has chosen for one of them say nothing of what rounding does where the other has them: so these
    are normal numbers."""
    first, second = seen.inputs[one], seen.inputs[other]
    asked = expected[0].asked
    kinds = {getattr(arg, "profile", "") for arg in (first, second)}
    if kinds != {"normal"} or first.shape != second.shape or asked is None:
        return None
    if sum(arg is second for arg in asked.args) != 1:
        return None
    inputs, args = ([first if arg is second else arg for arg in each] for each in (seen.inputs, asked.args))
    answers = asked.again(args)
    return replace(seen, inputs=tuple(inputs)), [answers[reference.place] for reference in expected]


def assert_called(calls: Subject, seen: Observation, expected: Sequence[Reference], way: Way) -> None:
    """Raise Failure unless the call of `seen`, made in this way, gives what is `expected` of it."""
    what = "gradient" if seen.wanted else "result"
    says = f"{way.says}, the {what} must be the same"
    try:
        made = calls.in_way(seen, way.name, way.wanted)
    except TraceError as error:
        raise Failure(error.cause, f"{says}: {error.message}", line=error.line) from None
    except Failure as failure:
        raise failure.naming(f"{says}: ") from None
    wanted = list(expected)
    if seen.part is not None:
        made = part_of(made, way.wanted.index(seen.wanted[seen.part]))
    elif seen.wanted:
        wanted = [expected[seen.wanted.index(position)] for position in way.wanted]
    assert_same(made, wanted, Cause.BROKEN_RELATION, says)


def assert_scales(calls: Subject, seen: Observation, expected: Sequence[Reference]) -> bool:
    """Raise unless gradients are FACTOR times as large where the gradient that comes in is; whether that can be asked:
    where this is float16, or a gradient grows beyond its dtype, it cannot. Raises Failure (overflow), or whatever else
    is wrong with that call."""
    upstream = values_of(seen.inputs[-1])
    larger = [(one.exact * FACTOR, (one.native.double() * FACTOR).to(one.native.dtype)) for one in expected]
    if upstream.dtype == torch.float16 or not all(bool(native.isfinite().all()) for _, native in larger):
        return False
    made = calls.call(seen.entry, (*seen.inputs[:-1], laid_out_as(seen.inputs[-1], upstream * FACTOR)), seen.wanted)
    wanted = [reference_of(*pair, one.allowance * FACTOR) for pair, one in zip(larger, expected, strict=True)]
    says = f"With a gradient of the result that is {FACTOR:,.0f} times as large, this gradient must grow by that factor"
    made = made if seen.part is None else part_of(made, seen.part)
    assert_same(made, wanted, Cause.OVERFLOW, says)
    return True
