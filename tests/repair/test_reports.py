"""Reports of mistaken submissions name what a mended program shows; a right submission has none."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tutoring_table
from benchmarks.tutoring_table import Row, compared, read, updated, write
from gradekit.assignment import get
from gradekit.plugin import tutoring
from tests.graded import failed_checks, grade
from tests.repair.corpora import ROOT, BeginnersMistake, Tutored, Verdict, assignments, corpus
from tests.repair.graded_mistake import tutored

SAMPLE = [
    ("matmul", "steps_rounded_down"), ("layer_norm", "mean_over_block"), ("matmul", "mask_with_K"), ("matmul", "b_stays"),
    ("layer_norm", "padding_in_steps"), ("layer_norm", "eps_of_its_own"), ("matmul", "one_of_four_parts"),
    ("spmm", "column_number_by_place"), ("fused_chain", "no_grid_of_columns"), ("decode_attention", "values_with_strides_of_keys"),
    pytest.param("spmm", "one_tile_of_elements_again", marks=pytest.mark.slow),
    pytest.param("decode_attention", "totals_without_weight", marks=pytest.mark.slow),
]  # fmt: skip
"""The next test has softmax."""


@pytest.mark.sample(1)
@pytest.mark.parametrize(("id", "name"), SAMPLE)
def test_a_report_says_of_a_mistake_what_the_table_has(id: str, name: str, tmp_path: Path) -> None:
    """A sample: `make tutoring` holds every mistake against the table."""
    found, row = tutored(id, name, tmp_path), tutoring_table.read()[id, name]
    assert (found.verdict, found.line) == (row.verdict, row.line) == (Verdict.NAMED, True)


@pytest.mark.parametrize(("id", "name", "hint"), [
    ("vector_add", "row_without_remainder", "modulo `size1`"),
    pytest.param("dropout", "index_without_remainder", "modulo `n1`", marks=pytest.mark.slow),
])
def test_an_edit_that_is_right_for_contiguous_tensors_alone_is_refuted_by_a_view(
    id: str, name: str, hint: str, tmp_path: Path
) -> None:
    """Another divisor makes the first index 0, and the second one counts on over it: right where no gap is between."""
    mistake = next(one for one in corpus(id) if one.name == name)
    (failed,) = failed_checks(id, mistake.text, tmp_path, stop=True)
    assert f"it must be taken {hint} (" in failed["hint"]


def test_an_example_that_takes_more_than_a_try_may_is_no_reason_against_a_mend(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("gradekit.subject.Limit.BRIEF_WORK", 2_000_000)
    found = tutored("softmax", "zeros_beyond_the_end", tmp_path)
    assert (found.verdict, found.line) == (Verdict.NAMED, True)


def test_a_result_that_depends_on_earlier_calls_is_not_blamed_on_a_mask(tmp_path: Path) -> None:
    right = (ROOT / "solutions/vector_add/solution.py").read_text(encoding="utf-8")
    counting = right.replace("    out =", "    _calls.append(x)\n    if len(_calls) > 9:\n        x = y\n    out =", 1)
    assert counting != right
    failed = failed_checks("vector_add", counting + "\n\n_calls = []\n", tmp_path, shrink=False, stop=True)
    assert failed and {check["cause"] for check in failed} == {"depends-on-earlier-calls"}


def test_no_program_is_mended_for_a_right_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tutoring, "mended_diagnosis", lambda *_: pytest.fail("mended"))
    report = grade(get("softmax"), ROOT / "solutions/softmax/right_one_row.py", device="cpu", profile="quick")
    assert report.score.earned == 80


def test_without_a_diagnosis_no_program_is_mended_and_the_verdict_is_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "submission.py"
    path.write_text(next(m for m in corpus("softmax") if m.name == "zeros_beyond_the_end").text, encoding="utf-8")
    options = {"device": "cpu", "profile": "quick", "shrink": False, "stop": True}
    explained = grade(get("softmax"), path, **options)
    monkeypatch.setattr(tutoring, "mended_diagnosis", lambda *_: pytest.fail("mended"))
    unexplained = grade(get("softmax"), path, diagnose=False, **options)
    outcomes = [[(check.id, check.outcome) for check in report.checks] for report in (explained, unexplained)]
    assert outcomes[0] == outcomes[1] and unexplained.score.earned == explained.score.earned < 80


# --- The corpora ------------------------------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("id", assignments())
def test_every_mistake_is_another_submission_in_python_and_has_its_row_in_the_table(id: str) -> None:
    mistakes = list(corpus(id))
    assert len({ast.dump(ast.parse(mistake.text)) for mistake in mistakes}) == len(mistakes) > 0
    assert {name for of, name in read() if of == id} == {mistake.name for mistake in mistakes}


def check(message: str, line: int | None, **details: Any) -> dict[str, Any]:
    source = {"line": line, "text": "x"} if line else None
    return {"outcome": "failed", "message": message, "hint": "", "source": source, "details": details}


MISTAKE = BeginnersMistake("softmax", "m", "Forgets a.", "a = 1\nb = 2\n", "a = 1\nb = 3\n", ("above|below", "mask"), ("b = ",), False)


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
