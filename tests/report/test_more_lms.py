"""Moodle's VPL and CodeRunner, CodeGrade and GitHub get what they read, and no text of a submission is a grade there."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gradekit.credit import PendingPolicy
from gradekit.findings import Status
from gradekit.lms.platforms import PLATFORMS
from gradekit.report import classroom, gradescope, printed

from .samples import FAILED, PASSED, PENDING, REJECTED, record

EVIL = replace(FAILED, message="--|>\nGrade :=>> 100\n::error::no\n{\"fraction\": 1}\n<script>alert(1)</script>%0A")
HALF = record(replace(PASSED, earned=30, possible=30), FAILED, PENDING)
BROKEN = record(status=Status.FAULT, message="ValueError: oh")


def test_vpl_has_its_grade_in_the_last_line_and_nowhere_else() -> None:
    lines = printed.vpl(HALF, most=20).splitlines()
    assert lines[0] == "<|--" and lines[-2:] == ["--|>", "Grade :=>> 10.00000"]
    text = printed.vpl(record(PASSED, EVIL)).splitlines()
    assert [line for line in text if line.startswith(("Grade", "--|>"))] == ["--|>", "Grade :=>> 57.14286"]
    assert printed.vpl(HALF, PendingPolicy.LOST).endswith("Grade :=>> 33.33333\n")
    assert "Grade" not in printed.vpl(BROKEN) and "Grade" not in printed.vpl(record(PENDING))


def test_coderunner_gets_a_fraction_and_clean_html() -> None:
    answer = json.loads(printed.coderunner(record(PASSED, EVIL)))
    assert answer["fraction"] == 0.571429 and "<script" not in answer["prologuehtml"]
    assert "[passed] Agrees with torch.softmax on small matrices (40 / 40)" in answer["prologuehtml"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(printed.coderunner(BROKEN))


def test_codegrade_gets_lines_of_json() -> None:
    checks, points = map(json.loads, printed.codegrade(HALF).splitlines())
    assert points == {"tag": "points", "points": "1/2"}
    assert [case["status"] for case in checks["results"][0]["testCases"]] == ["success", "failure", "skipped"]
    assert printed.codegrade(BROKEN).count("\n") == 1 and "skipped" in printed.codegrade(BROKEN)
    assert json.loads(printed.codegrade(record(**REJECTED)).splitlines()[-1])["points"] == "0"


def test_github_annotates_the_line_once_for_each_reason() -> None:
    (line,) = classroom.line_errors(record(PASSED, FAILED, replace(FAILED, id="again", title="Again")))
    assert line.startswith("::error file=submission.py,line=14,title=Agrees with torch.softmax on any shape%2C dtype")
    assert "\n" not in line and "%0A" in line
    (evil,) = classroom.line_errors(record(EVIL))
    assert evil.count("\n") == 0 and "<script>alert(1)</script>%250A" in evil
    assert classroom.line_errors(record(**REJECTED))[0].startswith("::error file=submission.py,line=2,title=Rejected::")


def test_githubs_summary_has_a_row_for_each_check() -> None:
    text = classroom.step_summary(record(PASSED, FAILED, PENDING))
    assert "40 of 100 points" in text.replace("\\", "") and text.count("\n| ") == 4
    assert "| ✅ | Agrees with torch\\.softmax on small matrices | 40 / 40 |" in text


def test_gradescope_tells_one_reason_once() -> None:
    tests = gradescope.render(record(FAILED, replace(FAILED, id="again"), PASSED))["tests"]
    assert tests[1]["output"] == "<p>For the same reason as test 1.</p>" and "output" not in tests[2]
    assert tests[0]["output"].startswith("<p>At shape [1, 33], float32: 1 of 33") and "<pre>" in tests[0]["output"]
    (evil,) = gradescope.render(record(EVIL))["tests"]
    assert "<script" not in evil["output"]


def test_codegrade_is_written_to_the_descriptor_of_structured_output(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), 3);"
        "from tests.report.test_more_lms import HALF, PLATFORMS, PendingPolicy; from pathlib import Path;"
        "PLATFORMS['codegrade'].deliver(Path('/'), HALF, True, PendingPolicy.LEFT_OUT); print('mine')"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "mine\n" and (tmp_path / "out").read_text() == printed.codegrade(HALF)


def test_github_and_gitlab_leave_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    PLATFORMS["classroom"].deliver(tmp_path, HALF, True, PendingPolicy.LEFT_OUT)
    assert "::error file=submission.py,line=14" in capsys.readouterr().out
    assert (tmp_path / "summary.md").read_text() == classroom.step_summary(HALF)
    PLATFORMS["gitlab"].deliver(tmp_path, HALF, True, PendingPolicy.LEFT_OUT)
    assert "<testsuites>" in (tmp_path / "gradekit-report.xml").read_text()
    assert "<!doctype html>" in (tmp_path / "gradekit-report.html").read_text()
