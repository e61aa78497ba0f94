"""What a check tries beside its examples: that results of related calls go together, and
that none depends on earlier calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gradekit.domain import EntryDomain
from gradekit.findings import Kind
from gradekit.judge.compare import assert_close
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import assert_result_is_new
from gradekit.judge.reference import Reference
from gradekit.plugin.check_points import claims, worth
from gradekit.plugin.run_state import GradingRun
from gradekit.relations.calling import assert_called, assert_scales, ways_of
from gradekit.relations.holding import assert_independent, assert_relation
from gradekit.relations.relation import Relation, relations_of
from gradekit.subject.runs import Observation
from gradekit.subject.subject import Subject

MOST_ELEMENTS, MOST_KEPT, MOST = 1 << 14, 1 << 18, 64
"""Calls with more elements are not made again for a relation; those with more are not kept for anything, nor more
calls than this of one check."""

TRIED, AGAIN, NEW, REPEATED = 4, 3, 6, 4
"""For a relation, so many calls are looked at until one has another that belongs to it; so many calls are made again;
of so many a result is looked at once more where a check is about that; and the last of them is called so often, since
what is kept may be handed out in turn."""


class RightResults:
    """Observations of one check that were right, with what was expected of each."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Observation, list[Reference]]] = []

    def add(self, seen: Any, expected: list[Reference]) -> None:
        """Keep an observation; nothing else, such as a tensor that a test made itself."""
        if len(self.pairs) < MOST and 0 < _largest(seen) <= MOST_KEPT:
            self.pairs.append((seen, expected))

    def of(self, entry: str) -> list[tuple[Observation, list[Reference]]]:
        """Those of small calls of `entry`."""
        return [pair for pair in self.pairs if pair[0].entry == entry and _largest(pair[0]) <= MOST_ELEMENTS]


def _largest(seen: Any) -> int:
    """The elements of the largest argument of a call; 0 of what is none, or cannot be made again."""
    if not hasattr(seen, "wanted") or seen.substitute is not None or seen.card:
        return 0
    return max((arg.numel for arg in seen.inputs if hasattr(arg, "profile")), default=0)


def relations(item: pytest.Item, run: GradingRun, right: RightResults) -> dict[str, Any]:
    """The details of a check whose examples have passed: which relations of the assignment's domain were seen to hold.

    Raises:
        Failure: one does not.
    """
    subject = run.subject
    if subject is None or run.request.options.trivial is not None:
        return {}
    if claims(item, "assert_inputs_unmodified"):
        _assert_new_results(subject)
    if worth(item).kind is not Kind.CORRECTNESS:
        return {}
    tried = [name for entry in subject.assignment.domain.values() for name in _tried(subject, entry, right)]
    return {"relations": tried} if tried else {}


def _tried(subject: Subject, entry: EntryDomain, right: RightResults) -> list[str]:
    pairs = right.of(entry.name)
    forward = sorted((pair for pair in pairs if not pair[0].wanted and len(pair[1]) == 1), key=_size, reverse=True)
    call = getattr(subject, entry.name)
    tried = []
    for relation in relations_of(entry):
        if any(_holds(relation, call, seen, wanted[0]) for seen, wanted in forward[:TRIED]):
            tried.append(f"{relation.kind} {relation.name}")
    if entry.relations.independent and pairs:
        again = _spread(pairs, AGAIN)
        for place, (seen, expected) in enumerate(again, 1):
            assert_independent(subject, seen, expected, times=REPEATED if place == len(again) else 1)
        tried.append("independent")
    return tried + _called_in_ways(subject, entry, pairs)


def _called_in_ways(
    subject: Subject, entry: EntryDomain, pairs: Sequence[tuple[Observation, list[Reference]]]
) -> list[str]:
    """Makes small calls of an entry with gradients in each way in which a model may make them; the ways in turn take
    another call."""
    names, tried = [argument.name for argument in entry.arguments], dict[str, None]()
    for wanted, part in dict.fromkeys((seen.wanted, seen.part) for seen, _ in pairs if entry.gradients):
        alike = [pair for pair in pairs if (pair[0].wanted, pair[0].part) == (wanted, part) and _size(pair)]
        calls = _spread(sorted(alike, key=_size)[: 2 * AGAIN], AGAIN)[::-1]
        for number, way in enumerate(ways_of(calls[0][0], names) if calls else ()):
            seen, expected = calls[number % len(calls)]
            assert_called(subject, seen, expected, way)
            tried[way.name or "gradients in part"] = None
        scaled = [assert_scales(subject, *pair) for pair in calls if wanted]
        tried |= {"a scaled loss": None} if any(scaled) else {}
    return [f"called: {way}" for way in tried]


def _holds(relation: Relation, call: Callable[..., Observation], seen: Observation, expected: Reference) -> bool:
    """`assert_relation`, whose failure can be tried on a subject of another text."""
    def repeat(subject: Subject) -> None:
        another = getattr(subject, seen.entry)
        assert_close(another(*seen.inputs), [expected])
        assert_relation(relation, another, seen.inputs, expected)

    try:
        return assert_relation(relation, call, seen.inputs, expected)
    except Failure as failure:
        failure.repeat = repeat
        raise


def _size(pair: tuple[Observation, list[Reference]]) -> int:
    return sum(arg.numel for arg in pair[0].inputs if hasattr(arg, "profile"))


def _spread(found: Sequence[Any], most: int) -> list[Any]:
    """At most so many of them, the first and the last among these."""
    if not found:
        return []
    places = {number * (len(found) - 1) // max(most - 1, 1) for number in range(most)}
    return [found[place] for place in sorted(places)]


def _assert_new_results(subject: Subject) -> None:
    """A check that claims that results are new tensors also says so of calls that were made before.

    Raises:
        Failure: the second result of a call lies where the first lay.
    """
    forms = _spread(list(subject.forms.values()), NEW)
    for form in [*forms, *forms[-1:] * REPEATED]:
        assert_result_is_new(subject.retraced(form))
