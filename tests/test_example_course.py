"""The course of examples/course is one that works: its own assignment beside gradekit's, graded into one folder."""

import csv
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradekit.assignment import discover
from gradekit.cli import main

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
    assert "the starter is what its solution holds" in run("release", "clamp", "--check")
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
