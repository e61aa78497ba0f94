"""Reports of mistaken submissions name what a mended program shows; a right submission has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.plugin import mended_runs
from gradekit.report.record import to_dict
from tests.graded import grade
from tests.mending.corpora import ROOT, Tutored, Verdict, corpus

SAMPLE = [("softmax", "zeros_beyond_the_end"), ("matmul", "steps_rounded_down"), ("layer_norm", "mean_over_block")]


@pytest.mark.parametrize(("id", "name"), SAMPLE)
def test_a_report_names_the_cause_and_its_line(id: str, name: str, tmp_path: Path) -> None:
    mistake = next(mistake for mistake in corpus(id) if mistake.name == name)
    path = tmp_path / "submission.py"
    path.write_text(mistake.text, encoding="utf-8")
    tutored = Tutored.of(mistake, to_dict(grade(get(id), path, device="cpu", profile="quick", stop=True)))
    assert (tutored.verdict, tutored.line) == (Verdict.NAMED, True)


def test_no_program_is_mended_for_a_right_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mended_runs, "mended_diagnosis", lambda *_: pytest.fail("mended"))
    report = grade(get("softmax"), ROOT / "solutions/softmax/right_one_row.py", device="cpu", profile="quick")
    assert report.score.earned == 80
