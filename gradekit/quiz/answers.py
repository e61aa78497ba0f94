"""What a student answered: a small TOML file, or a notebook in whose cells the same lines stand.

`grid_size = "c"` means the same in TOML and in Python, so that one text serves as answers.toml and as a cell. Answers
are read as literals; nothing of a notebook is run.
"""

import ast
import difflib
import hashlib
import json
import re
import textwrap
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradekit.findings import Cause, SourceLine
from gradekit.quiz.questions import Question
from gradekit.submission import NoSuchSubmission, SubmissionError, content
from gradekit.submission.notebook import Cell, NotebookError, code_of

FILE = "answers.toml"


@dataclass(frozen=True)
class Answers:
    """Each question's answer as text, with the `path` and the digest of the file that it was read from."""

    path: str
    sha256: str
    given: dict[str, str]

    def facts(self) -> dict[str, Any]:
        """What the report record says of the submission."""
        return {"path": self.path, "sha256": self.sha256, "cells": []}


def locate(path: Path) -> Path:
    """The file that `path` means: itself, or the one with answers in a folder. Raises NoSuchSubmission for none."""
    if path.is_dir():
        return _within(path)
    if not path.is_file():
        raise NoSuchSubmission(f"there is no file {path}")
    if path.suffix.lower() not in (".toml", ".ipynb"):
        raise NoSuchSubmission(f"{path} is neither a .toml file nor an .ipynb notebook")
    return path


def _within(folder: Path) -> Path:
    if (folder / FILE).is_file():
        return folder / FILE
    others = ("assignment.toml", "questions.toml", "key.toml")
    files = [path for path in sorted(folder.iterdir()) if path.suffix in (".toml", ".ipynb")]
    found = [path for path in files if path.name not in others]
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise NoSuchSubmission(f"there is no {FILE} in {folder}; other files with answers: {names}")
    return found[0]


def read(path: Path) -> Answers:
    """The answers in the file at `path`, or in the folder. Raises NoSuchSubmission where there is no such file, and
    SubmissionError where it is not TOML, or not a notebook; its cause is UNREADABLE or SYNTAX_ERROR."""
    file = locate(path)
    data = content(file)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SubmissionError(f"{file} is not UTF-8 text: save it as UTF-8") from None
    values = _of_notebook(file, text) if file.suffix.lower() == ".ipynb" else _of_toml(file, text)
    given = {name: str(value).strip() for name, value in values.items() if isinstance(value, (str, int, float))}
    return Answers(str(file), hashlib.sha256(data).hexdigest(), given)


def _of_toml(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        lines = text.splitlines() or [""]
        number = int(match[1]) if (match := re.search(r"at line (\d+)", str(error))) else len(lines)
        source = SourceLine(number, lines[min(number, len(lines)) - 1])
        message = f'line {number} of {file.name} is not TOML: an answer is written like this: name = "b"'
        raise SubmissionError(message, source, Cause.SYNTAX_ERROR) from None


def _of_notebook(file: Path, text: str) -> dict[str, Any]:
    try:
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SubmissionError(f"{file} is not a well-formed notebook") from None
    return {name: value for source in sources for name, value in _literals(source)}


def _literals(source: str) -> Iterable[tuple[str, Any]]:
    """The names that a cell gives literals to, with these; a cell that Python cannot read gives none."""
    try:
        tree = ast.parse(code_of(Cell(1, source)))
    except (NotebookError, SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield from ((t.id, node.value.value) for t in node.targets if isinstance(t, ast.Name))


# --- one answer -------------------------------------------------------------------------------------------------------


def letter(question: Question, answer: str) -> str | None:
    """The choice that is meant: by its letter ("b", "(B)", "b."), or by its whole text; None if it is none of them."""
    plain = answer.strip().strip("().:").lower()
    if plain in question.choices:
        return plain
    return next((key for key, text in question.choices.items() if words(text) == words(answer)), None)


def words(text: str) -> str:
    """The words of the text in lower case: case, punctuation and spacing do not matter."""
    return " ".join(re.findall(r"\w+", text.lower()))


def digest(answer: str) -> str:
    """A short digest of an answer, by which a person's mark says which answer it was given for."""
    return hashlib.sha256(answer.encode("utf-8")).hexdigest()[:12]


def unknown(given: Iterable[str], questions: Sequence[Question]) -> list[str]:
    """A note for each answer to a question that was not asked."""
    ids = [question.id for question in questions]
    near = {name: difflib.get_close_matches(name, ids, n=1) for name in given if name not in (*ids, "assignment")}
    return [f"There is no question {name}" + (f"; did you mean {id[0]}?" if id else ".") for name, id in near.items()]


# --- the file that a student fills in ---------------------------------------------------------------------------------

_HEAD = """\
# The answers to {title!r}. README.md is the handout.
# Write the letter of a choice, or your own sentences, between the quotes. Then run: gradekit check

assignment = "{id}"
"""


def blank(id: str, title: str, questions: Sequence[Question]) -> str:
    """The starter: every question as comments, with an empty answer below it. It is TOML, and Python too."""
    parts = [_HEAD.format(id=id, title=title), *(_blank(n, question) for n, question in enumerate(questions, 1))]
    return "\n".join(parts)


def _blank(number: int, question: Question) -> str:
    lines = textwrap.wrap(f"{number}. {question.text}", 112, subsequent_indent="   ")
    for key, text in question.choices.items():
        lines += textwrap.wrap(f"   {key}  {text}", 112, subsequent_indent="      ")
    answer = '""' if question.choices else '"""\n"""'
    return "\n".join([*(f"# {line}" for line in lines), f"{question.id} = {answer}", ""])
