"""The report as what Autolab reads: feedback lines, and last of all one line of scores.

The contract is docs/lab.md of Autolab. Its server rewrites the last line with a regular expression before it decodes
the JSON: a letter or digit that is followed by a colon breaks it, in a string too. The names of problems are the kinds
of checks, which have no colon; the feedback above goes through untouched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gradekit.credit import PendingPolicy
from gradekit.report.grade import LEFT_OUT, Grade, grade
from gradekit.report.gradescope import over_compiled
from gradekit.report.story import explanation, summary
from gradekit.report.text import one_line, points

_REWRITTEN = re.compile(r"([a-zA-Z0-9]+):")

KINDS = ("correctness", "memory", "structure", "speed", "quiz")


def render(record: Mapping[str, Any], pending: PendingPolicy = LEFT_OUT) -> str:
    """The text for standard output, ending in the line of scores; `pending` says what points count that were not
    measured.

    A fault of the grader has no line of scores, nor has a record of which nothing could be measured: Autolab then keeps
    the scores that there are.
    """
    graded = grade(record, pending)
    lines = [summary(record, graded), "", *_feedback(record)]
    if record["status"] != "fault" and not graded.is_open:
        lines += [_result(record, graded)]
    return "\n".join(lines) + "\n"


def _feedback(record: Mapping[str, Any]) -> Iterable[str]:
    for check in record["checks"]:
        worth = f"{points(check['earned'])} / {points(check['possible'])}"
        yield f"[{check['outcome']}] {one_line(check['title'])} ({worth})"
        story = explanation(check, record["submission"])
        yield from (f"    {line}" for line in story.splitlines())
    yield ""


def problems(record: Mapping[str, Any], graded: Grade) -> dict[str, float]:
    """What the checks count by their kinds, which are the names of the problems that the lab must define."""
    by_kind = {kind: [check for check in record["checks"] if check["kind"] == kind] for kind in KINDS}
    return {kind.capitalize(): round(sum(map(graded.of, mine)), 4) for kind, mine in by_kind.items() if mine}


def _result(record: Mapping[str, Any], graded: Grade) -> str:
    """One line of JSON without `alnum:` in it: a key's colon follows its quote, and no name holds one."""
    ratios = [ratio for check in record["checks"] if (ratio := over_compiled(check)) is not None]
    board = [round(graded.points, 4), *([round(min(ratios), 3)] if ratios else [])]
    line = json.dumps({"scores": problems(record, graded), "scoreboard": board}, allow_nan=False)
    assert not _REWRITTEN.search(line), line
    return line
