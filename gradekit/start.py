"""Lays an assignment's public files into a student's folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from gradekit.assignment import Assignment


class ExistingFiles(Exception):
    """Files stand where new ones would go: `paths`."""

    def __init__(self, paths: list[Path]) -> None:
        names = ", ".join(str(path) for path in paths)
        super().__init__(f"{names} would be overwritten: name another folder, or use --force")
        self.paths = paths


def start(assignment: Assignment, folder: Path, *, force: bool = False) -> list[Path]:
    """Copy the handout, the starter (as submission.py), the public tests and their description into `folder`.

    Returns the new files. Nothing is copied unless everything can be.

    Raises:
        ExistingFiles: there are files of these names, and `force` is not given.
        OSError: the folder cannot be made or written.
    """
    copies = {folder / name: origin for name, origin in _files(assignment).items() if origin.is_file()}
    existing = [path for path in copies if path.exists()]
    if existing and not force:
        raise ExistingFiles(existing)
    folder.mkdir(parents=True, exist_ok=True)
    for path, origin in copies.items():
        shutil.copyfile(origin, path)
    return list(copies)


def _files(assignment: Assignment) -> dict[str, Path]:
    return {
        "README.md": assignment.handout,
        "submission.py": assignment.starter,
        assignment.tests.name: assignment.tests,
        "assignment.toml": assignment.folder / "assignment.toml",
    }
