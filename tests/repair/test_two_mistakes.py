"""Two mistakes at once, and a launch that is missing: what no single mend makes right."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.causes import Cause
from gradekit.repair.mend import Clues, Family, Mend
from gradekit.repair.missing_launch import launch_missing
from gradekit.repair.two_mistakes import diagnosis_of_both, one_alone
from gradekit.report.record import to_dict
from gradekit.source.draft import Draft
from tests.graded import grade
from tests.repair.corpora import ROOT

ONE_ROW = ROOT / "solutions/softmax/right_one_row.py"


def test_the_second_mend_alone_is_the_text_with_its_lines_of_both() -> None:
    assert one_alone("a\nb\nc", "a\nB\nc", "a\nB\nC") == "a\nb\nC"
    assert one_alone("a\nb\nc", "a\nB\nc", "a\nBB\nc") is None


def test_both_mistakes_are_told_in_their_order_at_the_line_of_the_first() -> None:
    one = Mend(Family.MASK, 1, 12, (), "Line 12 has no mask.", "give it one", Cause.MISSING_MASK)
    other = Mend(Family.SUM, 1, 30, (), "Line 30 sums nothing.", "sum it")
    said = diagnosis_of_both(one, other, Clues(frozenset(), ()))
    assert said.sentence == (
        "There are two mistakes. Line 12 has no mask. With that put right, there is another: line 30 sums nothing."
    )
    assert said.line == 12 and said.cause is Cause.MISSING_MASK and said.hint.startswith("first: give it one; then: sum")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [(("x - tl.max(x, axis=0)", "x"), ("(M,)](", "(N,)]("), ("overflows float32", "uses `N`"))],
)
def test_a_report_names_two_mistakes(
    first: tuple[str, str], second: tuple[str, str], said: tuple[str, str], tmp_path: Path
) -> None:
    text = ONE_ROW.read_text(encoding="utf-8")
    wrong = text.replace(*first).replace(*second)
    assert wrong.count("\n") == text.count("\n") and all(new in wrong for _, new in (first, second))
    path = tmp_path / "submission.py"
    path.write_text(wrong, encoding="utf-8")
    record = to_dict(grade(get("softmax"), path, device="cpu", profile="quick", stop=True))
    (failed,) = [check for check in record["checks"] if check["outcome"] == "failed"]
    assert "There are two mistakes." in failed["message"] and all(part in failed["message"] for part in said)


LAYER_NORM = (ROOT / "solutions/layer_norm/right_column_sums.py").read_text(encoding="utf-8")
LACKING = Clues(frozenset({Cause.UNWRITTEN_OUTPUT}), ())


def test_a_kernel_that_no_line_mentions_is_named_where_a_result_is_lacking() -> None:
    name = Draft(LAYER_NORM).kernels[-1].name
    launch = next(line for line in LAYER_NORM.splitlines() if f"{name}[" in line)
    wrong = LAYER_NORM.replace(launch, "        pass")
    found = launch_missing(wrong, LACKING)
    assert found is not None and found.sentence.startswith(f"Nothing launches `{name}`")
    assert launch_missing(wrong, Clues(frozenset({Cause.WRONG_VALUES}), ())) is None
    assert launch_missing(LAYER_NORM, LACKING) is None


def test_what_sizes_are_computed_of_is_a_number_and_a_tensor_none() -> None:
    draft = Draft("def f(x):\n    M, N = x.shape\n    out = torch.empty(x.shape)\n    y = x\n    a = b\n    b = a\n")
    numbers = [name for name in ("M", "N", "out", "y", "a", "b") if draft.is_number(named(name))]
    assert numbers == ["M", "N"]


def named(name: str) -> ast.expr:
    return ast.parse(name, mode="eval").body
