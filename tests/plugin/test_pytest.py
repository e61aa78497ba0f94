"""`pytest assignments/ID --submission PATH`, with the plugin and nothing else; and pytest without any submission."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import gradekit.engine.launch  # noqa: F401  # pytester forgets what its runs import, and the table of operations would be in parts
from gradekit.assignment import Assignment, get
from gradekit.findings import Report, Score
from gradekit.inputs.spec import Input
from gradekit.plugin.lifecycle import GradingPlugin
from gradekit.plugin.timed import timed_calls
from tests.beside import beside
from tests.graded import record_of
from tests.plugin.samples import RIGHT, TESTS, TRIPLES

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, assignment: Callable[..., Assignment], submitted: Callable[[str], Path]) -> Iterator[Run]:
    """Runs pytest on the sample assignment, with a submission's text or none."""

    def run(text: str | None, *arguments: str, watching: object = None) -> pytest.RunResult:
        words = ["--submission", str(submitted(text))] if text is not None else []
        plugins = ("--disable-plugin-autoload", "-p", "gradekit.plugin", "--import-mode=importlib")
        words = [str(assignment().folder), *plugins, *words, *arguments]
        return pytester.runpytest_inprocess(*words, plugins=[watching] if watching else [])

    profile = settings.get_current_profile_name()  # which Hypothesis's own option changes for the whole process
    yield run
    settings.load_profile(profile)


@pytest.mark.parametrize(("text", "option", "outcomes", "said"), [
    (RIGHT, "--gradekit-profile=quick", {"passed": 2}, ["*= gradekit =*", "50 of 50 points*"]),
    (None, "-rs", {"skipped": 2}, ["*no submission was given*--submission PATH*"]),
    ("def double(x:\n", "-q", {"errors": 2}, ["*0 of 50 points*", "*Python cannot read line 1*"]),
], ids=["right", "none", "rejected"])
def test_pytest_shows_the_score_or_the_reason_why_there_is_none(
    run: Run, text: str | None, option: str, outcomes: dict[str, int], said: list[str]
) -> None:
    result = run(text, option)
    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines(said)


def test_a_report_has_the_checks_in_the_order_of_the_file_whatever_shuffles_them(run: Run) -> None:
    class Shuffles:
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
            items.reverse()
            return (yield)

        def pytest_unconfigure(self, config: pytest.Config) -> None:
            (plugin,) = (one for one in config.pluginmanager.get_plugins() if isinstance(one, GradingPlugin))
            reports.append(plugin.report)

    reports: list[Report | None] = []
    run(RIGHT, "--gradekit-profile=quick", watching=Shuffles())
    (report,) = reports
    assert report is not None
    found = [check.id for check in report.checks]
    assert len(found) == 2 and found == re.findall(r"^def (test_\w+)", TESTS, flags=re.MULTILINE)
    assert report.score == Score(50.0, 50.0, 0.0)


def test_a_wrong_submission_fails_pytest_with_the_students_message(run: Run) -> None:
    result = run(TRIPLES, "--gradekit-profile=quick", "-k", "test_doubles")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["0 of 30 points*", "*replay*gradekit check*-k test_doubles*"])


def test_no_such_submission_is_wrong_usage(run: Run) -> None:
    result = run(None, "--submission", "nowhere.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no file nowhere.py*"])


def test_tests_of_no_assignment_cannot_grade(pytester: pytest.Pytester, submitted: Callable[[str], Path]) -> None:
    pytester.makepyfile("def test_something(): pass")
    result = pytester.runpytest_inprocess(
        "--disable-plugin-autoload", "-p", "gradekit.plugin", "--submission", str(submitted(RIGHT))
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*one assignment at a time*"])


def test_a_student_file_is_not_collected(run: Run, assignment: Callable[..., Assignment]) -> None:
    (assignment().folder / "submission.py").write_text("def test_mine(): pass\n")
    result = run(RIGHT, "--collect-only", "-q")
    result.stdout.no_fnmatch_line("*test_mine*")


def test_other_projects_in_the_environment_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from hypothesis import settings

        def test_settings():
            assert not settings.get_current_profile_name().startswith("gradekit")
    """)
    result = pytester.runpytest_inprocess("--disable-plugin-autoload", "-p", "gradekit.plugin", "--strict-markers")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*gradekit*points*")


# --- Which calls are timed --------------------------------------------------------------------------------------------


CHECKS = beside(__file__)["checks"]


def made(folder: Path, tests: str) -> Assignment:
    """An assignment with these tests."""
    (folder / "double").mkdir()
    (folder / "double" / "test_double.py").write_text(tests)
    return Assignment("double", "Double", "double", "", folder / "double")


def test_every_parametrization_of_a_check_of_speed_is_found_once(tmp_path: Path) -> None:
    found = timed_calls(made(tmp_path, CHECKS))
    assert [(call.entry, call.args[0].shape, call.args[0].dtype) for call in found] == [
        ("double", (8, 32), "float16"),
        ("double", (16, 32), "float16"),
    ]
    assert found[0].against(3) == 6


def test_the_course_times_softmax_at_its_two_shapes() -> None:
    calls = timed_calls(get("softmax"))
    assert {call.entry for call in calls} == {"softmax"}
    assert all(isinstance(arg, Input) for call in calls for arg in call.args) and len(calls) == 2


# --- A counterexample's Python ----------------------------------------------------------------------------------------


NO_MASK = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i, mask=i < n), mask=i < n)

def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out
"""


@pytest.mark.parametrize(("old", "new"), [("", ""), ("tl.load(x + i)", "2 * tl.load(x + i, mask=i < n)")])
def test_the_tests_own_function_says_what_is_right_for_values_as_for_memory(old: str, new: str, tmp_path: Path) -> None:
    record = record_of("vector_add", NO_MASK.replace(old, new) if old else NO_MASK, tmp_path, stop=True)
    failed = next(check for check in record["checks"] if check["outcome"] == "failed")
    assert failed["counterexample"]["reference"] == "test_vector_add.expected(x, y).rounded"
