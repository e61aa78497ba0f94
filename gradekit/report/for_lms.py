"""The report as each LMS reads it: from a file (Gradescope, PrairieLearn), from standard output (Autolab, Moodle's VPL
and CodeRunner, CodeGrade), or from what a workflow puts out (GitHub).

Each is a pure function of a record's grade. Where there is none, since the grader failed or nothing could be measured,
there is none in the text either: an LMS then keeps the one that it has, or shows a fault.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from gradekit.report.grade import LEFT_OUT, Grade
from gradekit.report.grouping import blame, ending, is_right
from gradekit.report.pictures import wrong_image
from gradekit.report.plain_text import as_html, explanation, summary
from gradekit.report.text import for_html, for_markdown, one_line, points

Record = Mapping[str, Any]


_WAITS = {"pending": "pending: ", "fault": "not graded: "}
"""What stands before the name of a check that was not measured."""


def _titled(check: Record) -> str:
    return one_line(check["title"]) or one_line(check["id"])


def _worth(check: Record) -> str:
    return f"{points(check['earned'])} / {points(check['possible'])}"


def _headed(record: Record) -> Iterable[tuple[Record, str]]:
    """Each check with its line: "[failed] Is right (0 / 30)"."""
    for check in record["checks"]:
        yield check, f"[{check['outcome']}] {one_line(check['title'])} ({_worth(check)})"


def over_compiled(record: Record) -> float | None:
    """The least of the measured speeds of a right kernel over torch.compile, to three digits; None for none."""
    ratios = [check["details"].get("speed", {}).get("ratios", {}).get("compiled", {}) for check in record["checks"]]
    values = [round(ratio["value"], 3) for ratio in ratios if "value" in ratio]
    return min(values, default=None) if is_right(record) else None


# --- Gradescope: results.json, by docs/specs.md of gradescope/autograder_samples --------------------------------------

HIDDEN = "after_published"  # when Gradescope shows what hidden tests found


def gradescope(graded: Grade) -> dict[str, Any]:
    """results.json as data, with no key that is null. A test's status is passed or failed: a pending one has neither
    status nor score. A fault has no score at all: Gradescope then says that the autograder failed, not the student."""
    record = graded.record
    results: dict[str, Any] = {
        "output": summary(graded), "output_format": "text", "execution_time": record["seconds"],
        "stdout_visibility": "hidden",
    }  # fmt: skip
    if record["status"] == "fault":
        return results
    if not graded.is_open:
        results["score"] = graded.points
    results["tests"] = _told_once(record)
    if (ratio := over_compiled(record)) is not None:
        results["leaderboard"] = [{"name": "Speed over torch.compile", "value": ratio, "order": "desc"}]
    return results


def _told_once(record: Record) -> list[dict[str, Any]]:
    """The tests; of those that failed for one reason, the first tells it, and the others name that one."""
    tests, told = [], dict[Any, str]()
    for number, check in enumerate(record["checks"], start=1):
        reason = (blame(check), check["details"].get("hidden")) if ending(check) == "failed" else number
        same = told.get(reason)
        picture = wrong_image(check["details"]) if ending(check) == "failed" else ""
        story = as_html(check, record["submission"]) + picture
        output = f"<p>For the same reason as test {same}.</p>" if same else story
        told.setdefault(reason, str(number))
        tests.append(_tested(check, str(number), output))
    return tests


def _tested(check: Record, number: str, output: str) -> dict[str, Any]:
    name = _WAITS.get(check["outcome"], "") + _titled(check)
    formats = {"name_format": "text", "output_format": "html"}
    test: dict[str, Any] = {"name": name, "number": number, **formats, "tags": [check["kind"]]}
    test |= {"output": output} if output else {}
    if check["outcome"] in ("passed", "failed"):
        test |= {"score": check["earned"], "max_score": check["possible"]}
        test |= {"status": check["outcome"]} if ending(check) != "accepted" else {}
    if check["details"].get("hidden"):
        test["visibility"] = HIDDEN
    return test


# --- PrairieLearn: results.json, by its docs/externalGrading.md -------------------------------------------------------

LARGEST = 1024 * 1024  # bytes of results.json from which PrairieLearn fails the job


def prairielearn(graded: Grade) -> dict[str, Any]:
    """results.json as data: the score from 0 to 1, and tests with points and max_points, without which no points are
    shown. A rejected submission is worth 0; where nothing was graded, it is not gradable, and no attempt is used up."""
    record, said = graded.record, summary(graded)
    if not graded.is_given:
        return {"gradable": False, "format_errors": [said], "message": said}
    tests = [_weighed(check, record["submission"]) for check in record["checks"]]
    worth = {"score": graded.part, "max_points": graded.possible}
    return _fitting({"gradable": True, **worth, "output": said, "tests": tests})


def _weighed(check: Record, submission: Record) -> dict[str, Any]:
    waiting = check["outcome"] in ("pending", "fault")
    return {
        "name": _titled(check),
        "points": check["earned"],
        "max_points": 0 if waiting else check["possible"],  # 0 of 0 is drawn grey, and is no loss
        "message": "pending: not measured yet" if waiting else "",
        "output": explanation(check, submission),
    }


def _fitting(results: dict[str, Any]) -> dict[str, Any]:
    longest = max((len(test["output"]) for test in results["tests"]), default=0)
    while longest > 16 and len(json.dumps(results).encode()) >= LARGEST:
        longest //= 2
        for test in results["tests"]:
            test["output"] = test["output"][:longest]
    return results


# --- Autolab: feedback lines, and last of all one line of scores ------------------------------------------------------

_REWRITTEN = re.compile(r"([a-zA-Z0-9]+):")
"""What the server rewrites in the last line before it decodes it (docs/lab.md of Autolab), also in a string: the names
of problems are the kinds of checks, which have no colon."""

KINDS = ("correctness", "memory", "structure", "speed", "quiz")


def autolab(graded: Grade) -> str:
    """The text for standard output, ending in the line of scores."""
    record, lines = graded.record, [summary(graded), ""]
    for check, head in _headed(record):
        lines += [head, *(f"    {line}" for line in explanation(check, record["submission"]).splitlines())]
    scores = [_scores(graded)] if graded.is_given else []
    return "\n".join([*lines, "", *scores]) + "\n"


def problems(graded: Grade) -> dict[str, float]:
    """What the checks count by their kinds, which are the names of the problems that the lab must define."""
    by_kind = {kind: [check for check in graded.record["checks"] if check["kind"] == kind] for kind in KINDS}
    return {kind.capitalize(): round(sum(map(graded.of, mine)), 4) for kind, mine in by_kind.items() if mine}


def _scores(graded: Grade) -> str:
    """One line of JSON without `alnum:` in it: a key's colon follows its quote, and no name holds one."""
    ratio = over_compiled(graded.record)
    board = [round(graded.points, 4), *([] if ratio is None else [ratio])]
    line = json.dumps({"scores": problems(graded), "scoreboard": board}, allow_nan=False)
    assert not _REWRITTEN.search(line), line
    return line


# --- Moodle: a comment and a grade; a fraction and feedback -----------------------------------------------------------


def vpl(graded: Grade, most: float = 100.0) -> str:
    """A comment between `<|--` and `--|>`, and a line with the grade, of at most `most`. In a comment, `-` begins a
    heading and `>` a line that is shown as it is: a submission's lines get one, so that none can be a grade."""
    record, lines = graded.record, ["<|--", *(f">{line}" for line in summary(graded).splitlines())]
    for check, head in _headed(record):
        lines += [f"-{head}", *(f">{line}" for line in explanation(check, record["submission"]).splitlines())]
    found = [f"Grade :=>> {most * graded.part:.5f}"] if graded.is_given else []
    return "\n".join([*lines, "--|>", *found]) + "\n"


def coderunner(graded: Grade) -> str:
    """The answer of a template grader: a JSON object with the fraction and the feedback. A fault is none: CodeRunner
    shows it as an error, and counts 0 until somebody regrades it."""
    record, said = graded.record, summary(graded)
    if not graded.is_given:
        return f"gradekit has no grade: {one_line(said)}\n"
    parts = [f"<p>{for_html(line)}</p>" for line in said.splitlines()]
    for check, head in _headed(record):
        parts += [f"<h5>{for_html(head)}</h5>", as_html(check, record["submission"])]
    return json.dumps({"fraction": round(graded.part, 6), "prologuehtml": "".join(parts)}, allow_nan=False) + "\n"


# --- CodeGrade's AutoTest v2: lines of JSON with the checks, and one with the points ----------------------------------

_STATUS = {"failed": "failure", "pending": "skipped", "fault": "skipped"}


def codegrade(graded: Grade) -> str:
    """The lines of its structured output."""
    record = graded.record
    cases = [_case(check, record["submission"]) for check in record["checks"]] or [
        {"name": "submission", "status": "skipped" if record["status"] == "fault" else "failure",
         "reason": summary(graded)}
    ]  # fmt: skip
    suite = {"id": "gradekit", "name": one_line(record["assignment"]) or "gradekit", "testCases": cases}
    lines: list[dict[str, Any]] = [{"tag": "unit-test", "results": [suite]}]
    if graded.is_given:
        lines += [{"tag": "points", "points": str(Fraction(graded.part).limit_denominator())}]
    return "".join(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n" for line in lines)


def _case(check: Record, submission: Record) -> dict[str, Any]:
    case = {"name": _titled(check), "status": _STATUS.get(ending(check), "success")}
    reason = explanation(check, submission)
    weight = str(Fraction(check["possible"]).limit_denominator())
    return case | {"weight": weight} | ({"reason": reason} if reason else {})


# --- GitHub: for Classroom's autograding reporter, as annotations at the lines, and as a summary of the step ----------
#
# The reporter's contract is version 3 of the JSON that the classroom-resources runners put out: base64 of one line of
# JSON, read from the variable STEP-ID_RESULTS. Partial credit survives only in the score of each test. Workflow
# commands are lines of standard output: `::error file=F,line=N,title=T::message`, with what ends a line or a property
# percent-encoded, so that no text of a submission is a command of its own.

_GITHUB = {"failed": "fail", "fault": "error"}


def classroom(graded: Grade) -> dict[str, Any]:
    """The results as data; the reporter needs `tests`, and sums them up: what is left out does not count here."""
    record, said = graded.record, summary(graded)
    if record["status"] == "fault":
        return _results("error", 0.0, [_entry(record, "submission", "error", 0.0, said)], said)
    if record["status"] == "rejected":
        return _results("fail", record["score"]["possible"], [_entry(record, "submission", "fail", 0.0, said)], said)
    tests = [_test(check, record["submission"], graded) for check in record["checks"]]
    status = "fail" if any(test["status"] == "fail" for test in tests) else "pass"
    left_out = graded.pending if graded.policy is LEFT_OUT else 0.0
    return _results(status, graded.possible - left_out, tests, graded.said)


def encoded(graded: Grade) -> str:
    """What the step puts out as `result`."""
    line = json.dumps(classroom(graded), allow_nan=False, separators=(",", ":")) + "\n"
    return base64.b64encode(line.encode()).decode()


def _results(status: str, most: float, tests: list[dict[str, Any]], message: str = "") -> dict[str, Any]:
    results: dict[str, Any] = {"version": 3, "status": status, "max_score": most, "tests": tests}
    return results | ({"message": message} if message else {})


def _test(check: Record, submission: Record, graded: Grade) -> dict[str, Any]:
    name = _WAITS.get(check["outcome"], "").replace(":", " -") + _titled(check)
    score = check["earned"] if graded.policy is LEFT_OUT else graded.of(check)
    return _entry(check, name, _GITHUB.get(ending(check), "pass"), score, explanation(check, submission))


def _entry(owner: Record, name: str, status: str, score: float, message: str) -> dict[str, Any]:
    return {
        "name": name, "status": status, "score": score, "message": message, "test_code": "", "task_id": 0,
        "filename": "", "line_no": owner["source"]["line"] if owner["source"] else 0, "duration": 0,
    }  # fmt: skip


_SIGNS = {"passed": "✅", "failed": "❌", "pending": "⏳", "fault": "⚠️", "missed": "➖", "accepted": "☑️"}


def line_errors(record: Record) -> list[str]:
    """A line for each failure that has a line in the submission, one for each reason."""
    failed = [check for check in record["checks"] if check["source"] and ending(check) == "failed"]
    first = {blame(check): check for check in reversed(failed)}
    told = [(check, explanation(check, record["submission"]), check["title"]) for check in reversed(first.values())]
    if record["status"] == "rejected" and record["source"]:
        told = [(record, record["message"], "Rejected")]
    return [
        f"::error file={_property(record['submission']['path'])},line={owner['source']['line']},"
        f"title={_property(one_line(title))}::{_data(text)}"
        for owner, text, title in told
    ]  # fmt: skip


def step_summary(graded: Grade) -> str:
    """The summary: the score, what is pending, and a row for each check."""
    record = graded.record
    lines = [f"### {for_markdown(record['assignment'])}", "", *map(for_markdown, summary(graded).splitlines())]
    if record["checks"]:
        lines += ["", "| | check | points |", "|---|---|---|"]
    for check in record["checks"]:
        lines += [f"| {_SIGNS[ending(check)]} | {for_markdown(check['title'])} | {_worth(check)} |"]
    return "\n".join(lines) + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
