"""Of the examples of a check that failed alike, the one to show."""

from __future__ import annotations

from typing import Any

from gradekit.plugin import example_cache
from gradekit.plugin.examples import Example, Examples, FailedExample


def most_telling(smallest: Example, examples: Examples) -> Example:
    """Of the examples that failed for the cause of the `smallest`, with tensors of its forms, the one whose numbers
    show most; of equals the smallest, and then the first."""
    own = next((failed for failed in examples.failures if failed.example is smallest), None)
    if own is None:
        return smallest
    rivals = [failed for failed in examples.failures if _kind(failed) == _kind(own)]
    return max([own, *rivals], key=lambda failed: _telling(failed.error)).example


def _kind(failed: FailedExample) -> tuple[Any, ...]:
    return getattr(failed.error, "cause", None), getattr(failed.error, "line", None), _forms(failed.example)


def _forms(example: Example) -> tuple[Any, ...]:
    """What an example is but for its values: the form of each tensor, and how many values were drawn on its way."""
    given = example_cache.flattened(tuple(example.given.values()))
    return (len(example.drawn), *((s.dtype, s.shape, s.stride, s.offset) for s in given if hasattr(s, "stride")))


def _telling(error: BaseException) -> tuple[int, ...]:
    comparison = getattr(error, "comparison", None)
    return comparison.telling if comparison is not None else (0,)
