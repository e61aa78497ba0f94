"""In the end all checks that have failed are looked at together: a mend is a hypothesis about the whole submission."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.assignment import get
from gradekit.causes import Cause
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.failure import Failure
from gradekit.repair.mend import Family, Mend
from gradekit.repair.tutor import Said, Tutor
from gradekit.report.record import to_dict
from tests.graded import grade
from tests.repair.corpora import corpus

ONE, OTHER = (Mend(Family.SUM, 1, line, (), f"Line {line}.", "") for line in (1, 2))


def wrong(value: float, cause: Cause = Cause.WRONG_VALUES) -> Failure:
    actual, reference = torch.tensor([value]), SimpleNamespace(exact=torch.zeros(1))
    comparison = SimpleNamespace(actual=actual, value=actual, reference=reference)
    return Failure(cause, f"got {value}", comparison=comparison)  # type: ignore[arg-type]


class Told(Tutor):
    """One that has said of each check what it is `told`; `after` has what its example raises with each mend."""

    def __init__(self, told: Mapping[str, Mend | None], after: Mapping[Mend, Mapping[str, Any]]) -> None:
        check = lambda name: SimpleNamespace(
            name=name, error=wrong(1.0), example=name, call=SimpleNamespace(observation=None)
        )
        self._said = {name: Said(check(name), None, mend) for name, mend in told.items()}  # type: ignore[arg-type]
        self._errors = after
        self._texts = SimpleNamespace(subject=SimpleNamespace(found_in_memory=()))  # type: ignore[assignment]
        self._mending = SimpleNamespace(text="")  # type: ignore[assignment]

    def _after(self, mend: Mend, said: Any) -> dict[str, BaseException | None]:
        return dict(self._errors[mend])

    def _told_again(self, mend: Mend, said: Said) -> Diagnosis | None:
        return Diagnosis(Cause.WRONG_VALUES, mend.sentence, mend.line, "")

    def _of_two(self, tries: Any, halves: Any) -> Diagnosis | None:
        return None


@pytest.mark.parametrize(
    ("told", "after", "settled"),
    [
        ({"a": ONE, "b": ONE}, {}, {}),
        ({"a": ONE, "b": None}, {ONE: {"a": None, "b": None}}, {"b": "Line 1."}),
        ({"a": ONE, "b": None}, {ONE: {"a": None, "b": wrong(1.0)}}, {"a": None}),
        ({"a": ONE, "b": None}, {ONE: {"a": None, "b": wrong(2.0)}}, {}),
        (
            {"a": ONE, "b": OTHER, "c": OTHER},
            {ONE: {"a": None, "b": wrong(2.0), "c": wrong(2.0)}, OTHER: {"a": None, "b": None, "c": None}},
            {"a": "Line 2."},
        ),
        ({"a": ONE, "b": OTHER}, {ONE: {"a": None, "b": wrong(2.0)}, OTHER: {"a": wrong(2.0), "b": None}}, {}),
    ],
    ids=["one for all", "right there too", "refuted", "another mistake", "explains more", "each its own"],
)
def test_what_was_said_is_held_against_all_that_failed(
    told: dict[str, Mend | None], after: dict[Mend, dict[str, Any]], settled: dict[str, str | None]
) -> None:
    found = Told(told, after).settled()
    assert {name: one.sentence if one else None for name, one in found.items()} == settled


@pytest.mark.slow
def test_a_mend_that_leaves_other_checks_as_they_were_is_not_in_the_report(tmp_path: Path) -> None:
    """The dimension 1 in a grid in place of 0: right for the first example, and too few programs for others."""
    mistake = next(one for one in corpus("giou_loss") if one.name == "scales_one_number_a_box")
    (path := tmp_path / "submission.py").write_text(mistake.text, encoding="utf-8")
    record = to_dict(grade(get("giou_loss"), path, device="cpu", profile="quick", keyword="gradient"))
    failed = [one for one in record["checks"] if one["outcome"] == "failed"]
    assert failed and not any("dimension 1" in one["hint"] for one in failed)
