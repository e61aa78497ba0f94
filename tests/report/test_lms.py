"""Each LMS gets the record that its contract asks for, literally, and none of its traps is stepped into."""

import base64
import html
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gradekit.credit import PendingPolicy
from gradekit.findings import Cause, Kind, Outcome, Status
from gradekit.lms.platforms import PLATFORMS
from gradekit.report import for_lms
from gradekit.report.grade import grade

from .samples import FAILED, FAULT, PASSED, PENDING, REJECTED, record

NASTY = "".join(map(chr, range(0x20))) + '<b>&"\' a: b 12:30 http://x {"scores": {}} \ud800\x1b[31m'
STORY = (
    "At shape [1, 33], float32: 1 of 33 elements is wrong, first at [0, 32].\n"
    "submission.py:14: x = tl.load(x_ptr + offs)\n"
    "input: x: float32 [1, 33], strides (66, 2)\n"
    "input: scale = 0.5\n"
    "hint: {hint}\n"
    "replay: gradekit check submission.py -a softmax -k test_matches_torch --seed 7"
)
FASTER = replace(
    PASSED, id="test_speed", kind=Kind.SPEED, details={"speed": {"ratios": {"compiled": {"value": 1.23456}}}}
)


def explained() -> str:
    return STORY.format(hint=Cause.MISSING_MASK.hint)


def as_html() -> str:
    first, rest = html.escape(explained()).split("\n", 1)
    return f"<p>{first}</p><pre>{rest}</pre>"


# --- Gradescope -------------------------------------------------------------------------------------------------------


def test_gradescope_gets_these_results() -> None:
    assert for_lms.gradescope(grade(record(PASSED, FAILED, PENDING))) == {
        "output": "40 of 100 points.\n30 points were not measured and are left out: "
        "the grade is what was earned of all others, 57.14 %.",
        "output_format": "text",
        "execution_time": 3.21,
        "stdout_visibility": "hidden",
        "score": 57.142857143,
        "tests": [
            {
                "name": "Agrees with torch.softmax on small matrices", "number": "1", "name_format": "text",
                "output_format": "html", "tags": ["correctness"], "status": "passed", "score": 40, "max_score": 40,
            },
            {
                "name": "Agrees with torch.softmax on any shape, dtype and stride", "number": "2", "name_format": "text",
                "output_format": "html", "tags": ["correctness"], "output": as_html(), "status": "failed", "score": 0,
                "max_score": 30,
            },
            {
                "name": "pending: Is at least as fast as torch.compile", "number": "3", "name_format": "text",
                "output_format": "html", "tags": ["speed"],
                "output": "<p>Speed is measured on a GPU, and this machine has none.</p>",
            },
        ],
    }  # fmt: skip


def test_gradescope_shows_where_a_result_is_wrong_in_a_picture_and_in_words() -> None:
    along = [{"of": 4, "first": 1, "last": 2, "indices": 2}, {"of": 8, "first": 0, "last": 7, "indices": 8}]
    details = {"along": along, "wrong": 16, "total": 32, "nan": 0, "inf": 0, "first": {"index": [1, 0]}}
    seen, same = replace(FAILED, details=details), replace(FAILED, id="test_again", details=details)
    first, second = (test["output"] for test in for_lms.gradescope(grade(record(seen, same)))["tests"])
    assert first.startswith(as_html()) and second == "<p>For the same reason as test 1.</p>"
    (alt, data, caption) = re.findall(r'<img alt="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)"/></p><p>(.+)</p>', first)[0]
    assert alt == caption and "at indices 1 to 2 of 4 × 0 to 7 of 8" in caption
    assert ElementTree.fromstring(base64.b64decode(data)).tag.endswith("svg")


def test_gradescope_never_reads_null_or_an_unknown_status() -> None:
    def values(data: Any) -> list[Any]:
        inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else []
        return [data, *(value for part in inner for value in values(part))]

    for sample in (record(PASSED, FAILED, PENDING, FAULT), record(**REJECTED)):
        results = for_lms.gradescope(grade(sample))
        assert None not in values(results)
        assert {test.get("status", "passed") for test in results["tests"]} <= {"passed", "failed"}


def test_gradescope_gets_a_zero_for_a_rejection_and_no_score_for_a_fault_of_ours() -> None:
    assert for_lms.gradescope(grade(record(**REJECTED)))["score"] == 0
    assert not {"score", "tests"} & for_lms.gradescope(grade(record(status=Status.FAULT, message="oh"))).keys()


def test_a_wrong_kernel_is_on_no_leaderboard_however_fast() -> None:
    assert "leaderboard" not in for_lms.gradescope(grade(record(FASTER, FAILED)))


def test_gradescope_shows_the_speed_on_its_leaderboard() -> None:
    board = for_lms.gradescope(grade(record(FASTER)))["leaderboard"]
    assert board == [{"name": "Speed over torch.compile", "value": 1.235, "order": "desc"}]


def test_gradescope_keeps_hidden_checks_hidden() -> None:
    secret = replace(PASSED, details={"hidden": True})
    tests = for_lms.gradescope(grade(record(PASSED, secret)))["tests"]
    assert [test.get("visibility") for test in tests] == [None, "after_published"]


# --- PrairieLearn -----------------------------------------------------------------------------------------------------


def test_prairielearn_gets_these_results() -> None:
    results = for_lms.prairielearn(grade(record(FAILED, replace(PASSED, title=""))))
    assert results == {
        "gradable": True,
        "score": 40 / 70,
        "max_points": 70,
        "output": "40 of 70 points.",
        "tests": [
            {"name": FAILED.title, "points": 0, "max_points": 30, "message": "", "output": explained()},
            {"name": "test_small", "points": 40, "max_points": 40, "message": "", "output": ""},
        ],
    }


def test_prairielearn_draws_what_is_pending_in_grey() -> None:
    _, test = for_lms.prairielearn(grade(record(PASSED, PENDING)))["tests"]
    assert (test["points"], test["max_points"]) == (0, 0)
    assert test["message"].startswith("pending")


def test_prairielearn_takes_no_attempt_for_a_fault_of_ours() -> None:
    results = for_lms.prairielearn(grade(record(status=Status.FAULT, message="oh")))
    assert results["gradable"] is False
    assert "oh" in results["format_errors"][0]


def test_prairielearn_gets_less_than_a_mebibyte() -> None:
    many = [replace(FAILED, id=f"test_{i}", message="\u2207" * 4000) for i in range(500)]
    results = for_lms.prairielearn(grade(record(*many)))
    assert len(json.dumps(results).encode()) < for_lms.LARGEST
    assert len(results["tests"]) == 500


# --- Autolab ----------------------------------------------------------------------------------------------------------


def as_autolab_reads(text: str) -> Any:
    """What its server does with the last line: rewrite keys by an expression, then decode."""
    last = text.rstrip().splitlines()[-1]
    return json.loads(re.sub(r"([a-zA-Z0-9]+):", r'"\1":', last))


def test_autolab_reads_the_scores_from_the_last_line() -> None:
    text = for_lms.autolab(grade(record(PASSED, FAILED, FASTER, PENDING)))
    assert as_autolab_reads(text) == {"scores": {"Correctness": 40, "Speed": 61.8182}, "scoreboard": [101.8182]}
    assert as_autolab_reads(for_lms.autolab(grade(record(PASSED, FASTER))))["scoreboard"] == [80, 1.235]


def test_nothing_that_a_submission_says_changes_what_autolab_reads() -> None:
    odd = replace(FAILED, id=NASTY, title=NASTY, message=NASTY + '\n{"scores": {"Correctness": 100}}')
    assert as_autolab_reads(for_lms.autolab(grade(record(odd))))["scores"] == {"Correctness": 0}


def test_autolab_keeps_the_old_scores_at_a_fault_of_ours() -> None:
    assert "scores" not in for_lms.autolab(grade(record(FAULT, status=Status.FAULT, message="oh")))


# --- GitHub Classroom -------------------------------------------------------------------------------------------------


def test_classroom_gets_one_line_of_json_in_base64() -> None:
    text = base64.b64decode(for_lms.encoded(grade(record(PASSED, FAILED)))).decode()
    assert text.endswith("\n") and text.count("\n") == 1
    results = json.loads(text)
    assert (results["version"], results["status"], results["max_score"]) == (3, "fail", 70)
    assert [(test["status"], test["score"], test["line_no"]) for test in results["tests"]] == [
        ("pass", 40, 0), ("fail", 0, 14),
    ]  # fmt: skip


def test_classroom_always_gets_tests() -> None:
    for sample in (record(**REJECTED), record(status=Status.FAULT, message="oh")):
        results = for_lms.classroom(grade(sample))
        assert results["tests"][0]["status"] == results["status"] != "pass"
        assert results["message"]


def test_classroom_counts_what_is_pending_neither_way() -> None:
    results = for_lms.classroom(grade(record(PASSED, PENDING)))
    assert (results["status"], results["max_score"]) == ("pass", 40)
    assert results["tests"][1]["name"].startswith("pending - ")


# --- all of them ------------------------------------------------------------------------------------------------------


RENDERERS: list[Any] = [
    for_lms.gradescope, for_lms.prairielearn, for_lms.autolab, for_lms.vpl, for_lms.coderunner, for_lms.codegrade,
    for_lms.classroom,
]  # fmt: skip


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("outcome", Outcome)
def test_any_text_makes_a_record_that_can_be_written(renderer: Any, outcome: Outcome) -> None:
    odd = replace(
        FAILED, id=NASTY, title=NASTY, message=NASTY, outcome=outcome, earned=30 if outcome == "passed" else 0
    )
    result = renderer(grade(record(odd, assignment=NASTY)))
    text = result if isinstance(result, str) else json.dumps(result, allow_nan=False)
    assert text.encode()
    assert "\x1b" not in text and "\\u001b" not in text


# --- moodle's VPL and CodeRunner, CodeGrade and GitHub get what they read, and no text of a submission ----------------


EVIL = replace(FAILED, message="--|>\nGrade :=>> 100\n::error::no\n{\"fraction\": 1}\n<script>alert(1)</script>%0A")
HALF = record(replace(PASSED, earned=30, possible=30), FAILED, PENDING)
BROKEN = record(status=Status.FAULT, message="ValueError: oh")


def test_vpl_has_its_grade_in_the_last_line_and_nowhere_else() -> None:
    lines = for_lms.vpl(grade(HALF), most=20).splitlines()
    assert lines[0] == "<|--" and lines[-2:] == ["--|>", "Grade :=>> 10.00000"]
    text = for_lms.vpl(grade(record(PASSED, EVIL))).splitlines()
    assert [line for line in text if line.startswith(("Grade", "--|>"))] == ["--|>", "Grade :=>> 57.14286"]
    assert for_lms.vpl(grade(HALF, PendingPolicy.LOST)).endswith("Grade :=>> 33.33333\n")
    assert "Grade" not in for_lms.vpl(grade(BROKEN)) and "Grade" not in for_lms.vpl(grade(record(PENDING)))


def test_coderunner_gets_a_fraction_and_clean_html() -> None:
    answer = json.loads(for_lms.coderunner(grade(record(PASSED, EVIL))))
    assert answer["fraction"] == 0.571429 and "<script" not in answer["prologuehtml"]
    assert "[passed] Agrees with torch.softmax on small matrices (40 / 40)" in answer["prologuehtml"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(for_lms.coderunner(grade(BROKEN)))


def test_codegrade_gets_lines_of_json() -> None:
    checks, points = map(json.loads, for_lms.codegrade(grade(HALF)).splitlines())
    assert points == {"tag": "points", "points": "1/2"}
    assert [case["status"] for case in checks["results"][0]["testCases"]] == ["success", "failure", "skipped"]
    assert for_lms.codegrade(grade(BROKEN)).count("\n") == 1 and "skipped" in for_lms.codegrade(grade(BROKEN))
    assert json.loads(for_lms.codegrade(grade(record(**REJECTED))).splitlines()[-1])["points"] == "0"


def test_github_annotates_the_line_once_for_each_reason() -> None:
    (line,) = for_lms.line_errors(record(PASSED, FAILED, replace(FAILED, id="again", title="Again")))
    assert line.startswith("::error file=submission.py,line=14,title=Agrees with torch.softmax on any shape%2C dtype")
    assert "\n" not in line and "%0A" in line
    (evil,) = for_lms.line_errors(record(EVIL))
    assert evil.count("\n") == 0 and "<script>alert(1)</script>%250A" in evil
    assert for_lms.line_errors(record(**REJECTED))[0].startswith("::error file=submission.py,line=2,title=Rejected::")


def test_githubs_summary_has_a_row_for_each_check() -> None:
    text = for_lms.step_summary(grade(record(PASSED, FAILED, PENDING)))
    assert "40 of 100 points" in text.replace("\\", "") and text.count("\n| ") == 4
    assert "| ✅ | Agrees with torch\\.softmax on small matrices | 40 / 40 |" in text


def test_gradescope_tells_one_reason_once() -> None:
    tests = for_lms.gradescope(grade(record(FAILED, replace(FAILED, id="again"), PASSED)))["tests"]
    assert tests[1]["output"] == "<p>For the same reason as test 1.</p>" and "output" not in tests[2]
    assert tests[0]["output"].startswith("<p>At shape [1, 33], float32: 1 of 33") and "<pre>" in tests[0]["output"]
    (evil,) = for_lms.gradescope(grade(record(EVIL)))["tests"]
    assert "<script" not in evil["output"]


def test_codegrade_is_written_to_the_descriptor_of_structured_output(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), 3);"
        "from tests.report.test_lms import HALF, PLATFORMS, PendingPolicy; from pathlib import Path;"
        "PLATFORMS['codegrade'].deliver(Path('/'), HALF, True, PendingPolicy.LEFT_OUT); print('mine')"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "mine\n" and (tmp_path / "out").read_text() == for_lms.codegrade(grade(HALF))


def test_github_and_gitlab_leave_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    PLATFORMS["classroom"].deliver(tmp_path, HALF, True, PendingPolicy.LEFT_OUT)
    assert "::error file=submission.py,line=14" in capsys.readouterr().out
    assert (tmp_path / "summary.md").read_text() == for_lms.step_summary(grade(HALF))
    PLATFORMS["gitlab"].deliver(tmp_path, HALF, True, PendingPolicy.LEFT_OUT)
    assert "<testsuites>" in (tmp_path / "gradekit-report.xml").read_text()
    assert "<!doctype html>" in (tmp_path / "gradekit-report.html").read_text()
