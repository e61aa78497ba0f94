"""What `gradekit view` plays: the call that fails, under the conditions under which it fails, or one that was asked for."""

import json
from pathlib import Path
from typing import Any

import pytest
import triton
from click.testing import CliRunner

from gradekit.cli import main
from gradekit.engine.conditions import Order
from gradekit.inputs.spec import normal
from gradekit.report import steps
from gradekit.request import GradingOptions
from gradekit.stepview.played import step_record
from gradekit.submission import SubmissionError
from tests.beside import beside
from tests.browser import sample

TEXTS = beside(__file__)

pytestmark = pytest.mark.usefixtures("without_mends")

SOLUTIONS = Path(__file__).parents[2] / "solutions"
QUICK = {"profile": "quick", "device": "cpu"}

ORDERED = TEXTS["ordered"]

ONE_LINERS = TEXTS["one_liners"]


def played(path: Path, **more: Any) -> dict[str, Any]:
    keyword = more.pop("keyword", None)
    return step_record(path, more.pop("id", None), GradingOptions(keyword=keyword, **QUICK), **more)


def every_value(record: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(step, value) for step in record["programs"][0]["steps"] for value in step["values"]]


def test_the_counterexample_is_played_from_its_program_at_fault_and_the_wrong_values_are_marked() -> None:
    record = played(SOLUTIONS / "softmax" / "wrong_no_mask.py", keyword="float32")
    lines = record["source"]
    program = record["programs"][0]
    first = program["steps"][program["first_wrong"]]
    assert "tl.load(" in lines[first["line"] - 1] or "tl.store(" in lines[first["line"] - 1]
    stores = [value for _, value in every_value(record) if value.get("access") == "store"]
    assert len(stores) == 1 and 0 < stores[0]["wrong"] <= record["wrong"]["count"]
    assert stores[0]["wrong_cells"].count("1") == stores[0]["wrong"]
    assert record["tensors"][stores[0]["tensor"]]["name"] == "the result"
    assert record.keys() == json.loads(sample.FILE.read_text()).keys()


def test_a_failure_in_another_order_of_programs_is_played_in_that_order(tmp_path: Path) -> None:
    file = tmp_path / "vector_add.py"
    file.write_text(ORDERED)
    record = played(file, id="vector_add", keyword="float32")
    assert record["circumstances"] in [f"With the programs {order.value}" for order in Order if order is not Order.ASCENDING]
    wrong = [value for _, value in every_value(record) if "wrong" in value]
    assert wrong and wrong[0]["access"] == "store"
    late = [value["number"] for _, value in every_value(record) if value["name"] == "late"]
    assert late == ["1"]  # only in that order


def test_a_right_submission_is_played_on_a_small_example_that_is_not_dull() -> None:
    record = played(SOLUTIONS / "vector_add" / "solution.py", keyword="float32")
    assert record["wrong"] is None and record["message"] == ""
    assert all(program["first_wrong"] is None for program in record["programs"])
    assert 24 <= record["inputs"][0]["shape"][0] <= 4096


def test_of_small_calls_one_is_played_in_which_several_programs_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """That each has its own tile is what the puzzle is about; its tiles are 128 wide"""
    puzzles = SOLUTIONS.parent / "examples" / "puzzles"
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(puzzles / "assignments"))
    record = played(puzzles / "solutions/add_tiles/solution.py", id="add_tiles")
    assert record["launches"][0]["grid"][0] > 1 and len(record["programs"]) > 1
    assert record["inputs"][0]["shape"][0] <= 512


def test_a_call_that_is_asked_for_is_played_from_the_program_that_is_asked_for() -> None:
    asked = (normal((64, 64)), normal((64, 64), seed=1))
    record = played(SOLUTIONS.parent / "tests/course/right/matmul/persistent.py", arguments=asked)
    grid = record["launches"][0]["grid"]
    last = tuple(size - 1 for size in grid)
    other = played(SOLUTIONS.parent / "tests/course/right/matmul/persistent.py", arguments=asked, program=last)
    assert (record["programs"][0]["id"], other["programs"][0]["id"]) == ([0, 0, 0], list(last))
    assert len(steps.render(record)) < 2_000_000
    with pytest.raises(SubmissionError, match="There is no program"):
        played(SOLUTIONS / "matmul" / "solution.py", arguments=asked, program=(10_000,))


def test_a_line_shows_its_reductions_beside_its_value_and_a_value_in_the_shape_that_its_name_has(tmp_path: Path) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(ONE_LINERS)
    record = played(path, arguments=(normal((4, 10)),))
    values = [(value["name"], value["op"], value["shape"]) for _, value in every_value(record)]
    assert values[0] == ("row", "expand_dims", [2, 1])
    assert values[-4:] == [("", "reduce", [2]), ("weights", "exp", [2, 16]), ("", "reduce", [2]), ("", "store", [2, 16])]


def test_what_has_no_kernel_says_so(tmp_path: Path) -> None:
    file = tmp_path / "vector_add.py"
    file.write_text("def add(x, y):\n    raise ValueError('no')\n")
    with pytest.raises(SubmissionError, match="No call can be played"):
        played(file, id="vector_add", keyword="float32")
    with pytest.raises(SubmissionError, match=r"computes with torch \(aten::add\) where"):
        played(SOLUTIONS / "vector_add" / "wrong_no_kernel.py", keyword="float32")


def test_the_command_writes_one_page_beside_the_submission(tmp_path: Path) -> None:
    file = tmp_path / "add.py"
    file.write_text((SOLUTIONS / "vector_add" / "solution.py").read_text())
    words = ["view", str(file), "-a", "vector_add", "-i", "float32 50", "-i", "float32 50"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "add-steps.html").read_text()
    assert page.startswith("<!doctype html>") and "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert CliRunner().invoke(main, [*words, "--program", "x"]).exit_code == 2


@pytest.mark.slow
@pytest.mark.skipif(not triton.__version__.startswith("3.9"), reason="other releases place operations on other lines")
def test_the_record_that_the_browser_tests_show_is_what_is_made_today() -> None:
    made, kept = json.loads(json.dumps(sample.made())), json.loads(sample.FILE.read_text())
    words = made.pop("message"), kept.pop("message")  # a test of the pages does not search for edits that explain a failure
    assert made == kept and all(said.startswith("At shape [20, 20], float32: 400 of 400 elements") for said in words)


def test_what_the_last_check_saw_fail_is_played_and_written_down_without_another_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "submission.py"
    file.write_text((SOLUTIONS / "vector_add" / "wrong_missing_mask.py").read_text())
    words = [str(file), "-a", "vector_add"]
    CliRunner().invoke(main, ["check", *words, "--quick", "-j", "1", "-k", "memory"])
    asked: list[GradingOptions] = []
    play = lambda path, id, options, *more: asked.append(options) or step_record(path, id, options, *more)
    monkeypatch.setattr("gradekit.stepview.played.step_record", play)
    assert CliRunner().invoke(main, ["view", *words]).exit_code == 0
    (options,) = asked
    assert options.keyword == "test_memory" and options.inputs
    monkeypatch.setattr("gradekit.checking.check", lambda *_given: 1 / 0)
    assert CliRunner().invoke(main, ["replay", *words]).exit_code == 0
    assert (tmp_path / "replay_test_memory.py").is_file()
    file.write_text(file.read_text() + "\n")
    assert "ZeroDivisionError" in CliRunner().invoke(main, ["replay", *words]).output
