"""Right submissions of the course's assignments in many styles: files, and edits of others that differ in a few lines.

tests/course/right/<id> has a file for each style, and edits.toml for those that are near another right submission:

    [autotuned]                                         the name, without ".py"
    base = "solutions/custom_op/right_flat.py"          the submission that is edited, from the repository's root
    edit = '''...'''                                    how gradekit.course.edits writes it

Both are named by the path at which they lie or would lie; tests/course/attacks and tests/course/public have the like. `python -m tests.right FOLDER` writes all of them out.
"""

import atexit
import functools
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from gradekit.course.edits import edited

ROOT = Path(__file__).parents[1]
FOLDER = Path("tests/course/right")
LONG = {"custom_op", "decode_attention", "flash_attention", "giou_loss", "layer_norm"}
"""The assignments of which grading a right submission takes longest."""


@functools.cache
def edits(folder: Path) -> dict[str, dict[str, str]]:
    """What stands in edits.toml of a folder, by name."""
    path = ROOT / folder / "edits.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def text(path: str | Path) -> str:
    """The text of a file of the repository, or of a submission that is an edit of one.

    Raises:
        FileNotFoundError: it is neither.
    """
    path = Path(path)
    edit = edits(path.parent).get(path.stem)
    return edited(text(edit["base"]), edit["edit"], str(path)) if edit else (ROOT / path).read_text(encoding="utf-8")


def file(path: str | Path) -> Path:
    """A file with that text, called after the path and its folder; what is an edit is written out for this process."""
    if (ROOT / path).is_file():
        return ROOT / path
    own = _written() / Path(path).parent.name / Path(path).name
    if not own.is_file():
        own.parent.mkdir(exist_ok=True)
        own.write_text(text(path), encoding="utf-8")
    return own


@functools.cache
def _written() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gradekit-right-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def files(assignment: str, suffixes: tuple[str, ...] = (".py",)) -> list[Path]:
    """The right submissions of an assignment in other people's styles, by name; its notebooks, where these are asked for."""
    folder = FOLDER / assignment
    names = {path.name for path in (ROOT / folder).glob("*")} | {f"{name}.py" for name in edits(folder)}
    return [file(folder / name) for name in sorted(names) if name.endswith(suffixes)]


def assignments() -> list[str]:
    """The assignments that have such submissions."""
    return sorted(path.name for path in (ROOT / FOLDER).iterdir())


if __name__ == "__main__":
    for assignment in assignments():
        shutil.copytree(ROOT / FOLDER / assignment, Path(sys.argv[1], assignment), dirs_exist_ok=True)
        for path in files(assignment):
            shutil.copy(path, Path(sys.argv[1], assignment))
