"""The report as one page of HTML that loads nothing: a pure function of the record and the source.

What failed comes first, what passed is folded to one line each. Jinja2 escapes whatever stands in the templates;
`clean` takes control characters out before that. A Content-Security-Policy allows the page's own style sheet and
script, by their hashes, and nothing else.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradekit.causes import Cause
from gradekit.report import pictures, proofs, source_view, speed_sentences, templates
from gradekit.report.changes import changes, last_time
from gradekit.report.grouping import MARKS, Story, ending, points_lost, stories
from gradekit.report.rests_on import in_words, unsure
from gradekit.report.text import clean, counted, described, one_line, points, seconds
from gradekit.submission import place


def render(
    record: Mapping[str, Any], source: str = "", hand_in: Sequence[tuple[str, str]] = (), *,
    before: Mapping[str, Any] | None = None, links: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """The page of a report `record`; `source` is the submission's text, `hand_in` facts on the hand-in, by name,
    `before` the record of the check before, `links` where the "handout" and the "steps" of a failing call are."""
    return templates.page("report.html", view(record, source, hand_in, before, links or {}), "report.js")


def view(
    record: Mapping[str, Any], source: str, hand_in: Sequence[tuple[str, str]],
    before: Mapping[str, Any] | None = None, links: Mapping[str, str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What the template shows, every text of it clean."""
    checks = _checks(record)
    return {
        "title": f"{one_line(record['assignment']) or 'submission'}: report",
        "path": one_line(record["submission"]["path"]), "status": record["status"],
        **_score(record["score"]),
        "message": clean(record["message"]), "hint": one_line(record.get("hint", "")),
        "hand_in": [(one_line(name), one_line(value)) for name, value in hand_in],
        "links": {"handout": "", "steps": ""} | dict(links or {}), "last_time": last_time(before, record),
        "changes": list(_changes(changes(before, record), checks)),
        "overview": list(_overview(record["checks"])),
        "checks": checks, "plot": pictures.plot(record["checks"]),
        "source": list(source_view.rows(source, _commented(record["notes"], _said(checks)))),
        "notes": [one_line(note) for note in record["notes"]],
        "rests_on": in_words(record), "unsure": unsure(record),
        "footer": _footer(record),
    }  # fmt: skip


def _score(score: Mapping[str, float]) -> dict[str, str]:
    """Points earned, those that were measured, and those that are pending ("" for none)."""
    return {
        "earned": points(score["earned"]), "measured": points(score["possible"] - score["pending"]),
        "pending": points(score["pending"]) if score["pending"] else "",
    }  # fmt: skip


def _overview(checks: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, str]]:
    """By kind of check, the points; a bonus counts for what it has earned."""
    for kind in dict.fromkeys(check["kind"] for check in checks):
        mine = [check for check in checks if check["kind"] == kind and not check["bonus"]]
        open_ = sum(c["possible"] - c["earned"] for c in mine if c["outcome"] in ("pending", "fault"))
        possible, earned = (sum(c[name] for c in mine) for name in ("possible", "earned"))
        yield {"kind": kind, **_score({"earned": earned, "possible": possible, "pending": open_})}


def _changes(
    found: Iterable[tuple[str, Sequence[str]]], checks: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """What has changed, with the cards on the page that it is true of."""
    for word, ids in found:
        names = {id.partition("[")[0] for id in ids}
        yield {"word": word, "checks": [check for check in checks if check["id"].partition("[")[0] in names]}


def _checks(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The checks by outcome, what failed first; those that failed for one reason stand side by side, and the first
    of them tells it and what it costs."""
    shown: list[dict[str, Any]] = []
    submission, order = record["submission"], list(MARKS)
    for story in sorted(stories(record["checks"]), key=lambda story: order.index(story.checks[0]["outcome"])):
        teller = len(shown) + 1
        shown += [
            _check(check, submission) | {"number": teller + place, "same_as": teller if place else 0}
            for place, check in enumerate(story.checks)
        ]
        shown[teller - 1] |= {"intro": _intro(story, teller), "commands": _commands(record, story.checks[0])}
    return shown


def _commands(record: Mapping[str, Any], check: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Commands that show more of a failing call."""
    counterexample, id = check["counterexample"] or {}, check["id"]
    if check["outcome"] != "failed" or not counterexample.get("call") or check["details"].get("hidden"):
        return []
    place = ["-a", record["assignment"], "-k", id]
    return [
        (what, one_line(shlex.join(["gradekit", command, record["submission"]["path"], *place])))
        for what, command in (("step by step", "view"), ("as a Python file", "replay"))
    ]


def _intro(story: Story, teller: int) -> str:
    if len(story.checks) == 1:
        return ""
    last = teller + len(story.checks) - 1
    between = "and" if last == teller + 1 else "to"
    return f"One cause for checks {teller} {between} {last}; it costs {points_lost(story)}."


_COMMENT = re.compile(r"Line (\d+): (.+)", re.DOTALL)
"""A note on one line of the submission: a person's comment."""


def _commented(notes: Iterable[str], said: dict[int, list[dict[str, Any]]]) -> dict[int, list[dict[str, Any]]]:
    """`said` with people's comments at their lines."""
    for match in filter(None, map(_COMMENT.fullmatch, notes)):
        said.setdefault(int(match[1]), []).append({"number": 0, "text": one_line(match[2]), "hint": ""})
    return said


def _said(checks: Iterable[Mapping[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """By line of the source, the failed checks that blame it; only the first of a story has words of its own."""
    said: dict[int, list[dict[str, Any]]] = {}
    for check in checks:
        if check["line"] and check["outcome"] == "failed":
            text = "" if check["same_as"] else one_line(check["message"])
            told = {"number": check["number"], "text": text, "hint": "" if check["same_as"] else check["hint"]}
            said.setdefault(check["line"]["number"], []).append(told)
    return said


def _check(check: Mapping[str, Any], submission: Mapping[str, Any]) -> dict[str, Any]:
    counterexample, details = check["counterexample"] or {}, check["details"]
    return {
        "id": check["id"], "commands": [],
        "outcome": "passed" if (ended := ending(check)) == "accepted" else check["outcome"],
        "sign": MARKS["accepted" if ended == "accepted" else check["outcome"]],
        "ending": "accepted in part" if ended == "accepted" else ended,
        "title": one_line(check["title"]), "points": f"{points(check['earned'])} / {points(check['possible'])}",
        "message": clean(check["message"]), "hint": one_line(check.get("hint", "")),
        "cause": _cause(check["cause"]), "sections": _SECTIONS.get(check["kind"], ()),
        "line": _line(check["source"], submission), "origin": one_line(counterexample.get("origin", "")),
        "inputs": [described(given) for given in counterexample.get("inputs", ())],
        "replay": one_line(counterexample.get("replay", "")),
        "wrong": None if details.get("tiles") else pictures.wrong(details), "intro": "",
        "tiles": pictures.tiles(details.get("tiles"), details),
        "outside": pictures.outside(_list(details.get("findings"))),
        "findings": [_finding(each) for each in _list(details.get("findings"))],
        "proofs": _proofs(details.get("proofs")), "factors": _factors(details.get("coverage")),
        "speed": pictures.speed(details["speed"],
        speed_sentences.sentences(details["speed"])) if "speed" in details else None,
        "tried": _tried(details.get("coverage")),
        "relations": [one_line(str(each)) for each in _list(details.get("relations"))],
    }  # fmt: skip


_SECTIONS = {
    "correctness": ("Your task", "Common mistakes"), "memory": ("Your task", "Common mistakes"),
    "structure": ("May I call torch?",), "speed": ("How it is graded",),
}  # fmt: skip
"""The headings of a handout under which it speaks of a kind of check: those that every handout has."""


def _cause(word: str | None) -> dict[str, str] | None:
    """A cause's word and what it means in general; nothing for a word that this version does not know."""
    meaning = Cause(word).meaning if word in set(Cause) else ""
    return {"word": one_line(str(word)), "meaning": meaning} if meaning else None


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


def _tried(coverage: Any) -> dict[str, str] | None:
    """How many calls a check was tried on, and which of them came from where; nothing where the record does not say."""
    if not isinstance(coverage, Mapping):
        return None
    counts = {name: coverage[name] for name in _CALLS if isinstance(coverage.get(name), int)}
    said = [_CALLS[name].format(count) for name, count in counts.items() if count]
    return {"calls": counted(sum(counts.values()), "call") + " tried", "which": "; ".join(said)} if said else None


_CALLS = {
    "rows": "{} from the plan that combines sizes, layouts, dtypes and values",
    "drawn": "{} drawn at random",
    "solved": "{} made for what this submission compares",
    "long": "{} with a long dimension",
}
"""What each count of a check's coverage is called."""


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


def _footer(record: Mapping[str, Any]) -> str:
    used = record["environment"]
    versions = ", ".join(f"{name} {used[name]}" for name in ("gradekit", "torch", "triton") if used.get(name))
    where = f"on {used['gpu']}" if used.get("gpu") else "on the CPU engine (nothing ran on a GPU)"
    return f"Checked in {seconds(record['seconds'])} {where}; {one_line(versions)}, seed {record['seed']}."
