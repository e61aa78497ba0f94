"""What a full mark rests on: a pure function of the checks in a record.

A mark says that nothing was found. How much was looked at differs from submission to submission: what was proved, what
was held against the reference in exact arithmetic, what examples have covered, and what none of them has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def rests_on(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the checks of a record have looked at; empty where one of them has failed, or has looked at nothing."""
    if any(check["outcome"] in ("failed", "fault") for check in checks):
        return {}
    details = [check["details"] for check in checks]
    passes = [found for one in details for found in one.get("proofs", {}).values()]
    values = [one["values"] for one in details if "values" in one]
    forms = [one["exact"] for one in details if "exact" in one]
    coverage = [one["coverage"] for one in details if "coverage" in one]
    unseen = [way for one in coverage for way in one.get("branches", {}).get("unseen", ())]
    if not passes and not forms and not coverage:
        return {}
    return {
        "proved": sum(one["proved"] for one in passes) + sum(one["verdict"] == "proved" for one in values),
        "open": sum(one["open"] for one in passes) + sum(one["verdict"] == "open" for one in values),
        "exact": sum(one["exact"] for one in forms),
        "not_exact": sum(one["forms"] - one["exact"] + one.get("untried", 0) for one in forms),
        "examples": sum(one.get("examples", 0) for one in details),
        "unseen": [dict(way) for way in {(way["line"], way["what"]): way for way in unseen}.values()],
    }
