"""A check or a report as plain lines of text, for renderings that have no layout of their own."""

from collections.abc import Mapping
from typing import Any

from gradekit.report.grade import Grade
from gradekit.report.text import clean, described, for_html, located, one_line, points
from gradekit.report.translation import say
from gradekit.submission import place

LONGEST = 4000  # characters of one text: a submission chooses how long its exceptions are, and an LMS has limits


def explanation(check: Mapping[str, Any], submission: Mapping[str, Any]) -> str:
    """What went wrong, where, for which input, what to do, and how to see it again; empty for a passed check."""
    if check["outcome"] == "passed" and not check["message"]:
        return ""
    parts = [clean(located(check["message"], submission)).strip(), *_evidence(check, submission)]
    return cut("\n".join(part for part in parts if part))


def as_html(check: Mapping[str, Any], submission: Mapping[str, Any]) -> str:
    """The same as HTML: the first line as a paragraph, what follows it line by line, code as code."""
    first, _, rest = explanation(check, submission).partition("\n")
    if not first:
        return ""
    return f"<p>{for_html(first)}</p>" + (f"<pre>{for_html(rest)}</pre>" if rest else "")


def _evidence(check: Mapping[str, Any], submission: Mapping[str, Any]) -> list[str]:
    counterexample = check["counterexample"] or {}
    inputs = [f"{say('input')}: {described(given)}" for given in counterexample.get("inputs", ())]
    lines = [where(check, submission), *inputs]
    advice = one_line(located(str(check.get("hint", "")), submission))
    lines += [f"{say('hint')}: {advice}"] if advice and check["outcome"] == "failed" else []
    lines += [f"{say('replay')}: {one_line(counterexample['replay'])}"] if counterexample.get("replay") else []
    return lines


def where(owner: Mapping[str, Any], submission: Mapping[str, Any]) -> str:
    """ "submission.py:14: x = tl.load(x_ptr + offs)", or nothing where no line is to blame."""
    source = owner["source"]
    return f"{one_line(place(submission, source['line']))}: {one_line(source['text'])}" if source else ""


def summary(graded: Grade) -> str:
    """One paragraph on the whole: the score, why it was rejected or not graded, and what is pending and counts."""
    record = graded.record
    submission, score = record["submission"], record["score"]
    worth = f"{points(score['earned'])} of {points(score['possible'])} points"
    if record["status"] == "graded":
        return "\n".join(map(say, [worth + ".", *filter(None, [graded.said]), *map(one_line, record["notes"])]))
    failed = "The grader itself failed; nothing counts against the submission."
    reason = [clean(located(record["message"], submission)).strip(), where(record, submission)]
    said = say(failed if record["status"] == "fault" else f"Rejected: {worth}" if score["possible"] else "Rejected")
    return cut("\n".join([said, *filter(None, reason)]))


def cut(text: str) -> str:
    """`text`, and at most LONGEST characters of it."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "\n... (cut)"
