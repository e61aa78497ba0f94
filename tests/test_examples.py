"""The courses of examples/ work: examples/course beside gradekit's own assignments, and the puzzles of examples/puzzles."""

import csv
import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradekit.assignment import discover, get
from gradekit.authoring.lint import lint
from gradekit.batch.grader import content
from gradekit.batch.pool import GraderPool, grading_job
from gradekit.cli import main
from gradekit.course.mistakes import all_of
from gradekit.course.release import stale
from gradekit.course.verify import claims, tried
from gradekit.plugin.runner import grade as grade_as_asked
from gradekit.report.text import one_line
from gradekit.request import GradingOptions
from tests.graded import grade

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples/course"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GRADEKIT_ASSIGNMENTS", raising=False)
    monkeypatch.chdir(shutil.copytree(EXAMPLE, tmp_path / "course"))
    return tmp_path / "course"


def run(*words: str) -> str:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.output


def test_list_has_own_and_built_in_assignments_in_the_courses_order(course: Path) -> None:
    lines = run("list").splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["vector_add", "clamp", "softmax"]
    assert "100 points" in lines[1] and lines[1].endswith(f"[{course / 'assignments'}]")
    assert lines[0].endswith("[built-in]")
    assert "starter and handout are up to date" in run("release", "clamp", "--check")
    assert "nothing to mend" in run("lint", "clamp")


def test_its_hand_ins_are_graded_into_one_grade_book(course: Path) -> None:
    for student in ("ada", "grace"):
        (course / "in/clamp").mkdir(parents=True, exist_ok=True)
        shutil.copy(course / "solutions/clamp/solution.py", course / f"in/clamp/{student}.py")
    (course / "in/claamp").mkdir()
    said = run("grade", "in", "-o", "class", "--profile", "quick", "--workers", "1")
    assert "2 students: 2 graded" in said and "left aside, for course.toml does not name it: claamp" in said
    with (course / "class/course.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["name"], row["clamp"], row["total"]) for row in rows] == [
        ("Ada Lovelace", "100", "100"), ("Grace Hopper", "100", "100"),
    ]  # fmt: skip
    assert "clamp" in run("status", "-o", "class")


@pytest.mark.slow
def test_its_own_assignment_holds_all_claims(course: Path) -> None:
    assert "9 of 9 claims hold" in run("verify", "clamp")


def test_a_student_sees_what_was_started_and_what_has_changed(course: Path) -> None:
    run("start", "clamp")
    assert run("status") == "clamp  started, not checked yet\n"
    first = CliRunner().invoke(main, ["check", "clamp", "--quick"])
    assert first.exit_code == 1
    shutil.copy(course / "solutions/clamp/solution.py", course / "clamp/submission.py")
    assert "Last time: 0 of 100 points. Passes now: Agrees with torch.clamp; Stays inside" in run("check", "clamp", "--quick")
    assert run("status").startswith("clamp  100 of 100 points; attempt 2, ")
    assert "(100 of 100 points; attempt 2" in run("list")


def test_a_search_path_names_folders_and_what_is_built_in(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", "assignments")
    assert list(discover()) == ["clamp"]
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", "assignments:built-in")
    assert {"clamp", "softmax"} <= discover().keys()
    monkeypatch.delenv("GRADEKIT_ASSIGNMENTS")
    text = (course / "course.toml").read_text().replace("[course]", '[course]\npath = ["assignments"]', 1)
    (course / "course.toml").write_text(text)
    assert list(discover()) == ["clamp"]


def test_an_installed_package_brings_assignments(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = course / "site/kernels101"
    shutil.copytree(course / "assignments/clamp", package / "assignments/bound")
    (package / "__init__.py").write_text("raise RuntimeError('a package of assignments is never imported')\n")
    information = course / "site/kernels101-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: kernels101\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[gradekit.assignments]\nkernels101 = kernels101:assignments\n")
    monkeypatch.setattr(sys, "path", [str(course / "site"), *sys.path])
    assert discover()["bound"].folder == package / "assignments/bound"


# --- examples/puzzles -------------------------------------------------------------------------------------------------


PUZZLES = ROOT / "examples/puzzles"
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
