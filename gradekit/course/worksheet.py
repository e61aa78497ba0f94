"""Makes a notebook of an assignment from what the folder has: the handout, with its pictures inside, and the starter.

It travels alone and runs wherever Jupyter does, on Colab too: other pages of the folder are in it, the first code cell
gets gradekit, the last one checks what was written.
"""

import base64
import json
import re
from pathlib import Path

from gradekit.assignment import Assignment

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


def worksheet(assignment: Assignment, source: str = "") -> str:
    """The notebook's JSON. Where gradekit is missing, it installs `source`, such as a wheel's address; by default a
    wheel that lies beside the notebook, and no bare name of an index: whoever registered that name there would run code
    at every student's. Raises OSError where the handout, the starter or a picture cannot be read."""
    from nbformat import v4  # here alone: it takes longer to import than the rest of the command line

    handout = _for_cells(_with_pictures(assignment, assignment.handout), assignment)
    first, *sections = re.split(r"(?m)^(?=## )", handout)
    others = [_with_pictures(assignment, path) for path in _other_pages(assignment)]
    code = assignment.tests.read_text(encoding="utf-8") if assignment.tests.is_file() else ""
    named = {"id": assignment.id, "check": next(iter(re.findall(r"(?m)^def (test_\w+)", code)), "test")}
    cells = [
        v4.new_markdown_cell(first.strip()), v4.new_code_cell(_setup(source)),
        *(v4.new_markdown_cell(text.strip()) for text in (*sections, *others)),
        v4.new_markdown_cell(_cell("answers.md" if assignment.is_quiz else "code.md").format(**named)),
        v4.new_code_cell(_starter(assignment)), v4.new_code_cell(f'gradekit.check("{assignment.id}")'),
    ]  # fmt: skip
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # not random: the same assignment makes the same notebook
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps(v4.new_notebook(cells=cells, metadata=metadata), indent=1, ensure_ascii=False) + "\n"


def _setup(source: str) -> str:
    note, found = ("", f'"{source}"') if source else (f"{_cell('wheel_beside.txt')}\n", "./gradekit-*.whl")
    return _cell("setup.txt").format(source=found, note=note)


def _cell(name: str) -> str:
    return (Path(__file__).parent / "cells" / name).read_text(encoding="utf-8").strip()


def _other_pages(assignment: Assignment) -> list[Path]:
    return sorted(path for path in assignment.folder.glob("*.md") if path != assignment.handout)


def _for_cells(text: str, assignment: Assignment) -> str:
    """A handout's text with what is typed and where it stands as in a notebook: no file, no shell, no other page."""
    text = re.sub(r"gradekit check(?: (?:submission\.py|answers\.toml))?(?=[\s`])", f"%gradekit {assignment.id}", text)
    place = "Your answers" if assignment.is_quiz else "Your code"
    text = re.sub(r"in `(?:submission\.py|answers\.toml)`", f"in the cell under “{place}”", text)
    for page in _other_pages(assignment):
        text = re.sub(rf"\[([^\]]*)\]\({re.escape(page.name)}\)", f"“{_title(page)}” (below)", text)
    return text.replace("submission.py", "submission.ipynb")


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def _starter(assignment: Assignment) -> str:
    """The starter without its docstring, or the comment that begins it, which speaks of files."""
    text = assignment.starter.read_text(encoding="utf-8")
    text = re.sub(r'\A(""".*?"""|(#[^\n]*\n)+)\s*', "", text, flags=re.DOTALL).strip()
    return text.replace("fill in the TODOs in this file,", "fill in the TODOs in this cell,")


def _with_pictures(assignment: Assignment, page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return re.sub(r"!\[([^\]]*)\]\(([\w./-]+)\)", lambda match: _picture(match, assignment.folder), text)


def _picture(match: re.Match[str], folder: Path) -> str:
    path = folder / match[2]
    if path.suffix not in _TYPES or not path.is_file():
        return match[0]
    data = base64.b64encode(path.read_bytes()).decode()
    return f"![{match[1]}](data:{_TYPES[path.suffix]};base64,{data})"
