"""What a repair says: its table of words, and why what stands there is wrong."""

import ast
import re
from pathlib import Path

import pytest

from gradekit.repair.operators import words
from gradekit.repair.operators.changes import Change, ChangeKind
from gradekit.repair.operators.reasons import reason
from gradekit.source.draft import draft_of
from gradekit.submission.parsed_source import shown
from tests.beside import beside


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


ROLES = beside(__file__)["roles"]


@pytest.mark.parametrize(("kind", "piece", "new", "lacks", "why"), [
    (ChangeKind.NAME, "here", "top", "", " `here` holds what the last step of the loop in line 9 has made."),
    (ChangeKind.NAME, "top", "here", "", ""),
    (ChangeKind.FACTOR, "pid", "pid * BLOCK", "BLOCK", " `pid` counts tiles of `BLOCK` elements, and not elements."),
    (ChangeKind.FACTOR, "offs", "offs * BLOCK", "BLOCK", ""),
    (ChangeKind.FACTOR, "tl.sum(here)", "tl.sum(here) * scale", "scale",
     " `scale` is a factor of `top` there, and not of `tl.sum(here)`."),
    (ChangeKind.FUNCTION, "tl.log2(here)", "tl.log(here)", "", " `tl.log2` is to the base 2, and not to the base e."),
    (ChangeKind.BRACKET, "here * top + total", "here * (top + total)", "",
     " There `*` takes `top` alone, without `+ total`."),
])  # fmt: skip
def test_why_an_expression_is_wrong_is_told_by_its_role(
    kind: ChangeKind, piece: str, new: str, lacks: str, why: str
) -> None:
    draft = draft_of(ROLES)
    assert draft is not None
    (kernel,) = draft.kernels
    uses = [node for node in kernel.nodes if isinstance(node, ast.expr) and draft.source.of(node) == piece]
    node = next(one for one in reversed(uses) if not isinstance(getattr(one, "ctx", None), ast.Store))
    assert reason(Change(kind, "parts", node, new, "", "", lacks=lacks), draft.source) == why
