"""The report as text for a terminal: a pure function of the record.

First the score, then one line for each check, and under each that did not pass what a student needs to mend it:
what went wrong, where, for which input, a hint, and the command that shows it again.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from gradekit.report.speed_sentences import sentences
from gradekit.report.text import clean, columns, counted, described, located, one_line, points, seconds, shortened
from gradekit.submission import place

_MARKS = {"passed": "✓", "failed": "✗", "pending": "◌", "fault": "!", "missed": "–"}
_ASCII_MARKS = {"passed": "+", "failed": "x", "pending": ".", "fault": "!", "missed": "-"}
_COLOURS = {"passed": "green", "failed": "red", "pending": "yellow", "fault": "magenta", "missed": "cyan"}
_INDENT = 6
_MOST_LINES = 30  # of one message: a submission chooses how long its exceptions are
_MOST_CALLS = 5


@dataclass(frozen=True)
class Look:
    """How to draw: `width` in columns, and whether the terminal has colour and characters beyond ASCII."""

    width: int = 80
    colour: bool = False
    unicode: bool = True

    def paint(self, text: str, colour: str | None = None, **style: Any) -> str:
        """`text` in a colour and style of click\'s, or as it is where there is no colour."""
        return click.style(text, fg=colour, **style) if self.colour and text else text

    def mark(self, outcome: str) -> str:
        """The sign before a check with this outcome."""
        return self.paint((_MARKS if self.unicode else _ASCII_MARKS)[outcome], _COLOURS[outcome], bold=True)

    @property
    def bar(self) -> str:
        """The line beside source code."""
        return "│" if self.unicode else "|"


def render(record: Mapping[str, Any], look: Look | None = None) -> str:
    """The report, ending in a newline; nothing from the submission reaches it that could command a terminal."""
    look = look or Look()
    sections = [_heading(record, look), _reason(record, look), _checks(record, look), _footer(record, look)]
    text = "\n\n".join("\n".join(section).strip("\n") for section in sections if section) + "\n"
    return text if look.unicode else text.encode("ascii", "backslashreplace").decode()


# --- the score --------------------------------------------------------------------------------------------------------


def _heading(record: Mapping[str, Any], look: Look) -> list[str]:
    assignment, path = one_line(record["assignment"]), one_line(record["submission"]["path"])
    title = look.paint(assignment, bold=True) + ("  " if assignment else "") + path
    return [title, look.paint(_score(record), _score_colour(record), bold=True) + _tally(record)]


def _score(record: Mapping[str, Any]) -> str:
    if record["status"] == "fault":
        return "Not graded: the grader itself failed, and nothing counts against you"
    score = record["score"]
    text = f"{points(score['earned'])} of {points(score['possible'])} points"
    bonus = sum(check["earned"] for check in record["checks"] if check.get("bonus"))
    text += f" ({points(bonus)} of them bonus)" if bonus else ""
    if record["status"] == "rejected":
        return f"Rejected: {text}" if score["possible"] else "Rejected"
    return text + (f", {points(score['pending'])} pending" if score["pending"] else "")


def _score_colour(record: Mapping[str, Any]) -> str:
    outcomes = {_ending(check) for check in record["checks"]} - {"missed"}
    if record["status"] == "fault":
        return _COLOURS["fault"]
    if record["status"] == "rejected" or "failed" in outcomes:
        return _COLOURS["failed"]
    return _COLOURS["pending"] if outcomes - {"passed"} else _COLOURS["passed"]


def _tally(record: Mapping[str, Any]) -> str:
    if record["status"] != "graded":
        return ""
    outcomes = [_ending(check) for check in record["checks"]]
    words = {"passed": "passed", "failed": "failed", "missed": "missed", "pending": "pending", "fault": "not graded"}
    counts = [f"{outcomes.count(outcome)} {word}" for outcome, word in words.items() if outcome in outcomes]
    if len(counts) < 2:
        return f"  ({counted(len(outcomes), 'check')} {words[outcomes[0]]})" if outcomes else "  (no checks ran)"
    return f"  ({counted(len(outcomes), 'check')}: {', '.join(counts)})"


def _ending(check: Mapping[str, Any]) -> str:
    """The outcome, but "missed" for extra credit that was not earned: no failure."""
    return "missed" if check.get("bonus") and check["outcome"] == "failed" else str(check["outcome"])


def _reason(record: Mapping[str, Any], look: Look) -> list[str]:
    """Why the submission as a whole was not graded."""
    if record["status"] == "graded" and not record["message"]:
        return []
    source = _source(record, record["submission"], look, 2)
    return [*_wrapped(record["message"], look, 2), *source, *_hint(record, look, 2)]


# --- the checks -------------------------------------------------------------------------------------------------------


def _checks(record: Mapping[str, Any], look: Look) -> list[str]:
    if record["status"] == "rejected":  # its reason stands above, and every check would only repeat it
        return []
    lines: list[str] = []
    seen: set[Any] = set()
    for check in _grouped(record["checks"]):
        lines += _line(check, look)
        lines += _speed(check, look, seen)
        if check["outcome"] != "passed" or check["kind"] == "quiz" or check["details"].get("marked_by"):
            # what is right about a choice is worth reading too, and so is what a person says
            lines += _evidence(check, record["submission"], look, seen)
    return lines


def _grouped(checks: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The checks, with those parametrizations of one test that ended alike, side by side, as one.

    What was timed has figures of its own, and stands alone.
    """

    def kind(check: Mapping[str, Any]) -> tuple[Any, ...]:
        whole = check["id"] if "speed" in check["details"] else check["id"].partition("[")[0]
        return whole, check["outcome"], _blame(check)

    for _, group in itertools.groupby(checks, key=kind):
        yield _together(list(group))


def _together(members: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """One line for all `members`, with the story of the first."""
    if len(members) == 1:
        return members[0]
    cases = [check["id"].partition("[")[2].removesuffix("]") for check in members]
    title = members[0]["title"].removesuffix(f"[{cases[0]}]").strip()
    points = {name: sum(check[name] for check in members) for name in ("earned", "possible")}
    return {**members[0], **points, "title": f"{title} [{', '.join(cases)}]"}


def _line(check: Mapping[str, Any], look: Look) -> list[str]:
    worth = _worth(check)
    room = max(20, look.width - 4 - max(10, len(worth) + 2))
    titles = textwrap.wrap(one_line(check["title"]), room) or [one_line(check["id"])]
    gap = " " * max(2, look.width - 4 - columns(titles[0]) - len(worth))
    first = f"  {look.mark(_ending(check))} {titles[0]}{gap}{look.paint(worth, _COLOURS[_ending(check)])}"
    return [first, *(f"    {title}" for title in titles[1:])]


def _speed(check: Mapping[str, Any], look: Look, seen: set[Any]) -> list[str]:
    """What was timed, on a line or two for each sentence; two checks about one call do not tell it twice."""
    said = sentences(check["details"]["speed"]) if "speed" in check["details"] else []
    new = [sentence for sentence in said if sentence not in seen]
    seen.update(said)
    if said and not new:
        return [" " * _INDENT + look.paint("as above", dim=True)]
    return [line for sentence in new for line in _wrapped(sentence, look, _INDENT)]


def _worth(check: Mapping[str, Any]) -> str:
    return ("bonus " if check.get("bonus") else "") + _fraction(check)


def _fraction(check: Mapping[str, Any]) -> str:
    if check["outcome"] in ("pending", "fault"):
        word = "pending" if check["outcome"] == "pending" else "not graded"
        kept = f"{points(check['earned'])} + " if check["earned"] else ""
        return f"{word} {kept}{points(check['possible'] - check['earned'])}"
    return f"{points(check['earned'])} / {points(check['possible'])}"


def _evidence(check: Mapping[str, Any], submission: Mapping[str, Any], look: Look, seen: set[Any]) -> list[str]:
    """What a student needs to mend the check; what stands above already (it is in `seen`) is not repeated."""
    counterexample = check["counterexample"] or {}
    lines = _again(check, submission, look) if _blame(check) in seen else _story(check, submission, look)
    lines += _counterexample(counterexample, look)
    if check["outcome"] == "failed" and _advice(check) not in seen:
        lines += _hint(check, look, _INDENT)
    if counterexample.get("replay"):
        lines.append(_labelled("replay", look.paint(one_line(counterexample["replay"]), "cyan"), look, _INDENT))
    seen.update({_advice(check), _blame(check)})
    return [*lines, ""] if check["outcome"] == "failed" else lines


def _blame(check: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the student has to mend: two checks of one blame did not pass for one reason."""
    where = check["source"]["line"] if check["cause"] and check["source"] else check["message"]
    return (check["outcome"], check["cause"], where)


def _again(check: Mapping[str, Any], submission: Mapping[str, Any], look: Look) -> list[str]:
    where = f"{_where(submission, check['source']['line'])} again, as above" if check["source"] else "as above"
    return [" " * _INDENT + look.paint(where, dim=True)]


def _story(check: Mapping[str, Any], submission: Mapping[str, Any], look: Look) -> list[str]:
    message = _wrapped(located(check["message"], submission), look, _INDENT)
    return [*message, *_source(check, submission, look, _INDENT), *_calls(check, submission, look)]


def _source(owner: Mapping[str, Any], submission: Mapping[str, Any], look: Look, indent: int) -> list[str]:
    """The line of the submission that is to blame, beside the name of its place."""
    if not owner["source"]:
        return []
    where = _where(submission, owner["source"]["line"])
    room = max(30, look.width - indent - len(where) - 3)
    texts = textwrap.wrap(one_line(owner["source"]["text"]), room, max_lines=4, placeholder=" ...") or [""]
    names = [where, *[" " * len(where)] * (len(texts) - 1)]
    return [
        " " * indent + look.paint(f"{name} {look.bar} ", dim=True) + text
        for name, text in zip(names, texts, strict=True)
    ]


def _where(submission: Mapping[str, Any], line: int) -> str:
    """ "line 14" of the file that the heading names, or "cell 3, line 4"."""
    return place(submission, line) if submission.get("cells") else f"line {line}"


_CALL = re.compile(r"line (\d+), in (.+)")


def _calls(check: Mapping[str, Any], submission: Mapping[str, Any], look: Look) -> list[str]:
    """The student's own lines that led to an exception, where there is more than the one that is shown already."""
    calls = _CALL.findall(str(check["details"].get("detail", "")))[-_MOST_CALLS - 1 : -1]
    texts = [f"{_where(submission, int(number))}, in {one_line(call)}" for number, call in calls]
    shown = [shortened(text, max(20, look.width - _INDENT - 8)) for text in texts]
    return [_labelled("from" if i == 0 else "", text, look, _INDENT) for i, text in enumerate(shown)]


def _counterexample(counterexample: Mapping[str, Any], look: Look) -> list[str]:
    inputs = [described(given) for given in counterexample.get("inputs", ())]
    return [_labelled("input" if i == 0 else "", text, look, _INDENT) for i, text in enumerate(inputs)]


def _advice(owner: Mapping[str, Any]) -> str:
    return str(owner.get("hint", ""))


def _hint(owner: Mapping[str, Any], look: Look, indent: int) -> list[str]:
    advice = _wrapped(_advice(owner), look, indent + 8)
    return [_labelled("hint", advice[0].strip(), look, indent), *advice[1:]] if advice else []


def _labelled(label: str, text: str, look: Look, indent: int) -> str:
    return " " * indent + look.paint(f"{label:<8}", dim=True) + text


# --- the rest ---------------------------------------------------------------------------------------------------------


def _footer(record: Mapping[str, Any], look: Look) -> list[str]:
    lines = [line for note in record["notes"] for line in _wrapped(note, look, 0)]
    environment = record["environment"]
    versions = [f"{name} {one_line(str(environment[name]))}" for name in ("torch", "triton") if environment.get(name)]
    where = "the CPU engine (nothing ran on a GPU)"
    if environment.get("gpu"):
        driver = f" (driver {one_line(str(environment['driver']))})" if environment.get("driver") else ""
        where = f"the CPU engine and {one_line(environment['gpu'])}{driver}"
    made = ", ".join([*versions, f"seed {record['seed']}"])
    how = f" on {where}; {made}" if {check["kind"] for check in record["checks"]} != {"quiz"} else ""
    text = f"Checked in {seconds(record['seconds'])}{how}."
    return [*lines, *(look.paint(line, dim=True) for line in _wrapped(text, look, 0))]


def _wrapped(text: str, look: Look, indent: int) -> list[str]:
    """The lines of `text`, cleaned, indented and wrapped; its own line breaks and indentation are kept."""
    lines = clean(text).strip("\n").split("\n") if text.strip() else []
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"... and {len(lines) - _MOST_LINES} more lines"]
    return [wrapped for line in lines for wrapped in _wrapped_line(line[:2000], look.width, indent)]


def _wrapped_line(line: str, width: int, indent: int) -> Iterable[str]:
    margin = " " * (indent + len(line) - len(line.lstrip()))
    mark = "│ " * line.lstrip().startswith("│ ")  # a line of the submission's: each piece of it carries the mark
    return textwrap.wrap(
        line.strip(), max(width, len(margin) + 20), initial_indent=margin, subsequent_indent=margin + mark
    ) or [""]
