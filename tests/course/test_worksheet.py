"""The notebook of an assignment: the handout with its pictures, the starter, and a cell that checks."""

import base64
import json
from pathlib import Path

import nbformat
import pytest

from gradekit.assignment import Assignment
from gradekit.course.start import start
from gradekit.course.worksheet import worksheet
from gradekit.submission import notebook
from tests.small import laid_out

HANDOUT = "# Copy\n\nWords.\n\n![a tile](figure.svg) and ![none](gone.svg)\n\n## Your task\n\nWrite it.\n"
STARTER = '"""Copy: fill in the TODOs."""\n\nimport torch\n\n\ndef f(x):\n    raise NotImplementedError\n'


@pytest.fixture
def copy(tmp_path: Path) -> Assignment:
    files = {"README.md": HANDOUT, "starter.py": STARTER, "figure.svg": "<svg/>", "test_copy.py": ""}
    return laid_out(tmp_path, "copy", "f", files)


def test_it_is_a_valid_notebook_of_the_handout_then_the_starter_then_the_check(copy: Assignment) -> None:
    book = nbformat.reads(worksheet(copy), as_version=4)
    nbformat.validate(book)
    kinds = [cell.cell_type for cell in book.cells]
    assert kinds == ["markdown", "code", "markdown", "markdown", "code", "code"]
    assert book.cells[2].source == "## Your task\n\nWrite it."
    assert book.cells[4].source == "import torch\n\n\ndef f(x):\n    raise NotImplementedError"
    assert book.cells[5].source == 'gradekit.check("copy")'


def test_pictures_travel_inside(copy: Assignment) -> None:
    first = json.loads(worksheet(copy))["cells"][0]["source"]
    picture = base64.b64encode(b"<svg/>").decode()
    assert f"![a tile](data:image/svg+xml;base64,{picture}) and ![none](gone.svg)" in "".join(first)


def setup(assignment: Assignment, source: str = "") -> str:
    return "".join(json.loads(worksheet(assignment, source))["cells"][1]["source"])


def test_the_first_code_cell_installs_what_the_course_names_or_the_wheel_beside_the_notebook(copy: Assignment) -> None:
    assert '%pip install -q "https://example.org/gradekit.whl"' in setup(copy, "https://example.org/gradekit.whl")
    assert "%pip install -q ./gradekit-*.whl" in setup(copy)
    assert "which your course hands out with this notebook" in setup(copy)


def markdown(assignment: Assignment) -> list[str]:
    return ["".join(c["source"]) for c in json.loads(worksheet(assignment))["cells"] if c["cell_type"] == "markdown"]


def test_its_words_speak_of_cells_where_the_handout_speaks_of_a_file(copy: Assignment) -> None:
    words = "    gradekit check submission.py\n\n`gradekit check -k a`\n`gradekit bench submission.py`\nin `submission.py`.\n"
    copy.handout.write_text("# Copy\n\n" + words)
    assert markdown(copy)[0].removeprefix("# Copy\n\n").splitlines() == [
        "    %gradekit copy", "", "`%gradekit copy -k a`", "`gradekit bench submission.ipynb`",
        "in the cell under “Your code”.",
    ]  # fmt: skip


def test_other_pages_travel_inside(copy: Assignment) -> None:
    copy.handout.write_text("# Copy\n\nSee [more](more.md).\n")
    (copy.folder / "more.md").write_text("# More to read\n\nMore.\n")
    assert markdown(copy)[:2] == ["# Copy\n\nSee “More to read” (below).", "# More to read\n\nMore."]


def test_what_is_graded_of_it_is_the_starter(copy: Assignment) -> None:
    text = notebook.read(worksheet(copy), entry="f").text
    assert "def f(x):" in text
    assert "gradekit.check" not in text


def test_start_lays_out_the_notebook_in_place_of_handout_and_starter(copy: Assignment, tmp_path: Path) -> None:
    files = start(copy, tmp_path / "mine", notebook=True)
    assert sorted(file.name for file in files) == ["assignment.toml", "submission.ipynb", "test_copy.py"]
    assert (tmp_path / "mine" / "submission.ipynb").read_text(encoding="utf-8") == worksheet(copy)
