"""An entry that takes a list of tensors, of other shapes each: checked, blamed, replayed and proved as any other."""

from pathlib import Path

import pytest

from gradekit.assignment import Assignment
from gradekit.findings import Outcome
from tests.beside import beside
from tests.graded import grade
from tests.small import laid_out

TEXTS = beside(__file__)

DOMAIN = TEXTS["domain"]

TESTS = TEXTS["tests"]

RIGHT = TEXTS["right"]


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    files = {"domain.toml": DOMAIN.replace(", OPTIONAL", ""), "test_scaled.py": TESTS}
    return laid_out(tmp_path, "scaled", "scaled", files, "seed = 5\n")


def submitted(folder: Path, text: str) -> Path:
    (folder / "submission.py").write_text(text)
    return folder / "submission.py"


def test_a_right_one_passes_and_stays_inside_for_all_sizes(assignment: Assignment, tmp_path: Path) -> None:
    report = grade(assignment, submitted(tmp_path, RIGHT))
    assert [check.outcome for check in report.checks] == [Outcome.PASSED] * 2, [c.message for c in report.checks]
    assert report.checks[1].details["proofs"]["scaled"]["proved"] > 0


def test_a_wrong_one_is_blamed_with_the_places_of_its_tensors(assignment: Assignment, tmp_path: Path) -> None:
    (check, _) = grade(assignment, submitted(tmp_path, RIGHT.replace("* factor,", "+ factor,")), profile="quick").checks
    assert check.outcome is Outcome.FAILED and "result 0 is wrong" in check.message
    assert check.counterexample is not None
    names = [one["name"] for one in check.counterexample["inputs"]]
    assert names == ["tensors[0]", "tensors[1]", "tensors[2]", "factor"]
    assert check.counterexample["call"] == "scaled([argument_1, argument_2, argument_3], factor)"


def test_an_entry_without_the_list_is_told_how_it_is_called(assignment: Assignment, tmp_path: Path) -> None:
    text = RIGHT.replace("scaled(tensors,", "scaled(x, y, z,").replace("in tensors", "in (x, y, z)")
    (check, _) = grade(assignment, submitted(tmp_path, text), profile="quick").checks
    assert "`scaled(x, y, z, factor)` cannot be called with 2 arguments" in check.message


def test_a_list_ends_where_a_tensor_is_missing(assignment: Assignment, tmp_path: Path) -> None:
    few = DOMAIN.replace("OPTIONAL", "optional = true").replace(', { shape = ["K"], dtype = "T" }]', "]")
    (assignment.folder / "domain.toml").write_text(
        few.replace('shape = ["K"]', 'shape = ["N"]').replace("sizes.K", "# ")
    )
    tests = TESTS.replace("for each in (x, y, z))", "for each in (x, y))")
    (assignment.folder / "test_scaled.py").write_text(tests)
    text = RIGHT.replace("return results", "return results[:2] if len(tensors) in (2, 3) else None")
    report = grade(assignment, submitted(tmp_path, text), profile="quick")
    assert [check.outcome for check in report.checks] == [Outcome.PASSED] * 2, [c.message for c in report.checks]
    wrong = RIGHT.replace("return results", "return results[:2] if len(tensors) == 3 else results[:1]")
    assert grade(assignment, submitted(tmp_path, wrong), profile="quick").checks[0].outcome is Outcome.FAILED
