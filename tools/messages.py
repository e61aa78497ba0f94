"""Prints all fixed sentences that a student may read, as one page of Markdown, for those who review or translate them.

    python tools/messages.py

They are read from gradekit's source and tables of words and idioms; what varies in them is {1}, {2} ..., and $name in
idioms.
"""

import ast
import functools
import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import gradekit
from gradekit.assignment import discover
from gradekit.causes import Cause
from gradekit.tracer.hints import HINTS

ROOMS: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["headings"]
"""By room of the source, the heading of its sentences."""

LEAST_WORDS = 3  # shorter texts are parts of sentences

_FOR_STAFF = {
    "ValueError", "TypeError", "AssertionError", "RuntimeError", "KeyError", "AttributeError", "Suspicion", "WireError",
}  # fmt: skip
"""What is raised with these is no student's, but in the tracer, where it is told as an exception of the host's code."""

_LEFT_OUT = {"tracer/hints.py", "plugin/hooks.py"}
"""Files whose texts are on the page already, or are for those who run pytest."""

_HELP = {"help", "metavar"}  # keywords of options, which --help shows in English

_NAMES = {"survived", "NotWalked", "ContextVar", "compile", "search", "Unexpected", "TimeUp", "quoted"}
"""What these take is a name of something inside, which nobody is told, a pattern, or what torch and Triton say."""


@functools.cache
def sentences(room: str) -> tuple[tuple[str, ...], ...]:
    """Each sentence or part of one in code or tables of a room, with the advice or such that it has beside it."""
    folder = Path(gradekit.__file__).parent / room
    every = [folder] if folder.suffix else sorted(folder.rglob("*.py"))
    files = [file for file in every if f"{room}/{file.name}" not in _LEFT_OUT]
    for_staff = set() if room == "tracer" else _FOR_STAFF
    found = [row for file in files for row in _rows(ast.parse(file.read_text(encoding="utf-8")), for_staff)]
    own = [each.folder / "idioms.toml" for each in discover().values()] if room == "repair" else []
    idioms = filter(Path.is_file, [*sorted(folder.rglob("*.toml")), *own])
    tables = [tomllib.loads(file.read_text(encoding="utf-8")) for file in idioms]
    rows = (row for table in tables for row in table.values())
    told = (tuple(_numbered(row[key]) for key in ("says", "hint") if key in row) for row in rows)
    return tuple(dict.fromkeys([*filter(None, told), *found]))


def _numbered(text: str) -> str:
    numbers = itertools.count(1)
    return re.sub(r"\{\w+\}", lambda _: f"{{{next(numbers)}}}", text)


def _rows(tree: ast.AST, for_staff: set[str]) -> Iterator[tuple[str, ...]]:
    """The texts of each call, tuple or statement, those of one side by side; docstrings are none."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and _called(node.exc) in for_staff:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Compare) or (isinstance(node, ast.keyword) and node.arg in _HELP):
            continue
        if isinstance(node, ast.Call) and _called(node) in _NAMES:
            continue
        inside = (part for part in ast.iter_child_nodes(node) if getattr(part, "arg", "") not in _HELP)
        parts = [part.value if isinstance(part, ast.keyword) else part for part in inside]
        if isinstance(node, ast.JoinedStr):
            parts = [part.value for part in parts if isinstance(part, ast.FormattedValue)]
        if texts := tuple(filter(None, map(template, parts))):
            yield texts
        yield from _rows(node, for_staff)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", "") or getattr(node.func, "attr", "")


def template(node: ast.AST) -> str:
    """The text of a string with {1}, {2} ... for what it takes in; "" for anything else, and for a few words."""
    if not isinstance(node, (ast.JoinedStr, ast.Constant)):
        return ""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    pieces = [part.value if isinstance(part, ast.Constant) else None for part in parts]
    numbers = iter(range(1, len(pieces) + 1))
    text = "".join(piece.replace("!r}", "}") if isinstance(piece, str) else f"{{{next(numbers)}}}" for piece in pieces)
    is_pattern = re.search(r"\w\|\w|[\n\\]", text)
    return "" if is_pattern or sum(word.isalpha() for word in text.split()) < LEAST_WORDS else text


# --- the page ---------------------------------------------------------------------------------------------------------


def page() -> str:
    """The causes of the record with meaning and advice, Triton's and Python's errors, the judge's and tutor's words."""
    causes = ((f"`{cause}`", cause.meaning, cause.hint) for cause in Cause)
    errors = ((f"`{pattern}`", advice) for pattern, advice in HINTS)
    in_code = [(heading, sentences(room)) for room, heading in ROOMS.items()]
    parts = [
        "# Messages",
        "A check that fails says what was seen, the line, and the smallest input that shows it.",
        "## Causes",
        "Where the cause is clear, the record has one of these words, and the report says what to do.",
        re.sub(r"(?m)^\| `(.+?)`", r'| <a id="\1"></a>`\1`', _table(("cause", "what happened", "what to do"), causes)),
        "## Errors of Triton, torch and Python",
        "Where the message of an error matches, the report adds a sentence of its own.",
        _table(("the error's message (a regular expression)", "what to do"), errors),
        "## Sentences and parts of sentences",
        "What these take in, such as a line or a name, is written {1}, {2} and so on, or $name.",
        *(part for heading, rows in in_code for part in (f"### {heading}", _list(rows))),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(rows: Iterable[tuple[str, ...]]) -> str:
    """A point for each sentence, with what goes with it, such as the advice, behind it."""
    return "\n".join(f"- {' / '.join(_escaped(text.strip()) for text in row)}" for row in rows)


def _cell(text: str) -> str:
    """`text` as a cell, which a bar would end."""
    return _escaped(text.replace("\n", " ")).replace("|", "\\|")


def _escaped(text: str) -> str:
    pieces = text.split("`")
    return "`".join(piece if n % 2 else re.sub(r"[\[\]*_<{]", r"\\\g<0>", piece) for n, piece in enumerate(pieces))


if __name__ == "__main__":
    print(page(), end="")
