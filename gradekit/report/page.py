"""The report as one page of HTML that loads nothing: a pure function of the record and the source.

What failed comes first, what passed is folded to one line each. The template reads the record itself, beside what is
computed here; `templates` cleans and escapes all of it.
"""

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.python import PythonLexer

from gradekit.causes import Cause
from gradekit.report import pictures, proofs, speed_sentences, templates
from gradekit.report.changes import changes, last_time
from gradekit.report.grouping import MARKS, CheckGroup, ending, groups, points_lost, untouched
from gradekit.report.rests_on import in_words, unsure
from gradekit.report.text import clean, counted, points
from gradekit.submission import place

DOCS = "GRADEKIT_DOCS"
"""The variable that says where gradekit's documentation is on the web, such as on a course's own site."""


def render(record: Mapping[str, Any], source: str = "", hand_in: Sequence[tuple[str, str]] = (), **more: Any) -> str:
    """The page of a report, whose template sees what `view` gives."""
    return templates.page("report.html", view(record, source, hand_in, **more), "report.js")


def view(
    record: Mapping[str, Any], source: str, hand_in: Sequence[tuple[str, str]],
    before: Mapping[str, Any] | None = None, links: Mapping[str, str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What is shown of a report `record`; `source` is the submission's text, `hand_in` facts on the hand-in, by name,
    `before` the record of the check before, `links` where the "handout" and the "steps" of a failing call are."""
    checks, docs = _checks(record), os.environ.get(DOCS, "")
    beside = {"handout": "", "steps": "", "causes": f"{docs.rstrip('/')}/messages.html" if docs else ""}
    return {
        "title": f"{record['assignment'] or 'submission'}: report", "record": record, **_score(record["score"]),
        "hand_in": hand_in, "untouched": untouched(record), "links": beside | dict(links or {}),
        "last_time": last_time(before, record), "changes": list(_changes(changes(before, record), checks)),
        "overview": list(_overview(record["checks"])), "checks": checks, "plot": pictures.plot(record["checks"]),
        "source": list(source_rows(source, record["notes"], _said(checks))),
        "rests_on": in_words(record), "unsure": unsure(record),
    }  # fmt: skip


def _score(score: Mapping[str, float]) -> dict[str, str]:
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
    for word, ids in found:
        names = {id.partition("[")[0] for id in ids}
        yield {"word": word, "checks": [check for check in checks if check["id"].partition("[")[0] in names]}


def _checks(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """By outcome, what failed first; of those that failed for one reason, the first tells it and what it costs."""
    shown: list[dict[str, Any]] = []
    submission, order = record["submission"], list(MARKS)
    for group in sorted(groups(record["checks"]), key=lambda group: order.index(group[0]["outcome"])):
        teller = len(shown) + 1
        shown += [
            _check(check, submission) | {"number": teller + place, "same_as": teller if place else 0}
            for place, check in enumerate(group)
        ]
        shown[teller - 1] |= {"intro": _intro(group, teller), "commands": _commands(record, group[0])}
    return shown


def _commands(record: Mapping[str, Any], check: Mapping[str, Any]) -> list[tuple[str, str]]:
    call = (check["counterexample"] or {}).get("call")
    if check["outcome"] != "failed" or not call or check["details"].get("hidden"):
        return []
    rest = [record["submission"]["path"], "-a", record["assignment"], "-k", check["id"]]
    ways = (("step by step", "view"), ("as a Python file", "replay"))
    return [(what, shlex.join(["gradekit", command, *rest])) for what, command in ways]


def _intro(group: CheckGroup, teller: int) -> str:
    if len(group) == 1:
        return ""
    last = teller + len(group) - 1
    between = "and" if last == teller + 1 else "to"
    return f"Checks {teller} {between} {last} show the same ({points_lost(group)})."


def _said(checks: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Of the failed checks, the line of the source that each blames; only the first of a group has words of its own."""
    for check in checks:
        if check["source"] and check["outcome"] == "failed":
            text, hint = ("", "") if check["same_as"] else (check["message"], check["hint"])
            yield check["source"]["line"], {"number": check["number"], "text": text, "hint": hint}


def _check(check: Mapping[str, Any], submission: Mapping[str, Any]) -> dict[str, Any]:
    ended, details, source = ending(check), check["details"], check["source"]
    coverage, findings = details.get("coverage", {}), details.get("findings", ())
    return {
        **check, "hint": check.get("hint", ""), "counterexample": check["counterexample"] or {}, "commands": [],
        "outcome": "passed" if ended == "accepted" else check["outcome"], "intro": "",
        "sign": MARKS["accepted" if ended == "accepted" else check["outcome"]],
        "ending": "accepted in part" if ended == "accepted" else ended,
        "meaning": Cause(check["cause"]).meaning if check["cause"] in set(Cause) else "",
        "place": place(submission, source["line"]) if source else "",
        "wrong": None if details.get("tiles") else pictures.wrong(details),
        "tiles": pictures.tiles(details.get("tiles"), details), "outside": pictures.outside(findings),
        "claims": {name: list(map(proofs.row, each["claims"])) for name, each in details.get("proofs", {}).items()},
        "speed": pictures.speed(details["speed"]) if "speed" in details else None,
        "sentences": speed_sentences.sentences(details["speed"]) if "speed" in details else (),
        "tried": counted(sum(coverage.get(name, 0) for name in _CALLS), "call"),
        "which": [said.format(coverage[name]) for name, said in _CALLS.items() if coverage.get(name)],
    }  # fmt: skip


_CALLS = {
    "rows": "{} from the plan that combines sizes, layouts, dtypes and values", "drawn": "{} drawn at random",
    "solved": "{} made for what this submission compares", "long": "{} with a long dimension",
}  # fmt: skip
"""What each count of a check's coverage is called."""


# --- the source, coloured by Pygments, which runs none of it; below a line what checks say of that line ---------------

MOST_LINES = 2000  # lines of source that a page shows: a longer submission is cut, and the page says so

_COMMENT = re.compile(r"Line (\d+): (.+)", re.DOTALL)  # a note on one line of the submission: a person's comment


def source_rows(
    source: str, notes: Iterable[str], blamed: Iterable[tuple[int, Mapping[str, Any]]]
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Each line with its number, its `text` as HTML (with Pygments' classes), and what is `said` of it: by checks that
    blame it (`number` of the card, `text`, `hint`), and by people in `notes`."""
    said: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for line, told in blamed:
        said[line].append(told)
    for match in filter(None, map(_COMMENT.fullmatch, notes)):
        said[int(match[1])].append({"number": 0, "text": match[2], "hint": ""})
    lines = source.split("\n") if source else []
    shown = "\n".join(map(clean, lines[:MOST_LINES]))
    coloured = highlight(shown, PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True)).split("\n")
    for number, text in enumerate(coloured[: len(lines)], 1):
        yield {"number": number, "text": Markup(text), "said": said[number]}
    if len(lines) > MOST_LINES:
        left = f"({counted(len(lines) - MOST_LINES, 'more line')} of the submission: not shown)"
        yield {"number": MOST_LINES + 1, "text": left, "said": []}
