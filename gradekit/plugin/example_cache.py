"""A cache of drawn examples: a process that grades many submissions runs them again without asking Hypothesis.

One seed gives every student the same examples, and drawing them takes longer than running most. So what was drawn for a
check is cached, the simplest example first, and the next submission is tried on it. If an example fails, or its result
cannot be known, the check starts over with Hypothesis, which finds the same failure and shrinks it; without shrinking,
as when a class is graded, the simplest example that fails is shown as it is. Points are the same either way.

Lives in the grader's process, and as long as it does.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.plugin.profiles import Profile
from gradekit.reuse import SharedCache, shared

if TYPE_CHECKING:
    from gradekit.sandbox import Form

DrawnArguments = Mapping[str, Any]
"""What was drawn for one example, by the name of the parameter."""

MOST = 512
"""The number of checks whose examples are cached."""

_drawn: SharedCache[Hashable, tuple[DrawnArguments, ...]] = shared(MOST)
_forms: SharedCache[Hashable, dict[str, Form]] = shared(MOST)


def key(item: pytest.Item, seed: int | None, profile: Profile) -> Hashable:
    """What the examples of a check depend on: the test as it stands in its file, the seed and the profile."""
    stat = item.path.stat()
    return (item.nodeid, str(item.path), stat.st_mtime_ns, stat.st_size, seed, profile)


def get(key: Hashable) -> tuple[DrawnArguments, ...] | None:
    """The examples of the check, None if they are not cached; empty if they cannot be."""
    return _drawn.get(key)


def put(key: Hashable, examples: Sequence[DrawnArguments]) -> None:
    """Keep what was drawn for a check, the simplest first; nothing where a test could change the values."""
    fixed = all(_is_fixed(value) for given in examples for value in given.values())
    distinct = {repr(given): given for given in examples}.values()
    _drawn.put(key, tuple(sorted(distinct, key=simplicity)) if fixed else ())


def put_calls(key: Hashable, forms: Mapping[str, Form]) -> None:
    """Keep the forms of the calls that a check made, in their order: the next submission is called in the same ones."""
    _forms.put(key, dict(forms))


def calls(key: Hashable) -> Mapping[str, Form]:
    """The forms of the calls that the check has made before."""
    return _forms.get(key) or {}


def _is_fixed(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return not hasattr(value, "data_ptr")  # a tensor can be hashed and changed


def simplicity(given: DrawnArguments) -> tuple[int, ...]:
    """A measure of how hard an example is to read: those of its specs added up, then the size of its numbers."""
    values = list(flattened(tuple(given.values())))
    specs = [value.simplicity for value in values if hasattr(value, "simplicity")]
    numbers = sum(abs(int(value)) for value in values if isinstance(value, (int, float)) and math.isfinite(value))
    return (*map(sum, zip(*specs, strict=True)), numbers)


def flattened(value: Any) -> Iterator[Any]:
    """The values in nested tuples and sets, one after the other."""
    if not isinstance(value, (tuple, frozenset)):
        yield value
        return
    for item in value:
        yield from flattened(item)
