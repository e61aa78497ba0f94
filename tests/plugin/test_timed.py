"""Which calls an assignment's tests time, found without a submission."""

from pathlib import Path

from gradekit.assignment import Assignment, get
from gradekit.inputs.spec import Input
from gradekit.plugin.timed import timed_calls

TESTS = """
import pytest
from gradekit import at_least, assert_speed, normal, points

def torch_double(x):
    return x * 2

def expected(x):
    return None

@points(5)
def test_right(submission):
    submission.double(normal((3,)))

@points(10, kind="speed")
@pytest.mark.parametrize("rows", [8, 16])
@pytest.mark.parametrize(("columns", "dtype"), [(32, "float16")])
def test_speed(submission, rows, columns, dtype):
    timed = submission.double.timed(normal((rows, columns), dtype), against=torch_double, expected=expected)
    assert_speed(timed, at_least(1.0, "eager"))

@points(2, kind="speed", bonus=True)
def test_bonus(submission):
    submission.double.timed(normal((8, 32), "float16"), against=torch_double, expected=expected)

@points(1, kind="speed")
def test_of_something_else(submission, tmp_path):
    submission.double.timed(normal((1,)), against=torch_double, expected=expected)
"""


def made(folder: Path, tests: str) -> Assignment:
    """An assignment with these tests."""
    (folder / "double").mkdir()
    (folder / "double" / "test_double.py").write_text(tests)
    return Assignment("double", "Double", "double", "", folder / "double")


def test_every_parametrization_of_a_check_of_speed_is_found_once(tmp_path: Path) -> None:
    found = timed_calls(made(tmp_path, TESTS))
    assert [(call.entry, call.args[0].shape, call.args[0].dtype) for call in found] == [
        ("double", (8, 32), "float16"),
        ("double", (16, 32), "float16"),
    ]
    assert found[0].against(3) == 6


def test_the_course_times_softmax_at_its_two_shapes() -> None:
    calls = timed_calls(get("softmax"))
    assert {call.entry for call in calls} == {"softmax"}
    assert all(isinstance(arg, Input) for call in calls for arg in call.args) and len(calls) == 2
