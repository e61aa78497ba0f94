"""Examples of checks are answered by walks of a text, where that can be walked; what a walk cannot tell is run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.findings import Cause
from gradekit.interpreter.tile_values import NotWalked, OutsideEverywhere
from gradekit.judge import assert_close, reference
from gradekit.judge.failure import Failure
from gradekit.plugin.tutoring import raised_by
from gradekit.program import Program
from gradekit.repair.failed_check import Example
from gradekit.repair.other_checks import LEAST_WALKED, MOST_RUN, confirmed, with_a_mend
from gradekit.repair.search import OtherChecks
from gradekit.repair.walked_submission import MOST_IN_VAIN, WalkedExamples
from tests.gpu.programs import normal, traced
from tests.repair.corpora import ROOT
from tests.repair.test_other_checks import Called
from tests.tracer.styles import Text

SOFTMAX = (ROOT / "solutions/softmax/right_one_row.py").read_text(encoding="utf-8")
X = normal(3, 5)


@pytest.fixture(scope="module")
def program() -> Program:
    return traced(Text(SOFTMAX), "softmax", X)[0]


def compares(submission: Any) -> BaseException | None:
    """An example of a check of results."""
    try:
        assert_close(submission.softmax(X), reference(lambda x: torch.softmax(x, -1), X))
    except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
        return error
    return None


@pytest.mark.parametrize(
    ("old", "new", "raised"),
    [
        ("e / total", "e / total", type(None)),
        ("e / total", "e * total", Failure),
        ("tl.sum(e, axis=0)", "tl.reduce(e, 0, add)", NotWalked),
        ("cols < N", "cols <= N", OutsideEverywhere),  # and what is there is not known
    ],
)
def test_a_walk_tells_right_from_wrong_or_that_it_does_not_know(
    program: Program, old: str, new: str, raised: type[BaseException]
) -> None:
    error = WalkedExamples(SOFTMAX.replace(old, new), program).error(Example("example", compares))
    assert type(error) is raised


def test_after_some_examples_in_vain_no_other_is_walked(program: Program) -> None:
    asked: list[int] = []
    walked = WalkedExamples(SOFTMAX, program)

    def unknown(submission: Any) -> BaseException:
        asked.append(1)
        return ValueError("unknown")

    for number in range(MOST_IN_VAIN + 2):
        assert walked.error(Example(number, unknown)) is not None
    assert len(asked) == MOST_IN_VAIN and walked.error(Example("another", compares)) is not None


class Answers:
    """In the place of walked examples: None is right, an error wrong or not known."""

    def __init__(self, known: dict[Any, BaseException | None]) -> None:
        self._known = known

    def error(self, example: Any) -> BaseException | None:
        return self._known.get(example, NotWalked(""))


def differs(value: float) -> Failure:
    return Failure(Cause.WRONG_VALUES, "wrong", comparison=SimpleNamespace(actual=torch.tensor(value)))  # type: ignore[arg-type]


def held(compares: bool, ran: list[str]) -> Example:
    """An example that is right where it is run."""
    return Example(object(), raised_by(lambda submission: ran.append("run")), "check", compares)


def test_what_a_walk_finds_right_is_not_run_and_of_the_rest_so_much_is() -> None:
    ran: list[str] = []
    known, memory, *others = held(True, ran), held(False, ran), *(held(True, ran) for _ in range(MOST_RUN + 5))
    answers = Answers({known: None, memory: None, others[0]: differs(2.0)})
    found = with_a_mend([known, memory, *others], Called(), "", {}.get, answers)  # type: ignore[arg-type]
    assert found is OtherChecks.ALL and len(ran) == MOST_RUN, "a check of memory among them, and what a walk blames"


@pytest.mark.parametrize(
    ("own", "before", "after", "right"),
    [
        (None, None, None, LEAST_WALKED),
        (None, 1.0, None, LEAST_WALKED),
        (None, 1.0, 1.0, 2),
        (None, 1.0, 2.0, 0),
        (None, None, 2.0, 0),
        (2.0, None, None, 0),
    ],
)
def test_a_change_is_confirmed_where_all_is_right_or_wrong_as_before(
    own: float | None, before: float | None, after: float | None, right: int
) -> None:
    """Of `LEAST_WALKED` examples, one of the check itself and one of another are wrong like this"""
    errors = [differs(value) if value is not None else None for value in (own, after)]
    another = held(True, [])
    walked = Answers({"own": errors[0], "mine": None, another: errors[1]})
    known = {another: differs(before)} if before is not None else {}
    of_check = ["own", "mine"]
    found = confirmed(walked, of_check, [another, held(False, [])], known.get)  # type: ignore[arg-type]
    assert found == (right if right != 2 else None), "where too few are known, nothing is said"


def test_too_few_examples_that_can_be_walked_confirm_nothing() -> None:
    assert confirmed(Answers({"own": None}), ["own"], [held(True, [])], {}.get) is None  # type: ignore[arg-type,list-item]
