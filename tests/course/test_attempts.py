"""A student's own attempts: kept beside the submission, and read whatever else stands in the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradekit.course import attempts
from tests.report.samples import PASSED, record


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "3", json.dumps({"when": "", "earned": "many", "possible": 1, "pending": 0, "outcomes": {}}),
     json.dumps({"when": "", "earned": 1, "possible": 1, "pending": 0, "outcomes": 3})],
)  # fmt: skip
def test_a_line_that_is_no_attempt_is_passed_over(line: str, tmp_path: Path) -> None:
    attempts.add(tmp_path, record(PASSED))
    with (tmp_path / attempts.FILE).open("a") as file:
        file.write(line + "\n")
    assert [attempt.said for attempt in attempts.read(tmp_path)] == ["40 of 40 points"]
