"""Releases an assignment: makes the starter from the solution and the handout's table from domain.toml, and lays out
what students get.

Neither is written by hand. Where a committed one differs from what it is made from, it is stale, and `gradekit release
--check` and the course's tests say so.
"""

import difflib
import shutil
from pathlib import Path

from gradekit.assignment import Assignment, AssignmentError
from gradekit.course.handout import BEGIN, handout
from gradekit.course.regions import RegionError, starter
from gradekit.course.worksheet import worksheet
from gradekit.domain import DomainError
from gradekit.domain import load as load_domain
from gradekit.quiz import blank, load


def generated(assignment: Assignment) -> str:
    """The starter as solution or questions have it. Raises AssignmentError where these are missing or wrong."""
    path = _solution(assignment)
    if assignment.is_quiz:
        return blank(assignment.id, assignment.title, load(assignment))
    try:
        return starter(_text(path), assignment.title)
    except RegionError as error:
        raise AssignmentError(f"{path}: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise AssignmentError(f"{path} cannot be opened: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AssignmentError(f"{path} is not UTF-8") from None


def _solution(assignment: Assignment) -> Path:
    if assignment.solution is None:
        raise AssignmentError(f"the solution of {assignment.id} is not here: a starter is made from it, by the staff")
    return assignment.solution


def stale(assignment: Assignment) -> str:
    """How committed files differ from what is made, as a diff; "" for not. Raises AssignmentError as `generated`."""
    diffs: list[str] = []
    for path, text in _made(assignment).items():
        there = _text(path) if path.is_file() else ""
        diffs += difflib.unified_diff(there.splitlines(True), text.splitlines(True), str(path), f"{path} made anew")
    return "".join(diffs)


def _made(assignment: Assignment) -> dict[Path, str]:
    """The texts that are made: the starter, and a handout with a table. Raises AssignmentError as `generated`."""
    made, page = {assignment.starter: generated(assignment)}, assignment.handout
    if page.is_file() and BEGIN in (text := _text(page)):
        try:
            made[page] = handout(text, load_domain(assignment.folder / "domain.toml")[assignment.entry])
        except (DomainError, KeyError) as error:
            raise AssignmentError(str(error)) from None
    return made


def release(assignment: Assignment, folder: Path | None = None) -> list[Path]:
    """Write starter and table into the assignment's own folder, or all that students get into `folder`/<id>; the files.
    Raises AssignmentError as `generated`, and OSError."""
    made = _made(assignment)
    target = assignment.folder if folder is None else folder / assignment.id
    target.mkdir(parents=True, exist_ok=True)
    copies = [] if folder is None else [path for path in public(assignment) if path not in made]
    for path in copies:
        shutil.copyfile(path, target / path.name)
    for path, text in made.items():
        (target / path.name).write_text(text, encoding="utf-8")
    return [target / path.name for path in (*made, *copies)]


def notebook(assignment: Assignment, folder: Path, source: str = "") -> Path:
    """Write the notebook `folder`/<id>/submission.ipynb, which installs gradekit from `source`. Raises OSError."""
    path = folder / assignment.id / "submission.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(worksheet(assignment, source), encoding="utf-8")
    return path


def public(assignment: Assignment) -> list[Path]:
    """The files of an assignment's folder that students get, the starter among them: all but what tools leave there."""
    files = (path for path in assignment.folder.iterdir() if path.is_file() and not path.name.startswith("."))
    return sorted(path for path in files if path.suffix != ".pyc")
