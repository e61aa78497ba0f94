"""The table of what reports say of the corpora's mistakes (`make tutoring`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.tutoring_table import Row, compared, read, updated, write
from tests.repair.corpora import Verdict, assignments, corpus

ROW = Row("softmax", "m", Verdict.NAMED, True, 14, "wrong-values", 0.5, 1.5)
WORSE = (replace(ROW, line=False), replace(ROW, verdict=Verdict.SILENT), replace(ROW, verdict=Verdict.WRONG))


def test_the_table_has_each_mistake_of_the_corpora_and_no_other() -> None:
    assert set(read()) == {(id, mistake.name) for id in assignments() for mistake in corpus(id)}


@pytest.mark.parametrize("row", WORSE)
def test_a_worse_line_or_verdict_is_worse_and_needs_a_sentence_that_says_why(row: Row) -> None:
    worse, better = compared([row], {ROW.key: ROW})
    assert (len(worse), better) == (1, [])
    with pytest.raises(ValueError, match="say why"):
        updated([row], {ROW.key: ROW}, "")
    assert updated([row], {ROW.key: ROW}, "its rule is gone") == [replace(row, why="its rule is gone")]


@pytest.mark.parametrize("row", WORSE)
def test_what_is_told_better_again_needs_no_sentence_any_more(row: Row) -> None:
    before = {ROW.key: replace(row, why="its rule is gone")}
    assert compared([ROW], before)[0] == [] and len(compared([ROW], before)[1]) == 1
    assert updated([ROW], before, "") == [ROW]


def test_a_slower_row_is_neither_worse_nor_better() -> None:
    assert compared([replace(ROW, whole=90.0)], {ROW.key: ROW}) == ([], [])


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = [ROW, replace(ROW, name="n", verdict=Verdict.SYMPTOM, line=False, why='of "a", b')]
    write(rows, tmp_path / "table.csv")
    assert list(read(tmp_path / "table.csv").values()) == rows
