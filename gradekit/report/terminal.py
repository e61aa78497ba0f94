"""The report as text for a terminal, or as a fragment of HTML that looks the same: pure functions of the record.

First the score, then one line for each check, and under each that did not pass what a student needs to mend it:
what went wrong, where, for which input, a hint, and the command that shows it again.
"""

import html
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from gradekit.report import proofs, rests_on
from gradekit.report.grouping import MARKS, CheckGroup, blame, ending, groups, points_lost, untouched
from gradekit.report.speed_sentences import sentences
from gradekit.report.text import clean, columns, counted, described, located, one_line, points, seconds, shortened
from gradekit.report.text import wrapped as wrapped_text
from gradekit.report.translation import say
from gradekit.submission import line_of

_ASCII_MARKS = {"passed": "+", "failed": "x", "pending": ".", "fault": "!", "missed": "-", "accepted": "~"}
_COLOURS = {
    "passed": "green", "failed": "red", "pending": "yellow", "fault": "magenta", "missed": "cyan", "accepted": "green",
}  # fmt: skip
_INDENT = 6
_SCREEN = 40  # lines of the report of a submission that earns nothing
_MOST_CALLS = 5


@dataclass(frozen=True)
class Look:
    """How to draw: `width` in columns, and whether the terminal has colour and characters beyond ASCII."""

    width: int = 80
    colour: bool = False
    unicode: bool = True

    def paint(self, text: str, colour: str | None = None, **style: Any) -> str:
        """`text` in a colour and style of click's, or as it is where there is no colour."""
        return click.style(text, fg=colour, **style) if self.colour and text else text

    def mark(self, outcome: str) -> str:
        """The sign before a check with this outcome."""
        return self.paint((MARKS if self.unicode else _ASCII_MARKS)[outcome], _COLOURS[outcome], bold=True)

    @property
    def bar(self) -> str:
        """The line beside source code."""
        return "│" if self.unicode else "|"

    def text(self, sections: Iterable[Sequence[str]]) -> str:
        """The lines of all sections, with an empty line between two, in characters that the terminal has."""
        text = "\n\n".join("\n".join(section).strip("\n") for section in sections if section) + "\n"
        return text if self.unicode else text.encode("ascii", "backslashreplace").decode()


PLAIN = Look()


def render(record: Mapping[str, Any], look: Look = PLAIN) -> str:
    """The report, ending in a newline; nothing from the submission reaches it that could command a terminal."""
    text = _text(record, look)
    if record["checks"] and record["score"]["earned"] == 0 and text.count("\n") > _SCREEN:
        text = _text(record, look, brief=True)
    return text


def _text(record: Mapping[str, Any], look: Look, *, brief: bool = False) -> str:
    checks = _checks(record, look, brief=brief)
    return look.text([_heading(record, look), _reason(record, look), checks, _footer(record, look)])


# --- the score --------------------------------------------------------------------------------------------------------


def _heading(record: Mapping[str, Any], look: Look) -> list[str]:
    assignment, path = one_line(record["assignment"]), one_line(record["submission"]["path"])
    title = look.paint(assignment, bold=True) + ("  " if assignment else "") + path
    return [title, look.paint(say(_score(record)), _score_colour(record), bold=True) + say(_tally(record))]


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
    outcomes = {ending(check) for check in record["checks"]} - {"missed"}
    if record["status"] == "fault":
        return _COLOURS["fault"]
    if record["status"] == "rejected" or "failed" in outcomes:
        return _COLOURS["failed"]
    return _COLOURS["pending"] if outcomes - {"passed", "accepted"} else _COLOURS["passed"]


def _tally(record: Mapping[str, Any]) -> str:
    if record["status"] != "graded":
        return ""
    outcomes = [ending(check) for check in record["checks"]]
    words = {
        "passed": "passed", "accepted": "accepted in part", "failed": "failed", "missed": "missed",
        "pending": "pending", "fault": "not graded",
    }  # fmt: skip
    counts = [f"{outcomes.count(outcome)} {word}" for outcome, word in words.items() if outcome in outcomes]
    if len(counts) < 2:
        return f"  ({counted(len(outcomes), 'check')} {words[outcomes[0]]})" if outcomes else "  (no checks ran)"
    return f"  ({counted(len(outcomes), 'check')}: {', '.join(counts)})"


def _reason(record: Mapping[str, Any], look: Look) -> list[str]:
    if record["status"] == "graded" and not record["message"]:
        return []
    source = _source(record, record["submission"], look, 2)
    return [*filled(record["message"], look, 2), *source, *_hint(record, look, 2)]


# --- the checks -------------------------------------------------------------------------------------------------------


def _checks(record: Mapping[str, Any], look: Look, *, brief: bool = False) -> list[str]:
    """One line for each check, and the reason below those that share it; where `brief`, the first reason, and in a few
    lines one more that leads to another line."""
    if record["status"] == "rejected":  # its reason stands above, and every check would only repeat it
        return []
    if said := untouched(record):
        raised = next((check for check in record["checks"] if check["source"]), record["checks"][0])
        return [*filled(said, look, 2), *_source(raised, record["submission"], look, 2)]
    lines: list[str] = []
    seen: set[Any] = set()
    most, is_left = 9 if brief else 30, False
    for group in groups(record["checks"]):
        for check in group:
            lines += _line(check, look)
            lines += _speed(check, look, seen)
        if _tells(group[0]):
            told = [one for one in seen if isinstance(one, tuple) and one[0] == "failed"]
            if brief and len(told) == 1 and _leads_elsewhere(group[0], told[0][-1]):
                short = [{**group[0], "message": group[0]["message"].split("\n")[0]}, *group[1:]]
                lines += [*_cause(short, record["submission"], look, 1), *_hint(group[0], look, _INDENT), ""]
                seen.add(blame(group[0]))
            elif brief and told:
                # of a quiz without answers, each has the same cause
                is_left |= ending(group[0]) == "failed" and blame(group[0]) not in seen
            else:
                lines += _evidence(group, record["submission"], look, seen, most)
    return [*lines, "", *filled(_LATER, look, 2)] if is_left else lines


def _leads_elsewhere(check: Mapping[str, Any], line: Any) -> bool:
    return bool(check["source"] and check.get("hint")) and check["source"]["line"] != line


_LATER = "Begin with the first, then check again: it may be the cause of others, too."


def _tells(check: Mapping[str, Any]) -> bool:
    """Whether there is more to read than the line: also what is right about a choice, and what a person says."""
    return check["outcome"] != "passed" or check["kind"] == "quiz" or bool(check["details"].get("marked_by"))


def _line(check: Mapping[str, Any], look: Look) -> list[str]:
    worth = say(_worth(check))
    room = max(20, look.width - 4 - max(10, columns(worth) + 2))
    titles = wrapped_text(say(one_line(_titled(check))), room) or [one_line(check["id"])]
    gap = " " * max(2, look.width - 4 - columns(titles[0]) - columns(worth))
    first = f"  {look.mark(ending(check))} {titles[0]}{gap}{look.paint(worth, _COLOURS[ending(check)])}"
    return [first, *(f"    {title}" for title in titles[1:])]


def _titled(check: Mapping[str, Any]) -> str:
    proved = proofs.summary(check["details"]) if check["outcome"] == "passed" else ""
    return f"{check['title']} ({proved})" if proved else str(check["title"])


def _speed(check: Mapping[str, Any], look: Look, seen: set[Any]) -> list[str]:
    """What was timed, on a line or two for each sentence; two checks about one call do not tell it twice."""
    said = sentences(check["details"]["speed"]) if "speed" in check["details"] else []
    new = [sentence for sentence in said if sentence not in seen]
    seen.update(said)
    if said and not new:
        return [" " * _INDENT + look.paint(say("as above"), dim=True)]
    return [line for sentence in new for line in filled(sentence, look, _INDENT)]


def _worth(check: Mapping[str, Any]) -> str:
    bonus = "bonus " if check.get("bonus") else ""
    if check["outcome"] in ("pending", "fault"):
        word = "pending" if check["outcome"] == "pending" else "not graded"
        kept = f"{points(check['earned'])} + " if check["earned"] else ""
        return f"{bonus}{word} {kept}{points(check['possible'] - check['earned'])}"
    return f"{bonus}{points(check['earned'])} / {points(check['possible'])}"


def _evidence(
    group: CheckGroup, submission: Mapping[str, Any], look: Look, seen: set[Any], most: int
) -> list[str]:  # fmt: skip
    """What mends the checks of a group, with `most` lines of its message; what is in `seen` stands above."""
    check, counterexample = group[0], group[0]["counterexample"] or {}
    lines = _again(check, submission, look) if blame(check) in seen else _cause(group, submission, look, most)
    lines += _counterexample(counterexample, look)
    if check["outcome"] == "failed" and check.get("hint", "") not in seen:
        lines += _hint(check, look, _INDENT)
        seen.add(check.get("hint", ""))
    if counterexample.get("origin", "").startswith("so that "):
        lines.append(labelled("chosen", one_line(counterexample["origin"]), look, _INDENT))
    if counterexample.get("replay"):
        lines.append(labelled("replay", look.paint(one_line(counterexample["replay"]), "cyan"), look, _INDENT))
    seen.add(blame(check))
    return [*lines, ""] if check["outcome"] == "failed" and lines else lines


def _again(check: Mapping[str, Any], submission: Mapping[str, Any], look: Look) -> list[str]:
    where = f"{line_of(submission, check['source']['line'])} again, as above" if check["source"] else "as above"
    return [" " * _INDENT + look.paint(say(where), dim=True)]


def _cause(group: CheckGroup, submission: Mapping[str, Any], look: Look, most: int) -> list[str]:
    check, cost = group[0], points_lost(group)
    intro = [f"These checks show the same ({cost}):"] if len(group) > 1 else []
    message = filled(located(check["message"], submission), look, _INDENT, most)
    intro = [" " * _INDENT + look.paint(say(line), bold=True) for line in intro]
    return [*intro, *message, *_source(check, submission, look, _INDENT), *_calls(check, submission, look)]


def _source(owner: Mapping[str, Any], submission: Mapping[str, Any], look: Look, indent: int) -> list[str]:
    if not owner["source"]:
        return []
    where = say(line_of(submission, owner["source"]["line"]))
    room = max(30, look.width - indent - len(where) - 3)
    texts = textwrap.wrap(one_line(owner["source"]["text"]), room, max_lines=4, placeholder=" ...") or [""]
    names = [where, *[" " * len(where)] * (len(texts) - 1)]
    pairs = zip(names, texts, strict=True)
    return [" " * indent + look.paint(f"{name} {look.bar} ", dim=True) + text for name, text in pairs]


_CALL = re.compile(r"line (\d+), in (.+)")


def _calls(check: Mapping[str, Any], submission: Mapping[str, Any], look: Look) -> list[str]:
    """The student's own lines that led to an exception, where there is more than the one that is shown already."""
    calls = _CALL.findall(str(check["details"].get("detail", "")))[-_MOST_CALLS - 1 : -1] if check["source"] else []
    texts = [f"{line_of(submission, int(number))}, in {one_line(call)}" for number, call in calls]
    shown = [shortened(text, max(20, look.width - _INDENT - 8)) for text in texts]
    return [labelled("from" if i == 0 else "", text, look, _INDENT) for i, text in enumerate(shown)]


def _counterexample(counterexample: Mapping[str, Any], look: Look) -> list[str]:
    inputs = [text for given in counterexample.get("inputs", ()) for text in _input(given, look)]
    lines = [labelled("input" if i == 0 else "", text, look, _INDENT) for i, text in enumerate(inputs)]
    results = [(label, counterexample.get(key)) for label, key in (("got", "got"), ("right", "expected"))]
    return lines + [labelled(label, _numbers(values, look), look, _INDENT) for label, values in results if values]


def _input(given: Mapping[str, Any], look: Look) -> list[str]:
    said = wrapped_text(described(given), max(20, look.width - _INDENT - 8), rest="  ")
    return [*said, *([f"  {_numbers(given['values'], look)}"] if given.get("values") else [])]


def _numbers(values: Sequence[str], look: Look) -> str:
    return shortened(f"[{one_line(', '.join(values))}]", max(20, look.width - _INDENT - 10))


def _hint(owner: Mapping[str, Any], look: Look, indent: int) -> list[str]:
    advice = filled(owner.get("hint", ""), look, indent + 8)
    return [labelled("hint", advice[0].strip(), look, indent), *advice[1:]] if advice else []


def labelled(label: str, text: str, look: Look, indent: int, wide: int = 8) -> str:
    """A line that begins with what it is, in `wide` columns."""
    named = say(label)
    return " " * indent + look.paint(named + " " * max(1, wide - columns(named)), dim=True) + text


# --- the rest ---------------------------------------------------------------------------------------------------------


def _footer(record: Mapping[str, Any], look: Look) -> list[str]:
    lines = [line for note in record["notes"] for line in filled(note, look, 0)]
    environment = record["environment"]
    versions = [f"{name} {one_line(str(environment[name]))}" for name in ("torch", "triton") if environment.get(name)]
    where = "the CPU engine (nothing ran on a GPU)"
    if environment.get("gpu"):
        driver = f" (driver {one_line(str(environment['driver']))})" if environment.get("driver") else ""
        where = f"the CPU engine and {one_line(environment['gpu'])}{driver}"
    made = ", ".join([*versions, f"seed {record['seed']}"])
    how = f" on {where}; {made}" if {check["kind"] for check in record["checks"]} != {"quiz"} else ""
    ran = record["status"] != "rejected" or record["checks"]
    texts = [f"Checked in {seconds(record['seconds'])}{how}.", rests_on.in_words(record), rests_on.not_seen(record)]
    return [*lines, *(look.paint(line, dim=True) for text in texts if text and ran for line in filled(text, look, 0))]


def filled(text: str, look: Look, indent: int, most: int = 30) -> list[str]:
    """The lines of `text`, cleaned, indented and wrapped, at most `most`, with their own breaks and indentation. Below
    30, wrapping counts too, and the cut is after a sentence where one ends before."""
    lines = clean(say(text)).strip("\n").split("\n") if text.strip() else []
    if len(lines) > most:
        lines = [*lines[:most], f"... and {len(lines) - most} more lines"]
    wrapped = [wrapped for line in lines for wrapped in _wrapped_line(line[:2000], look.width, indent)]
    if most == 30 or len(wrapped) <= most + 1:
        return wrapped
    ends = [(n, end.end()) for n, line in enumerate(wrapped[:most]) for end in re.finditer(r"[.?](?=\s|$)", line)]
    if not ends:
        return [*wrapped[:most], " " * indent + "..."]
    last, end = ends[-1]
    return [*wrapped[:last], wrapped[last][:end]]


def _wrapped_line(line: str, width: int, indent: int) -> Iterable[str]:
    margin = " " * (indent + len(line) - len(line.lstrip()))
    mark = "│ " * line.lstrip().startswith("│ ")  # a line of the submission's: each piece of it carries the mark
    return wrapped_text(line.strip(), max(width, len(margin) + 20), margin, margin + mark) or [""]


# --- for the output of a notebook's cell: letter for letter what the terminal shows, with its colours -----------------

_STYLES = {
    "1": "font-weight:bold", "2": "opacity:.65", "31": "color:#c62828", "32": "color:#2e7d32", "33": "color:#b26a00",
    "35": "color:#8e24aa", "36": "color:#00838f",
}  # fmt: skip
"""What the terminal's codes become; the colours can be read on white and on black."""

_STYLED = re.compile(r"((?:\x1b\[\d+m)+)(.*?)\x1b\[0m", re.DOTALL)
"""Styled text as click writes it: codes, the text, and the reset of all of them."""


def as_html(record: Mapping[str, Any]) -> str:
    """The report as one `<pre>` element; nothing from the submission reaches the page unescaped."""
    text = html.escape(render(record, Look(100, colour=True)))
    return f'<pre style="line-height:1.35;white-space:pre-wrap">{_STYLED.sub(_span, text)}</pre>'


def _span(styled: re.Match[str]) -> str:
    styles = ";".join(_STYLES.get(code, "") for code in re.findall(r"\d+", styled[1]))
    return f'<span style="{styles}">{styled[2]}</span>'
