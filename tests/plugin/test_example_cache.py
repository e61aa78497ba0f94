"""A warm grader tries the next submission on the examples that it has drawn before, and comes to the same report."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit import reuse
from gradekit.assignment import Assignment
from gradekit.findings import Cause, Report
from gradekit.plugin import design
from tests.graded import grade
from tests.plugin.samples import RIGHT, TESTS, TRIPLES, UNMASKED

Make = Callable[..., Assignment]
Write = Callable[[str], Path]
pytestmark = pytest.mark.usefixtures("keeping")


def without_time(report: Report) -> Report:
    return replace(report, seconds=0.0)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows whenever Hypothesis draws anything for a test."""
    seen: list[Any] = []
    from hypothesis.internal.conjecture.data import ConjectureData

    draw = ConjectureData.draw
    monkeypatch.setattr(
        ConjectureData, "draw", lambda self, *args, **named: (seen.append(1), draw(self, *args, **named))[1]
    )
    return seen


def class_of(texts: Iterable[str], grade_one: Callable[[str], Report]) -> list[Report]:
    with reuse.kept():
        return [without_time(grade_one(text)) for text in texts]


@pytest.mark.sample(1)
@pytest.mark.parametrize("quick", [False, True])
def test_a_class_gets_the_records_that_each_would_get_alone(assignment: Make, submitted: Write, quick: bool) -> None:
    made = assignment()

    def grade_one(text: str) -> Report:
        return grade(made, submitted(text), profile="quick", shrink=not quick)

    texts = (RIGHT, UNMASKED, TRIPLES, UNMASKED.replace("out", "result"))
    with reuse.kept(False):
        alone = [without_time(grade_one(text)) for text in texts]
    assert class_of(texts, grade_one) == alone
    assert len({report.score.earned for report in alone}) > 1


def test_what_has_passed_once_is_not_drawn_again(assignment: Make, submitted: Write, drawn: list[Any]) -> None:
    made, path = assignment(), submitted(RIGHT)
    first = grade(made, path, profile="quick")
    assert drawn
    drawn.clear()
    assert without_time(grade(made, path, profile="quick")) == without_time(first)
    assert not drawn


@pytest.mark.usefixtures("usual_mends")
def test_a_wrong_submission_gets_the_same_mends_after_a_right_one(assignment: Make, submitted: Write) -> None:
    made = assignment()
    cold = grade(made, submitted(UNMASKED), profile="quick")
    grade(made, submitted(RIGHT), profile="quick")
    assert without_time(grade(made, submitted(UNMASKED), profile="quick")) == without_time(cold)
    assert cold.score.earned < cold.score.possible


@pytest.mark.parametrize("text", [TRIPLES, UNMASKED])
def test_a_quick_run_gives_the_same_points_for_the_same_causes(assignment: Make, submitted: Write, text: str) -> None:
    made, path = assignment(), submitted(text)
    thorough, quick = grade(made, path, profile="quick"), grade(made, path, profile="quick", shrink=False)
    assert quick.score == thorough.score
    assert [check.cause for check in quick.checks] == [check.cause for check in thorough.checks]


def test_in_a_quick_run_a_wrong_submission_draws_for_those_after_it(
    assignment: Make, submitted: Write, drawn: list[Any]
) -> None:
    made = assignment()
    grade(made, submitted(TRIPLES), profile="quick", shrink=False)
    drawn.clear()
    for text in (RIGHT, UNMASKED):
        grade(made, submitted(text), profile="quick", shrink=False)
    assert not drawn


def test_a_quick_run_shows_the_simplest_of_its_examples_that_fails(assignment: Make, submitted: Write) -> None:
    report = grade(assignment(), submitted(TRIPLES), profile="quick", shrink=False)
    known = next(
        examples for key, (examples, _) in design._drawn.current._entries.items() if "test_doubles" in str(key)
    )
    shown = next(check.counterexample for check in report.checks if check.id == "test_doubles")
    assert shown is not None
    assert shown["inputs"][0]["shape"] == list(known[0]["x"].shape)


def examples_of(report: Report, id: str) -> int:
    """How many examples of a check ran."""
    (check,) = (check for check in report.checks if check.id == id)
    return int(check.details["examples"])


def test_a_check_that_is_not_to_be_shrunk_ends_with_its_first_example_that_fails(
    assignment: Make, submitted: Write
) -> None:
    assert examples_of(grade(assignment(), submitted(TRIPLES), profile="quick", shrink=False), "test_doubles") == 1


def test_another_seed_or_profile_and_an_edited_test_draw_anew(assignment: Make, submitted: Write, drawn: list[Any]) -> None:
    made, path = assignment(), submitted(RIGHT)
    grade(made, path, profile="quick")
    for tests, options in ((TESTS, {"profile": "quick", "seed": 8}), (TESTS, {}), (TESTS + "\n# edited\n", {"profile": "quick"})):
        drawn.clear()
        grade(assignment(tests), path, **options)
        assert drawn


def test_values_that_a_test_could_change_are_not_kept() -> None:
    assert not design.drawn_once("a check", lambda: [{"sizes": [1, 2]}])
    assert design.drawn_once("another", lambda: [{"sizes": (1, 2)}]) == ({"sizes": (1, 2)},)


def test_a_submission_that_dies_while_it_is_traced_ahead_is_told_so(assignment: Make, submitted: Write) -> None:
    made, deadly = assignment(), RIGHT.replace("    out =", "    if x.numel() > 5:\n        os._exit(3)\n    out =")
    assert deadly != RIGHT
    cold = grade(made, submitted("import os\n" + deadly), profile="quick", shrink=False)
    grade(made, submitted(RIGHT), profile="quick", shrink=False)
    warm = grade(made, submitted("import os\n" + deadly), profile="quick", shrink=False)
    assert [check.cause for check in warm.checks] == [check.cause for check in cold.checks]
    assert Cause.CRASH in [check.cause for check in warm.checks]
