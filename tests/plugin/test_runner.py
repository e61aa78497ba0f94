"""`grade`: a whole grading run, with the tracer, the engine and the judge, as one function call."""

import gc
import os
import re
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradekit import NoSuchCheck
from gradekit.assignment import Assignment
from gradekit.findings import Cause, Outcome, Status
from gradekit.judge.trivial import TRIVIAL_RESULTS
from gradekit.plugin.runner import grade as grade_request
from gradekit.report.record import to_dict, validate
from gradekit.request import GradingOptions, GradingRequest
from gradekit.sandbox import host
from tests.graded import by_id, grade
from tests.plugin.samples import RIGHT, TRIPLES, UNMASKED

Make = Callable[..., Assignment]
Write = Callable[[str], Path]

PLAIN = '''
import pytest
from gradekit import points

@points(10)
def test_first(submission):
    """The first"""
{first}

@points(5)
def test_second(submission):
    """The second"""
{second}
'''


def plain(first: str = "pass", second: str = "pass") -> str:
    """A test file with two checks that have these lines as their bodies."""
    return PLAIN.format(**{k: "\n".join(f"    {line}" for line in v.split("\n")) for k, v in locals().items()})


def test_a_right_submission_earns_everything(assignment: Make, submitted: Write) -> None:
    report = grade(assignment(), submitted(RIGHT), profile="quick")
    assert report.status is Status.GRADED, report
    assert (report.score.earned, report.score.possible, report.score.pending) == (50.0, 50.0, 0.0)
    assert [c.outcome for c in report.checks] == [Outcome.PASSED, Outcome.PASSED]
    assert [c.title for c in report.checks] == ["Doubles every element", "Stays inside its tensors"]


def test_a_report_says_what_it_rests_on(assignment: Make, submitted: Write) -> None:
    report = grade(assignment(), submitted(RIGHT), profile="quick", keyword="test_doubles")
    assert report.assignment == "double" and report.seed == 7
    assert re.fullmatch("[0-9a-f]{64}", report.submission["sha256"])
    assert {"gradekit", "torch", "triton", "python", "gpu"} <= set(report.environment)
    assert 'Only the checks that match "test_doubles" were run.' in report.notes
    assert any("10 examples" in note for note in report.notes)
    assert 7 < by_id(report)["test_doubles"].details["examples"] <= 10  # what is drawn twice is run once


def test_a_diagnosis_calls_an_input_by_the_students_name(assignment: Make, submitted: Write) -> None:
    blind = RIGHT.replace("x.stride(0), BLOCK", "1, BLOCK")
    check = by_id(grade(assignment(), submitted(blind)))["test_doubles"]
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.IGNORES_STRIDES)
    assert "stride" in check.message and " of x" in check.message and "the input" not in check.message


def test_the_replay_shows_the_same_failure(assignment: Make, submitted: Write) -> None:
    made, path = assignment(), submitted(UNMASKED)
    check = by_id(grade(made, path))["test_memory"]
    assert check.source is not None and "tl.store" in check.source.text
    assert check.counterexample is not None
    words = re.fullmatch(r"gradekit check (\S+) -a double -k (\w+) --seed (\d+)", check.counterexample["replay"])
    assert words and words[1] == str(path)
    again = by_id(grade(made, Path(words[1]), keyword=words[2], seed=int(words[3])))
    assert list(again) == ["test_memory"]
    assert again["test_memory"].counterexample == check.counterexample
    assert again["test_memory"].message == check.message


def test_a_check_that_has_passed_lets_its_calls_go_without_the_collector(assignment: Make, submitted: Write) -> None:
    seen: list[weakref.ref[Any]] = []
    request = GradingRequest(assignment(), submitted(RIGHT), GradingOptions(device="cpu"))
    gc.disable()
    try:
        grade_request(request, on_evidence=lambda check, evidence, error: seen.append(weakref.ref(evidence)))
        assert len(seen) == 2 and [one() for one in seen] == [None, None]
    finally:
        gc.enable()


@pytest.mark.sample(2)
@pytest.mark.parametrize("trivial", sorted(TRIVIAL_RESULTS))
def test_no_trivial_result_earns_a_point_for_correctness(assignment: Make, submitted: Write, trivial: str) -> None:
    checks = by_id(grade(assignment(), submitted(RIGHT), trivial=trivial))
    assert checks["test_doubles"].outcome is Outcome.FAILED
    assert checks["test_memory"].outcome is Outcome.PASSED  # the program is the right one


COUNTS = """
import torch
from hypothesis import given
from gradekit import assert_close, points, reference, vectors

def twice(x):
    return x + x

@points(30)
@given(x=vectors(dtypes=["int32"], size=(1, 300), profiles=["KIND"]))
def test_doubles(submission, x):
    assert_close(submission.double(x), reference(twice, x))
"""


@pytest.mark.parametrize(("kind", "told"), [("integers", "right"), ("chosen:cells:1:100000001", None)])
def test_a_trivial_result_that_is_the_right_one_is_told_apart(
    assignment: Make, submitted: Write, kind: str, told: str | None
) -> None:
    """Small whole numbers stay what they are in a lower precision; large ones do not"""
    check = by_id(grade(assignment(COUNTS.replace("KIND", kind)), submitted(RIGHT), trivial="lower_precision"))
    assert check["test_doubles"].details.get("trivially") == told
    assert (check["test_doubles"].outcome is Outcome.PASSED) == (told == "right")


# --- what is not the student's ----------------------------------------------------------------------------------------


def test_an_error_in_a_test_is_the_graders_fault(assignment: Make, submitted: Write) -> None:
    report = grade(assignment(plain("1 / 0")), submitted(RIGHT))
    check = by_id(report)["test_first"]
    assert check.outcome is Outcome.FAULT and "ZeroDivisionError" in check.message
    assert "1 / 0" in check.details["traceback"]
    assert (report.score.earned, report.score.pending) == (5.0, 10.0)


@pytest.mark.parametrize(("tests", "said"), [
    ("import nothing_of_this_name", "No module named 'nothing_of_this_name' (test_double.py, line 1)"),
    ("\nx = 1 / 0", "ZeroDivisionError: division by zero (test_double.py, line 2)"),
    ("\n\nx = (", "SyntaxError: '(' was never closed (test_double.py, line 3)"),
])  # fmt: skip
def test_tests_that_cannot_be_collected_are_a_fault_with_its_line(
    assignment: Make, submitted: Write, tests: str, said: str
) -> None:
    report = grade(assignment(tests), submitted(RIGHT))
    assert report.status is Status.FAULT and report.message.count(said) == 1, report.message


def test_an_interrupted_run_is_a_fault_and_gives_no_zero(assignment: Make, submitted: Write) -> None:
    report = grade(assignment(plain("pass", "raise KeyboardInterrupt")), submitted(RIGHT))
    checks = by_id(report)
    assert report.status is Status.FAULT and "interrupted" in report.message
    assert checks["test_first"].outcome is Outcome.PASSED
    assert checks["test_second"].outcome is Outcome.FAULT
    assert (report.score.earned, report.score.pending) == (10.0, 5.0)


def test_a_tracer_that_does_not_start_is_a_fault(
    assignment: Make, submitted: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with host.without():
        report = grade(assignment(), submitted(RIGHT))
    validate(to_dict(report))
    assert report.status is Status.FAULT and "tracer could not be started" in report.message
    assert report.score.earned == 0 and report.score.pending == report.score.possible


def test_pytest_exit_in_a_test_is_a_fault_too(assignment: Make, submitted: Write) -> None:
    report = grade(assignment(plain("pytest.exit('enough')")), submitted(RIGHT))
    assert report.status is Status.FAULT
    assert {c.outcome for c in report.checks} == {Outcome.FAULT}


# --- failures and awards ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "earned", "said"), [("", 4.0, "right, but slow"), ("\nassert False, 'wrong'", 0.0, "wrong")])
def test_partial_credit_fails_the_check_with_its_share_and_a_failed_assertion_is_stronger(
    assignment: Make, submitted: Write, more: str, earned: float, said: str
) -> None:
    tests = "from gradekit import award\n" + plain(f"award(0.4, 'right, but slow'){more}")
    check = by_id(grade(assignment(tests), submitted(RIGHT)))["test_first"]
    assert (check.outcome, check.earned, check.message) == (Outcome.FAILED, earned, said)


# --- rejected ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "cause", "words"), [
    ("def double(x:\n", Cause.SYNTAX_ERROR, "line 1"),
    ("import torch\ndef doubles(x): return x\n", Cause.MISSING_ENTRY, "defines doubles"),
    ("import os\nos._exit(0)\n", Cause.CRASH, "exit code 0"),
    ("", Cause.UNREADABLE, "empty"),
])
def test_a_submission_that_cannot_be_loaded_is_rejected(
    assignment: Make, submitted: Write, text: str, cause: Cause, words: str
) -> None:
    report = grade(assignment(), submitted(text))
    validate(to_dict(report))
    assert (report.status, report.cause) == (Status.REJECTED, cause), report.message
    assert words in report.message
    assert cause is not Cause.SYNTAX_ERROR or report.source.text == "def double(x:"  # type: ignore[union-attr]
    assert (report.score.earned, report.score.possible, report.score.pending) == (0.0, 50.0, 0.0)
    assert {c.outcome for c in report.checks} == {Outcome.FAILED}


# --- usage, and the process around it ---------------------------------------------------------------------------------


def test_no_such_check_names_those_that_there_are(assignment: Make, submitted: Write) -> None:
    with pytest.raises(NoSuchCheck) as caught:
        grade(assignment(), submitted(RIGHT), keyword="test_nothing")
    assert caught.value.names == ["test_doubles", "test_memory"]


def test_a_keyword_that_is_no_expression_is_a_usage_error_and_no_fault(assignment: Make, submitted: Write) -> None:
    with pytest.raises(NoSuchCheck, match='-k "doubles and" cannot be read'):
        grade(assignment(), submitted(RIGHT), keyword="doubles and")


def test_a_run_stops_at_the_first_failure_where_that_is_asked_for(assignment: Make, submitted: Write) -> None:
    """... and leaves the checks after it out, with a note"""
    report = grade(assignment(plain("assert not 'this'")), submitted(RIGHT), stop=True)
    assert report.status is Status.GRADED
    assert list(by_id(report)) == ["test_first"] and report.score.possible == 10
    assert "Stopped at the first failure: 1 check did not run." in report.notes


def test_a_rejected_submission_has_all_checks_where_the_run_would_stop(assignment: Make, submitted: Write) -> None:
    report = grade(assignment(plain()), submitted("def double(x:\n"), stop=True)
    assert report.status is Status.REJECTED and report.score.possible == 15
    assert not any("Stopped" in note for note in report.notes)


def test_a_counterexample_shows_its_numbers_and_how_to_make_them(assignment: Make, submitted: Write) -> None:
    example = by_id(grade(assignment(), submitted(TRIPLES), profile="quick"))["test_doubles"].counterexample
    assert example is not None
    (x,) = example["inputs"]
    assert (x["name"], x["dtype"], x["shape"], x["offset"]) == ("x", "float32", [1], 0)
    assert len(x["values"]) == len(example["got"]) == len(example["expected"]) >= 1
    assert [3 * float(value) for value in x["values"]] == pytest.approx([float(value) for value in example["got"]])
    assert example["snippet"].startswith("x = torch.tensor([") and example["call"] == "double(x)"
    assert example["reference"].endswith("(x)") and example["reference"].startswith("test_double.")


def test_progress_tells_each_check_as_it_begins_and_may_print(
    assignment: Make, submitted: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    grade(assignment(plain("print('hidden')")), submitted(RIGHT), on_progress=lambda *told: print(told))
    assert capsys.readouterr().out == "('The first', 0, 2)\n('The second', 1, 2)\n"


def test_two_runs_in_one_process_see_their_own_tests(assignment: Make, submitted: Write) -> None:
    path = submitted(RIGHT)
    first = by_id(grade(assignment(plain("assert False, 'one'")), path))
    second = by_id(grade(assignment(plain("assert False, 'three'")), path))
    assert (first["test_first"].message, second["test_first"].message) == ("one", "three")


def test_the_process_is_left_as_it_was(assignment: Make, submitted: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    before = set(sys.modules), sys.stdout
    report = grade(assignment(plain()), submitted(RIGHT))
    assert report.status is Status.GRADED
    assert os.environ["PYTEST_ADDOPTS"] == "--no-such-option"
    assert sys.stdout is before[1] and not {n for n in set(sys.modules) - before[0] if "test_double" in n}


def test_configuration_beside_the_submission_is_ignored(
    assignment: Make, submitted: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = submitted(RIGHT)
    (path.parent / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (path.parent / "conftest.py").write_text("raise RuntimeError('never imported')\n")
    monkeypatch.chdir(path.parent)
    assert grade(assignment(plain()), path).status is Status.GRADED


def test_nothing_is_left_in_the_students_folder(
    assignment: Make, submitted: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = submitted(TRIPLES)
    monkeypatch.chdir(path.parent)
    made = assignment()
    before = set(path.parent.iterdir())
    grade(made, path, profile="quick")
    assert set(path.parent.iterdir()) == before


def test_a_student_file_is_never_imported_by_the_grader(assignment: Make, submitted: Write, tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    text = RIGHT + f"\nimport os\nif {os.getpid()} == os.getpid(): open({str(mark)!r}, 'w').close()\n"
    assert grade(assignment(plain()), submitted(text)).status is Status.GRADED
    assert not mark.exists()
