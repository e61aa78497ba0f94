"""A class, from the command line to the grade book: nothing is lost, whatever submissions and machines do."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from gradekit.batch.store import Store
from tests import zygote
from tests.batch import clusters
from tests.batch.clusters import alive, book, histories
from tests.patience import GUARD, eventually
from tests.plugin.samples import RIGHT, laid_out
from tests.plugin.samples import TRIPLES as WRONG

OTHER = RIGHT.replace("64", "128")

KILLS = int(os.environ.get("GRADEKIT_KILLS", "1"))
"""How often a grading is killed in the test of that; `make kills` does it a hundred times."""

PIECE = 10
"""So many of these in one test, so that several cores share them."""

CLASS = {
    "ada": RIGHT, "bob": WRONG, "cyd": "def double(x:\n", "dan": RIGHT, "eve": "import os\nos._exit(0)\n",
    "fay": "import os, signal\nos.kill(0, signal.SIGKILL)\ndef double(x):\n    return x\n", "gus": OTHER,
    "hal": "def double(x):\n    return x + x\n", "ida": f"# Ida's\n{RIGHT}", "joe": f"{WRONG}\n# by Joe\n",
    "kim": f"{OTHER}\n# by Kim\n",
}
"""With so many, graders share what they find out; the last three differ from others in a comment."""


def hand_in(folder: Path, students: dict[str, str] = CLASS) -> Path:
    for student, text in students.items():
        (folder / student).mkdir(parents=True)
        (folder / student / "submission.py").write_text(text)
    return folder


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "gradekit", *map(str, words)]


def environment(scratch: Path, mark: str = "") -> dict[str, str]:
    """With a scratch folder of its own, so that what is left behind can be seen; and `mark`, by which to know processes."""
    laid_out(scratch.parent)
    return clusters.environment(scratch.parent, mark)


def run(folder: Path, *words: str | Path) -> str:
    """What the command says."""
    done = zygote.ran(["-m", "gradekit", *words], folder=folder, environment=environment(folder / "scratch"))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def grade(folder: Path, *more: str | Path) -> str:
    return run(folder, "grade", folder / "in", "-a", "double", "-o", folder / "out", "--profile", "quick", *more)


def results(folder: Path) -> int:
    """How many results the store has, with all history."""
    return sum(map(len, histories(folder).values()))


@pytest.fixture(scope="module")
def undisturbed() -> list[float]:
    """For how many seconds the class was graded, once it has been."""
    return []


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, undisturbed: list[float]) -> tuple[Path, str]:
    """A class's folder that has been graded without a disturbance, and what was said meanwhile."""
    folder = tmp_path_factory.mktemp("class")
    hand_in(folder / "in")
    (folder / "in/ian").mkdir()
    (folder / "roster.csv").write_text("id,name\nada,Ada\nzoe,Zoe\n")
    began = time.monotonic()
    said = grade(folder, "--roster", folder / "roster.csv")
    undisturbed.append(time.monotonic() - began)
    return folder, said


def test_one_bad_submission_never_stops_the_rest(graded: tuple[Path, str]) -> None:
    lines = book(graded[0])
    assert {student: line["status"] for student, line in lines.items()} == {
        "ada": "graded", "bob": "graded", "cyd": "rejected", "dan": "graded", "eve": "rejected", "fay": "rejected",
        "gus": "graded", "hal": "graded", "ian": "rejected", "ida": "graded", "joe": "graded", "kim": "graded",
        "zoe": "missing",
    }  # fmt: skip
    points = {student: float(line["points"] or -1) for student, line in lines.items()}
    assert points["ada"] == points["dan"] == points["gus"] == points["ida"] == points["kim"] > points["bob"] > points["hal"] == 0 == points["eve"]
    assert points["bob"] == points["joe"] and points["zoe"] == -1


def test_each_submission_has_its_line_and_the_end_a_summary(graded: tuple[Path, str]) -> None:
    said = graded[1]
    assert said.startswith("12 hand-ins, 11 submissions to grade\n")
    assert "[11/11]" in said and " left]" in said
    assert "13 students: 8 graded, 4 rejected, 1 missing" in said


def test_identical_submissions_run_once_and_no_report_names_the_other(graded: tuple[Path, str]) -> None:
    assert results(graded[0]) == 11
    reports = [json.loads((graded[0] / f"out/double/feedback/{s}/report.json").read_text()) for s in ("ada", "dan")]
    assert reports[0] == reports[1]
    assert reports[0]["submission"]["path"] == "submission.py"


def test_the_same_code_below_a_comment_has_the_same_report_but_for_its_text_and_lines(graded: tuple[Path, str]) -> None:
    reports = [json.loads((graded[0] / f"out/double/feedback/{s}/report.json").read_text()) for s in ("ada", "ida")]
    ada, ida = ({name: value for name, value in report.items() if name not in ("seconds", "notes")} for report in reports)
    assert ada["submission"].pop("sha256") != ida["submission"].pop("sha256")
    moved = re.sub(r'"line": (\d+)', lambda at: f'"line": {int(at[1]) + 1}', json.dumps(ada))
    assert json.loads(moved) == ida


def test_nothing_is_left_behind(graded: tuple[Path, str]) -> None:
    scratch = graded[0] / "scratch"
    assert eventually(lambda: not list(scratch.iterdir())), list(scratch.iterdir())
    assert sorted(path.name for path in (graded[0] / "out").iterdir()) == [
        "class.db", "course.csv", "double", "gradebook.csv", "index.html", "roster.csv", "students",
    ]  # fmt: skip


@pytest.mark.sample(2, of="classes")
def test_what_is_there_is_not_graded_again_and_needs_a_word(graded: tuple[Path, str]) -> None:
    folder = graded[0]
    words = ["-m", "gradekit", "grade", folder / "in", "-a", "double", "-o", folder / "out"]
    again = zygote.ran(words, folder=folder, environment=environment(folder / "scratch"))
    assert again.returncode == 2 and "--resume" in again.stderr
    assert "0 submissions to grade" in grade(folder, "--resume")


@pytest.mark.sample(2, of="classes")
def test_a_persons_mark_survives_a_regrade_and_the_history_stays(graded: tuple[Path, str], tmp_path: Path) -> None:
    folder = shutil.copytree(graded[0], tmp_path / "class")
    before, count = book(folder), results(folder)
    store = Store(f"sqlite:///{folder / 'out/class.db'}")
    (bobs,) = [hand_in.digest for hand_in in store.hand_ins("double") if hand_in.student == "bob"]
    (first,) = store.history("double", bobs)
    failed = next(check for check in first.record["checks"] if check["outcome"] == "failed")
    where = ("-a", "double", "-o", folder / "out")
    given = ("--points", str(failed["possible"] / 2), "--why", "Nearly.", "--by", "Mo")
    run(folder, "mark", "bob", failed["id"], *where, *given)
    assert "1 submission to grade again" in run(folder, "regrade", *where, "--student", "bob")
    after = book(folder)
    assert float(after["bob"]["points"]) == float(before["bob"]["points"]) + failed["possible"] / 2
    assert results(folder) == count + 1
    assert "Nearly. (marked by Mo)" in (folder / "out/double/feedback/bob/report.txt").read_text()
    assert {student: line for student, line in after.items() if student != "bob"} == {
        student: line for student, line in before.items() if student != "bob"
    }


@pytest.mark.sample(2, of="classes")
def test_a_machine_that_cannot_isolate_gives_faults_and_no_zeros(tmp_path: Path) -> None:
    hand_in(tmp_path / "in", {"ada": RIGHT, "bob": WRONG})
    code = (
        "import sys; from gradekit.sandbox import host; from gradekit.confine import Means; host.means = Means; "
        "from gradekit.batch import grader; import socket; grader.serve(socket.socket(fileno=int(sys.argv[-1])))"
    )
    patched = tmp_path / "python"
    patched.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
    patched.chmod(0o755)
    start = f"import sys; sys.executable = {str(patched)!r}; from gradekit.cli import main; main()"
    words = ("grade", tmp_path / "in", "-a", "double", "-o", tmp_path / "out", "--profile", "quick")
    done = subprocess.run(
        [sys.executable, "-c", start, *map(str, words)], cwd=tmp_path, env=environment(tmp_path / "scratch"),
        capture_output=True, text=True, timeout=GUARD, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {line["status"] for line in book(tmp_path).values()} == {"fault"}
    assert {line["points"] for line in book(tmp_path).values()} == {""}
    assert "not graded, by no fault of theirs (2): ada, bob" in done.stdout
    assert "level 2 is required" in done.stdout


# --- killed at any moment -----------------------------------------------------------------------------------------------


def killed(folder: Path, after: float) -> bool:
    """Whether the grading still ran when it was killed, so many seconds after its start; no process outlives it."""
    mark = uuid.uuid4().hex
    words = command(
        "grade", folder / "in", "-a", "double", "-o", folder / "out", "--profile", "quick", "--resume", "--workers", "1"
    )  # fmt: skip
    process = subprocess.Popen(
        words, cwd=folder, env=environment(folder / "scratch", mark), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    ended = process.wait()
    assert eventually(lambda: not alive(mark)), alive(mark)
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def whole(folder: Path) -> None:
    """Every file that a student or a teacher reads is a whole one, if it is there."""
    for file in (folder / "out").rglob("report.json"):
        assert json.loads(file.read_text())["schema"] == "gradekit/report/1"
    for file in (folder / "out").glob("gradebook.csv"):
        assert file.read_text().endswith("\n")


@pytest.mark.slow  # each time, the course of tests/batch/test_course.py is killed once
@pytest.mark.parametrize("piece", range(-(-KILLS // PIECE)))
def test_kills_at_any_moment_change_nothing(
    graded: tuple[Path, str], undisturbed: list[float], tmp_path: Path, piece: int
) -> None:
    hand_in(tmp_path / "in")
    (tmp_path / "in/ian").mkdir()
    kills, moment = 0, random.Random(piece)
    while kills < min(PIECE, KILLS - piece * PIECE):
        if killed(tmp_path, moment.uniform(0, undisturbed[0])):
            kills += 1
        else:  # it has come to its end: begin again
            for file in (tmp_path / "out").glob("class.db*"):
                file.unlink()
        whole(tmp_path)
    assert "students:" in grade(tmp_path, "--resume")
    compared = ("points", "possible", "pending", "status", "note")
    quiet, noisy = (
        {s: {name: line[name] for name in compared} for s, line in book(folder).items() if s not in ("bob", "joe", "zoe")}
        for folder in (graded[0], tmp_path)
    )
    assert noisy == quiet
    assert results(tmp_path) == 11
    scratch = tmp_path / "scratch"
    assert eventually(lambda: not list(scratch.iterdir())), list(scratch.iterdir())
    assert not list((tmp_path / "out").rglob(".*"))
