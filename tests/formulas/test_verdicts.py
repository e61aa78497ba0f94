"""Submissions are proved equal to their references, or refuted by values that the engine ran; right ones are never refuted."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import of_path
from gradekit.submission import read
from tests import right

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def survey() -> Any:
    """benchmarks/formulas.py, which asks for the verdict on a submission."""
    made = importlib.util.spec_from_file_location("survey_of_formulas", ROOT / "benchmarks/formulas.py")
    assert made is not None and made.loader is not None
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


def verdict(survey: Any, id: str, *edits: tuple[str, str]) -> str:
    """The verdict on the solution of an assignment after edits of its text."""
    file = ROOT / "solutions" / id / "solution.py"
    text = file.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    assignment = of_path(file, id)
    said: str = survey.verdict(assignment, survey.of_text("edited", text), survey.tests_of(assignment))[0]
    return said


@pytest.mark.parametrize("id", ["vector_add", "fused_chain", "giou_loss", "softmax"])
def test_a_solution_is_proved(survey: Any, id: str) -> None:
    assert verdict(survey, id) == "proved"


@pytest.mark.parametrize(
    ("id", "edit"),
    [
        ("vector_add", ("x + y", "tl.where((x == 1.5 * y) & (x > 0.25), 0.0, x + y)")),
        ("vector_add", ("x + y", "tl.where((x > 50) & (y < -50), x, x + y)")),
        ("fused_chain", ("0.044715", "0.0447")),
    ],
)
def test_a_wrong_formula_is_refuted(survey: Any, id: str, edit: tuple[str, str]) -> None:
    assert verdict(survey, id, edit) == "refuted"


@pytest.mark.slow
@pytest.mark.parametrize(
    "id", ["vector_add", "fused_chain", "custom_op", "dropout", "giou_loss", "layer_norm", "softmax"]
)
def test_no_right_submission_is_refuted(survey: Any, id: str) -> None:
    assignment = of_path(ROOT / "solutions" / id / "solution.py", id)
    files = [*right.files(id, (".py", ".ipynb")), *(ROOT / "solutions" / id).glob("right_*.py")]
    said = [survey.verdict(assignment, read(file), survey.tests_of(assignment))[0] for file in files]
    assert set(said) <= {"proved", "open"}
    assert said.count("proved") >= len(said) - 1
