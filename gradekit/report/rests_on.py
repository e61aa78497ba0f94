"""What a full mark rests on: a pure function of the checks in a record.

A mark says that nothing was found. How much was looked at differs from submission to submission: what was proved, what
was compared with the reference in exact arithmetic, what examples have covered, and what none of them has seen.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gradekit.report.text import counted, one_line


def rests_on(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the checks of a record have looked at; empty where one of them has failed, or has looked at nothing."""
    if any(check["outcome"] in ("failed", "fault") for check in checks):
        return {}
    details = [check["details"] for check in checks]
    passes = [found for one in details for found in one.get("proofs", {}).values()]
    forms = [one["exact"] for one in details if "exact" in one]
    coverage = [one["coverage"] for one in details if "coverage" in one]
    unfollowed = _named(coverage, "unfollowed")
    if not passes and not forms and not coverage:
        return {}
    return {
        "proved": sum(one["proved"] for one in passes), "open": sum(one["open"] for one in passes),
        "exact": sum(one["exact"] for one in forms),
        "not_exact": sum(one["forms"] - one["exact"] + one.get("untried", 0) for one in forms),
        "examples": sum(one.get("examples", 0) for one in details), "unseen": _named(coverage, "unseen"),
        **({"unfollowed": unfollowed} if unfollowed else {}),
    }  # fmt: skip


def _named(coverage: Sequence[Mapping[str, Any]], what: str) -> list[dict[str, Any]]:
    """The lines that the branches of several checks name under `what`, each once."""
    ways = [way for one in coverage for way in one.get("branches", {}).get(what, ())]
    return [dict(way) for way in {(way["line"], way["what"]): way for way in ways}.values()]


def in_words(record: Mapping[str, Any]) -> str:
    """One line for a report: what its full mark rests on; "" where it rests on nothing that is counted."""
    if not (found := record.get("rests_on")):
        return ""
    formula = "formula right" if found["exact"] == 1 else "formulas right"
    parts = [counted(found["examples"], "example")]
    parts += [f"{counted(found['proved'], 'claim')} proved"] if found["proved"] else []
    parts += [f"{found['exact']:,} {formula} in exact arithmetic"] if found["exact"] else []
    ways = len(found["unseen"])
    unseen = f"; {counted(ways, 'outcome')} of its branches never occurred" if ways else ""
    return f"This score rests on {', '.join(parts)}{unseen}."


def unsure(record: Mapping[str, Any]) -> list[str]:
    """What nothing has looked at behind a full mark, with its lines: first what a person should look at."""
    found = record.get("rests_on", {})
    named = [*found.get("unfollowed", ()), *found.get("unseen", ())]
    return [one_line(f"line {one['line']}: {one['what']}" if one["line"] else one["what"]) for one in named]
