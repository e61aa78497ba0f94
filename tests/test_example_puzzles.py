"""The puzzles of examples/puzzles can be solved and are graded: each answer earns everything, each mistake is caught."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from gradekit.assignment import discover, get
from gradekit.authoring.lint import lint
from gradekit.batch.grader import content
from gradekit.batch.pool import GraderPool, grading_job
from gradekit.course.mistakes import all_of
from gradekit.course.release import stale
from gradekit.course.verify import claims, tried
from gradekit.plugin.runner import grade as grade_as_asked
from gradekit.report.text import one_line
from gradekit.request import GradingOptions
from tests.graded import grade

PUZZLES = Path(__file__).parents[1] / "examples/puzzles"
ALL = discover(PUZZLES / "assignments")
every_puzzle = pytest.mark.parametrize("id", ALL)


def test_there_are_twelve_in_an_order_that_their_titles_have() -> None:
    assert sorted(one.order for one in ALL.values()) == list(range(1, 13))
    assert all(one.title.startswith(f"{one.order}. ") for one in ALL.values())


@every_puzzle
def test_a_puzzle_has_nothing_to_mend_and_its_starter_is_what_its_answer_holds(id: str) -> None:
    assert [one.text for one in lint(ALL[id].folder) if not one.is_note] == []
    assert stale(ALL[id]) == ""
    assert len(ALL[id].handout.read_text().split()) < 220
    assert len(list(all_of(ALL[id]))) >= 2


@pytest.mark.sample(4)
@every_puzzle
def test_the_answer_earns_everything_without_a_gpu(id: str) -> None:
    solution = ALL[id].solution
    assert solution is not None
    report = grade(ALL[id], solution, profile="quick", device="cpu")
    assert (report.score.earned, report.score.possible) == (100, 100), [one_line(c.message) for c in report.checks]


@pytest.mark.parametrize("id", ["add_constant", "masked_rows"])
def test_the_answer_loses_nothing_to_proofs_either(id: str) -> None:
    """They are of all calls that the domain promises, and of no others: these kernels take contiguous tensors alone"""
    solution = ALL[id].solution
    assert solution is not None
    (check,) = grade(ALL[id], solution, keyword="test_memory", device="cpu").checks
    assert check.earned == 25 and check.details["proofs"][id]["proved"] > 0, check.message


@pytest.mark.slow
@every_puzzle
def test_every_claim_of_a_puzzle_holds(id: str) -> None:
    results = [tried(claim) for claim in claims(ALL[id], grade_as_asked, quick=True)]
    assert [(result.claim.subject, result.problem) for result in results if not result.held] == []


def test_the_notebook_is_what_its_script_writes_and_has_a_check_and_a_view_for_each() -> None:
    spec = importlib.util.spec_from_file_location("notebook", PUZZLES / "notebook.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (PUZZLES / "puzzles.ipynb").read_text()
    assert module.notebook() == text, "run python examples/puzzles/notebook.py"
    code = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    for word in ("check", "view"):
        assert re.findall(rf'gradekit\.{word}\("(\w+)"\)', code) == sorted(ALL, key=lambda id: ALL[id].order)
    names = re.findall(r"^def (\w+)", code, flags=re.MULTILINE)
    assert len(names) == len(set(names)) == 24


def test_a_grader_takes_a_puzzle_and_then_an_assignment_of_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """... for its search path has the last one's folder first, and still all others"""
    monkeypatch.delenv("GRADEKIT_ASSIGNMENTS", raising=False)
    monkeypatch.chdir(PUZZLES)
    with GraderPool(1) as pool:
        for id in ("reverse", "vector_add", "reverse"):
            one = get(id)
            assert one.solution is not None
            asked = grading_job(one, "submission.py", content(one.solution), GradingOptions(profile="quick", keyword="test_memory"))
            assert pool.graded(asked, 200).record["status"] == "graded"
