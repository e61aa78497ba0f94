"""Submissions that differ in comments and layout alone are graded once in a class, each with its own lines; and no others."""

import json
from pathlib import Path
from typing import Any

import pytest

from gradekit import recorded
from gradekit.batch.twins import asked_once, firsts
from gradekit.program import Kernel, Launch, Program, Source
from gradekit.wire import ForkedCache

TEXT = '''import triton


@triton.jit
def kernel(x):
    """Twice."""
    x + 1  # adds

def f(x):
    y = [x,
         x]
    return y
'''
MOVED = "# Ada\n" + TEXT.replace("[x,", "[x ,").replace("    x + 1  # adds", "    # another\n\n    x + 1")
TTIR = 'tt.func @kernel() loc("submission.py":7:5)'
PROGRAMS = recorded.dumps(
    {"f": Program((), {}, (Launch("k", (1, 1, 1), (), Source(10)),), (), "none", {"k": Kernel("kernel", TTIR)})}
)


def result(outcome: str = "passed", **more: Any) -> dict[str, Any]:
    details = {"unseen": [{"line": 7, "what": "x"}]} | more
    check = {"outcome": outcome, "message": "", "source": None, "details": details}
    record = {"status": "graded", "checks": [check], "submission": {"path": "submission.py"}, "seconds": 9.0}
    prints = json.dumps({"whole": "w", "comments": []})
    return {"record": record, "programs": PROGRAMS, "fingerprint": prints, "digests": {}}


class Class:
    """A class in which each text that is really graded comes to a result, and is counted."""

    def __init__(self, folder: Path, came_to: dict[str, Any]) -> None:
        self.cache, self.file, self.came_to, self.graded = ForkedCache(1 << 20), folder / "submission.py", came_to, 0

    def ask(self, text: str, *way: object) -> dict[str, Any]:
        self.file.write_text(text)
        return asked_once(self.cache, self.file, "f", way, self._grade)

    def _grade(self) -> dict[str, Any]:
        self.graded += 1
        return self.came_to


def test_a_twin_gets_the_result_with_its_own_lines_text_and_comments(tmp_path: Path) -> None:
    of = Class(tmp_path, result())
    of.ask(TEXT)
    twin = of.ask(MOVED)
    assert of.graded == 1
    (check,) = twin["record"]["checks"]
    assert check["details"]["unseen"][0]["line"] == 10
    assert twin["record"]["submission"]["sha256"] != of.ask(TEXT)["record"]["submission"]["sha256"]
    (program,) = recorded.loads(twin["programs"]).values()
    (launch,) = program.launches()
    assert launch.source == Source(13) and '"submission.py":10:5' in program.kernels[launch.kernel].ttir
    prints = json.loads(twin["fingerprint"])
    assert prints["whole"] == "w" and len(prints["comments"]) == 2


@pytest.mark.parametrize("other", [
    TEXT.replace("x + 1", "x + 2"), TEXT.replace("x + 1", "1 + x"), TEXT.replace("Twice", "twice"),
    TEXT.replace("def f(x)", "def f(z)").replace("[x,", "[z,").replace(" x]", " z]"),
])
def test_whatever_is_no_comment_makes_another_submission(tmp_path: Path, other: str) -> None:
    of = Class(tmp_path, result())
    of.ask(TEXT)
    of.ask(other)
    assert other != TEXT and of.graded == 2


def test_an_empty_line_that_ends_a_statement_is_code(tmp_path: Path) -> None:
    of = Class(tmp_path, result())
    of.ask("def f(x):\n    y = x \\\n\n    -x\n    return y\n")
    of.ask("def f(x):\n    y = x \\\n    -x\n    return y\n")
    assert of.graded == 2


@pytest.mark.parametrize("text", [
    "import inspect\n" + TEXT,
    TEXT + "\nwhere = f.__code__\n",
    TEXT + "\nsource = open(__file__)\n",
    "# coding: latin-1\n" + TEXT,
    TEXT.replace("import triton\n", "import triton\nimport sys\n"),
    TEXT + "\ndef g():\n    return kernel.src, kernel.starting_line_number\n",
    TEXT
    + "\ndef g(x):\n    try:\n        return f(x)\n    except ValueError as error:\n        return str(error)\n",
    TEXT + f"\nnested = {'-' * 1200}1\n",
])
def test_a_text_that_could_tell_its_comments_is_graded_itself(tmp_path: Path, text: str) -> None:
    of = Class(tmp_path, result())
    for remark in ("", "# a remark\n"):
        of.ask(text + remark)
    assert of.graded == 2


@pytest.mark.parametrize("came_to", [result("failed"), result(said="see line 7"), result(said="lines 7 and 8")])
def test_what_says_more_of_lines_than_a_number_serves_no_text_with_other_lines(
    tmp_path: Path, came_to: dict[str, Any]
) -> None:
    of = Class(tmp_path, came_to)
    of.ask(TEXT)
    of.ask(MOVED)
    assert of.graded == 2
    assert of.ask(TEXT + "# Bob\n")["record"]["checks"] == came_to["record"]["checks"]
    assert of.graded == 2, "its lines are the same"


def test_a_statement_on_other_lines_than_before_is_graded_itself(tmp_path: Path) -> None:
    of = Class(tmp_path, result())
    of.ask("def f(x): return x, x\n")
    of.ask("def f(x):\n    return x, x\n")
    assert of.graded == 2


def test_a_grading_of_another_kind_is_another_question(tmp_path: Path) -> None:
    of = Class(tmp_path, result())
    for way in ("seed 1", "seed 2"):
        of.ask(TEXT, way)
    assert of.graded == 2


def test_a_failure_of_the_grader_is_no_answer_for_anybody_else(tmp_path: Path) -> None:
    fault = result()
    fault["record"]["status"] = "fault"
    of = Class(tmp_path, fault)
    for _ in range(2):
        of.ask(TEXT)
    assert of.graded == 2


def test_those_of_a_new_code_come_first_and_their_twins_name_them(tmp_path: Path) -> None:
    texts = {"a": TEXT, "b": MOVED, "c": "def f(x:\n", "d": TEXT + "\nsource = open(__file__)\n", "e": TEXT + "z = 1\n",
             "f": MOVED + "# Bob\n"}  # fmt: skip
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    found = firsts({name: tmp_path / f"{name}.py" for name in [*texts, "missing"]}, "f")
    assert [*found] == ["a", "c", "d", "e", "missing", "b", "f"]
    assert {name for name, first in found.items() if name != first} == {"b", "f"}
    assert found["b"] == found["f"] == "a"
