"""What must hold between the results of several calls, whatever the right result is: no reference is needed for it.

The relations that an entry's domain declares, each a function from one call to another whose result is known:

    alone      part of the call along a dimension gives that part of the result: a row by itself, half of a batch
    permuted   the indices of a dimension in another order give the result in that order
    shifted    a number added to a row of a tensor, another for each row, changes nothing
    linear     a tensor that is doubled doubles the result
    widened    tensors of 16-bit floats that become float32, with the same values, give the same result

And whether an entry may be called in other ways, which every check of correctness tries by itself:

    forward     under no_grad, in inference mode
    backward    for each of the inputs that want a gradient alone, and in pairs; twice in one graph; of inputs that are
                views of leaves, or results of operations; of a gradient that is larger by a factor, as where a loss is
                scaled so that gradients of half precision do not vanish

Both results may be rounded, each within what the reference of the first call allows. Tensors of the other call lie in
memory as those of the first do.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradekit.domain import ANY_DIMENSIONS, EntryDomain, ResultDomain, Tensor
from gradekit.findings import Cause
from gradekit.inputs.draws import shape_parts
from gradekit.inputs.spec import laid_out_as, sharing, values_of
from gradekit.judge.compare import assert_close, telling
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Reference, Worked
from gradekit.sandbox import TraceError
from gradekit.subject.call_spec import TWICE
from gradekit.subject.runs import Observation
from gradekit.subject.subject import Subject, part_of

SHIFTS = (64.0, 8.0, 1.0)
"""What is added to a row: the first of these that the dtype holds exactly, beside every element."""


@dataclass(frozen=True)
class RelatedCall:
    """The other call: its `args`, its result as a function of the first call's (and how far it may be off as a function
    of that), and what must hold, in the words that a student reads."""

    args: tuple[Any, ...]
    expected: Callable[[torch.Tensor], torch.Tensor]
    says: str


@dataclass(frozen=True)
class Relation:
    """A relation of `kind` that holds for `entry` along the dimension, or of the tensor or the dtype, called `name`."""

    entry: EntryDomain
    kind: str
    name: str

    def of(self, args: Sequence[Any]) -> RelatedCall | None:
        """The other call that belongs to one with `args`; None for none, such as along a dimension of size 1."""
        places = [place for place in sharing(args) if place is not None]
        if len(places) > len({*places}):
            return None  # a tensor that is passed as two arguments cannot be changed in one of them alone
        return _MAKERS[self.kind](self, tuple(args))


def relations_of(entry: EntryDomain) -> tuple[Relation, ...]:
    """All that the domain declares for an entry, but that its results do not depend on earlier calls."""
    declared = entry.relations
    return tuple(Relation(entry, kind, name) for kind in _MAKERS for name in getattr(declared, kind))


# --- each kind -------------------------------------------------------------------------------------------------------


def _alone(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    size = _size(relation, args)
    if size < 2:
        return None
    number = _number(args)
    length = size // 2 if size > 3 and number % 2 else 1
    start = (number // 2) % (size - length + 1)

    def part(values: torch.Tensor, dim: int) -> torch.Tensor:
        return values.narrow(dim, start, length)

    which = f"Index {start} of {relation.name} by itself" if length == 1 else (
        f"Indices {start} to {start + length - 1} of {relation.name} by themselves"
    )  # fmt: skip
    says = f"{which} must give what {'it gives' if length == 1 else 'they give'} among all {size}"
    return _along(relation, args, part, says)


def _permuted(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    size = _size(relation, args)
    if size < 2:
        return None
    order = torch.randperm(size, generator=torch.Generator().manual_seed(_number(args)))
    says = f"With the indices of {relation.name} in another order, the result must be the same"
    says += ", in that order" if _result_dim(relation, args) is not None else ""
    return _along(relation, args, lambda values, dim: values.index_select(dim, order), says)


def _shifted(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    place, values = _tensor(relation, args)
    if not values.is_floating_point() or not values.numel():
        return None
    signs = 1.0 - 2.0 * (torch.arange(values[..., 0].numel()) % 2).reshape(*values.shape[:-1], 1)
    for shift in SHIFTS:
        exact = values.double() + shift * signs
        moved = exact.to(values.dtype)
        if torch.equal(moved.double(), exact) and torch.equal(moved.isfinite(), values.isfinite()):
            says = f"With {shift:g} added to rows of {relation.name}, or taken away, the result must stay the same"
            return RelatedCall(_with(args, place, moved), lambda result: result, says)
    return None


def _linear(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    place, values = _tensor(relation, args)
    doubled = values * 2
    if not values.is_floating_point() or not torch.equal(doubled.isfinite(), values.isfinite()):
        return None
    says = f"With {relation.name} doubled, the result must be doubled"
    return RelatedCall(_with(args, place, doubled), lambda result: result * 2, says)


def _widened(relation: Relation, args: tuple[Any, ...]) -> RelatedCall | None:
    pairs = [*zip(args, relation.entry.arguments, strict=False)]
    mine = [isinstance(noun, Tensor) and arg is not None and noun.dtype == relation.name for arg, noun in pairs]
    values = [values_of(arg) for (arg, _), is_mine in zip(pairs, mine, strict=True) if is_mine]
    if not values or not all(one.is_floating_point() and one.itemsize == 2 for one in values):
        return None
    wide = (laid_out_as(arg, _wide(values_of(arg))) if its else arg for arg, its in zip(args, mine, strict=False))
    says = f"With the same values in float32 in place of {str(values[0].dtype).removeprefix('torch.')}"
    return RelatedCall(tuple(wide), _wide, f"{says}, the result must be the same, rounding aside")


def _wide(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


_MAKERS: dict[str, Callable[[Relation, tuple[Any, ...]], RelatedCall | None]] = {
    "alone": _alone, "permuted": _permuted, "shifted": _shifted, "linear": _linear, "widened": _widened,
}  # fmt: skip

# --- dimensions and tensors ------------------------------------------------------------------------------------------

Part = Callable[[torch.Tensor, int], torch.Tensor]  # what becomes of values along a dimension


def _along(relation: Relation, args: tuple[Any, ...], part: Part, says: str) -> RelatedCall:
    """The call whose tensors became `part` of themselves along the dimension, and so must the result."""
    dim = _result_dim(relation, args)
    changed = tuple(
        arg if place is None else laid_out_as(arg, part(values_of(arg), place))
        for arg, place in zip(args, _dims(relation, args), strict=True)
    )
    return RelatedCall(changed, lambda result: result if dim is None else part(result, dim), says)


def _dims(relation: Relation, args: Sequence[Any]) -> list[int | None]:
    pairs = zip(args, relation.entry.arguments, strict=False)
    tensors = (isinstance(noun, Tensor) and arg is not None and (noun, arg) for arg, noun in pairs)
    return [_dim(one[0], relation.name, len(one[1].shape)) if one else None for one in tensors]


def _dim(noun: Tensor | ResultDomain, name: str, dims: int) -> int | None:
    parts = shape_parts(noun, dims - len([part for part in noun.shape if part != ANY_DIMENSIONS]))
    return parts.index(name) if name in parts else None


def _result_dim(relation: Relation, args: Sequence[Any]) -> int | None:
    (result,) = relation.entry.results
    pairs = zip(relation.entry.arguments, args, strict=False)
    open_ones = ((noun, arg) for noun, arg in pairs if isinstance(noun, Tensor) and ANY_DIMENSIONS in noun.shape)
    of_any = [len(arg.shape) - len(noun.shape) for noun, arg in open_ones]
    more = of_any[0] if of_any and ANY_DIMENSIONS in result.shape else 0
    return _dim(result, relation.name, len(result.shape) + more)


def _size(relation: Relation, args: Sequence[Any]) -> int:
    found = [arg.shape[dim] for arg, dim in zip(args, _dims(relation, args), strict=True) if dim is not None]
    return int(found[0]) if found else 0


def _tensor(relation: Relation, args: Sequence[Any]) -> tuple[int, torch.Tensor]:
    place = next(i for i, argument in enumerate(relation.entry.arguments) if argument.name == relation.name)
    return place, values_of(args[place])


def _with(args: tuple[Any, ...], place: int, values: torch.Tensor) -> tuple[Any, ...]:
    return (*args[:place], laid_out_as(args[place], values), *args[place + 1 :])


def _number(args: Sequence[Any]) -> int:
    """A number that is the same for the same call, everywhere."""
    told = [arg if not isinstance(arg, torch.Tensor) else (arg.dtype, arg.shape, arg.stride()) for arg in args]
    return zlib.crc32(repr(told).encode())


# --- whether they hold: claims for tests, in which results are compared with each other -------------------------------


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
    subject: Subject, seen: Observation, expected: Sequence[Reference], times: int = 1, turn: int = 0,
    like: Observation | None = None,
) -> None:  # fmt: skip
    """Raise Failure unless the call of `seen` gives what is `expected` so many `times` more, after all calls in
    between, and in a backward pass after another call, whose values are `like` a third's, and one number another."""
    for again in filter(None, (subject.again(seen) for _ in range(times))):
        assert_same(again, expected, Cause.DEPENDS_ON_EARLIER_CALLS, CALLED_AGAIN.format(seen.entry))
    if between := subject.interleaved(seen, turn, like or seen):
        says = (
            f"With another call of {seen.entry} between this one and its backward pass, the gradients must stay "
            "the same"
        )
        assert_same(between, expected, Cause.DEPENDS_ON_EARLIER_CALLS, says)


CALLED_AGAIN = "Called again after other calls, {} must give the same result"
"""What must hold of each entry, as the beginning of a sentence."""


def assert_computes_anew(subject: Subject, seen: Observation, expected: Sequence[Reference]) -> None:
    """Raise unless the call of `seen` gives what is `expected` with tensors that had other values in a call before.
    What goes wrong in memory with these is nobody's fault. Raises Failure (depends-on-earlier-calls)."""
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


FORWARD = (Way("no gradients", "Under torch.no_grad()"), Way("inference", "In torch.inference_mode()"))
APART = Way("each gradient apart", "After calls that want one gradient each")
BACKWARD = (
    Way(TWICE, "In a second backward pass of one graph (retain_graph=True)"),
    Way("views", "Where the inputs are views of other tensors"),
    Way("results", "Where the inputs are results of other operations"),
)


FACTOR = 2.0**17
"""A power of two that float16 does not hold. Gradients are linear: they grow by it, roundings too."""


def ways_of(seen: Observation, names: Sequence[str], apart: bool = False) -> Iterator[Way]:
    """The ways in which the call of `seen` can be made too; `names` are those of its arguments. One of them asks for
    several gradients `apart`, each in a call before it: host code may keep something from call to call."""
    if not seen.wanted:
        yield from FORWARD
        return
    backward = [*BACKWARD, APART] if apart and len(seen.wanted) > 1 else BACKWARD
    yield from (Way(way.name, way.says, seen.wanted) for way in backward)
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
    is_like = kinds == {"normal"} and first.shape == second.shape
    if not is_like or asked is None or sum(arg is second for arg in asked.args) != 1:
        return None
    inputs, args = ([first if arg is second else arg for arg in each] for each in (seen.inputs, asked.args))
    answers = asked.again(args)
    return replace(seen, inputs=tuple(inputs)), [answers[reference.place] for reference in expected]


def assert_called(
    calls: Subject, seen: Observation, expected: Sequence[Reference], way: Way, turn: int = 0
) -> tuple[Observation, list[Reference]]:
    """The call of `seen`, made in this way in its `turn`, with what is `expected` of it: what it gives, or it is a
    Failure."""
    says = f"{way.says}, the {'gradient' if seen.wanted else 'result'} must be the same"
    try:
        made = calls.in_way(seen, way.name, way.wanted, turn)
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
    return made, wanted


def assert_scales(calls: Subject, seen: Observation, expected: Sequence[Reference]) -> bool:
    """Raise unless gradients are FACTOR times as large where the gradient that comes in is; whether that can be asked:
    in float16, or where one outgrows its dtype, it cannot. Raises Failure (overflow), or what that call raises."""
    upstream = values_of(seen.inputs[-1])
    larger = [(one.exact * FACTOR, (one.native.double() * FACTOR).to(one.native.dtype)) for one in expected]
    if upstream.dtype == torch.float16 or not all(bool(native.isfinite().all()) for _, native in larger):
        return False
    made = calls.call(seen.entry, (*seen.inputs[:-1], laid_out_as(seen.inputs[-1], upstream * FACTOR)), seen.wanted)
    wanted = [reference_of(*pair, one.allowance * FACTOR) for pair, one in zip(larger, expected, strict=True)]
    says = f"With a gradient of the result that is {FACTOR:,.0f} times as large, this gradient must grow by that factor"
    assert_same(made if seen.part is None else part_of(made, seen.part), wanted, Cause.OVERFLOW, says)
    return True
