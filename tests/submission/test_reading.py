"""What a student hands in is read as text, or refused with a sentence that says what to do."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from gradekit.findings import Cause, SourceLine
from gradekit.submission import MAX_SOURCE_BYTES, NoSuchSubmission, SubmissionError, read
from gradekit.submission.syntax import SourceError, parse
from tests.beside import beside
from tests.submission.test_notebook import notebook

CODE = "import torch\n\n\ndef softmax(x):\n    return x\n"


def write(path: Path, content: str | bytes = CODE) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path: Path, entry: str | None = None) -> SubmissionError:
    with pytest.raises(SubmissionError) as caught:
        read(path, entry=entry)
    return caught.value


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["utf-8", "latin-1", "cp1252", "iso8859-15", "shift_jis"])
def test_a_declared_encoding_is_true_of_the_text_as_well(tmp_path: Path, codec: str) -> None:
    text = read(write(tmp_path / "a.py", f"# -*- coding: {codec} -*-\n{CODE}".encode(codec))).text
    assert text == f"# -*- coding: utf-8 -*-\n{CODE}"


@pytest.mark.parametrize("codec", ["rot13", "idna", "undefined", "no-such", "base64"])
def test_an_encoding_that_is_none_is_refused(tmp_path: Path, codec: str) -> None:
    found = refusal(write(tmp_path / "a.py", f"# coding: {codec}\n{CODE}# \xff".encode("latin-1")))
    assert found.cause is Cause.UNREADABLE and "save it as UTF-8" in found.message


def test_a_codec_that_makes_half_characters_is_refused(tmp_path: Path) -> None:
    found = refusal(write(tmp_path / "a.py", b"# coding: utf-7\nx = '+2AA-'\n"))
    assert found.cause is Cause.UNREADABLE


def test_an_endless_chain_of_elif_is_refused(tmp_path: Path) -> None:
    chain = "if x:\n    y = 1\n" + "".join(f"elif x == {n}:\n    y = 2\n" for n in range(600))
    assert refusal(write(tmp_path / "a.py", chain)).cause is Cause.SYNTAX_ERROR


def test_a_link_out_of_the_folder_is_never_followed(tmp_path: Path) -> None:
    write(tmp_path / "solution.py")
    (tmp_path / "hand-in").mkdir()
    link = tmp_path / "hand-in" / "submission.py"
    link.symlink_to(tmp_path / "solution.py")
    for path in (link, link.parent):
        assert "leads out of its folder" in refusal(path).message


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "kernel.py")
    (tmp_path / "submission.py").symlink_to("kernel.py")
    assert read(tmp_path / "submission.py").text == CODE


def test_a_python_file_is_its_text_and_digest(tmp_path: Path) -> None:
    file = write(tmp_path / "kernel.py")
    submission = read(file)
    assert submission.text == CODE
    assert submission.sha256 == hashlib.sha256(CODE.encode()).hexdigest()
    assert submission.path == str(file)
    assert submission.notes == ()


def test_a_line_is_found_by_its_number(tmp_path: Path) -> None:
    submission = read(write(tmp_path / "kernel.py"))
    assert submission.line(4) == SourceLine(4, "def softmax(x):")
    assert submission.line(0) is None and submission.line(99) is None
    assert submission.place(4) == "kernel.py:4"


def test_it_is_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    read(write(tmp_path / "kernel.py", f"open({str(marker)!r}, 'w')\n"))
    assert not marker.exists()


@pytest.mark.parametrize("data", [
    b"\xef\xbb\xbf" + CODE.encode(), CODE.replace("\n", "\r\n").encode(), CODE.replace("\n", "\r").encode(),
], ids=["byte-order mark", "windows lines", "old mac lines"])
def test_marks_and_line_ends_of_any_editor_are_fine(tmp_path: Path, data: bytes) -> None:
    assert read(write(tmp_path / "kernel.py", data)).text == CODE


def test_a_declared_encoding_is_honoured(tmp_path: Path) -> None:
    data = "# -*- coding: latin-1 -*-\nNAME = 'é'\n".encode("latin-1")
    assert "NAME = 'é'" in read(write(tmp_path / "kernel.py", data)).text


def test_its_names_are_those_of_the_top_level(tmp_path: Path) -> None:
    code = "def a(): pass\nclass C:\n    def m(self): pass\nif True:\n    def b(): pass\nd = C.m\n"
    submission = read(write(tmp_path / "kernel.py", code))
    assert submission.names() == ("a", "C", "b", "d")


def test_a_notebook_names_lines_by_cell(tmp_path: Path) -> None:
    book = notebook("import torch\nprint(1)", "def f(x):\n    return x")
    submission = read(write(tmp_path / "kernel.ipynb", book))
    assert submission.place(5) == "cell 2, line 2"
    assert submission.line(5) == SourceLine(5, "    return x")
    assert submission.notes == ("Left out of cell 1: line 2.",)
    assert submission.names() == ("torch", "f")


# --- folders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "chosen"), [
    (["submission.py", "other.py"], "submission.py"),
    (["softmax.py", "notes.py"], "softmax.py"),
    (["whatever.py"], "whatever.py"),
    (["lab.ipynb"], "lab.ipynb"),
    (["lab.py", "test_lab.py", "conftest.py", ".hidden.py"], "lab.py"),
])
def test_a_folder_means_the_file_that_is_meant(tmp_path: Path, names: list[str], chosen: str) -> None:
    for name in names:
        write(tmp_path / name, notebook(CODE) if name.endswith("ipynb") else CODE)
    assert read(tmp_path, entry="softmax").path == str(tmp_path / chosen)


def test_a_folder_with_several_files_asks_which(tmp_path: Path) -> None:
    write(tmp_path / "a.py"), write(tmp_path / "b.py")
    error = refusal(tmp_path)
    assert isinstance(error, NoSuchSubmission)
    assert "which file do you mean" in error.message and "a.py, b.py" in error.message


def test_a_stray_file_beside_several_assignments_that_were_started_is_not_taken_for_the_one_that_is_meant(tmp_path: Path) -> None:
    for name in ("softmax", "matmul"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / f"test_{name}.py", "")
        write(tmp_path / "kernel.py")
    error = refusal(tmp_path)
    assert isinstance(error, NoSuchSubmission)
    there = ", ".join(str(tmp_path / name) for name in ("kernel.py", "matmul", "softmax"))
    assert error.message == f"which do you mean: {there}? Name it: {tmp_path / 'matmul'}"
    assert read(tmp_path, entry="softmax").path == str(tmp_path / "kernel.py")  # -a says it


def test_a_folder_without_python_says_so(tmp_path: Path) -> None:
    write(tmp_path / "README.md", "words")
    assert "no .py file or notebook" in refusal(tmp_path).message


# --- what is refused --------------------------------------------------------------------------------------------------


def test_no_such_file_names_the_near_miss(tmp_path: Path) -> None:
    write(tmp_path / "softmax.py")
    error = refusal(tmp_path / "sofmax.py")
    assert isinstance(error, NoSuchSubmission)
    assert error.message == f"there is no file {tmp_path / 'sofmax.py'}; did you mean {tmp_path / 'softmax.py'}?"


def test_no_such_folder_is_named(tmp_path: Path) -> None:
    assert f"there is no folder {tmp_path / 'labs'}" in refusal(tmp_path / "labs" / "a.py").message


@pytest.mark.parametrize(
    ("data", "cause", "said"),
    [
        (b"", Cause.UNREADABLE, "is empty"),
        (b" \n\t\n", Cause.UNREADABLE, "is empty"),
        (b"# only\n# words\n", Cause.UNREADABLE, "no code, only comments"),
        (b'"""only words"""\n', Cause.UNREADABLE, "no code, only comments"),
        (b"x = '\xff\xfe'\n", Cause.UNREADABLE, "is not UTF-8 text (line 1): save it as UTF-8"),
        (b"x = 1\ny = '\xe9'\n", Cause.UNREADABLE, "is not UTF-8 text (line 2)"),
        (b"# coding: klingon\nx = 1\n", Cause.UNREADABLE, "unknown encoding"),
        (b"x = 1\0\n", Cause.UNREADABLE, "NUL bytes"),
        ("x = 1\n".encode("utf-16"), Cause.UNREADABLE, "UTF-16"),
        (b"x = (\n", Cause.SYNTAX_ERROR, "line 1 of kernel.py"),
        (b"#" * (MAX_SOURCE_BYTES + 1), Cause.UNREADABLE, "larger than 1 MiB"),
    ],
)
def test_bad_input_is_refused_with_its_cause(tmp_path: Path, data: bytes, cause: Cause, said: str) -> None:
    error = refusal(write(tmp_path / "kernel.py", data))
    assert error.cause is cause
    assert said in error.message
    assert not isinstance(error, NoSuchSubmission)


def test_a_syntax_error_carries_its_line_and_text(tmp_path: Path) -> None:
    error = refusal(write(tmp_path / "kernel.py", "import torch\ndef f(x)\n    return x\n"))
    assert error.line == 2
    assert error.source == SourceLine(2, "def f(x)")
    assert error.message == (
        "Python cannot read line 2 of kernel.py: `expected ':'`. "
        "A line that opens a block (def, if, for, while, class) ends in a colon."
    )


def test_a_syntax_error_in_a_notebook_names_its_cell(tmp_path: Path) -> None:
    error = refusal(write(tmp_path / "lab.ipynb", notebook("x = 1\ndef f(x)\n")))
    assert error.cause is Cause.SYNTAX_ERROR
    assert error.message.startswith("Python cannot read cell 1, line 2: `expected ':'`")


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    assert "is not a .py file, an .ipynb notebook, a .zip" in refusal(write(tmp_path / "kernel.cu")).message


def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert "not a regular file" in refusal(tmp_path / "pipe.py").message


def test_an_unreadable_file_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    file = write(tmp_path / "kernel.py")
    monkeypatch.setattr(Path, "open", denied)
    assert refusal(file).message == f"{file} cannot be opened: Permission denied"


def test_a_notebook_that_is_called_a_python_file_is_read_as_a_notebook(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "execution_count": 1, "outputs": [], "source": ["def add(x, y):\n", "    return x"]}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    path = tmp_path / "add.py"
    path.write_text(json.dumps(book))
    assert read(path, entry="add").names() == ("add",)
    path.write_text(json.dumps({"cells": [cell]}))  # a dictionary, which Python can read, too
    assert read(path, entry="add").names() == ()


# --- Python that cannot be read is explained in plain words, at its line ----------------------------------------------


CASES = beside(__file__)


def syntax_refusal(text: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        parse(text)
    return caught.value


def test_good_code_gives_its_tree() -> None:
    assert len(parse("x = 1\ny = 2\n").body) == 2


@pytest.mark.parametrize(("text", "line", "hint"), CASES["errors"])
def test_a_syntax_error_has_its_line_and_a_hint(text: str, line: int, hint: str) -> None:
    error = syntax_refusal(text)
    assert hint.lower() in error.message.lower()
    assert error.source == SourceLine(line, text.split("\n")[line - 1])


def test_an_unknown_kind_of_error_says_what_python_says() -> None:
    assert syntax_refusal("x = 1 2\n").message == "`invalid syntax`."


def test_nesting_beyond_pythons_reach_is_an_error_and_not_a_crash() -> None:
    assert "nested" in syntax_refusal("-" * 200_000 + "1").message


def test_a_nul_byte_is_named_with_its_line() -> None:
    error = syntax_refusal("x = 1\ny = '\0'\n")
    assert "NUL bytes" in error.message
    assert error.source is not None and error.source.line == 2


def test_a_doubtful_escape_raises_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    parse(r"x = '\d'")
    assert not recwarn.list


def test_a_folder_too_high_names_those_that_were_started_and_a_misspelt_folder_the_near_one(tmp_path: Path) -> None:
    (tmp_path / "softmax").mkdir()
    (tmp_path / "softmax" / "test_softmax.py").write_text("")
    (tmp_path / "softmax" / "submission.py").write_text("x = 1\n")
    (tmp_path / "softmax" / "replay_test_a.py").write_text("")
    with pytest.raises(SubmissionError, match=f"in the folder {tmp_path}: name one of {tmp_path / 'softmax'}"):
        read(tmp_path)
    with pytest.raises(SubmissionError, match=f"did you mean {tmp_path / 'softmax'}"):
        read(tmp_path / "softmaz")
    assert read(tmp_path / "softmax").text == "x = 1\n"
