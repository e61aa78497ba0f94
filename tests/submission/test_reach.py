"""What in a source text could change the process that it runs in, so that its word counts for nothing."""

from pathlib import Path

import pytest

from gradekit.submission.reach import reach
from tests import right
from tests.beside import beside

CASES = beside(__file__)

ROOT = Path(__file__).parents[2]
OWN = sorted(ROOT.glob("solutions/custom_op/*right*.py"))
RIGHT = [*right.files("custom_op"), *OWN, ROOT / "solutions/custom_op/solution.py"]

FORGING = CASES["forging"]
HONEST = CASES["honest"]


@pytest.mark.parametrize("text", FORGING.values(), ids=FORGING)
def test_what_could_change_the_process_is_named(text: str) -> None:
    found = reach(f"import torch, triton\n\n{text}\n")
    assert found is not None and found.what


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_what_a_submission_needs_is_harmless(text: str) -> None:
    assert reach(f"import torch, triton\n\n{text}\n") is None


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_operators_are_harmless(path: Path) -> None:
    assert reach(path.read_text()) is None
