"""A small assignment on the disk, for tests that need one of their own."""

from collections.abc import Mapping
from pathlib import Path

from gradekit.assignment import Assignment, load


def laid_out(root: Path, id: str, entry: str, files: Mapping[str, str], more: str = "") -> Assignment:
    """The assignment `id`, laid out in root/assignments with these texts by name; those that begin with `solutions/` are the
    staff's. `more` is what its assignment.toml has beyond the least."""
    described = {"assignment.toml": f'title = "T"\nentry = "{entry}"\nsummary = "S"\n{more}'}
    for name, text in {**described, **files}.items():
        own = name.removeprefix("solutions/")
        path = root / ("assignments" if own == name else "solutions") / id / own
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return load(root / "assignments" / id)
