"""Nothing that a submission does reaches what is outside of it, in any of the places that gradekit knows."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from gradekit.program import View
from gradekit.sandbox import TraceError, Tracer, host
from tests.server.forking import forked_tracers
from tests.tracer.styles import Text

from .escapes import ESCAPES, Escape
from .world import World

FORKED = "in a fork of a process with torch"
PLACES = {
    "here": (), "as in a container": ("root", "apart"), "as on an old kernel": ("root", "apart", "landlock"),
    "without Landlock": ("landlock",), FORKED: (),
}
"""What each place does without: here is all that this machine offers; in the others there are no namespaces, neither
namespaces nor Landlock, and namespaces alone. There they are tried in forks of the tests' zygote; and in
processes that come from where those of `gradekit check` do."""

X = View(0, "float32", (4,), (1,))


@pytest.fixture(scope="module")
def level(
    request: pytest.FixtureRequest, starting_for_real: Callable[[], AbstractContextManager[None]]
) -> Iterator[int]:
    """The level of isolation in the place that the test is parametrized with. One fixture for all places: of two that
    are alive at once, the one that ends last would put back what the other has set."""
    without = PLACES[request.param]
    with contextlib.ExitStack() as place:
        if not without:
            place.enter_context(starting_for_real())
        if request.param == FORKED:
            place.enter_context(forked_tracers())
        place.enter_context(host.without(*without))
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


@pytest.mark.parametrize("level", ["here"], indirect=True, scope="module")
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.id)
def test_a_submission_stays_where_it_is(world: World, level: int, escape: Escape) -> None:
    """It reads, writes, reaches, outlives and hurts nothing"""
    _stays(world, level, escape)


@pytest.mark.sample(20)
@pytest.mark.parametrize("level", [place for place in PLACES if place != "here"], indirect=True, scope="module")
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.id)
def test_a_submission_stays_where_it_is_in_other_places(world: World, level: int, escape: Escape) -> None:
    """It reads, writes, reaches, outlives and hurts nothing"""
    _stays(world, level, escape)


def _stays(world: World, level: int, escape: Escape) -> None:
    assert host.means().level == level, "another fixture's place: here the escape may succeed, and would write to this checkout"
    if level < escape.needs:
        pytest.skip(f"level {level} does not promise this")
    said = heard(escape.text(world.names()))
    assert said, "the grader must hear of it, if only that it failed"
    assert list(world.wounds(said)) == []
