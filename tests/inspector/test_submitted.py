"""`gradekit inspect`, from a path to what it prints."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradekit.assignment import UsageError, get
from gradekit.cli import main
from gradekit.course.mistakes import mistake
from gradekit.inputs.spec import Input
from gradekit.inspector.inspect import parse_input, representative
from gradekit.plugin.timed import timed_calls

SOLUTION = "solutions/softmax/solution.py"


def inspect(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["inspect", *arguments])


@pytest.mark.parametrize(("target", "said"), [
    ("sm_90", ["softmax(float32 [8192, 4096]), compiled for sm_90 (H100), without a card", "registers, nothing spilled",
               "load   16 bytes at a time, 2 x ld.global.v4.b32; float32"]),
    ("gfx942", ["compiled for gfx942 (MI300X), without a card", "a CU        holds 2 blocks at once, 32 of 32 warps",
                "load   16 bytes at a time, 1 x buffer_load_dwordx4; float32"]),
])
def test_the_solution_is_looked_at_on_the_inputs_that_its_tests_time_in_the_words_of_each_maker(
    target: str, said: list[str]
) -> None:
    result = inspect(SOLUTION, "--target", target)
    assert result.exit_code == 0, result.output
    assert [words for words in said if words not in result.output] == []


def test_the_record_is_json_with_a_kernel_and_its_sentences() -> None:
    result = inspect(SOLUTION, "-i", "float16 8192x1000", "--json", "-")
    record = json.loads(result.output)
    (kernel,) = record["kernels"]
    assert (record["schema"], record["target"], record["inputs"][0]["shape"]) == (
        "gradekit/inspection/1", "sm_80", [8192, 1000],
    )
    assert {sentence["kind"] for sentence in kernel["sentences"]} == {"narrow-load", "narrow-store"}
    assert kernel["registers"] > 0 and kernel["occupancy"]["limit"]


def test_a_stage_is_shown_under_the_students_lines() -> None:
    rows = inspect(SOLUTION, "--stage", "ttir").output.splitlines()
    at = next(n for n, row in enumerate(rows) if "x = tl.load(" in row and "line" in row)
    assert "tt.load" in "".join(rows[at : at + 12]) or "arith" in rows[at + 1]
    assert not any("loc(" in row for row in rows)


def test_kernels_of_no_assignment_are_looked_at_by_entry_and_inputs(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(Path(SOLUTION).read_text().replace("def softmax(", "def my_own("))
    result = inspect(str(file), "--entry", "my_own", "-i", "float32 [64, 128]")
    assert result.exit_code == 0 and "my_own(float32 [64, 128])" in result.output


@pytest.mark.parametrize(("arguments", "said"), [
    (["--target", "sm_91"], "did you mean sm_90"),
    (["-i", "float32 100x"], "is no input"),
])
def test_a_wrong_command_says_what_there_is(arguments: list[str], said: str) -> None:
    result = inspect(SOLUTION, *arguments)
    assert result.exit_code == 2 and said in result.output


def test_a_submission_that_cannot_be_traced_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text(mistake(get("softmax"), "reads_values").text)
    result = inspect(str(tmp_path / "softmax.py"))
    assert result.exit_code == 1 and "needs the values of a tensor" in result.output and "(line " in result.output


@pytest.mark.parametrize(("text", "expected"), [
    ("float16 64x32", Input("float16", (64, 32), (32, 1))),
    ("float32 [8, 1000]", Input("float32", (8, 1000), (1000, 1))),
    ("float16[8,4] transposed", Input("float16", (8, 4), (1, 8))),
    ("int64 [7]", Input("int64", (7,), (1,))),
    ("3", 3),
    ("0.5", 0.5),
])
def test_an_input_is_a_dtype_and_a_shape_or_a_number(text: str, expected: object) -> None:
    assert parse_input(text) == expected


@pytest.mark.parametrize("text", ["float17 3x3", "3 by 3", ""])
def test_what_is_no_input_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no input"):
        parse_input(text)


def test_representative_inputs_are_those_of_the_first_timed_call() -> None:
    assert representative(get("softmax"), timed_calls) == timed_calls(get("softmax"))[0].args


def test_an_assignment_that_times_nothing_asks_for_inputs(tmp_path: Path) -> None:
    from tests.plugin.test_pytest import made

    with pytest.raises(UsageError, match="say what to pass"):
        representative(made(tmp_path, ""), timed_calls)
