"""Sizes go beyond the limits of a kernel that no comparison of sizes shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.findings import Outcome
from tests.graded import grade

pytestmark = pytest.mark.usefixtures("without_mends")

SOLUTIONS = Path(__file__).parents[2] / "solutions"


@pytest.mark.parametrize(
    ("id", "right", "change", "keyword"),
    [
        ("matmul", "right_default_precision.py", ("range(0, tl.cdiv(K, BK))", "range(0, 140)"), "contiguous_float32"),
        ("spmm", "right_row_and_tile.py", ("    acc = tl.zeros", "    end = tl.minimum(end, start + 3000)\n    acc = tl.zeros"), "one_long_row"),
    ],
)  # fmt: skip
def test_a_kernel_that_is_right_up_to_a_length_alone_fails(
    id: str, right: str, change: tuple[str, str], keyword: str, tmp_path: Path
) -> None:
    text = (SOLUTIONS / id / right).read_text(encoding="utf-8")
    assert change[0] in text
    (tmp_path / "submission.py").write_text(text.replace(*change))
    (check,) = grade(get(id), tmp_path / "submission.py", keyword=keyword, device="cpu").checks
    assert check.outcome is Outcome.FAILED and check.counterexample is not None
    assert "is 8,961" in check.counterexample["origin"] or "is 6,001" in check.counterexample["origin"]
