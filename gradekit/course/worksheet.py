"""Makes a notebook of an assignment from what the folder has: the handout, with its pictures inside, and the starter.

It runs wherever Jupyter does, on Colab too: the first code cell gets gradekit, the last one checks what was written.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment
from gradekit.versions import version

_SETUP = """\
# Run this cell first. It installs gradekit where it is missing, as on Colab.
try:
    import gradekit
except ModuleNotFoundError:
    %pip install -q "{source}"
    import gradekit

%load_ext gradekit"""

_ANSWERS = """\
## Your answers

Write the letter of a choice, or your own sentences, between the quotes of the next cell. Run that cell, then the one
below it. Hand in this notebook as it is."""

_TASK = """\
## Your code

Write it in the next cell, run the cell, then run the one below it. As long as you try things, `%gradekit {id} --quick`
is faster, and `%gradekit {id} -k dtype` runs only the checks whose names match. Hand in this notebook as it is: what
is graded are the definitions in it, and not your experiments."""

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


def worksheet(assignment: Assignment, source: str = "") -> str:
    """The notebook's JSON; `source` is what pip installs where gradekit is missing (by default this version of it).

    Raises:
        OSError: the handout, the starter or a picture cannot be read.
    """
    from nbformat import v4  # here alone: it takes longer to import than the rest of the command line

    first, *sections = re.split(r"(?m)^(?=## )", _with_pictures(assignment))
    setup = _SETUP.format(source=source or _pinned())
    cells = [
        v4.new_markdown_cell(first.strip()),
        v4.new_code_cell(setup),
        *(v4.new_markdown_cell(section.strip()) for section in sections),
        v4.new_markdown_cell(_ANSWERS if assignment.is_quiz else _TASK.format(id=assignment.id)),
        v4.new_code_cell(_starter(assignment)),
        v4.new_code_cell(f'gradekit.check("{assignment.id}")'),
    ]
    return _text(cells)


def _pinned() -> str:
    own = version("gradekit")
    return f"gradekit=={own}" if own else "gradekit"


def _text(cells: list[Any]) -> str:
    from nbformat import v4

    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # not random: the same assignment makes the same notebook
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps(v4.new_notebook(cells=cells, metadata=metadata), indent=1, ensure_ascii=False) + "\n"


def _starter(assignment: Assignment) -> str:
    """The starter without its docstring, which speaks of files."""
    text = assignment.starter.read_text(encoding="utf-8")
    return re.sub(r'\A""".*?"""\s*', "", text, flags=re.DOTALL).strip()


def _with_pictures(assignment: Assignment) -> str:
    """The handout with each picture of the folder in place of its name: a notebook travels alone."""
    text = assignment.handout.read_text(encoding="utf-8")
    return re.sub(r"!\[([^\]]*)\]\(([\w./-]+)\)", lambda match: _picture(match, assignment.folder), text)


def _picture(match: re.Match[str], folder: Path) -> str:
    path = folder / match[2]
    if path.suffix not in _TYPES or not path.is_file():
        return match[0]
    data = base64.b64encode(path.read_bytes()).decode()
    return f"![{match[1]}](data:{_TYPES[path.suffix]};base64,{data})"
