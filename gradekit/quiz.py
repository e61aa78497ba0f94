"""Assignments that ask questions: kind = "quiz" in assignment.toml. Nothing of a submission is ever run here.

docs/instructors.md says how questions, keys and answers are written. A question whose key is not on this machine is
pending, and so is a short answer that no rubric settles for certain: a person marks it (see gradekit.marks).
"""

import ast
import difflib
import hashlib
import json
import re
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, AssignmentError, read_toml
from gradekit.findings import Cause, Check, Kind, Outcome, Report, SourceLine, Status
from gradekit.submission import NoSuchSubmission, SubmissionError, content
from gradekit.submission.notebook import Cell, NotebookError, code_of
from gradekit.versions import environment


@dataclass(frozen=True)
class Key:
    """What is right: the letter of a choice and feedback for each, or a short answer's certain cases (complete answers,
    their points and feedback) and its rubric, whose words show a person where to look."""

    right: str = ""
    feedback: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    certain: tuple[Mapping[str, Any], ...] = ()
    rubric: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Question:
    """One question; without `choices` it asks for a short answer. `key` is None where this machine has none."""

    id: str
    title: str
    points: float
    text: str
    choices: Mapping[str, str] = field(default_factory=dict)
    key: Key | None = None


def load(assignment: Assignment) -> list[Question]:
    """The questions, with keys that are here, the staff's first. Raises AssignmentError where a file is wrong."""
    path = assignment.folder / "questions.toml"
    keys = {id: _key(id, data) for id, data in _keys(assignment).items()}
    try:
        questions = [_question(data, keys) for data in read_toml(path)["question"]]
    except (KeyError, TypeError) as error:
        raise AssignmentError(f"{path}: a question lacks {error}") from None
    for question in questions:
        _see_fair(path, question)
    if unasked := keys.keys() - {question.id for question in questions}:
        raise AssignmentError(f"key.toml answers {', '.join(sorted(unasked))}, which {path} does not ask")
    return questions


def _keys(assignment: Assignment) -> dict[str, Any]:
    folders = [folder for folder in (assignment.folder, assignment.solutions) if folder]
    found = [read_toml(folder / "key.toml") for folder in folders if (folder / "key.toml").is_file()]
    return {id: data for keys in found for id, data in keys.items()}


def _question(data: Mapping[str, Any], keys: Mapping[str, Key]) -> Question:
    said = data["id"], data["title"], float(data["points"]), _one(data["text"])
    return Question(*said, data.get("choices", {}), keys.get(data["id"]))


def _key(id: str, data: Mapping[str, Any]) -> Key:
    certain = [{"feedback": "", **case} for case in data.get("certain", ())]
    rubric = [{"words": (), **part} for part in data.get("rubric", ())]
    needed = (*((case, ("answers", "points")) for case in certain), *((part, ("points", "says")) for part in rubric))
    if lacking := [name for table, names in needed for name in names if name not in table]:
        raise AssignmentError(f"key.toml: {id} lacks {lacking[0]!r}")
    feedback = {letter: _one(text) for letter, text in data.get("feedback", {}).items()}
    return Key(data.get("right", ""), feedback, _one(data.get("model", "")), tuple(certain), tuple(rubric))


def _one(text: str) -> str:
    return " ".join(text.split())


def _see_fair(path: Path, question: Question) -> None:
    """Refuse a question that could not be graded fairly, in the staff's tests and not in front of a student."""
    key = question.key
    if not re.fullmatch(r"[a-z][a-z0-9_]*", question.id):
        raise AssignmentError(f"{path}: {question.id!r} must be a name in small letters")
    if key is None:
        return
    if question.choices and (key.right not in question.choices or key.feedback.keys() != question.choices.keys()):
        raise AssignmentError(f"key.toml: {question.id} needs the right choice, and feedback for each choice")
    if not question.choices and sum(part["points"] for part in key.rubric) != question.points:
        raise AssignmentError(f"key.toml: the rubric of {question.id} must add up to {question.points:g} points")
    if any(not 0 <= case["points"] <= question.points for case in key.certain):
        raise AssignmentError(f"key.toml: {question.id} gives more than its {question.points:g} points")


# --- what a student answered ------------------------------------------------------------------------------------------


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


# --- from answers to a report: one check for each question ------------------------------------------------------------


def grade(assignment: Assignment, path: Path, *, hidden: bool = False) -> Report:
    """The report on the answers at `path`; with `hidden`, details for the staff say what a rubric looks for. Raises
    NoSuchSubmission where there is nothing, and AssignmentError where the questions or their key are wrong."""
    began = time.monotonic()
    questions = load(assignment)
    try:
        answers = read(path)
    except NoSuchSubmission:
        raise
    except SubmissionError as error:
        return _rejected(assignment, path, questions, error)
    checks = [_check(question, answers.given.get(question.id, ""), hidden) for question in questions]
    notes = tuple(unknown(answers.given, questions))
    took = time.monotonic() - began
    return _report(assignment, Status.GRADED, answers.facts(), checks, notes=notes, seconds=took)


def _rejected(assignment: Assignment, path: Path, questions: list[Question], error: SubmissionError) -> Report:
    checks = [_made(q, Outcome.FAILED, 0, error.message, error.cause) for q in questions]
    facts, why = {"path": str(path), "sha256": "", "cells": []}, {"message": error.message, "cause": error.cause}
    return _report(assignment, Status.REJECTED, facts, checks, source=error.source, seconds=0.0, **why)


def _report(
    assignment: Assignment, status: Status, submission: dict[str, Any], checks: list[Check], **more: Any
) -> Report:
    return Report(
        assignment.id, status, submission, tuple(checks), environment=environment(), seed=assignment.seed, **more
    )


def _check(question: Question, answer: str, hidden: bool) -> Check:
    if not answer:
        return _made(question, Outcome.FAILED, 0, "Not answered yet.", Cause.NO_ANSWER)
    return _chosen(question, answer) if question.choices else _written(question, answer, hidden)


def _chosen(question: Question, answer: str) -> Check:
    choice = letter(question, answer)
    if choice is None:
        message = f"The answer is one of {', '.join(question.choices)}, and not {answer[:40]!r}."
        return _made(question, Outcome.FAILED, 0, message, Cause.NO_ANSWER)
    details = {"answer": digest(answer), "choice": choice}
    said = f"{choice}: {question.choices[choice]}"
    if question.key is None:
        return _made(question, Outcome.PENDING, 0, f"Recorded: {said}", details=details)
    message = f"{said}\n{question.key.feedback[choice]}"
    if choice == question.key.right:
        return _made(question, Outcome.PASSED, question.points, message, details=details)
    return _made(question, Outcome.FAILED, 0, message, Cause.WRONG_ANSWER, details)


def _written(question: Question, answer: str, hidden: bool) -> Check:
    key = question.key or Key()
    details: dict[str, Any] = {"answer": digest(answer)}
    for certain in key.certain:
        if words(answer) in map(words, certain["answers"]):
            is_full, feedback = certain["points"] == question.points, " ".join(certain["feedback"].split())
            outcome, cause = (Outcome.PASSED, None) if is_full else (Outcome.FAILED, Cause.WRONG_ANSWER)
            return _made(question, outcome, float(certain["points"]), feedback, cause, details)
    if hidden and key.rubric:
        details |= {"text": answer, "rubric": [_suggestion(c, answer) for c in key.rubric], "model": key.model}
    count = len(answer.split())
    message = f"Recorded ({count} word{'s' * (count != 1)}). A person marks this answer."
    return _made(question, Outcome.PENDING, 0, message, details=details)


def _suggestion(part: Mapping[str, Any], answer: str) -> dict[str, Any]:
    found = [word for word in part["words"] if word.lower() in answer.lower()]
    return {"points": float(part["points"]), "says": part["says"], "found": found}


def _made(
    question: Question, outcome: Outcome, earned: float, message: str, cause: Cause | None = None,
    details: dict[str, Any] | None = None,
) -> Check:  # fmt: skip
    return Check(
        question.id, question.title, Kind.QUIZ, outcome, earned, question.points, message, cause, details=details or {}
    )


def selected(report: Report, keyword: str, none: Callable[[str, list[str]], Exception]) -> Report:
    """The report with the checks that `keyword` names ("grid or mask"). Raises what `none` makes, where none is."""
    wanted = [word.strip() for word in keyword.split(" or ")]
    checks = tuple(check for check in report.checks if any(word in check.id for word in wanted))
    if not checks:
        raise none(keyword, [check.id for check in report.checks])
    return replace(report, checks=checks)
