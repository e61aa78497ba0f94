"""Examples that this process has drawn before: a warm grader runs them again without asking Hypothesis.

One seed gives every student the same examples, and drawing them takes longer than running most. So what was drawn for a
check is kept, the simplest example first, and the next submission is tried on just that. If anything fails there, or
could not be known, the check starts over with Hypothesis, which finds the same failure and shrinks it; in a swift run,
where a class is graded, the simplest example that fails is shown as it is. Points are the same either way.

Works in the grader's process; what it keeps lives as long as that.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.plugin.run_state import GradingRun
from gradekit.reuse import SharedCache, shared

if TYPE_CHECKING:
    from gradekit.sandbox import Form

Given = Mapping[str, Any]
"""What was drawn for one example, by the name of the parameter."""

MOST = 512
"""Checks that are remembered."""

_drawn: SharedCache[Hashable, tuple[Given, ...]] = shared(MOST)
_forms: SharedCache[Hashable, dict[str, Form]] = shared(MOST)


def key(item: pytest.Item, run: GradingRun) -> Hashable:
    """What the examples of a check depend on: the test as it stands in its file, the seed and the profile."""
    stat = item.path.stat()
    return (item.nodeid, str(item.path), stat.st_mtime_ns, stat.st_size, run.request.seed, run.profile)


def remembered(key: Hashable) -> tuple[Given, ...] | None:
    """The examples of the check, if they are known; none where it cannot be rehearsed."""
    return _drawn.get(key)


def remember(key: Hashable, examples: Sequence[Given]) -> None:
    """Keep what was drawn for a check, the simplest first; nothing where a test could change the values."""
    fixed = all(_is_fixed(value) for given in examples for value in given.values())
    distinct = {repr(given): given for given in examples}.values()
    _drawn.put(key, tuple(sorted(distinct, key=_simplicity)) if fixed else ())


def remember_forms(key: Hashable, forms: Mapping[str, Form]) -> None:
    """Keep the forms of the calls that a check made, in their order: the next submission is called in the same ones."""
    _forms.put(key, dict(forms))


def forms(key: Hashable) -> Mapping[str, Form]:
    """The forms of the calls that the check has made before."""
    return _forms.get(key) or {}


def _is_fixed(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return not hasattr(value, "data_ptr")  # a tensor can be hashed and changed


def _simplicity(given: Given) -> tuple[int, ...]:
    """A measure of how hard an example is to read: those of its specs added up, then the size of its numbers."""
    values = list(_flat(tuple(given.values())))
    specs = [value.simplicity for value in values if hasattr(value, "simplicity")]
    numbers = sum(abs(int(value)) for value in values if isinstance(value, (int, float)) and math.isfinite(value))
    return (*map(sum, zip(*specs, strict=True)), numbers)


def _flat(value: Any) -> Iterator[Any]:
    if not isinstance(value, (tuple, frozenset)):
        yield value
        return
    for item in value:
        yield from _flat(item)
