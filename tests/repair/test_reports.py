"""Reports of mistaken submissions name what a mended program shows; a right submission has none."""

from pathlib import Path

import pytest

from benchmarks import tutoring_table
from gradekit.assignment import get
from gradekit.plugin import tutoring
from tests.graded import failed_checks, grade
from tests.repair.corpora import ROOT, Verdict, corpus
from tests.repair.graded_mistake import tutored

SAMPLE = [
    ("matmul", "steps_rounded_down"), ("layer_norm", "mean_over_block"), ("matmul", "mask_with_K"),
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
