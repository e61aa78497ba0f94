"""Lays an assignment's public files into a student's folder."""

from __future__ import annotations

from pathlib import Path

from gradekit.assignment import Assignment
from gradekit.worksheet import worksheet


class ExistingFiles(Exception):
    """Files stand where new ones would go: `paths`."""

    def __init__(self, paths: list[Path]) -> None:
        names = ", ".join(str(path) for path in paths)
        super().__init__(f"{names} would be overwritten: name another folder, or use --force")
        self.paths = paths


def start(assignment: Assignment, folder: Path, *, force: bool = False, notebook: bool = False) -> list[Path]:
    """Copy the handout, its pictures, the starter (as submission.py), the tests and their description into `folder`.

    With `notebook`, the handout and the starter are one file, submission.ipynb. Returns the new files. Nothing is
    copied unless everything can be.

    Raises:
        ExistingFiles: there are files of these names, and `force` is not given.
        OSError: the folder cannot be made or written.
    """
    files = {folder / name: content for name, content in _files(assignment, notebook).items()}
    existing = [path for path in files if path.exists()]
    if existing and not force:
        raise ExistingFiles(existing)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        path.write_bytes(content)
    return list(files)


def _files(assignment: Assignment, notebook: bool) -> dict[str, bytes]:
    """The new files' contents by their names."""
    copies = {
        "README.md": assignment.handout,
        "submission.py": assignment.starter,
        assignment.tests.name: assignment.tests,
        "assignment.toml": assignment.folder / "assignment.toml",
    } | {path.name: path for path in assignment.pictures}
    if not notebook:
        return _contents(copies)
    book = worksheet(assignment).encode("utf-8")
    return {"submission.ipynb": book} | _contents({k: copies[k] for k in (assignment.tests.name, "assignment.toml")})


def _contents(copies: dict[str, Path]) -> dict[str, bytes]:
    return {name: origin.read_bytes() for name, origin in copies.items() if origin.is_file()}
