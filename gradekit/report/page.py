"""The report as one page of HTML that loads nothing and runs nothing: a pure function of the record and the source.

Jinja2 escapes whatever stands in the templates; `clean` takes control characters out before that. A
Content-Security-Policy allows the page's own style sheet, by its hash, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradekit.report import pictures, proofs, result_pictures, speed_plot, speed_sentences, templates
from gradekit.report.grouping import Story, stories
from gradekit.report.text import clean, described, one_line, points, seconds
from gradekit.submission import place

SIGNS = {"passed": "✓", "failed": "✗", "pending": "◌", "fault": "!"}
MOST_LINES = 2000
"""Lines of source that a page shows: a longer submission is cut, and the page says so."""


def render(record: Mapping[str, Any], source: str = "", hand_in: Sequence[tuple[str, str]] = ()) -> str:
    """The page of a report `record`; `source` is the submission's text, `hand_in` facts on the hand-in, by name."""
    return templates.page("report.html", view(record, source, hand_in))


def view(record: Mapping[str, Any], source: str, hand_in: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What the template shows, every text of it clean."""
    score = record["score"]
    return {
        "title": f"{one_line(record['assignment']) or 'submission'}: report",
        "path": one_line(record["submission"]["path"]), "status": record["status"],
        "earned": points(score["earned"]), "possible": points(score["possible"]),
        "pending": points(score["pending"]) if score["pending"] else "",
        "message": clean(record["message"]), "hint": one_line(record.get("hint", "")),
        "hand_in": [(one_line(name), one_line(value)) for name, value in hand_in],
        "overview": list(_overview(record["checks"])),
        "checks": _checks(record["checks"], record["submission"]), "plot": speed_plot.plot(record["checks"]),
        "source": list(_source(record, source)), "notes": [one_line(note) for note in record["notes"]],
        "footer": _footer(record),
    }  # fmt: skip


def _overview(checks: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, str]]:
    for kind in dict.fromkeys(check["kind"] for check in checks):
        mine = [check for check in checks if check["kind"] == kind and not check["bonus"]]
        open_ = sum(c["possible"] - c["earned"] for c in mine if c["outcome"] in ("pending", "fault"))
        yield {
            "kind": kind, "earned": points(sum(c["earned"] for c in mine)),
            "possible": points(sum(c["possible"] for c in mine)), "pending": points(open_) if open_ else "",
        }  # fmt: skip


def _checks(checks: Sequence[Mapping[str, Any]], submission: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The checks, those that failed for one reason side by side: the first of them tells it, and what it costs."""
    shown: list[dict[str, Any]] = []
    for story in stories(checks):
        teller = len(shown) + 1
        shown += [
            _check(check, submission) | {"same_as": teller if place else 0} for place, check in enumerate(story.checks)
        ]
        shown[teller - 1]["intro"] = _intro(story, teller)
    return shown


def _intro(story: Story, teller: int) -> str:
    if len(story.checks) == 1:
        return ""
    cost = f"{points(story.lost)} point{'s' * (story.lost != 1)}"
    return f"One cause for checks {teller} to {teller + len(story.checks) - 1}; it costs {cost}."


def _check(check: Mapping[str, Any], submission: Mapping[str, Any]) -> dict[str, Any]:
    counterexample, details = check["counterexample"] or {}, check["details"]
    return {
        "outcome": check["outcome"], "sign": SIGNS[check["outcome"]],
        "ending": "missed" if check["bonus"] and check["outcome"] == "failed" else check["outcome"],
        "title": one_line(check["title"]), "points": f"{points(check['earned'])} / {points(check['possible'])}",
        "message": clean(check["message"]), "hint": one_line(check.get("hint", "")),
        "line": _line(check["source"], submission), "origin": one_line(counterexample.get("origin", "")),
        "inputs": [described(given) for given in counterexample.get("inputs", ())],
        "replay": one_line(counterexample.get("replay", "")),
        "wrong": None if details.get("tiles") else pictures.wrong(details), "intro": "",
        "tiles": result_pictures.tiles(details.get("tiles"), details),
        "outside": result_pictures.outside(_list(details.get("findings"))),
        "findings": [_finding(each) for each in _list(details.get("findings"))],
        "proofs": _proofs(details.get("proofs")), "factors": _factors(details.get("coverage")),
        "speed": pictures.speed(details["speed"],
        speed_sentences.sentences(details["speed"])) if "speed" in details else None,
        "coverage": _coverage(details.get("coverage")),
        "relations": [one_line(str(each)) for each in _list(details.get("relations"))],
    }  # fmt: skip


def _line(source: Mapping[str, Any] | None, submission: Mapping[str, Any]) -> dict[str, Any] | None:
    if source is None:
        return None
    where = place(submission, source["line"])
    return {"number": source["line"], "place": one_line(where), "text": one_line(source["text"])}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _finding(finding: Mapping[str, Any]) -> dict[str, str]:
    pairs = list(zip(_list(finding.get("elements")), _list(finding.get("programs")), strict=False))
    first = [f"{element} by program {tuple(program)}" for element, program in pairs[:3]]
    return {
        "what": one_line(str(finding.get("cause", ""))), "tensor": one_line(str(finding.get("tensor", ""))),
        "line": str(finding.get("line") or ""), "count": str(finding.get("count", "")), "first": "; ".join(first),
    }  # fmt: skip


def _coverage(coverage: Any) -> str:
    """What a check was tried on, in one line; empty where the record does not say."""
    if not isinstance(coverage, Mapping):
        return ""
    plain = {name: value for name, value in coverage.items() if isinstance(value, (int, str))}
    return ", ".join(f"{one_line(str(name)).replace('_', ' ')} {one_line(str(value))}" for name, value in plain.items())


def _factors(coverage: Any) -> list[dict[str, Any]]:
    """By factor of a covering design, the levels that were run and how often."""
    factors = coverage.get("factors") if isinstance(coverage, Mapping) else None
    if not isinstance(factors, Mapping):
        return []
    return [
        {"name": one_line(str(name)), "levels": ", ".join(f"{one_line(str(level))} ({count})" for level,
        count in levels.items())}
        for name, levels in factors.items() if isinstance(levels, Mapping)
    ]  # fmt: skip


def _proofs(found: Any) -> list[dict[str, Any]]:
    """By entry, how much is proved for all sizes, and the claims with their verdicts."""
    if not isinstance(found, Mapping):
        return []
    return [
        {"entry": one_line(str(name)), "counts": f"{each['proved']} proved, {each['refuted']} refuted, "
                                                 f"{each['open']} open",
         "claims": [proofs.row(claim) for claim in each["claims"]]}
        for name, each in found.items()
    ]  # fmt: skip


def _source(record: Mapping[str, Any], source: str) -> Iterable[dict[str, Any]]:
    blamed: dict[int, list[str]] = {}
    for number, check in enumerate(record["checks"], 1):
        if check["source"] and check["outcome"] == "failed":
            blamed.setdefault(check["source"]["line"], []).append(str(number))
    lines = source.split("\n") if source else []
    for number, text in enumerate(lines[:MOST_LINES], 1):
        checks = blamed.get(number, [])
        said = f"check {', '.join(checks)}" if len(checks) < 2 else f"checks {', '.join(checks)}"
        yield {"number": number, "text": clean(text), "blamed": said if checks else ""}
    if len(lines) > MOST_LINES:
        yield {"number": MOST_LINES + 1, "text": f"({len(lines) - MOST_LINES} more lines are not shown)", "blamed": ""}


def _footer(record: Mapping[str, Any]) -> str:
    used = record["environment"]
    versions = ", ".join(f"{name} {used[name]}" for name in ("gradekit", "torch", "triton") if used.get(name))
    where = f"on {used['gpu']}" if used.get("gpu") else "on the CPU engine (nothing ran on a GPU)"
    return f"Checked in {seconds(record['seconds'])} {where}; {one_line(versions)}, seed {record['seed']}."
