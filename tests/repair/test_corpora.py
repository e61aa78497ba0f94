"""The corpora of beginner's mistakes fit their right submissions, and reports are held against them rightly."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tutoring_table import Row, compared, read, updated, write
from tests.repair.corpora import BeginnersMistake, Tutored, Verdict, assignments, corpus


@pytest.mark.sample(4)
@pytest.mark.parametrize("id", assignments())
def test_every_mistake_is_another_submission_in_python_and_has_its_row_in_the_table(id: str) -> None:
    mistakes = list(corpus(id))
    assert len({ast.dump(ast.parse(mistake.text)) for mistake in mistakes}) == len(mistakes) > 0
    assert {name for of, name in read() if of == id} == {mistake.name for mistake in mistakes}


def check(message: str, line: int | None, **details: Any) -> dict[str, Any]:
    source = {"line": line, "text": "x"} if line else None
    return {"outcome": "failed", "message": message, "hint": "", "source": source, "details": details}


MISTAKE = BeginnersMistake("softmax", "m", "Forgets a.", "a = 1\nb = 2\n", ("above|below", "mask"), ("b = ",), False)


@pytest.mark.parametrize(("checks", "verdict", "line"), [
    ([check("Line 2 has a MASK from below.", 2, observed_cause="nan")], Verdict.NAMED, True),
    ([check("The mask is below.", 1, observed_cause="nan")], Verdict.NAMED, False),
    ([check("Look above.", 2, observed_cause="nan")], Verdict.WRONG, True),
    ([check("3 elements are wrong.", 1)], Verdict.SILENT, False),
    ([check("At shape [2], float32: 1 of 2 is wrong, above the mask at [0]: got 1, expected 2.", 2)], Verdict.SILENT, True),
    ([], Verdict.PASSES, False),
    ([check("Every element is 2 times what it must be.", 1, observed_cause="x")], Verdict.SYMPTOM, False),
    ([check("3 elements are wrong.", 2), check("The mask from above.", None)], Verdict.NAMED, False),
])
def test_a_report_names_a_cause_by_all_of_its_words_and_points_at_its_line(
    checks: list[dict[str, Any]], verdict: Verdict, line: bool
) -> None:
    tutored = Tutored.of(MISTAKE, {"checks": checks, "cause": None})
    assert (tutored.verdict, tutored.line) == (verdict, line)


# --- the table of what reports say of the corpora's mistakes (`make tutoring`) ----------------------------------------


ROW = Row("softmax", "m", Verdict.NAMED, True, 14, "wrong-values", 0.5, 1.5)
WORSE = (
    replace(ROW, line=False), replace(ROW, two=True), replace(ROW, verdict=Verdict.SILENT),
    replace(ROW, verdict=Verdict.WRONG),
)  # fmt: skip


def test_the_table_has_rows_of_the_corpora_alone() -> None:
    assert {id for id, _ in read()} == set(assignments())


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
