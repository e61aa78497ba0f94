"""What a check tries and proves beside its examples: whether its calls are right in exact arithmetic, go together with
related calls, and touch memory rightly for all sizes.

Exact arithmetic: one right example of each form of a call (the same operations on the same types) is tried, on its own
values and on those that the domain names for this; then one for each other way of a condition for a whole program.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from gradekit import relations as related
from gradekit.domain import EntryDomain
from gradekit.engine.kernel_facts import every_operation, operations, parsed
from gradekit.engine.trials import kept_memory
from gradekit.engine.ttir import Op
from gradekit.engine.ttir_locations import line_of
from gradekit.exact.borders import rows_at_borders, rows_with_peaks
from gradekit.exact.places import narrowing, rounded_down
from gradekit.exact.trial import NOT_TRIED, ExactCall, Outcome, Seen, tried
from gradekit.findings import Cause, Kind
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input, values_of, with_other_values
from gradekit.inputs.value_kinds import FAR
from gradekit.judge.by_text import keeps
from gradekit.judge.compare import assert_close
from gradekit.judge.evidence import UPSTREAM, Diagnosis, operations_of
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import assert_result_is_new
from gradekit.judge.reference import Asked, Reference
from gradekit.plugin.check_points import claims, worth
from gradekit.plugin.profiles import Limit
from gradekit.plugin.run_state import GradingRun
from gradekit.program import Launch, Program, View, every_step, run_steps
from gradekit.reuse import SharedCache, shared
from gradekit.sandbox import TraceError
from gradekit.subject.call_spec import call_spec
from gradekit.subject.rules import options
from gradekit.subject.run_cache import key_of
from gradekit.subject.runs import Observation
from gradekit.subject.subject import Call, Subject

Example = tuple[Observation, list[Reference]]  # a call that was right, and what was expected of it
SHARED = "its inputs share memory"
SEED = 90_000  # values of the kinds that the domain names are drawn with seeds from here on


def exact_runs(item: pytest.Item, run: GradingRun, right: RightResults) -> dict[str, Any]:
    """The details of a check whose examples have passed: how many forms were tried, how far off they are, and why
    others could not be. Raises Failure where a formula is not the reference's, or rounds where it may not."""
    mine = worth(item)
    if run.subject is None or mine.kind is not Kind.CORRECTNESS or not mine.prove or run.request.options.trivial:
        return {}
    apart, together = ([pair for pair in right.pairs if _shares_memory(pair[0]) is it] for it in (False, True))
    forms = _by_form(apart)
    found = [Seen(SHARED) for key in _by_form(together) if key not in forms]
    by_rank = sorted(forms, key=lambda key: _rank(forms[key][0]))
    first_of_formula = {*{_formula_of(key): key for key in reversed(by_rank)}.values()}
    by_rank.sort(key=lambda key: key not in first_of_formula)
    for key in by_rank[: Limit.FORMS]:
        examples, outcomes = forms[key], _tried(run.subject, forms[key], is_new=key in first_of_formula)
        for part in {seen.part for seen, _ in examples}:
            for outcome in outcomes if part is None else outcomes[part : part + 1]:
                if isinstance(outcome, Failure):
                    raise _with_its_call(outcome, run.subject, examples[0][0])
                found.append(outcome)
    return {"exact": _as_data(found, max(len(forms) - Limit.FORMS, 0))} if found else {}


def _with_its_call(failure: Failure, subject: Subject, seen: Observation) -> Failure:
    """The failure, with the call that it is about as the subject's last one, which the report shows; or else the
    example `seen`, which that call differs from by its values."""
    shown = Call(seen.entry, seen.inputs, seen, seen.wanted)
    with contextlib.suppress(Failure, *NOT_TRIED):
        subject.call(seen.entry, failure.given, seen.wanted)
        shown = subject.calls[-1]
    subject.calls[:] = [shown]
    return failure


def _as_data(found: Sequence[Seen], untried: int) -> dict[str, Any]:
    exact, others = [seen for seen in found if not seen.why_not], [seen.why_not for seen in found if seen.why_not]
    data: dict[str, Any] = {"forms": len(found), "exact": len(exact)}
    data |= {"off": f"{max(seen.off for seen in exact):.1e}"} if exact else {}
    data |= {"untried": untried} if untried else {}
    return data | ({"not": sorted(set(others))} if others else {})


# --- forms -----------------------------------------------------------------------------------------------------------

Form = tuple[tuple[Any, ...], frozenset[tuple[Any, ...]]]
"""The form of a call, and that of each of its kernels with its constants and which ways it went."""


def _by_form(pairs: Sequence[Example]) -> dict[Form, list[Example]]:
    forms: dict[Form, list[Example]] = {}
    for seen, wanted in pairs:
        if all(reference.asked is not None for reference in wanted):
            forms.setdefault(_form(seen), []).append((seen, wanted))
    return {key: sorted(mine, key=_rank) for key, mine in forms.items()}


def _form(seen: Observation) -> Form:
    args = tuple(arg.dtype for arg in seen.inputs if isinstance(arg, Input))
    texts = {name: kernel.unaligned for name, kernel in seen.program.kernels.items()}
    forms = {name: _form_of(ttir) for name, ttir in texts.items()}
    ways = frozenset(
        (forms[name], _constants_in(ttir), tuple(seen.ways.get(name, {}).get(n, 0) for n in _deciding(ttir)))
        for name, ttir in texts.items()
    )
    return (seen.entry, seen.wanted, args, frozenset(forms.values())), ways


_CASTS = ("arith.extf", "arith.truncf", "tt.fp_to_fp")


def _formula_of(form: Form) -> Hashable:
    """Equal for forms that compute the same without any rounding, whatever their dtypes."""
    (entry, wanted, *_), ways = form
    return entry, wanted, frozenset((tuple(name for name, *_ in ops if name not in _CASTS), *way) for ops, *way in ways)


def _rank(pair: Example) -> tuple[float, ...]:
    seen, _ = pair
    largest, sizes = _largest(seen), [size for arg in seen.inputs if isinstance(arg, Input) for size in arg.shape]
    whole = sum(size & size - 1 == 0 for size in sizes)  # no tile has lanes past the end
    return 0 in sizes, largest > 4 * Limit.USUAL_ELEMENTS, 1 in sizes, whole, abs(largest - Limit.USUAL_ELEMENTS)


@functools.lru_cache(maxsize=512)
def _form_of(ttir: str) -> tuple[tuple[str, ...], ...]:
    """The operations of a kernel on floats, whatever its sizes, addresses and constants: their names and types."""
    of_floats = (op for op in every_operation(parsed(ttir)) if _has_floats(op) and op.name != "arith.constant")
    return tuple((op.name, *(type.element for type in op.result_types)) for op in of_floats)


@functools.lru_cache(maxsize=512)
def _deciding(ttir: str) -> tuple[int, ...]:
    """The operations, by number, where one condition decides about floats of a whole program, such as `if K > 6000`."""
    ops = [*every_operation(parsed(ttir))]
    for_all = {result for op in ops if op.name == "tt.splat" for result in op.results}
    return tuple(op.number for op in ops if _decides(op, for_all))


@functools.lru_cache(maxsize=512)
def _constants_in(ttir: str) -> frozenset[str]:
    """The floats that a kernel's text has: another one may be another formula of the same form."""
    ops = (op for op in every_operation(parsed(ttir)) if op.name == "arith.constant" and _has_floats(op))
    return frozenset(str(op.attributes["value"]) for op in ops)


def _decides(op: Op, for_all: set[str]) -> bool:
    if op.name == "arith.select":
        return _has_floats(op) and (op.operands[0] in for_all or not op.operand_types[0].shape)
    return op.name == "scf.if" and any(_has_floats(one) for region in op.regions for one in operations(region))


def _has_floats(op: Op) -> bool:
    return any("f" in type.element for type in (*op.result_types, *op.operand_types))


# --- trying one ------------------------------------------------------------------------------------------------------


_shown: SharedCache[Hashable, Any] = shared()
"""What exact arithmetic has shown of calls with which nothing is wrong, and the rows at their borders."""


def _once(show: Callable[..., Iterable[Any]], call: ExactCall, *asked: Any) -> list[Any]:
    """What `show` gives of a call, of equal ones once, whichever checks ask; anew where something is wrong."""
    key = call.content and (show, call.content, call.option, call.work, repr(asked))
    found = _shown.get(key) if key else None
    if found is None:
        found = [*show(call, *asked)]
        if key and not any(isinstance(one, Failure) for one in found):
            _shown.put(key, found)
    return found


LONG = 20  # times the work that exact arithmetic may take, of calls that no shorter one stands for


def _tried(subject: Subject, examples: Sequence[Example], is_new: bool) -> list[Outcome]:
    """What exact arithmetic shows of each result of the call that these are examples of; where its formula `is_new`,
    also for the values that the domain names, and at its borders."""
    longest, tallest = (max(examples, key=lambda one: _length(one[0], dim)) for dim in (-1, -2))
    related = [one for one in examples if _largest(one[0]) <= Limit.RELATED_ELEMENTS]
    programs = lambda one: max((count for _, count in _programs(one[0].program)), default=1)
    fullest = max(related, key=lambda one: _largest(one[0]) / programs(one), default=examples[0])  # the fullest tiles
    seen, wanted = examples[0]
    call = _exact_call(subject, seen, wanted)
    if isinstance(call, str):
        return [Seen(call)] * len(seen.program.results)
    entry = subject.assignment.domain.get(seen.entry)
    is_new |= bool(call.misused)
    named = list(entry.exact) if entry and is_new else []
    rounding = ("operands",) if entry is None or entry.rounding is None else entry.rounding
    any_value = {one.name for one in entry.tensors if one.range is None and "normal" in one.values} if entry else set()
    free = [n for n, spec in zip(call.names, call.specs, strict=True) if n in any_value and "float" in spec.dtype]
    # A backward pass that computes again what the forward pass had differs from it where numbers are large, and may; so
    # do products of operands that may be rounded.
    names = [] if "operands" in rounding or seen.wanted else free
    top = math.frexp(torch.finfo(call.dtype).max)[1]
    most = 2.0 ** (top // 4 if "operands" in rounding else top - 3)
    rounded = [dict.fromkeys(free, rounded_down(dtype)) for dtype in sorted(narrowing(seen.program, call.dtype))]
    found = []
    for option in _options(seen.program):
        is_long = _largest(seen) > Limit.FAR_ELEMENTS  # of no shorter call: few values, of many elements
        mine = replace(call, option=option, work=(LONG if is_long else 1) * call.work)
        rows = [{}, *([] if is_long else [*named, *rounded]), *_all_far(names, call.specs)]
        found += [_on_values(seen, mine, row, number) for number, row in enumerate(rows)]
    for large, far, kind in ((longest, names, "sunk"), (tallest, [], "sunk_rows")):
        if large is examples[0] or isinstance(call := _exact_call(subject, *large), str):
            continue
        rows = [*_all_far(far, call.specs), *(row for row in named if kind in row.values())]
        rows += [{}] if call.misused else []  # what is rounded in each turn of a loop, or carried to the next
        for option in _options(large[0].program):
            found += [_on_values(large[0], replace(call, option=option), row, n) for n, row in enumerate(rows, 1)]
    for large in (longest, fullest)[longest is fullest :] if is_new else ():
        if not isinstance(call := _exact_call(subject, *large), str):
            of_options = [replace(call, option=option) for option in _options(large[0].program)]
            at = [(mine, row) for mine in of_options for row in _once(rows_at_borders, mine, free, most)]
            at += [(mine, row) for mine in of_options for row in rows_with_peaks(mine, names)]
            found += [_on_values(large[0], mine, row, number) for number, (mine, row) in enumerate(at, 1)]
    return [_together(outcomes) for outcomes in zip(*found, strict=True)]


def _all_far(names: Sequence[str], specs: Sequence[Input]) -> Iterator[Mapping[str, str]]:
    """All of these tensors far from the values of examples, until their rows have been of both kinds."""
    largest = max((spec.shape for spec in specs), key=math.prod, default=())
    for number in range((1 if math.prod(largest[:-1]) > 1 else 2) if names else 0):
        yield {name: f"{FAR}:{(number + place) % 2}" for place, name in enumerate(names)}


def _length(seen: Observation, dim: int) -> int:
    """The longest row of a call's tensors, as far as such a call costs little."""
    lengths = (arg.shape[dim] for arg in seen.inputs if isinstance(arg, Input) and len(arg.shape) >= -dim)
    return max(lengths, default=0) if _largest(seen) <= Limit.FAR_ELEMENTS else 0


def _options(program: Program) -> list[int]:
    """Of the configurations that a tuner may keep, the first of each form and its constants."""
    first: dict[Hashable, int] = {}
    for option, _ in options(program):
        launched = [step.kernel for step in run_steps(program.steps, option) if isinstance(step, Launch)]
        texts = [program.kernels[name].unaligned for name in launched]
        first.setdefault(tuple((_form_of(text), _constants_in(text)) for text in texts), option)
    return list(first.values())


def _together(outcomes: Sequence[Outcome]) -> Outcome:
    failed = next((one for one in outcomes if isinstance(one, Failure)), None)
    seen = [one for one in outcomes if isinstance(one, Seen)]
    why = next((one.why_not for one in seen if one.why_not), "")
    return failed or Seen(why, max(one.off for one in seen))


def _on_values(seen: Observation, call: ExactCall, row: Mapping[str, str], number: int) -> list[Outcome]:
    """What the call shows with the kinds of values of a row, by the names of tensors."""
    specs = [
        replace(spec, profile=row[name], seed=SEED + number) if name in row else spec
        for spec, name in zip(call.specs, call.names, strict=True)
    ]
    outcomes = _once(tried, call, specs)
    queue = iter(specs)
    args = [next(queue) if isinstance(arg, Input) else arg for arg in seen.inputs]
    for place, outcome in enumerate(outcomes):
        if isinstance(outcome, Failure):
            outcome.given = args
            outcome.repeat = functools.partial(_repeat, seen.entry, args, seen.wanted, call, specs, place)
    return outcomes


def _exact_call(subject: Subject, seen: Observation, wanted: Sequence[Reference]) -> ExactCall | str:
    """The call of an observation with all its results, or why there is none."""
    asked, count = wanted[0].asked, len(seen.program.results)
    assert asked is not None
    if seen.part is None and len(wanted) != count:
        return "it has other results than the reference"
    parts = range(count) if seen.part is None else [seen.part]
    call = _call_of(subject, seen, asked, {part: one.place for part, one in zip(parts, wanted, strict=False)})
    keys = [one.key for one in wanted]
    if isinstance(call, str) or None in keys:  # what is expected may change
        return call
    told = key_of(call.program, 0, call_spec(seen.entry, seen.inputs, seen.wanted), call.allow), repr(call.allowed)
    return replace(call, content=(*told, *call.parts, *call.names, *keys))


def _call_of(subject: Subject, seen: Observation, asked: Asked, places: Mapping[int, int]) -> ExactCall | str:
    """The same, where some gradients are not asked for: its results are some of the reference's."""
    specs = [arg for arg in seen.inputs if isinstance(arg, Input)]
    slots = _slots_of(asked.args, specs)
    if len(specs) != len(seen.program.inputs):
        return "its inputs are tensors that the test made"
    if any(slot is None and isinstance(arg, Input) for slot, arg in zip(slots, asked.args, strict=True)):
        return "the reference takes other inputs"
    if _shares_memory(seen):
        return SHARED
    entry, parts = subject.assignment.domain.get(seen.entry), range(len(seen.program.results))
    return ExactCall(
        seen.program, seen.inputs, asked, slots, [(part, places.get(part)) for part in parts],
        subject.assignment.allow, entry.rounding if entry else None, _names(specs, entry),
        backward=bool(seen.wanted),
    )  # fmt: skip


def _shares_memory(seen: Observation) -> bool:
    return len({view.storage for view in seen.program.inputs}) < len(seen.program.inputs)


def _slots_of(args: Sequence[Any], specs: Sequence[Input]) -> list[int | None]:
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


def measured_rounding(subject: Subject, seen: Observation, failure: Failure) -> Diagnosis | None:
    """The place whose rounding is why a result is off; vague where without any rounding the call is right, also with
    ordinary values, and no place alone is why; None where its formula is wrong, or nothing is known of it."""
    comparison = failure.comparison
    is_rounded = comparison is not None and comparison.reference.native.is_floating_point()
    if comparison is None or comparison.reference.asked is None or not is_rounded:
        return None
    part = seen.part if seen.part is not None else failure.facts.get("result", 0)
    call = _call_of(subject, seen, comparison.reference.asked, {part: comparison.reference.place})
    if isinstance(call, str):
        return None
    outcome = tried(call, call.specs)[part]
    if isinstance(outcome, Seen) and not outcome.why_not:
        outcome = _of_ordinary_values(subject, seen, call)[part]
        return None if isinstance(outcome, Failure) or outcome.why_not else _too_narrow(seen.program)
    if isinstance(outcome, Seen) or outcome.cause is not Cause.LOW_PRECISION:
        return None
    place = outcome.facts["rounding"]
    where = f"Line {outcome.line}" if outcome.line else "The kernel"
    sentence = f"{where} rounds to {place['dtype']} on the way, which alone moves a result by {place['moved']}."
    return Diagnosis(outcome.cause, sentence, outcome.line, ADDED if outcome.line in _adding(seen.program) else "")


ADDED = "make the tensor that is added to float32, and convert it when all is added"


def _adding(program: Program) -> set[int | None]:
    """The lines with atomic operations."""
    return {line_of(op.location, program.path) for op in operations_of(program) if op.name.startswith("tt.atomic")}


def _of_ordinary_values(subject: Subject, seen: Observation, call: ExactCall) -> list[Outcome]:
    """What the same call shows of contiguous tensors, with ordinary values where the domain promises to take any."""
    entry = subject.assignment.domain.get(seen.entry)
    free = {one.name for one in entry.tensors if one.range is None and "normal" in one.values} if entry else set()
    alone = [replace(spec, stride=row_major(spec.shape), offset=0, base=0) for spec in call.specs]
    named = zip(alone, call.names, strict=True)
    specs = [replace(spec, profile="normal") if name in free else spec for spec, name in named]
    queue = iter(specs)
    args = [next(queue) if isinstance(arg, Input) else arg for arg in seen.inputs]
    try:
        return tried(replace(call, program=subject.traced(seen.entry, args, seen.wanted), args=args), specs)
    except TraceError as error:
        return [Seen(str(error))] * len(call.parts)


def _too_narrow(program: Program) -> Diagnosis:
    """What to say of a call that is right without rounding, and which no place alone makes wrong."""
    if any(re.search(r"f16|f8|tf32", kernel.ttir) for kernel in program.kernels.values()):
        sentence = "Without any rounding, this call is right: a dtype on the way is too narrow for it."
        return Diagnosis(Cause.LOW_PRECISION, sentence, hint=ADDED if _adding(program) else "", vague=True)
    sentence = "Without any rounding, this call is right: what float32 rounds on the way makes it wrong."
    return Diagnosis(Cause.WRONG_VALUES, sentence, vague=True)


def _repeat(
    entry: str, args: Sequence[Any], wanted: tuple[int, ...], call: ExactCall, specs: Sequence[Input], place: int,
    subject: Subject,
) -> None:  # fmt: skip
    outcome = tried(replace(call, program=subject.call(entry, args, wanted).program), specs)[place]
    if isinstance(outcome, Failure):
        raise outcome


def _names(specs: Sequence[Input], entry: EntryDomain | None) -> list[str]:
    """What the tensors of a call are called; that of the last, where it has one more, is the gradient of the result."""
    named = [tensor.name for tensor in entry.tensors] if entry else []
    return [spec.name or (named[place] if place < len(named) else UPSTREAM) for place, spec in enumerate(specs)]


# --- related calls: their results go together, and none depends on earlier calls --------------------------------------


class RightResults:
    """Observations of one check that were right, with what was expected of each."""

    def __init__(self) -> None:
        self.pairs: list[Example] = []

    def add(self, seen: Any, expected: list[Reference]) -> None:
        """Keep an observation; nothing else, such as a tensor that a test made itself."""
        if 0 < _largest(seen) <= Limit.KEPT_ELEMENTS and (
            len(self.pairs) < Limit.KEPT_CALLS or _largest(seen) > Limit.FAR_ELEMENTS
        ):
            self.pairs.append((seen, expected))

    def of(self, entry: str) -> list[Example]:
        """Those of small calls of `entry`."""
        return [pair for pair in self.pairs if pair[0].entry == entry and _largest(pair[0]) <= Limit.RELATED_ELEMENTS]


def _largest(seen: Any) -> int:
    """The elements of the largest argument of a call; 0 of what is none, or cannot be made again."""
    if not hasattr(seen, "wanted") or seen.substitute is not None or seen.card:
        return 0
    return max((arg.numel for arg in seen.inputs if hasattr(arg, "profile")), default=0)


def relations(item: pytest.Item, run: GradingRun, right: RightResults) -> dict[str, Any]:
    """The details of a check whose examples have passed: which relations of the domain hold. Raises Failure."""
    subject = run.subject
    if subject is None or run.request.options.trivial is not None:
        return {}
    if claims(item, "assert_inputs_unmodified"):
        _assert_new_results(subject)
    for entry in subject.assignment.domain.values():
        _assert_right_in_part(subject, entry, right)
    if worth(item).kind is not Kind.CORRECTNESS:
        return {}
    tried = [name for entry in subject.assignment.domain.values() for name in _relations_tried(subject, entry, right)]
    _assert_right_after_other_sizes(subject, right)
    return {"relations": tried} if tried else {}


def _relations_tried(subject: Subject, entry: EntryDomain, right: RightResults) -> list[str]:
    pairs = right.of(entry.name)
    forward = sorted((pair for pair in pairs if not pair[0].wanted and len(pair[1]) == 1), key=_size, reverse=True)
    call = getattr(subject, entry.name)
    tried = []
    for relation in related.relations_of(entry):
        if any(_holds(relation, call, seen, wanted[0]) for seen, wanted in forward[: Limit.TRIED]):
            tried.append(f"{relation.kind} {relation.name}")
    if entry.relations.independent and pairs:
        again, kinds = _spread(pairs, Limit.AGAIN), {_each("profile", one)[:-1]: one for one, _ in pairs}
        for place, (seen, expected) in enumerate(again, 1):
            like = [one for its, one in kinds.items() if its != _each("profile", seen)[:-1]] or [seen]
            times = Limit.REPEATED if place == len(again) else 1
            related.assert_independent(subject, seen, expected, times, place, like[place % len(like)])
        for seen, expected in _in_each_layout(sorted(pairs, key=_size, reverse=True)):
            related.assert_computes_anew(subject, seen, expected)
        tried.append("independent")
    return tried + _called_in_ways(subject, entry, pairs)


def _assert_right_after_other_sizes(subject: Subject, right: RightResults) -> None:
    """Repeats calls that use memory kept from before, each after a call of other sizes that uses a storage of as many
    bytes: one of the same check, so that its points do not depend on which others were made before it. Raises
    Failure (depends-on-earlier-calls), or whatever else is wrong with that call."""
    mine = [pair for pair in right.pairs if _largest(pair[0]) <= Limit.FAR_ELEMENTS and kept_memory(pair[0].program)]
    mine = sorted(mine, key=_size, reverse=True)[: Limit.KEEPING]
    for seen, expected in mine[: Limit.TRIED]:
        given, kept = (seen.entry, seen.wanted, len(seen.inputs)), kept_memory(seen.program)
        alike = [one for one, _ in mine if (one.entry, one.wanted, len(one.inputs)) == given]
        others = {_each("shape", one): one for one in alike if kept & kept_memory(one.program)}
        for shapes in sorted(others.keys() - {_each("shape", seen)}, reverse=True)[: Limit.TRIED]:
            again, says = subject.after(seen, others[shapes]), related.CALLED_AGAIN.format(seen.entry)
            related.assert_same(again, expected, Cause.DEPENDS_ON_EARLIER_CALLS, says)


def _each(what: str, seen: Observation) -> tuple[Any, ...]:
    """What each of its tensors has: a shape, a kind of values."""
    return tuple(getattr(arg, what) for arg in seen.inputs if isinstance(arg, Input))


def _in_each_layout(pairs: Sequence[Example]) -> Iterator[Any]:
    """The first calls in which each tensor with other values in an earlier call is contiguous once, and once not."""
    met = set[tuple[int, bool]]()
    for pair in pairs:
        changed = ((n, arg) for n, arg in enumerate(pair[0].inputs) if isinstance(arg, Input) and _changes(arg))
        own = {(n, arg.is_contiguous) for n, arg in changed}
        if own - met:
            met |= own
            yield pair


def _changes(spec: Input) -> bool:
    return not torch.equal(values_of(with_other_values(spec)), spec.tensor())


def _called_in_ways(subject: Subject, entry: EntryDomain, pairs: Sequence[Example]) -> list[str]:
    """Makes small calls of an entry with gradients in each way in which a model may make them; the ways in turn take
    another call, a second backward pass one of each layout, for what the first one leaves may depend on that, and
    gradients in part those whose upstream gradient has the most strides of its own."""
    names, tried = [argument.name for argument in entry.arguments], dict[str, None]()
    for wanted, part in dict.fromkeys((seen.wanted, seen.part) for seen, _ in pairs if entry.gradients):
        alike = [pair for pair in pairs if (pair[0].wanted, pair[0].part) == (wanted, part) and _size(pair)]
        alike.sort(key=_size)
        calls = _spread(alike[: 2 * Limit.AGAIN], Limit.AGAIN)[::-1]
        strided = sorted(alike, key=_strides_of_upstream, reverse=True)[: Limit.AGAIN] if wanted else calls
        for number, way in enumerate(related.ways_of(calls[0][0], names, apart=True) if calls else ()):
            of_layouts = [*_in_each_layout(alike)] if way.name == related.TWICE else []
            mine = calls if way.name else strided
            for turn, (seen, expected) in enumerate(of_layouts or [mine[number % len(mine)]]):
                related.assert_called(subject, seen, expected, way, turn)
            tried[way.name or "gradients in part"] = None
        for pair in [one.split() for one in entry.aliases if {*one.split()} <= {names[place] for place in wanted}]:
            first, second = map(names.index, pair)
            shared = next((related.in_one_memory(seen, expected, first, second) for seen, expected in calls), None)
            if shared is not None:
                seen, expected = shared
                says = f"Where {pair[0]} and {pair[1]} lie in one memory"
                related.assert_called(subject, seen, expected, related.Way("", says, seen.wanted))
                tried["arguments in one memory"] = None
        scaled = [related.assert_scales(subject, *pair) for pair in calls if wanted]
        tried |= {"a scaled loss": None} if any(scaled) else {}
    return [f"called: {way}" for way in tried]


def _assert_right_in_part(subject: Subject, entry: EntryDomain, right: RightResults) -> None:
    """Asks for some of the gradients alone, in the calls with the longest dimensions and with the most programs of each
    kernel, each way of their flags, and in a small one of each dtype, where these launch then what they do not for all.
    Raises Failure where they are others, in exact arithmetic too."""
    names, largest = [argument.name for argument in entry.arguments], dict[Hashable, Example]()
    longest = dict[Hashable, int]()
    for pair in sorted((pair for pair in right.pairs if pair[0].wanted and pair[0].entry == entry.name), key=_size):
        flags = tuple(arg for arg in pair[0].inputs if isinstance(arg, bool))
        if _size(pair) > Limit.HARDLY_ANY:
            largest.setdefault((pair[0].wanted, pair[0].part, flags, pair[0].inputs[-1].dtype), pair)
        for of, size in [*enumerate(pair[0].inputs[-1].shape), *_programs(pair[0].program)]:
            key = pair[0].wanted, pair[0].part, flags, of
            if size >= longest.get(key, 0):
                longest[key], largest[key] = size, pair
    for seen, expected in {id(pair): pair for pair in largest.values()}.values():
        for way in related.ways_of(seen, names):
            if not way.name and _does_more(subject, seen, way.wanted):
                _assert_right_alone(subject, *related.assert_called(subject, seen, expected, way))


def _assert_right_alone(subject: Subject, seen: Observation, expected: Sequence[Reference]) -> None:
    """Raises Failure where a call with some of the gradients is wrong in exact arithmetic: of long sums nothing else
    tells what is left out."""
    call = _exact_call(subject, seen, expected)
    outcomes = [] if isinstance(call, str) else _on_values(seen, replace(call, work=LONG * call.work), {}, 0)
    for failure in (one for one in outcomes if isinstance(one, Failure)):
        raise _with_its_call(failure, subject, seen)


def _programs(program: Program) -> list[tuple[str, int]]:
    """The kernel of each launch, and how many programs it has."""
    launches = (step for step in every_step(program.steps) if isinstance(step, Launch))
    return [(program.kernels[one.kernel].name, math.prod(one.grid)) for one in launches]


def _does_more(subject: Subject, seen: Observation, wanted: tuple[int, ...]) -> bool:
    """Whether a call launches something where the gradients `wanted` alone are asked for that it does not for all."""
    try:
        return not _launched(subject.traced(seen.entry, seen.inputs, wanted)) <= _launched(seen.program)
    except TraceError:
        return True


def _launched(program: Program) -> set[Hashable]:
    """The kernels that a program launches, with their grids and numbers, and the tensors, all of its own as one."""
    launches = (step for step in every_step(program.steps) if isinstance(step, Launch))
    given = {view.storage for view in program.inputs}
    known = lambda arg: replace(arg, storage=-1) if isinstance(arg, View) and arg.storage not in given else arg
    return {(program.kernels[one.kernel].unaligned, one.grid, *map(known, one.args)) for one in launches}


def _strides_of_upstream(pair: Example) -> int:
    upstream = pair[0].inputs[-1]
    each = zip(upstream.shape, upstream.stride, row_major(upstream.shape), strict=True)
    return sum(size > 1 and step != plain for size, step, plain in each)


def _holds(
    relation: related.Relation, call: Callable[..., Observation], seen: Observation, expected: Reference
) -> bool:
    """`assert_relation`, whose failure can be tried on a subject of another text."""

    def repeat(subject: Subject) -> None:
        another = getattr(subject, seen.entry)
        assert_close(another(*seen.inputs), [expected])
        related.assert_relation(relation, another, seen.inputs, expected)

    try:
        return related.assert_relation(relation, call, seen.inputs, expected)
    except Failure as failure:
        failure.repeat = repeat
        raise


def _size(pair: Example) -> int:
    return sum(arg.numel for arg in pair[0].inputs if hasattr(arg, "profile"))


def _spread(found: Sequence[Any], most: int) -> list[Any]:
    """At most so many of them, the first and the last among these."""
    if not found:
        return []
    places = {number * (len(found) - 1) // max(most - 1, 1) for number in range(most)}
    return [found[place] for place in sorted(places)]


def _assert_new_results(subject: Subject) -> None:
    """A check that claims that results are new tensors also says so of calls that were made before: of the smallest,
    the largest and some between, or of all where host code keeps something. Raises Failure where the result of a call
    lies where an earlier one lay."""
    sizes = {form: [arg.numel for arg in form.args if isinstance(arg, View)] for form in subject.forms.values()}
    full = sorted((form for form in sizes if all(sizes[form])), key=lambda form: sum(sizes[form]))
    for form in full if keeps(subject.submission.text) else _spread(full, Limit.LOOKED_AT_AGAIN):
        again = subject.retraced(form if form.wanted else replace(form, way="often"))
        assert_result_is_new(again, gradients=bool(form.wanted))


# --- what a memory check proves beside its examples: for all sizes that the assignment promises -----------------------


def proofs(item: pytest.Item, run: GradingRun) -> dict[str, Any]:
    """The details of a check that claims clean memory and whose examples have passed; nothing for other checks: that
    every access is inside its tensor says nothing of allocations. Raises Failure where the engine sees a refutation."""
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
            found[name] = data | {"claims": data["claims"][: Limit.CLAIMS]}
            failures += one.failures
    if failures:
        subject.calls[:] = [call for call in subject.calls if call.args == failures[0].given]  # others may be right
        raise failures[0]
    return {"proofs": found} if found else {}
