"""The table of what the tutor says of an edit."""

from __future__ import annotations

import re
from pathlib import Path

from gradekit.repair.operators import words

OPERATORS = "\n".join(
    path.read_text(encoding="utf-8") for path in Path(words.__file__).parent.glob("*.py") if path != Path(words.__file__)
)


def test_every_role_is_asked_for_by_an_operator_and_every_role_that_is_asked_for_is_there() -> None:
    asked = set(re.findall(r'(?:words|sentence_of|hint_of)\("([\w-]+)"', OPERATORS))
    asked |= {f"around-{role}" for _, role in re.findall(r'\("([^"]*\{\}[^"]*)", "(\w+)"\)', OPERATORS)}
    asked |= set(re.findall(r'"([\w-]+)"', OPERATORS)) & words.table().keys()  # which a variable holds
    assert asked | {"unused"} == words.table().keys()


def test_a_role_says_its_sentence_and_its_hint_with_what_an_operator_has_seen() -> None:
    assert words.words("operation", it="`a - b`", new="+", old="-") == ("computes `a - b`.", "try `+` in place of `-`")
    assert words.unused("has `x` in `x * y`.", "scale") == "has `x` in `x * y`, and the kernel never uses `scale`."
