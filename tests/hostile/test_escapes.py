"""Nothing that a submission does reaches what is outside of it, in any of the places that gradekit knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from gradekit.program import View
from gradekit.sandbox import TraceError, Tracer, host
from tests.sampling import one_in, sampled
from tests.tracer.styles import Text

from .escapes import ESCAPES, Escape
from .world import World

PLACES = {"here": (), "as in a container": ("root", "apart")}
"""What each place does without: all that this machine offers, and no namespaces."""

OTHER_PLACES = {"as on an old kernel": ("root", "apart", "landlock"), "without Landlock": ("landlock",)}
"""Neither namespaces nor Landlock, and namespaces alone: a sample is tried there each time, in forks of the tests' zygote."""

X = View(0, "float32", (4,), (1,))


@pytest.fixture(scope="module", params=PLACES.values(), ids=PLACES)
def level(
    request: pytest.FixtureRequest, starting_for_real: Callable[[], AbstractContextManager[None]]
) -> Iterator[int]:
    with starting_for_real(), host.without(*request.param):
        yield host.means().level


@pytest.fixture(scope="module", params=OTHER_PLACES.values(), ids=OTHER_PLACES)
def other_level(request: pytest.FixtureRequest) -> Iterator[int]:
    with host.without(*request.param):
        yield host.means().level


def heard(text: str) -> str:
    """All that the grader hears of a submission."""
    said = []
    with Tracer(Text(text)) as tracer:
        try:
            said += tracer.load().notes
            tracer.trace("entry", [X])
        except TraceError as error:
            said += [error.message, error.detail]
        said.append(tracer.output)
    return "\n".join(said)


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.id)
def test_a_submission_stays_where_it_is(world: World, level: int, escape: Escape) -> None:
    """It reads, writes, reaches, outlives and hurts nothing"""
    _stays(world, level, escape)


@pytest.mark.parametrize("escape", sampled(ESCAPES, lambda escape: escape.id, one_in(3)))
def test_a_submission_stays_where_it_is_in_other_places(world: World, other_level: int, escape: Escape) -> None:
    """It reads, writes, reaches, outlives and hurts nothing"""
    _stays(world, other_level, escape)


def _stays(world: World, level: int, escape: Escape) -> None:
    if level < escape.needs:
        pytest.skip(f"level {level} does not promise this")
    said = heard(escape.text(world.names()))
    assert said, "the grader must hear of it, if only that it failed"
    assert list(world.wounds(said)) == []
