"""In each LMS's own platform: whatever the submission does, the record that the LMS expects, and exit code 0."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradekit.batch.class_commands import NEEDED
from gradekit.lms.autograde import autograde
from gradekit.lms.platforms import PLATFORMS, Platform
from tests import zygote
from tests.plugin.samples import RIGHT, laid_out
from tests.zygote import python_path


def graded(lms: str, root: Path, folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = ["-m", "gradekit", "autograde", lms, "double", "--root", str(root), *options]
    course = {"PYTHONPATH": python_path(), "GRADEKIT_ASSIGNMENTS": str(laid_out(root)), "PYTHONWARNINGS": "ignore"}
    return zygote.ran(words, folder=folder, environment=os.environ | course | environment)


def handed_in(folder: Path, text: str, name: str = "submission.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def test_a_container_needs_none_of_the_packages_that_classes_need(tmp_path: Path) -> None:
    """A package's requirements.txt does not bring them, while they are installed wherever these tests run."""
    folder, missing = handed_in(tmp_path / "autograder/submission", RIGHT), tmp_path / "missing"
    missing.mkdir()
    for name in NEEDED:
        (missing / f"{name}.py").write_text("raise ModuleNotFoundError(__name__)\n")
    paths = {"PYTHONPATH": f"{missing}{os.pathsep}{python_path()}", "GRADEKIT_ASSIGNMENTS": str(laid_out(tmp_path))}
    command = [sys.executable, "-m", "gradekit", "autograde", "gradescope", "double", "--root", str(tmp_path)]
    done = subprocess.run(command, cwd=folder, env=os.environ | paths, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "autograder/results/results.json").read_text())["score"] == 50


def test_classroom_reads_the_later_result_of_the_step(tmp_path: Path) -> None:
    folder = handed_in(tmp_path / "repository", "def double(x:\n")
    done = graded("classroom", tmp_path, folder, GITHUB_OUTPUT=str(tmp_path / "output"))
    assert done.returncode == 0, done.stderr
    first, last = (tmp_path / "output").read_text().splitlines()
    assert json.loads(base64.b64decode(first.removeprefix("result=")))["status"] == "error"
    results = json.loads(base64.b64decode(last.removeprefix("result=")))
    assert results["status"] == "fail" and "Python cannot read line 1" in results["message"]


# --- what goes wrong --------------------------------------------------------------------------------------------------


def delivered(folder: Path, **options: Any) -> list[dict[str, Any]]:
    """The records that an LMS without a name gets, in order."""
    records: list[dict[str, Any]] = []
    keep = lambda root, graded: records.append(dict(graded.record))
    platform = Platform(str(folder), 600, left=keep, shows_hidden=True)
    autograde(platform, **({"id": "vector_add"} | options))
    return records


def test_an_empty_hand_in_is_rejected_with_the_reason(tmp_path: Path) -> None:
    _, last = delivered(handed_in(tmp_path, "", "notes.txt"))
    assert (last["status"], last["cause"]) == ("rejected", "unreadable")
    assert last["message"] == "There is no .py, .ipynb or .zip file."


def test_the_first_record_says_that_there_is_no_result_yet(tmp_path: Path) -> None:
    first, _ = delivered(handed_in(tmp_path, "", "notes.txt"))
    assert first["status"] == "fault"
    assert "did not finish" in first["message"]


def test_an_unknown_assignment_is_a_fault_and_nobodys_zero(tmp_path: Path) -> None:
    _, last = delivered(handed_in(tmp_path, RIGHT), id="nothing")
    assert last["status"] == "fault" and "tell your instructor" in last["message"]


def test_a_grader_that_is_out_of_time_is_a_fault_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gradekit.lms import autograde as module

    monkeypatch.setattr(module, "MARGIN", 0.2)
    _, last = delivered(handed_in(tmp_path, RIGHT), seconds=0.3)
    assert last["status"] == "fault" and "did not answer in" in last["message"]


@pytest.mark.parametrize("lms", PLATFORMS)
def test_each_layout_has_a_place_and_a_limit(lms: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    platform = PLATFORMS[lms]
    assert platform.folder(tmp_path).is_relative_to(tmp_path) and platform.seconds >= 30
