"""Examples that this process has drawn before: a warm grader runs them again without asking Hypothesis.

One seed gives every student the same examples, and drawing them takes longer than running most. So what a passing check
drew is kept, and the next submission is tried on just that. If anything fails there, or could not be known, the check
starts over with Hypothesis, which finds the same failure and shrinks it: nothing here decides anything.

Works in the grader's process; what it keeps lives as long as that.
"""

from __future__ import annotations

import collections
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pytest

from gradekit.plugin.grading import Grading

Given = Mapping[str, Any]
"""What was drawn for one example, by the name of the parameter."""

MOST = 512
"""Checks that are remembered."""

_drawn: collections.OrderedDict[Hashable, tuple[Given, ...]] = collections.OrderedDict()


def key(item: pytest.Item, grading: Grading) -> Hashable:
    """What the examples of a check depend on: the test as it stands in its file, the seed and the profile."""
    stat = item.path.stat()
    return (item.nodeid, str(item.path), stat.st_mtime_ns, stat.st_size, grading.seed, grading.profile)


def remembered(key: Hashable) -> tuple[Given, ...] | None:
    """The examples of the check, if they are known."""
    found = _drawn.get(key)
    if found is not None:
        _drawn.move_to_end(key)
    return found


def remember(key: Hashable, examples: Sequence[Given]) -> None:
    """Keep what a passing check drew; values that a test could change are not kept."""
    if not all(_is_fixed(value) for given in examples for value in given.values()):
        return
    _drawn[key] = tuple(examples)
    while len(_drawn) > MOST:
        _drawn.popitem(last=False)


def _is_fixed(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return not hasattr(value, "data_ptr")  # a tensor can be hashed and changed
