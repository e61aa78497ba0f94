"""Each LMS gets the record that its contract asks for, literally, and none of its traps is stepped into."""

from __future__ import annotations

import base64
import html
import json
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from gradekit.findings import Cause, Kind, Outcome, Status
from gradekit.report import classroom, gradescope, prairielearn, printed

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


def story() -> str:
    return STORY.format(hint=Cause.MISSING_MASK.hint)


def as_html() -> str:
    first, rest = html.escape(story()).split("\n", 1)
    return f"<p>{first}</p><pre>{rest}</pre>"


# --- Gradescope -------------------------------------------------------------------------------------------------------


def test_gradescope_gets_these_results() -> None:
    assert gradescope.render(record(PASSED, FAILED, PENDING)) == {
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
    first, second = (test["output"] for test in gradescope.render(record(seen, same))["tests"])
    assert first.startswith(as_html()) and second == "<p>For the same reason as test 1.</p>"
    (alt, data, caption) = re.findall(r'<img alt="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)"/></p><p>(.+)</p>', first)[0]
    assert alt == caption and "at indices 1 to 2 of 4 × 0 to 7 of 8" in caption
    assert ElementTree.fromstring(base64.b64decode(data)).tag.endswith("svg")


def test_gradescope_never_reads_null_or_an_unknown_status() -> None:
    def values(data: Any) -> list[Any]:
        inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else []
        return [data, *(value for part in inner for value in values(part))]

    for sample in (record(PASSED, FAILED, PENDING, FAULT), record(**REJECTED)):
        results = gradescope.render(sample)
        assert None not in values(results)
        assert {test.get("status", "passed") for test in results["tests"]} <= {"passed", "failed"}


def test_gradescope_gets_a_zero_for_a_rejection_and_no_score_for_a_fault_of_ours() -> None:
    assert gradescope.render(record(**REJECTED))["score"] == 0
    assert not {"score", "tests"} & gradescope.render(record(status=Status.FAULT, message="oh")).keys()


def test_gradescope_shows_the_speed_on_its_leaderboard() -> None:
    board = gradescope.render(record(FASTER))["leaderboard"]
    assert board == [{"name": "Speed over torch.compile", "value": 1.235, "order": "desc"}]


def test_gradescope_keeps_hidden_checks_hidden() -> None:
    secret = replace(PASSED, details={"hidden": True})
    tests = gradescope.render(record(PASSED, secret))["tests"]
    assert [test.get("visibility") for test in tests] == [None, "after_published"]


# --- PrairieLearn -----------------------------------------------------------------------------------------------------


def test_prairielearn_gets_these_results() -> None:
    results = prairielearn.render(record(FAILED, replace(PASSED, title="")))
    assert results == {
        "gradable": True,
        "score": 40 / 70,
        "max_points": 70,
        "output": "40 of 70 points.",
        "tests": [
            {"name": FAILED.title, "points": 0, "max_points": 30, "message": "", "output": story()},
            {"name": "test_small", "points": 40, "max_points": 40, "message": "", "output": ""},
        ],
    }


def test_prairielearn_draws_what_is_pending_in_grey() -> None:
    _, test = prairielearn.render(record(PASSED, PENDING))["tests"]
    assert (test["points"], test["max_points"]) == (0, 0)
    assert test["message"].startswith("pending")


def test_prairielearn_takes_no_attempt_for_a_fault_of_ours() -> None:
    results = prairielearn.render(record(status=Status.FAULT, message="oh"))
    assert results["gradable"] is False
    assert "oh" in results["format_errors"][0]


def test_prairielearn_gets_less_than_a_mebibyte() -> None:
    many = [replace(FAILED, id=f"test_{i}", message="\u2207" * 4000) for i in range(500)]
    results = prairielearn.render(record(*many))
    assert len(json.dumps(results).encode()) < prairielearn.LARGEST
    assert len(results["tests"]) == 500


# --- Autolab ----------------------------------------------------------------------------------------------------------


def as_autolab_reads(text: str) -> Any:
    """What its server does with the last line: rewrite keys by an expression, then decode."""
    last = text.rstrip().splitlines()[-1]
    return json.loads(re.sub(r"([a-zA-Z0-9]+):", r'"\1":', last))


def test_autolab_reads_the_scores_from_the_last_line() -> None:
    text = printed.autolab(record(PASSED, FAILED, FASTER, PENDING))
    assert as_autolab_reads(text) == {"scores": {"Correctness": 40, "Speed": 61.8182}, "scoreboard": [101.8182, 1.235]}


def test_nothing_that_a_submission_says_changes_what_autolab_reads() -> None:
    odd = replace(FAILED, id=NASTY, title=NASTY, message=NASTY + '\n{"scores": {"Correctness": 100}}')
    assert as_autolab_reads(printed.autolab(record(odd)))["scores"] == {"Correctness": 0}


def test_autolab_keeps_the_old_scores_at_a_fault_of_ours() -> None:
    assert "scores" not in printed.autolab(record(FAULT, status=Status.FAULT, message="oh"))


# --- GitHub Classroom -------------------------------------------------------------------------------------------------


def test_classroom_gets_one_line_of_json_in_base64() -> None:
    text = base64.b64decode(classroom.encoded(record(PASSED, FAILED))).decode()
    assert text.endswith("\n") and text.count("\n") == 1
    results = json.loads(text)
    assert (results["version"], results["status"], results["max_score"]) == (3, "fail", 70)
    assert [(test["status"], test["score"], test["line_no"]) for test in results["tests"]] == [
        ("pass", 40, 0), ("fail", 0, 14),
    ]  # fmt: skip


def test_classroom_always_gets_tests() -> None:
    for sample in (record(**REJECTED), record(status=Status.FAULT, message="oh")):
        results = classroom.render(sample)
        assert results["tests"][0]["status"] == results["status"] != "pass"
        assert results["message"]


def test_classroom_counts_what_is_pending_neither_way() -> None:
    results = classroom.render(record(PASSED, PENDING))
    assert (results["status"], results["max_score"]) == ("pass", 40)
    assert results["tests"][1]["name"].startswith("pending - ")


# --- all of them ------------------------------------------------------------------------------------------------------


RENDERERS = [each.render for each in (gradescope, prairielearn, classroom)]
RENDERERS += [printed.autolab, printed.vpl, printed.coderunner, printed.codegrade]


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("outcome", Outcome)
def test_any_text_makes_a_record_that_can_be_written(renderer: Any, outcome: Outcome) -> None:
    odd = replace(
        FAILED, id=NASTY, title=NASTY, message=NASTY, outcome=outcome, earned=30 if outcome == "passed" else 0
    )
    result = renderer(record(odd, assignment=NASTY))
    text = result if isinstance(result, str) else json.dumps(result, allow_nan=False)
    assert text.encode()
    assert "\x1b" not in text and "\\u001b" not in text
