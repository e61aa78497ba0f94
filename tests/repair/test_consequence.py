"""What a repair says: its table of words, and what follows from the mistake."""

import ast
import re
from pathlib import Path

import pytest

from gradekit.repair.consequence import consequence
from gradekit.repair.operators import words
from gradekit.submission.parsed_source import ParsedSource, shown

KERNEL = """\
import triton, triton.language as tl

@triton.jit
def scaled(x, out, n, scale, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    mask = tl.arange(0, BLOCK) < n
    for step in range(0, n, BLOCK):
        offs = start + step
        v = tl.load(x + offs, mask=mask) * scale
        tl.store(out + offs, v + 1, mask=offs < n)
"""


@pytest.mark.parametrize(("piece", "follows"), [
    ("start + step", " So lines 9 and 10 go to other elements than they should."),
    ("x + offs", " So it loads other elements of x than it should."),
    ("tl.arange(0, BLOCK) < n", " So the mask in line 9 leaves the wrong lanes out."),
    ("offs < n", " So its mask leaves the wrong lanes out."),
    ("range(0, n, BLOCK)", " So the loop takes the wrong steps."),
    ("v + 1", ""),
    ("tl.load(x + offs, mask=mask) * scale", ""),
])
def test_what_follows_is_told_by_where_an_expression_goes(piece: str, follows: str) -> None:
    source = ParsedSource(KERNEL)
    node = next(node for node in ast.walk(source.tree) if isinstance(node, ast.expr) and source.of(node) == piece)
    assert consequence("scaled", node, source) == follows
    assert consequence("another", node, source) == ""


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
    assert asked | {"unused"} == words.table().keys()
