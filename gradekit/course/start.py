"""Lays an assignment's public files into a student's folder."""

import itertools
from collections.abc import Iterable
from pathlib import Path

from gradekit.assignment import Assignment, UsageError
from gradekit.course.worksheet import worksheet

OWN = ("submission", "answers")  # the files in which students write most of their work


def start(assignment: Assignment, folder: Path, *, force: bool = False, notebook: bool = False) -> list[Path]:
    """Copy what students read, the tests and the starter (as submission.py, or with the handout as a `notebook`) into
    `folder`, all or nothing; the new files. Where `force` overwrites what a student has written, a copy stays beside
    it. Raises UsageError where there are such files and no `force`, and OSError."""
    files = {folder / name: content for name, content in _files(assignment, notebook).items()}
    existing = [path for path in files if path.exists()]
    if existing and not force:
        names = ", ".join(map(str, existing))
        raise UsageError(f"{names} would be overwritten: name another folder, or use --force")
    folder.mkdir(parents=True, exist_ok=True)
    changed = [path for path in existing if path.stem in OWN and path.read_bytes() != files[path]]
    copies = [path.rename(_copy_of(path)) for path in changed]
    for path, content in files.items():
        path.write_bytes(content)
    return [*files, *copies]


def _copy_of(path: Path) -> Path:
    """The first name that is free: submission.py.before-1, -2, ..."""
    names = (path.with_name(f"{path.name}.before-{number}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())


def _files(assignment: Assignment, notebook: bool) -> dict[str, bytes]:
    if notebook:
        return {"submission.ipynb": worksheet(assignment).encode("utf-8")} | _contents(assignment.test_files)
    own = {("answers.toml" if assignment.is_quiz else "submission.py"): assignment.starter.read_bytes()}
    reading = sorted(assignment.folder.glob("*.md"))
    return _contents(reading) | own | _contents([*assignment.test_files, *assignment.pictures])


def _contents(files: Iterable[Path]) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in files if file.is_file()}
