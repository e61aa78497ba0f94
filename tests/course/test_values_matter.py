"""Mistakes that only certain values or sizes show: negative ones, boxes left of 0, many heads, more rows than a grid's y counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.findings import Outcome
from tests.graded import grade

EDITS = {
    "only positive values": ("dropout", "x * scale, 0.0", "tl.abs(x) * scale, 0.0", "scales_what_it_keeps"),
    "no box left of 0": ("giou_loss", "real = its_bottom > 0", "real = its_right > 0", "contiguous_float32"),
    "64 heads at most": ("flash_attention", "block_m), heads)](\n        tiles(q, block_m), tiles(k, block_n), tiles(v, block_n), out",
                         "block_m), min(heads, 64))](\n        tiles(q, block_m), tiles(k, block_n), tiles(v, block_n), out", "causal"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
def test_a_mistake_that_needs_these_values_fails(name: str, tmp_path: Path) -> None:
    assignment, old, new, keyword = EDITS[name]
    solutions = get(assignment).solutions
    assert solutions is not None
    text = (solutions / "solution.py").read_text()
    assert text.count(old) == 1
    (tmp_path / "submission.py").write_text(text.replace(old, new))
    checks = grade(get(assignment), tmp_path / "submission.py", keyword=keyword).checks
    assert Outcome.FAILED in {check.outcome for check in checks}


@pytest.mark.slow
def test_more_rows_than_the_y_of_a_grid_may_count_fail(tmp_path: Path) -> None:
    solutions = get("softmax").solutions
    assert solutions is not None
    text = (solutions / "right_one_row.py").read_text()
    on_y = text.replace("tl.program_id(0)", "tl.program_id(1)").replace("[(M,)]", "[(1, M)]")
    assert on_y != text
    (tmp_path / "submission.py").write_text(on_y)
    checks = grade(get("softmax"), tmp_path / "submission.py").checks
    assert Outcome.FAILED in {check.outcome for check in checks}
