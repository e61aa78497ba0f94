"""A notebook becomes one source: its definitions and what they need, at lines that lead back to the cells."""

from __future__ import annotations

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


def test_definitions_are_kept_and_experiments_are_not() -> None:
    lines = kept("import torch", DEF, "x = torch.rand(3)\nprint(f(x))")
    assert lines == ["import torch", "def f(x):", "    return x"]


def test_every_kept_line_stands_where_its_cell_says() -> None:
    book = read(notebook("import torch\n\nimport triton", "#md text", "print(1)\n" + DEF))
    lines = book.text.split("\n")
    assert [(cell.number, cell.start) for cell in book.cells] == [(1, 2), (2, 5)]
    assert lines[2 - 1] == "import torch" and lines[4 - 1] == "import triton"
    assert lines[5 - 1] == "" and lines[6 - 1] == "def f(x):"


def test_a_constant_that_a_function_reads_is_kept_with_what_it_needs() -> None:
    lines = kept("A = 2\nB = A * 4\nunused = 5", "def f(x):\n    return x * B")
    assert lines == ["A = 2", "B = A * 4", "def f(x):", "    return x * B"]


def test_a_global_of_the_same_name_as_a_parameter_is_not_needed() -> None:
    assert kept("x = experiment()", DEF) == ["def f(x):", "    return x"]


def test_what_decorators_and_defaults_need_is_kept() -> None:
    lines = kept("import triton\nconfigs = [1]", "SIZE = 3\n@triton.autotune(configs)\ndef f(x, n=SIZE):\n    return x")
    assert "configs = [1]" in lines and "SIZE = 3" in lines and "@triton.autotune(configs)" in lines


def test_a_change_to_a_kept_value_is_kept() -> None:
    lines = kept("configs = []\nconfigs.append(1)\nother = []\nother.append(2)", "def f(x):\n    return configs")
    assert "configs.append(1)" in lines
    assert "other.append(2)" not in lines


def test_a_warmup_at_the_top_level_is_an_experiment() -> None:
    lines = kept("def kernel(): pass", "def f(x):\n    return kernel[1](x)", "kernel.warmup(1)\nkernel[2](3)")
    assert lines == ["def kernel(): pass", "def f(x):", "    return kernel[1](x)"]


def test_an_alias_of_a_definition_is_a_definition() -> None:
    lines = kept("class A:\n    pass", "attention = A.apply\ng = lambda x: x")
    assert lines == ["class A:", "    pass", "attention = A.apply", "g = lambda x: x"]


def test_the_entry_is_kept_whatever_it_is_assigned_from() -> None:
    cells = ("import torch", DEF, "g = torch.compile(f)")
    assert "g = torch.compile(f)" not in kept(*cells)
    assert "g = torch.compile(f)" in kept(*cells, entry="g")


def test_a_definition_inside_try_or_if_is_kept() -> None:
    cell = "try:\n    import triton\nexcept ImportError:\n    !pip install triton\n    import triton"
    assert kept(cell, DEF)[:4] == ["try:", "    import triton", "except ImportError:", "    pass"]


def test_a_device_chosen_by_an_if_is_kept_where_it_is_needed() -> None:
    choice = "if cuda():\n    DEVICE = 'cuda'\nelse:\n    DEVICE = 'cpu'"
    assert "    DEVICE = 'cuda'" in kept(choice, "def f(x):\n    return x.to(DEVICE)")
    assert "    DEVICE = 'cuda'" not in kept(choice, DEF)


def test_a_main_guard_is_left_out() -> None:
    assert kept(DEF + "\nif __name__ == '__main__':\n    import sys\n    f(1)") == ["def f(x):", "    return x"]


@pytest.mark.parametrize(
    "magic",
    [
        "%matplotlib inline",
        "!pip install triton",
        "!pip install 'unclosed",
        "files = !ls",
        "t = %timeit -o f(1)",
        "f?",
        "?f",
        "!pip install \\\n   triton",
        "!echo (",
    ],
)
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


def test_statements_that_share_a_line_are_parted() -> None:
    assert kept("A = 'é'; print(A); B = 2", "def f(x):\n    return A + B") == [
        "A = 'é'; B = 2",
        "def f(x):",
        "    return A + B",
    ]


def test_comments_within_a_kept_line_stay() -> None:
    assert kept("def f(x):  # why\n    return x  # because") == ["def f(x):  # why", "    return x  # because"]


def test_a_future_import_moves_to_the_top() -> None:
    book = read(notebook("import torch", "from __future__ import annotations\n" + DEF))
    assert book.text.startswith("from __future__ import annotations\nimport torch\n")
    compile(book.text, "submission", "exec")


def test_the_notes_name_cells_and_lines() -> None:
    book = read(notebook("import torch", "print(1)", DEF + "\nf(1)\nf(2)\n\nf(3)", "f(4)"))
    assert book.notes == (
        "Left out cells 2 and 4: no definitions there.",
        "Left out of cell 3: lines 3 to 4 and 6.",
    )


def test_a_redefinition_comes_last_as_in_the_notebook() -> None:
    assert kept("def f(x): return 1", "def f(x): return 2") == ["def f(x): return 1", "def f(x): return 2"]


def test_a_broken_experiment_is_left_out() -> None:
    assert kept(DEF, "f(1") == ["def f(x):", "    return x"]


def test_a_broken_definition_is_the_students_to_mend() -> None:
    with pytest.raises(CellError) as caught:
        read(notebook("import torch", "x = 1\ndef f(x)\n    return x"))
    assert str(caught.value).startswith("cell 2, line 2: expected ':'")
    assert caught.value.source == SourceLine(2, "def f(x)")


def test_nbformat_3_is_read() -> None:
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [{"cells": [{"cell_type": "code", "input": [DEF], "language": "python", "outputs": []}]}],
    }
    assert "def f(x):" in read(json.dumps(old)).text


@pytest.mark.parametrize(
    ("data", "why"),
    [
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
    ],
)
def test_what_cannot_be_graded_is_refused_in_one_sentence(data: str, why: str) -> None:
    with pytest.raises(NotebookError, match=why):
        read(data)
