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
    unfollowed, unseen = _unfollowed(coverage), _unseen(coverage)
    if not passes and not forms and not coverage:
        return {}
    return {
        "proved": sum(one["proved"] for one in passes), "open": sum(one["open"] for one in passes),
        "exact": sum(one["exact"] for one in forms),
        "not_exact": sum(one["forms"] - one["exact"] + one.get("untried", 0) for one in forms),
        "examples": sum(one.get("examples", 0) for one in details), "unseen": unseen,
        **({"unfollowed": unfollowed} if unfollowed else {}),
    }  # fmt: skip


def _unseen(coverage: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The ways that some checks could go and no check went."""
    lines = [one for each in coverage for one in each.get("branches", {}).get("decisions", ())]
    ways = lambda which: dict.fromkeys((one["line"], what) for one in lines for what in one[which])
    seen, unseen = ways("seen"), ways("unseen")
    return [{"line": line, "what": what} for line, what in unseen if (line, what) not in seen]


def _unfollowed(coverage: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    branches = [one.get("branches", {}) for one in coverage]
    ways = [way for one in branches for way in (*one.get("unfollowed", ()), *one.get("untried", ()))]
    return [dict(way) for way in {(way["line"], way["what"]): way for way in ways}.values()]


def in_words(record: Mapping[str, Any]) -> str:
    """One line for a report: what its full mark rests on; "" where it rests on nothing that is counted."""
    if not (found := record.get("rests_on")):
        return ""
    formula = "formula right" if found["exact"] == 1 else "formulas right"
    parts = [counted(found["examples"], "example")]
    parts += [f"{counted(found['proved'], 'claim')} proved"] if found["proved"] else []
    parts += [f"{found['exact']:,} {formula} in exact arithmetic"] if found["exact"] else []
    return f"This score rests on {', '.join(parts)}."


def not_seen(record: Mapping[str, Any]) -> str:
    """A line for a report: the first of what nothing has looked at, and how many more there are; "" for none."""
    named = unsure(record)
    more = f" (and {len(named) - 1} more)" if len(named) > 1 else ""
    how = ", and nothing for you to change" if record.get("rests_on") else ""  # what failed may stand in that line
    return f"Left open{how}: {named[0]}{more}." if named else ""


def unsure(record: Mapping[str, Any]) -> list[str]:
    """What nothing has looked at behind a full mark, with its lines; of other records, what nothing follows."""
    coverage = [check["details"]["coverage"] for check in record.get("checks", ()) if "coverage" in check["details"]]
    found = record.get("rests_on") or {"unfollowed": _unfollowed(coverage)}
    named = [(one["line"], one["what"]) for one in found.get("unfollowed", ())]
    named += [(one["line"], f"no call in which {one['what']}") for one in found.get("unseen", ())]
    return [one_line(f"line {line}: {what}" if line else what) for line, what in named]
