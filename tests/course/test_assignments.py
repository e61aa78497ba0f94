"""Every assignment proves itself, and its papers agree: handout, starter, tests, solution and mistakes."""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gradekit import domain, grade
from gradekit.assignment import Assignment, discover
from gradekit.course.mistakes import all_of
from gradekit.course.verify import Claim, claims
from gradekit.findings import Report
from gradekit.mutation.survey import Survey
from gradekit.request import TRIVIAL_RESULTS, GradingRequest
from tests.right import LONG

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = discover(ROOT / "assignments")


def _all_claims(assignment: Assignment) -> Iterator[Claim]:
    """Ten examples show a right solution and a trivial result; a subtle mistake, and low bits that are lost, take as many as
    students get. The other right submissions are in test_right."""
    subtle = {*NAMES[assignment.id], "lower_precision"}

    def graded(request: GradingRequest) -> Report:
        subject, options = request.options.trivial or request.path.stem, request.options
        if subject not in subtle:
            options = replace(options, profile="quick")
        if subject not in NAMES[assignment.id]:  # whose cause is asked for
            options = replace(options, shrink=False, diagnose=False)
        return grade(replace(request, options=options))

    return (claim for claim in claims(assignment, graded) if not claim.subject.startswith("right_"))


NAMES = {id: {mistake.name for mistake in all_of(assignment)} for id, assignment in ASSIGNMENTS.items()}
CLAIMS = [(id, claim) for id, assignment in ASSIGNMENTS.items() for claim in _all_claims(assignment)]
WHOLE = {"solution.py", "starter.py", *TRIVIAL_RESULTS}
"""The subjects of all checks of an assignment."""

KERNELS = [assignment for assignment in ASSIGNMENTS.values() if not assignment.is_quiz]

every_assignment = pytest.mark.parametrize("assignment", KERNELS, ids=lambda assignment: assignment.id)


@pytest.mark.sample(2)
@pytest.mark.parametrize("claim", [
    pytest.param(claim, id=f"{id}/{claim.subject}", marks=[pytest.mark.slow] if id in LONG and claim.subject in WHOLE else [])
    for id, claim in CLAIMS
])
def test_a_claim_of_verify_holds(claim: Claim) -> None:
    """Without mends, which take most of a failing check; with them, where a cause is known by them alone."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gradekit.repair.work.Limit.WORK", 0)
        said = claim.check()[0]
    assert said == "" or claim.check()[0] == ""


@every_assignment
def test_the_claims_are_about_the_solution_the_starter_the_trivial_results_and_six_mistakes(assignment: Assignment) -> None:
    subjects = {claim.subject for id, claim in CLAIMS if id == assignment.id}
    assert {"solution.py", "starter.py", *TRIVIAL_RESULTS} <= subjects
    assert len(NAMES[assignment.id]) >= 6 and NAMES[assignment.id] <= subjects


@every_assignment
def test_the_handout_lists_every_check_with_its_points_a_hundred_in_all_and_what_hidden_ones_add(assignment: Assignment) -> None:
    assert assignment.solutions is not None
    text, points = assignment.handout.read_text(encoding="utf-8"), _points(assignment.tests)
    rows = re.findall(r"^\| (.+) \| (\d+) \|$", text, flags=re.MULTILINE)
    assert {title: int(points) for title, points in rows} == points and sum(points.values()) == 100
    hidden = sum(_points(assignment.solutions / f"test_{assignment.id}_hidden.py").values())
    assert f"Hidden checks of the same task add {hidden} points to these 100." in " ".join(text.split())


@every_assignment
def test_the_handout_says_what_the_domain_says(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    if assignment.is_quiz:
        return
    monkeypatch.syspath_prepend(ROOT / "tools")
    (entry,) = domain.load(assignment.folder / "domain.toml").values()
    text = assignment.handout.read_text()
    assert importlib.import_module("tables").handout(text, entry) == text, "run python tools/tables.py"
    assert "<!-- domain: begin -->\n|" in text


@every_assignment
def test_the_handout_has_what_every_handout_has(assignment: Assignment) -> None:
    text = assignment.handout.read_text()
    wanted = ["Your task", "May I call torch?", "How it is graded", "Common mistakes", "Where this comes from"]
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == wanted
    prose = re.sub(r"<!-- domain: begin -->.*<!-- domain: end -->", "", text, flags=re.DOTALL)
    assert len(prose.split()) < 1020


@every_assignment
def test_starter_and_solution_define_the_entry_with_the_same_parameters(assignment: Assignment) -> None:
    assert assignment.solutions is not None
    solution = assignment.solutions / "solution.py"
    assert _parameters(assignment.starter, assignment.entry) == _parameters(solution, assignment.entry)


@every_assignment
def test_a_mistake_names_a_test_that_there_is_and_says_in_one_line_what_the_student_did(assignment: Assignment) -> None:
    tests = {node.name for node in _functions(assignment.tests) if node.name.startswith("test_")}
    assert {mistake.name: mistake.check for mistake in all_of(assignment) if mistake.check not in tests} == {}
    assert [mistake.name for mistake in all_of(assignment) if not 10 < len(mistake.title) <= 120] == []


@pytest.mark.sample(2)
@every_assignment
def test_few_mutants_are_judged_equivalent(assignment: Assignment) -> None:
    survey = Survey(assignment)
    assert survey.stale == [] and len(survey.mutants) >= 60
    assert len(survey.judged) <= 0.15 * len(survey.mutants)


def _functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]


def _parameters(path: Path, entry: str) -> list[str]:
    return next([a.arg for a in node.args.args] for node in _functions(path) if node.name == entry)


def _points(tests: Path) -> dict[str, int]:
    """Each check's points by the line that the student reads; those of a bonus are extra."""
    return {
        (ast.get_docstring(node) or "").splitlines()[0]: call.args[0].value
        for node in _functions(tests)
        for call in node.decorator_list
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "points" and isinstance(call.args[0], ast.Constant)
        if "bonus" not in {keyword.arg for keyword in call.keywords}
    }
