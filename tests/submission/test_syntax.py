"""Python that cannot be read is explained in plain words, at its line."""

from __future__ import annotations

import pytest

from gradekit.findings import SourceLine
from gradekit.submission.syntax import SourceError, parse


def refusal(text: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        parse(text)
    return caught.value


def test_good_code_gives_its_tree() -> None:
    assert len(parse("x = 1\ny = 2\n").body) == 2


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("def f(x)\n    return x\n", 1, "ends in a colon"),
        ("x = 1\nprint 'a'\n", 2, "print with parentheses"),
        ("x = (1,\n", 1, "where this bracket should close"),
        ("x = 1)\n", 1, "one closing bracket too many"),
        ("def f():\n\tx = 1\n        y = 2\n", 3, "spaces only"),
        ("def f():\n    x = 1\n   y = 2\n", 3, "no block above it has"),
        ("  x = 1\n", 1, "no block was opened above it"),
        ("def f():\nx = 1\n", 2, "the block above has no body"),
        ("if x = 1:\n    pass\n", 1, "two equals signs"),
        ("x = “a”\n", 1, "a curly quote"),
        ("x\u00a0= 1\n", 1, "copying out of a web page"),
        ("```python\nx = 1\n```\n", 1, "a Markdown fence"),
        ("<<<<<<< HEAD\nx = 1\n", 1, "a merge conflict"),
        (">>> x = 1\n", 1, "a prompt was copied along"),
        ("x = 1\n%matplotlib inline\n", 2, "magics work only in a notebook"),
        ("x = 'abc\n", 1, "never closed"),
        ("x = '''abc\n\n", 1, "never closed"),
        ("return 3\n", 1, "lost its def"),
        ("f(a b)\n", 1, "a comma or an operator is missing"),
        ("x = 1\nfrom __future__ import annotations\n", 2, "to the top of the file"),
    ],
)
def test_a_syntax_error_has_its_line_and_a_hint(text: str, line: int, hint: str) -> None:
    error = refusal(text)
    assert hint.lower() in error.message.lower()
    assert error.source == SourceLine(line, text.split("\n")[line - 1])


def test_an_unknown_kind_of_error_says_what_python_says() -> None:
    assert refusal("x = 1 2\n").message == "`invalid syntax`."


def test_nesting_beyond_pythons_reach_is_an_error_and_not_a_crash() -> None:
    assert "nested" in refusal("-" * 200_000 + "1").message


def test_a_nul_byte_is_named_with_its_line() -> None:
    error = refusal("x = 1\ny = '\0'\n")
    assert "NUL bytes" in error.message
    assert error.source is not None and error.source.line == 2


def test_a_doubtful_escape_raises_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    parse(r"x = '\d'")
    assert not recwarn.list
