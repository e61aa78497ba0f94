"""The exercise of giou_loss: the kernel that it prints is wrong as it says, and the answer to it is right."""

from pathlib import Path

import pytest

from gradekit.assignment import load
from gradekit.findings import Kind, Outcome
from tests.graded import grade

ROOT = Path(__file__).parents[2]
ASSIGNMENT = load(ROOT / "assignments" / "giou_loss")
SOLUTIONS = ROOT / "solutions" / "giou_loss"


def printed() -> str:
    """The kernel as the page has it."""
    return (ASSIGNMENT.folder / "FIND_THE_BUG.md").read_text().partition("```python\n")[2].partition("```")[0]


def test_the_wrong_submission_is_the_kernel_that_the_page_prints() -> None:
    assert (SOLUTIONS / "wrong_published.py").read_text().endswith('"""\n\n' + printed())


def test_the_first_mistake_is_that_there_is_no_grid(tmp_path: Path) -> None:
    (tmp_path / "published.py").write_text(printed())
    report = grade(ASSIGNMENT, tmp_path / "published.py", keyword="test_contiguous_float32")
    assert "A kernel is launched with a grid" in report.checks[0].details["hint"]
    assert report.checks[0].source and report.checks[0].source.text.strip() == "giou_kernel(batch_size,)"


@pytest.mark.slow  # other right submissions of giou_loss are tried each time
def test_the_answer_earns_all_that_is_measured() -> None:
    report = grade(ASSIGNMENT, SOLUTIONS / "find_the_bug.py", profile="quick")
    lost = [check.id for check in report.checks if check.outcome is not Outcome.PASSED and check.kind is not Kind.SPEED]
    assert lost == []
