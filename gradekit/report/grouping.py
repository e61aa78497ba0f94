"""Checks that did not pass for one reason, side by side: pure functions of a record's checks.

A student has one mistake to mend where ten checks fail for it: a rendering tells it once, with what it costs.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradekit.report.text import one_line, points
from gradekit.submission import line_of

CheckRecord = Mapping[str, Any]

_TRIED = (", this example and others are right)", "there is another mistake, or more to this one)")
"""How the hint of a change ends that was tried."""

_EXPLAINS = {"missing-mask": ("out-of-bounds-load", "out-of-bounds-store")}
"""What some checks only see at a line where another knows the cause: they are told with it."""


CheckGroup = Sequence[CheckRecord]  # checks of one reason, in their order; the first tells it

MARKS = {"failed": "✗", "fault": "!", "pending": "◌", "missed": "–", "accepted": "◐", "passed": "✓"}
"""The signs of `ending`, in the order in which a page shows them."""


def ending(check: CheckRecord) -> str:
    """How the check ended for a reader: its outcome; "missed" for extra credit that was not earned, which is no
    failure; "accepted" where a person gave a part of the points."""
    if check["outcome"] != "failed":
        return str(check["outcome"])
    if check["bonus"]:
        return "missed"
    return "accepted" if check["earned"] and check["details"].get("points_by") else "failed"


def is_right(record: Mapping[str, Any]) -> bool:
    """Whether nothing but speed has failed: a kernel that leaves work out is no faster than one that does it."""
    return all(ending(check) != "failed" or check["kind"] == "speed" for check in record["checks"])


def points_lost(group: CheckGroup) -> str:
    """What the reason of a group costs: "1 point", "2.5 points"."""
    lost = sum(check["possible"] - check["earned"] for check in group)
    return f"{points(lost)} point{'s' * (lost != 1)}"


def groups(checks: Iterable[CheckRecord]) -> Sequence[CheckGroup]:
    """The `checks` in their order; with a check that failed stand all others that failed for its reason."""
    found: dict[Any, list[CheckRecord]] = {}
    for number, check in enumerate(_parametrized(checks)):
        alone = check["outcome"] != "failed" or {"speed", "points_by"} & {*check["details"]} or check["kind"] == "quiz"
        found.setdefault((number if alone else None, blame(check)), []).append(check)
    for (alone, (outcome, why, where)), members in list(found.items()):
        for seen in _EXPLAINS.get(members[0]["cause"], ()):
            members += found.pop((alone, (outcome, seen, where)), []) if seen != why else []
    return list(found.values())


def blame(check: CheckRecord) -> tuple[Any, ...]:
    """What the student has to mend: two checks of one blame did not pass for one reason, also where one change of one
    line made both right, whatever each of them saw, or one observation tells what is wrong from what is right."""
    told = check["details"].get("observation", check["message"])
    where = check["source"]["line"] if check["cause"] and check["source"] else told
    hint = str(check.get("hint", ""))
    return (check["outcome"], hint if hint.endswith(_TRIED) else check["cause"], where)


def untouched(record: Mapping[str, Any]) -> str:
    """What to say of a starter that nobody has begun with: every check ended at one line that raises
    NotImplementedError, but for those of which torch tells only that an exception was raised, not where. "" of any
    other submission."""
    told = [check for check in record["checks"] if check["source"] or check["cause"] != "exception"]
    raised = all(check["message"].startswith("NotImplementedError") for check in told)
    if not raised or len({blame(check) for check in told}) != 1:
        return ""
    source = next((check["source"] for check in told if check["source"]), None)
    line = line_of(record["submission"], source["line"]) if source else "the line that raises NotImplementedError"
    return f"Nothing is written yet: fill in the TODOs, and delete {line} when you have."


def plain_title(check: CheckRecord) -> str:
    """The title of a check's test, without the parameters of its case."""
    case = check["id"].partition("[")[2]
    return one_line(check["title"].removesuffix(f"[{case}") if case else check["title"])


def _parametrized(checks: Iterable[CheckRecord]) -> Iterable[CheckRecord]:
    """The checks, with cases of one test that ended alike side by side as one; but none that was timed."""

    def kind(check: CheckRecord) -> tuple[Any, ...]:
        whole = check["id"] if "speed" in check["details"] else check["id"].partition("[")[0]
        return whole, check["outcome"], blame(check)

    for _, alike in itertools.groupby(checks, key=kind):
        yield _together(list(alike))


def _together(members: Sequence[CheckRecord]) -> CheckRecord:
    if len(members) == 1:
        return members[0]
    cases = [check["id"].partition("[")[2].removesuffix("]") for check in members]
    points = {name: sum(check[name] for check in members) for name in ("earned", "possible")}
    return {**members[0], **points, "title": f"{plain_title(members[0])} [{', '.join(cases)}]"}
