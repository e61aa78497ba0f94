"""What a repair says: its table of words."""

import re
from pathlib import Path

from gradekit.repair.operators import words
from gradekit.submission.parsed_source import shown


def test_a_piece_of_source_keeps_what_it_is_shown_for() -> None:
    text = "tl.load(col_ptr + e * col_stride, mask=e_mask, other=0).to(tl.int64) - 1"
    assert shown(text).endswith("...`") and "- 1" not in shown(text)
    kept = shown(text, at=text.index("- 1"))
    assert kept.startswith("`...") and kept.endswith("- 1`") and len(kept) <= 62


# --- the table of what the tutor says of an edit ----------------------------------------------------------------------


OPERATORS = "\n".join(
    path.read_text(encoding="utf-8") for path in Path(words.__file__).parent.glob("*.py") if path != Path(words.__file__)
)


def test_every_role_is_asked_for_by_an_operator_and_every_role_that_is_asked_for_is_there() -> None:
    asked = set(re.findall(r'(?:words|sentence_of|hint_of)\("([\w-]+)"', OPERATORS))
    asked |= {f"around-{role}" for _, role in re.findall(r'\("([^"]*\{\}[^"]*)", "(\w+)"\)', OPERATORS)}
    asked |= set(re.findall(r'"([\w-]+)"', OPERATORS)) & words.table().keys()  # which a variable holds
    assert asked | {"unused", "around"} == words.table().keys()  # and those whose words others share
