"""A notebook becomes one source: its definitions and what they need, at lines that lead back to the cells."""

import json
from typing import Any

import pytest

from gradekit.findings import SourceLine
from gradekit.submission.notebook import CellError, NotebookError, read


def notebook(*cells: str, **metadata: Any) -> str:
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 4,
            "metadata": metadata,
            "cells": [
                {"cell_type": "code", "source": cell, "metadata": {}, "outputs": [], "execution_count": None}
                if not cell.startswith("#md")
                else {"cell_type": "markdown", "source": cell, "metadata": {}}
                for cell in cells
            ],
        }
    )


def kept(*cells: str, entry: str | None = None) -> list[str]:
    """The lines of the source that are not blank."""
    return [line for line in read(notebook(*cells), entry=entry).text.split("\n") if line.strip()]


DEF = "def f(x):\n    return x"


CONFIGS = "configs = []\nconfigs.append(1)\nother = []\nother.append(2)"
TRIED = "try:\n    import triton\nexcept ImportError:\n    !pip install triton\n    import triton"
KEPT = {
    "definitions and no experiments": (("import torch", DEF, "x = torch.rand(3)\nprint(f(x))"), f"import torch\n{DEF}"),
    "a constant that a function reads, with what it needs": (
        ("A = 2\nB = A * 4\nunused = 5", "def f(x):\n    return x * B"), "A = 2\nB = A * 4\ndef f(x):\n    return x * B",
    ),
    "no global with the name of a parameter": (("x = experiment()", DEF), DEF),
    "what decorators and defaults need": (
        ("configs = [1]\nSIZE = 3\n@tuned(configs)\ndef f(x, n=SIZE):\n    return x",),
        "configs = [1]\nSIZE = 3\n@tuned(configs)\ndef f(x, n=SIZE):\n    return x",
    ),
    "changes to what is kept": (
        (CONFIGS, "def f(x):\n    return configs"), "configs = []\nconfigs.append(1)\ndef f(x):\n    return configs",
    ),
    "no warmup at the top level": (
        ("def kernel(): pass", "def f(x):\n    return kernel[1](x)", "kernel.warmup(1)\nkernel[2](3)"),
        "def kernel(): pass\ndef f(x):\n    return kernel[1](x)",
    ),
    "an alias of a definition": (
        ("class A:\n    pass", "attention = A.apply\ng = lambda x: x"),
        "class A:\n    pass\nattention = A.apply\ng = lambda x: x",
    ),
    "a definition inside of try": ((TRIED, DEF), TRIED.replace("!pip install triton", "pass") + "\n" + DEF),
    "no main guard": ((DEF + "\nif __name__ == '__main__':\n    import sys\n    f(1)",), DEF),
    "parts of a line": (
        ("A = 'é'; print(A); B = 2", "def f(x):\n    return A + B"), "A = 'é'; B = 2\ndef f(x):\n    return A + B",
    ),
    "comments within a kept line": (("def f(x):  # why\n    return x  # because",), "def f(x):  # why\n    return x  # because"),
    "a redefinition, last": (("def f(x): return 1", "def f(x): return 2"), "def f(x): return 1\ndef f(x): return 2"),
    "no experiment that is broken": ((DEF, "f(1"), DEF),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "text"), KEPT.values(), ids=KEPT)
def test_of_a_notebook_so_much_is_kept(cells: tuple[str, ...], text: str) -> None:
    assert kept(*cells) == text.split("\n")


def test_every_kept_line_stands_where_its_cell_says() -> None:
    book = read(notebook("import torch\n\nimport triton", "#md text", "print(1)\n" + DEF))
    lines = book.text.split("\n")
    assert [(cell.number, cell.start) for cell in book.cells] == [(1, 2), (2, 5)]
    assert lines[2 - 1] == "import torch" and lines[4 - 1] == "import triton"
    assert lines[5 - 1] == "" and lines[6 - 1] == "def f(x):"


def test_the_entry_is_kept_whatever_it_is_assigned_from() -> None:
    cells = ("import torch", DEF, "g = torch.compile(f)")
    assert "g = torch.compile(f)" not in kept(*cells)
    assert "g = torch.compile(f)" in kept(*cells, entry="g")


def test_a_device_chosen_by_an_if_is_kept_where_it_is_needed() -> None:
    choice = "if cuda():\n    DEVICE = 'cuda'\nelse:\n    DEVICE = 'cpu'"
    assert "    DEVICE = 'cuda'" in kept(choice, "def f(x):\n    return x.to(DEVICE)")
    assert "    DEVICE = 'cuda'" not in kept(choice, DEF)


@pytest.mark.parametrize("magic", [
    "%matplotlib inline", "!pip install triton", "!pip install 'unclosed", "files = !ls", "t = %timeit -o f(1)", "f?",
    "?f", "!pip install \\\n   triton", "!echo (",
])
def test_magics_are_left_out_and_lines_keep_their_numbers(magic: str) -> None:
    book = read(notebook(f"{magic}\n{DEF}"))
    assert book.text.split("\n")[2 + magic.count("\n")] == "def f(x):"
    assert [line for line in book.text.split("\n") if line] == ["def f(x):", "    return x"]


def test_a_percent_sign_that_continues_an_expression_is_no_magic() -> None:
    assert "     % 3)" in kept("A = (7\n     % 3)\ndef f(x):\n    return A")


@pytest.mark.parametrize("magic", ["%%bash\nls", "%%html\n<b>", "%%timeit\nf(1)", "%%writefile data.txt\nx"])
def test_a_cell_of_another_language_is_left_out(magic: str) -> None:
    book = read(notebook(DEF, magic))
    assert book.notes == ("Left out cell 2: no definitions there.",)


@pytest.mark.parametrize("magic", ["%%time", "%%capture out", "%%writefile kernel.py", "\n%%time"])
def test_a_cell_magic_over_python_is_python(magic: str) -> None:
    assert kept(f"{magic}\n{DEF}") == ["def f(x):", "    return x"]


def test_a_future_import_moves_to_the_top() -> None:
    book = read(notebook("import torch", "from __future__ import annotations\n" + DEF))
    assert book.text.startswith("from __future__ import annotations\nimport torch\n")
    compile(book.text, "submission", "exec")


def test_the_notes_name_cells_and_lines() -> None:
    book = read(notebook("import torch", "print(1)", DEF + "\nf(1)\nf(2)\n\nf(3)", "f(4)"))
    assert book.notes == ("Left out cells 2 and 4: no definitions there.", "Left out of cell 3: lines 3 to 4 and 6.")


def test_a_broken_definition_is_the_students_to_mend() -> None:
    with pytest.raises(CellError) as caught:
        read(notebook("import torch", "x = 1\ndef f(x)\n    return x"))
    assert str(caught.value).startswith("cell 2, line 2: `expected ':'`")
    assert caught.value.source == SourceLine(2, "def f(x)")


def test_nbformat_3_is_read() -> None:
    old = {
        "nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""},
        "worksheets": [{"cells": [{"cell_type": "code", "input": [DEF], "language": "python", "outputs": []}]}],
    }
    assert "def f(x):" in read(json.dumps(old)).text


@pytest.mark.parametrize(("data", "why"), [
    ("not json", "not a well-formed notebook"),
    ("{}", "not a well-formed notebook"),
    ("[1, 2]", "not a well-formed notebook"),
    ("[" * 100_000, "not a well-formed notebook"),
    ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code"}]}', "well-formed"),
    ('{"nbformat": 4, "nbformat_minor": 5, "metadata": [], "cells": 3}', "well-formed"),
    (notebook(), "no code cells"),
    (notebook("#md only words"), "no code cells"),
    (notebook("  \n"), "no code cells"),
    (notebook("print(1)", "x = 2"), "no code cell in it defines a function"),
    (notebook("f <- function(x) x", kernelspec={"language": "R", "name": "ir"}), "its language is R"),
    (notebook("f(x) = x", language_info={"name": "julia"}), "its language is julia"),
])
def test_what_cannot_be_graded_is_refused_in_one_sentence(data: str, why: str) -> None:
    with pytest.raises(NotebookError, match=why):
        read(data)
