"""What an instructor writes on a test function: points, and partial credit."""

import inspect
from dataclasses import dataclass
from typing import Any

import pytest

from gradekit.credit import Award, award, awarding
from gradekit.findings import Kind

__all__ = ["Award", "Worth", "award", "awarding", "claims", "points", "possible_points", "title", "worth"]


@dataclass(frozen=True)
class Worth:
    """What a test function is worth: `possible` points over all its parametrizations, and how the report shows it. A
    `bonus` comes on top of the points that are possible."""

    possible: float
    kind: Kind = Kind.CORRECTNESS
    title: str | None = None
    bonus: bool = False
    prove: bool = True
    handout: str = ""


def points(
    possible: float, *, kind: str = "correctness", title: str | None = None, bonus: bool = False, prove: bool = True,
    handout: str = "",
) -> pytest.MarkDecorator:  # fmt: skip
    """Say what a test is worth: `@points(30, kind="memory")`.

    A parametrized test splits `possible` evenly over its parameters. `kind` is correctness, memory, structure, speed
    or quiz; `title` replaces the first line of the docstring as the line that the student reads. A `bonus` is extra
    credit: no part of the possible points, and no failure where it is missed. A memory check also proves what it claims
    for all sizes of the assignment's domain, as far as that goes, and a check of correctness tries its calls in exact
    arithmetic, unless `prove` is False. `handout` are words of the handout's paragraph that the check holds: a report
    leads there. Raises ValueError for negative points, or a kind that the report does not have.
    """
    if possible < 0:
        raise ValueError(f"points cannot be negative, got {possible}")
    return pytest.mark.points(Worth(float(possible), Kind(kind), title, bonus, prove, handout))


def worth(item: pytest.Item) -> Worth:
    """What `item` is worth before its points are split; nothing where it has no `points`."""
    mark = item.get_closest_marker("points")
    return mark.args[0] if mark else Worth(0.0)


def claims(item: pytest.Item, name: str) -> bool:
    """Whether the test of `item` calls the claim called `name`."""
    test: Any = getattr(item, "obj", None)
    test = inspect.unwrap(
        getattr(getattr(test, "hypothesis", None), "inner_test", test)
    )  # while it runs, it is wrapped
    return name in getattr(getattr(test, "__code__", None), "co_names", ())


def title(item: pytest.Item) -> str:
    """The line that the student reads: the title given, or the docstring's first line, with the parameter's name."""
    lines = (getattr(getattr(item, "obj", None), "__doc__", None) or "").strip().splitlines()
    text = worth(item).title or (lines[0] if lines else item.name)
    parameters = item.name.removeprefix(_function(item))
    return f"{text} {parameters}" if parameters.strip("[]") else text


def possible_points(items: list[pytest.Item]) -> dict[str, float]:
    """The points of every item by node id, each test's own split evenly over its parametrizations. The split counts all
    the `items`, so call this before any are deselected."""
    siblings: dict[str, int] = {}
    for item in items:
        siblings[_siblings(item)] = siblings.get(_siblings(item), 0) + 1
    return {item.nodeid: worth(item).possible / siblings[_siblings(item)] for item in items}


def _siblings(item: pytest.Item) -> str:
    return item.nodeid.removesuffix(item.name) + _function(item)


def _function(item: pytest.Item) -> str:
    return getattr(item, "originalname", None) or item.name
