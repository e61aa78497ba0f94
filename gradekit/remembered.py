"""The last check of each of a user's files: its record, in the user's cache folder. What failed then is looked at
first, pages say what has changed since, and `replay` and `view` begin with it. No verdict depends on it."""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradekit.assignment import AssignmentError, get
from gradekit.report.record import write
from gradekit.submission import SubmissionError, read
from gradekit.versions import cache_folder, version

MOST_FILES = 64  # records that are kept: the newest


def last(path: Path) -> dict[str, Any] | None:
    """The record of the last check of the submission at `path`, whatever has changed since; None where none is kept."""
    with contextlib.suppress(OSError, ValueError):
        file = _file(path)
        kept = json.loads(file.read_text(encoding="utf-8")) if file.stat().st_size <= 1 << 22 else None
        return kept if isinstance(kept, dict) and isinstance(kept.get("checks"), list) else None
    return None


def unchanged(path: Path, assignment: str | None) -> dict[str, Any] | None:
    """That record, of `assignment` (None: any), if neither that nor the submission nor gradekit has changed since."""
    kept = last(path)
    if kept is None or kept["status"] != "graded" or assignment not in (None, kept["assignment"]):
        return None
    with contextlib.suppress(OSError, SubmissionError, AssignmentError):
        found = get(kept["assignment"])
        tests = [file for file in found.folder.rglob("*") if file.suffix in (".py", ".toml")]
        is_newest = max(file.stat().st_mtime for file in tests) < _file(path).stat().st_mtime
        is_same = read(path, entry=found.entry).sha256 == kept["submission"]["sha256"]
        return kept if is_newest and is_same and kept["environment"]["gradekit"] == version("gradekit") else None
    return None


def keep(path: Path, record: Mapping[str, Any]) -> None:
    """Keeps the record of a check of the submission at `path`, if that can be kept."""
    with contextlib.suppress(OSError):
        file = _file(path)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in sorted(file.parent.iterdir(), key=lambda one: one.stat().st_mtime)[: -MOST_FILES or None]:
            old.unlink()
        write(json.dumps(record), file)


def _file(path: Path) -> Path:
    return cache_folder() / "last" / hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
