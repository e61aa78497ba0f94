"""What is asked, and what is right: questions.toml and key.toml as data.

[[question]]                              [grid_size]
id = "grid_size"                          right = "c"
title = "How many programs a grid has"    [grid_size.feedback]
points = 4                                a = "That is the sum. ..."
text = "..."                              ...
[question.choices]                        [bottleneck]
a = "9"                                   model = "an answer that earns everything"
...                                       [[bottleneck.certain]]
                                          answers = ["memory bandwidth"]    word for word, but for case and marks
A question without choices                points = 10
is a short answer.                        feedback = "..."
                                          [[bottleneck.rubric]]             for the person who marks
                                          points = 10
                                          says = "names the memory wall"
                                          words = ["memory", "bandwidth"]
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, AssignmentError, read_toml


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
        _check(path, question)
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


def _check(path: Path, question: Question) -> None:
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
