"""What is other than at the check before: a pure function of two records."""

from collections.abc import Mapping
from typing import Any

from gradekit.report.grouping import blame
from gradekit.report.text import one_line, scored

Record = Mapping[str, Any]

MOST_NAMED = 3  # checks that a sentence names: the report itself has all of them


def changes(before: Record | None, record: Record) -> list[tuple[str, list[str]]]:
    """Words ("Passes now") with the ids of checks; nothing without an earlier check of the same assignment."""
    if before is None or not _comparable(before, record):
        return []
    known = {check["id"]: check for check in before["checks"]}
    found: dict[str, list[str]] = {word: [] for word in ("Passes now", "Fails now", "Fails for another reason")}
    for check in record["checks"]:
        old = known.get(check["id"])
        if old is not None and old["outcome"] in ("passed", "failed"):
            word = _word(old, check)
            found.get(word, []).append(check["id"])
    right = all(check["outcome"] in ("passed", "pending") for check in record["checks"])
    if right and len(found["Passes now"]) > MOST_NAMED:
        return [(f"All that was measured passes now, {len(found['Passes now'])} checks more than before", [])]
    return [(word, ids) for word, ids in found.items() if ids]


def _word(old: Record, new: Record) -> str:
    if old["outcome"] != new["outcome"]:
        return {"passed": "Passes now", "failed": "Fails now"}.get(new["outcome"], "")
    return "Fails for another reason" if new["outcome"] == "failed" and _reason(old) != _reason(new) else ""


def _reason(check: Record) -> tuple[Any, ...]:
    """Why it failed, but for the number of the line, which other edits move."""
    outcome, why, where = blame(check)
    return outcome, why, check["source"]["text"].strip() if check["source"] else where


def last_time(before: Record | None, record: Record) -> str:
    """ "Last time: 40 of 70 points, 20 pending.", where the same checks came to another score; "" otherwise."""
    if before is None or not _comparable(before, record):
        return ""
    if {check["id"] for check in before["checks"]} != {check["id"] for check in record["checks"]}:
        return ""
    return f"Last time: {scored(**before['score'])}." if before["score"] != record["score"] else ""


def sentence(before: Record | None, record: Record) -> str:
    """All of it in a line or two of text."""
    titles = {check["id"]: one_line(check["title"]) for check in record["checks"]}
    parts = [_named(word, list(dict.fromkeys(titles[id] for id in ids))) for word, ids in changes(before, record)]
    return " ".join(filter(None, [last_time(before, record), *parts]))


def _named(word: str, titles: list[str]) -> str:
    more = len(titles) - MOST_NAMED
    named = "; ".join(titles if more < 2 else [*titles[:MOST_NAMED], f"{more} others"])
    return f"{word}: {named}." if titles else f"{word}."


def _comparable(before: Record, record: Record) -> bool:
    of_one = before["assignment"] == record["assignment"]
    return bool(of_one and before["status"] == record["status"] == "graded")
