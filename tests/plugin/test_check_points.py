"""Points and partial credit, and how exceptions become outcomes."""

import pytest

from gradekit import award, points
from gradekit.engine.budget import OverBudget, Unsupported
from gradekit.engine.host import ForbiddenOp
from gradekit.findings import Cause, Kind, Outcome
from gradekit.judge.failure import Failure
from gradekit.plugin import check_points
from gradekit.plugin.check_points import Worth, awarding
from gradekit.plugin.check_results import CheckVerdict, verdict_of
from gradekit.plugin.run_state import Rejection
from gradekit.sandbox import TraceError
from tests.beside import beside

SAMPLE = beside(__file__)["sample"]


COLLECTED: dict[str, pytest.Item] = {}
"""The tests of SAMPLE, which no test here changes, once they have been collected."""


@pytest.fixture
def items(request: pytest.FixtureRequest) -> dict[str, pytest.Item]:
    if not COLLECTED:
        pytester = request.getfixturevalue("pytester")
        pytester.makeini("[pytest]\naddopts = -p no:benchmark")  # it warns where xdist runs, and warnings are errors here
        COLLECTED.update({item.name: item for item in pytester.getitems(SAMPLE)})
    return COLLECTED


def test_points_carry_what_the_report_needs() -> None:
    assert points(30, kind="memory", title="T").mark.args == (Worth(30.0, Kind.MEMORY, "T"),)
    assert [points(5, bonus=bonus).mark.args[0].bonus for bonus in (True, False)] == [True, False]


def test_points_that_no_report_can_have_are_refused() -> None:
    with pytest.raises(ValueError, match="speeed"):
        points(5, kind="speeed")
    with pytest.raises(ValueError, match="-5"):
        points(-5)


@pytest.mark.parametrize(("name", "title"), [
    ("test_documented", "Stays inside its tensors"),
    ("test_titled", "A title of its own"),
    ("test_parametrized[float16]", "Computes in every dtype [float16]"),
    ("test_free", "test_free"),
])  # fmt: skip
def test_the_title_is_the_given_one_or_the_docstrings_first_line_or_the_name(
    items: dict[str, pytest.Item], name: str, title: str
) -> None:
    assert check_points.title(items[name]) == title


def test_parametrizations_share_their_points_evenly(items: dict[str, pytest.Item]) -> None:
    by_node = check_points.possible_points(list(items.values()))
    possible = {name: by_node[item.nodeid] for name, item in items.items()}
    assert [possible[f"test_parametrized[{d}]"] for d in ("float32", "float16", "bfloat16")] == [3.0, 3.0, 3.0]
    assert (possible["test_documented"], possible["test_free"]) == (30.0, 0.0)


def test_the_smallest_award_counts_with_its_own_reason() -> None:
    with awarding() as given:
        award(0.75, "nearly")
        award(0.5, "half")
        award(0.9, "close")
    assert (given.fraction, given.why) == (0.5, "half")


def test_an_award_belongs_to_the_check_that_runs() -> None:
    with awarding() as outer:
        with awarding():
            award(0.1, "inner")
        assert outer.fraction == 1.0


def test_an_award_of_more_than_everything_or_outside_of_a_check_is_a_mistake() -> None:
    with awarding(), pytest.raises(ValueError, match="1.5"):
        award(1.5, "generous")
    with pytest.raises(RuntimeError, match="outside"):
        award(0.5, "to whom?")


# --- from exceptions to outcomes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "verdict"), [
    (Failure(Cause.NAN, "a NaN", line=4, facts={"n": 1}), CheckVerdict(Outcome.FAILED, "a NaN", Cause.NAN, 4, details={"n": 1})),
    (TraceError(Cause.READS_VALUES, "needs values", 7, "Traceback"),
     CheckVerdict(Outcome.FAILED, "needs values", Cause.READS_VALUES, 7, details={"detail": "Traceback"})),
    (pytest.skip.Exception("later"), CheckVerdict(Outcome.PENDING, "later")),
])
def test_what_is_known_of_a_failure_is_kept(error: BaseException, verdict: CheckVerdict) -> None:
    assert verdict_of(error) == verdict


@pytest.mark.parametrize(("error", "outcome", "cause", "line", "said"), [
    (Unsupported("tt.elementwise_inline_asm", 9), Outcome.PENDING, None, 9, "tt.elementwise_inline_asm"),
    (ForbiddenOp("aten::add", 3), Outcome.FAILED, Cause.FORBIDDEN_OP, 3, "aten::add"),
    (OverBudget("work", 30, 5), Outcome.FAILED, Cause.BUDGET_EXCEEDED, 5, ""),
    (Rejection(Cause.SYNTAX_ERROR, "line 1"), Outcome.FAILED, Cause.SYNTAX_ERROR, None, "line 1"),
    (pytest.fail.Exception("no"), Outcome.FAILED, None, None, "no"),
])
def test_whose_an_error_is_and_where_is_told(
    error: BaseException, outcome: Outcome, cause: Cause | None, line: int | None, said: str
) -> None:
    verdict = verdict_of(error)
    assert (verdict.outcome, verdict.line) == (outcome, line) and said in verdict.message
    assert cause is None or verdict.cause is cause


def test_an_assertion_shows_its_message_without_pytests_comparison() -> None:
    assert verdict_of(AssertionError("two launches\nassert 2 == 1")).message == "two launches"
    assert verdict_of(AssertionError()).message == "The assertion failed."


@pytest.mark.parametrize("error", [ZeroDivisionError("1 / 0"), KeyError("x"), RuntimeError("torch broke")])
def test_anything_else_is_the_graders_own_fault(error: Exception) -> None:
    verdict = verdict_of(error)
    assert verdict.outcome is Outcome.FAULT and verdict.cause is None
    assert type(error).__name__ in verdict.details["traceback"]
