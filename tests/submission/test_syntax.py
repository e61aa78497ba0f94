"""Python that cannot be read is explained in plain words, at its line."""

import pytest

from gradekit.findings import SourceLine
from gradekit.submission.syntax import SourceError, parse
from tests.beside import beside

CASES = beside(__file__)


def refusal(text: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        parse(text)
    return caught.value


def test_good_code_gives_its_tree() -> None:
    assert len(parse("x = 1\ny = 2\n").body) == 2


@pytest.mark.parametrize(("text", "line", "hint"), CASES["errors"])
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
