"""A survey tells mutants that are caught from those that compute the same, were judged equivalent, or survived."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import Assignment, UsageError
from gradekit.batch import pool
from gradekit.batch.grader import GraderFailed, GradingJob, JobResult
from gradekit.cli import main
from gradekit.course.edits import edited
from gradekit.mutation.mutants import judged, mutants
from gradekit.mutation.survey import MutantOutcome, MutantResult, Survey, Trial, Trials, row, score
from tests.beside import beside
from tests.small import laid_out

SOLUTION = beside(__file__)["solution"]

TESTS = '''\
"""A weak test: whole tiles alone, and few of them."""

from hypothesis import given, settings

from gradekit import assert_close, points, reference, shaped


@points(100)
@settings(max_examples=3)
@given(x=shaped((128,), dtypes=["float32"], layouts=["contiguous"]))
def test_values(submission, x):
    """Doubles"""
    assert_close(submission.double(x), reference(lambda x: 2 * x, x))
'''

JUDGED = """
[tiles_are_whole]
why = "For this test's sake."
edits = ['''
-    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) * 2.0, mask=i < n)
+    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) * 2.0)
''']
"""


@pytest.fixture
def assignment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assignment:
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(tmp_path / "assignments"))
    files = {"test_double.py": TESTS, "solutions/solution.py": SOLUTION, "solutions/equivalent.toml": JUDGED}
    return laid_out(tmp_path, "double", "double", files)


Answer = Callable[[str], Any]


class FakeGraders:
    """Answers for graders: `failed` says which checks a text fails."""

    failed: Answer
    asked: list[str]

    def __init__(self, card: str = "", *, warms: bool, only: bool) -> None:
        assert not card

    def grade(self, job: GradingJob, seconds: float) -> JobResult:
        text = job.bytes.decode()
        names = ("test_values", "test_b[1]") if job.options.get("hidden") else ("test_values",)
        assert job.options["diagnose"] is False, "a survey wants verdicts alone"
        if len(names) == 1:  # each text is tried by the public tests first
            type(self).asked.append(text)
        failed = type(self).failed(text)
        if isinstance(failed, Exception):
            raise failed
        checks = [{"id": name, "outcome": "failed" if name in failed else "passed"} for name in names]
        return JobResult(
            {"status": "graded", "checks": checks}, digests={"call": "same" if "* 2.0" in text else "other"}
        )

    def close(self) -> None:
        """Nothing was started."""


@pytest.fixture
def grader(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeGraders]]:
    FakeGraders.failed, FakeGraders.asked = staticmethod(lambda text: ()), []
    monkeypatch.setattr(pool, "Graders", FakeGraders)
    yield FakeGraders


def surveyed(assignment: Assignment, file: Path | None = None) -> list[MutantResult]:
    return list(Survey(assignment).results(Trials(assignment, file, jobs=1)))


# --- what comes of a mutant -------------------------------------------------------------------------------------------


def test_a_weak_test_leaves_survivors_that_the_command_shows_as_edits(
    assignment: Assignment, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real grader: partial tiles are never drawn, so that no mutant of a mask is caught"""
    arguments = ["verify", "double", "--mutants", "--jobs", "1"]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--most", "16"])
    shown = capsys.readouterr().out
    assert ended.value.code == 1
    caught = {mutant for mutant in shown.splitlines() if mutant.startswith("  caught")}
    assert any("operation changed" in line for line in caught) and any("program id" in line for line in caught)
    survived = [line for line in shown.splitlines() if line.startswith("  SURVIVED")]
    unseen = re.compile("mask|other|comparison|grid capped|rounded down|buffer kept")
    assert survived and [line for line in survived if not unseen.search(line)] == []
    assert "judged    " in shown and "tiles_are_whole: For this test's sake." in shown
    assert "to catch it, draw a size, an index or a value for which the two sides are equal; or judge it" in shown
    assert "  same      " in shown and "0 faults" in shown
    kept = [json.loads(line) for line in (tmp_path / "mutants" / "double.jsonl").read_text().splitlines()]
    assert len(kept) == len({trial["key"] for trial in kept})
    main([*arguments, "--most", "5"], standalone_mode=False)
    assert len((tmp_path / "mutants" / "double.jsonl").read_text().splitlines()) == len(kept)  # nothing was graded again


def test_a_mutant_is_caught_where_a_check_fails(assignment: Assignment, grader: type[FakeGraders]) -> None:
    grader.failed = staticmethod(lambda text: () if "* 2.0" in text else ("test_values",))
    results = surveyed(assignment)
    caught = [result for result in results if result.outcome is MutantOutcome.CAUGHT]
    assert caught and all("* 2.0" not in result.mutant.text and result.by == ("test_values",) for result in caught)
    assert all(result.is_public for result in caught)


def test_what_hidden_tests_alone_catch_is_not_caught_by_the_public_ones(
    assignment: Assignment, grader: type[FakeGraders]
) -> None:
    grader.failed = staticmethod(lambda text: () if text == SOLUTION else ("test_b[1]",))
    results = surveyed(assignment)
    found = score(results)
    assert found.all_tests == found.counted > 0 and found.public_tests == 0
    assert {result.by for result in results if result.outcome is MutantOutcome.CAUGHT} == {("test_b",)}


def test_a_mutant_whose_calls_become_the_same_programs_is_no_survivor(
    assignment: Assignment, grader: type[FakeGraders]
) -> None:
    outcomes = {("* 2.0" in result.mutant.text, result.outcome) for result in surveyed(assignment)}
    assert outcomes == {(True, MutantOutcome.SAME), (False, MutantOutcome.SURVIVED), (True, MutantOutcome.JUDGED)}


def test_a_grader_that_fails_is_a_fault_and_no_catch(assignment: Assignment, grader: type[FakeGraders]) -> None:
    grader.failed = staticmethod(lambda text: () if text == SOLUTION else GraderFailed("it died"))
    found = score(surveyed(assignment))
    assert (found.counted, found.all_tests, found.faults) == (0, 0, found.mutants - 1)


def test_a_solution_that_fails_cannot_be_surveyed(assignment: Assignment, grader: type[FakeGraders]) -> None:
    grader.failed = staticmethod(lambda text: ("test_values",))
    with pytest.raises(UsageError, match="the solution itself fails: test_values"):
        surveyed(assignment)


def test_a_survivor_is_shown_in_the_form_that_judges_it_equivalent(assignment: Assignment) -> None:
    survey = Survey(assignment)
    for mutant in survey.mutants:
        shown = survey.survivor(MutantResult(mutant, MutantOutcome.SURVIVED, 1.0))
        edit = "\n".join(line.removeprefix("        ") for line in shown.splitlines()[:-1])
        assert edited(SOLUTION, edit, "solution.py") == mutant.text
        assert shown.splitlines()[-1].strip().startswith(f"to catch it, draw {mutant.operator.needs};")


def test_programs_are_compared_call_by_call_and_no_common_call_shows_nothing() -> None:
    own = Trial(digests={"a": "1", "b": "2"})
    assert Trial(digests={"a": "1", "c": "3"}).computes_as(own)
    assert not Trial(digests={"a": "1", "b": "3"}).computes_as(own)
    assert not Trial(digests={"c": "3"}).computes_as(own)


# --- what is remembered -----------------------------------------------------------------------------------------------


def test_a_survey_goes_on_where_it_was_ended(assignment: Assignment, grader: type[FakeGraders], tmp_path: Path) -> None:
    before = surveyed(assignment, tmp_path / "kept")
    lines = (tmp_path / "kept").read_text().splitlines(keepends=True)
    asked, half = len(grader.asked), len(lines) // 2
    (tmp_path / "kept").write_text("".join(lines[:half]) + lines[half][:20])  # ended in the middle of a line
    after = surveyed(assignment, tmp_path / "kept")
    assert len(grader.asked) - asked == asked - half
    assert [(r.mutant, r.outcome, r.by) for r in after] == [(r.mutant, r.outcome, r.by) for r in before]


def test_other_tests_make_every_trial_a_new_one(
    assignment: Assignment, grader: type[FakeGraders], tmp_path: Path
) -> None:
    surveyed(assignment, tmp_path / "kept")
    asked = len(grader.asked)
    assignment.tests.write_text(TESTS.replace("(128,)", "(192,)"))
    surveyed(assignment, tmp_path / "kept")
    assert len(grader.asked) == 2 * asked


def test_a_fault_is_tried_again(assignment: Assignment, grader: type[FakeGraders], tmp_path: Path) -> None:
    grader.failed = staticmethod(lambda text: () if text == SOLUTION else GraderFailed("it died"))
    surveyed(assignment, tmp_path / "kept")
    assert len((tmp_path / "kept").read_text().splitlines()) == 1  # the solution's


# --- what a person judged ---------------------------------------------------------------------------------------------


def test_a_judged_mutant_is_not_graded(assignment: Assignment, grader: type[FakeGraders]) -> None:
    (one,) = [result for result in surveyed(assignment) if result.outcome is MutantOutcome.JUDGED]
    assert one.mutant.text not in grader.asked and one.note == "tiles_are_whole: For this test's sake."


def test_a_judgement_that_makes_no_mutant_is_stale(assignment: Assignment) -> None:
    assert assignment.solutions is not None
    assert Survey(assignment).stale == []
    more = JUDGED + JUDGED.replace("tiles_are_whole", "old").replace("other=0.0) * 2.0)\n", "other=0.0) * 2.5)\n")
    (assignment.solutions / "equivalent.toml").write_text(more)
    assert Survey(assignment).stale == ["old"]


@pytest.mark.parametrize(("toml", "said"), [
    (JUDGED.replace("i < n)\n+", "i < m)\n+"), "these lines stand 0 times in solution.py"),
    ("[a]\nwhy = 1\nedits = []\n", "[a] must have why, a sentence, and edits, a list"),
    ("[a", "is not valid TOML"),
])
def test_a_judgement_that_is_written_wrongly_is_refused(assignment: Assignment, toml: str, said: str) -> None:
    assert assignment.solutions is not None and assignment.solution is not None
    (assignment.solutions / "equivalent.toml").write_text(toml)
    with pytest.raises(UsageError) as caught:
        judged(assignment.solution)
    assert said in str(caught.value)


# --- what is said -----------------------------------------------------------------------------------------------------


def test_the_score_says_what_counts_and_what_was_set_aside() -> None:
    mutant = mutants(SOLUTION)[0]
    results = [
        MutantResult(mutant, MutantOutcome.CAUGHT, 1.0, ("test_values",), is_public=True),
        MutantResult(mutant, MutantOutcome.CAUGHT, 1.0, ("test_hidden",)),
        MutantResult(mutant, MutantOutcome.SURVIVED, 1.0),
        *(
            MutantResult(mutant, outcome, 1.0)
            for outcome in (MutantOutcome.SAME, MutantOutcome.JUDGED, MutantOutcome.FAULT)
        ),
    ]
    assert str(score(results)) == (
        "6 mutants: 2 of 3 caught (66.7 %), 1 by the public tests (33.3 %); 1 compute the same, 1 judged equivalent, 1 faults"
    )


def test_a_row_says_which_checks_caught_a_mutant() -> None:
    mutant = mutants(SOLUTION)[0]
    result = MutantResult(mutant, MutantOutcome.CAUGHT, 1.234, ("a", "b", "c", "d"))
    assert row(result) == f"  caught      1.2 s  {mutant}\n        by a, b, c ..."
