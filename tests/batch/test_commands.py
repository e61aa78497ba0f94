"""What somebody mistypes is told in a sentence before anything is graded, and leaves nothing behind."""

from dataclasses import replace
from pathlib import Path

import distributed  # noqa: F401  # here: its import adds to sys.meta_path, which no test may
import pytest
from click.testing import CliRunner

from gradekit.batch.pool import GraderPool
from gradekit.batch.summary import Count, ProgressLog, duration
from gradekit.cli import main
from gradekit.findings import Kind, Outcome
from tests.batch.clusters import assignments, hand_in
from tests.report.samples import ENVIRONMENT, PASSED, PENDING, record


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(assignments(tmp_path)))
    hand_in(tmp_path / "in", 1)
    (tmp_path / "bad.toml").write_text("x =")
    (tmp_path / "other.toml").write_text('[assignments.softmax]\nkeep = "last"\n')
    (tmp_path / "bad.csv").write_text("group\n1\n")
    return tmp_path


def said(root: Path, *words: str) -> str:
    """What the command says, in one line; it must be refused as wrong usage."""
    done = CliRunner().invoke(main, [word.replace("ROOT", str(root)) for word in words])
    assert done.exit_code == 2, done.output
    return " ".join(done.output.split())


GRADE = ("grade", "ROOT/in", "-a", "double", "-o", "ROOT/out")

REFUSED = {
    "nothing was handed in": (("grade", "ROOT/out", "-a", "double", "-o", "ROOT/out"), "does not exist"),
    "no policy": ((*GRADE, "--course", "ROOT/bad.toml"), "bad.toml is not valid TOML"),
    "no class list": ((*GRADE, "--roster", "ROOT/bad.csv"), "no column for a student's id or email; it has group"),
    "no database": ((*GRADE, "--store", "class.db"), "looks like postgresql+psycopg://"),
    "no scheduler": ((*GRADE, "--cluster", "localhost"), "looks like tcp://host:8786, not localhost"),
    "no certificates": (("worker", "tls://localhost:8786"), "tls:// needs certificates: set GRADEKIT_CERTIFICATES"),
    "no class": (("regrade", "-a", "double", "-o", "ROOT/out"), "out is no class's folder yet"),
    "no class to mark": (
        ("mark", "ada", "x", "-a", "double", "-o", "ROOT/out", "--why", "so"), "no class's folder yet",
    ),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_used_is_told(root: Path, words: tuple[str, ...], message: str) -> None:
    assert message in said(root, *words)


@pytest.mark.parametrize("words", [
    GRADE, *((name, *words, "-a", "double", "-o", "ROOT/out") for name, words in {
        "regrade": (), "mark": ("ada", "x", "--why", "so"), "feedback": ("--to", "zip"), "similar": (), "marking": (),
        "requests": (), "history": ("ada",), "gradebook": ("ROOT/bad.csv", "--to", "filled"),
    }.items()), ("status", "-o", "ROOT/out"), ("worker", "tcp://host:8786"),
], ids=lambda words: words[0])  # fmt: skip
def test_what_was_not_installed_is_named(root: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.setattr("gradekit.batch.class_commands.NEEDED", ("sqlalchemy", "no_such_module"))
    assert "pip install 'gradekit[batch]'" in said(root, *words)


def test_a_policy_that_cannot_be_read_is_not_kept(root: Path) -> None:
    said(root, *GRADE, "--course", "ROOT/bad.toml")
    assert [path.name for path in (root / "out").iterdir()] == ["class.db"]


def test_ctrl_c_says_how_to_go_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def grade(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gradekit.batch.scheduler.grade", grade)
    done = CliRunner().invoke(main, [word.replace("ROOT", str(root)) for word in GRADE])
    assert done.exit_code == 130 and done.output.endswith("\nWhat is graded is kept: go on with --resume\n")


def test_what_is_odd_about_the_class_is_said_before_it_is_graded(root: Path) -> None:
    from gradekit.batch.class_folder import ClassFolder, GradingSession

    (root / "in/lost_and_found.d").mkdir()
    (root / "roster.csv").write_text("id\nada\n")
    given = {"roster": root / "roster.csv", "course": root / "other.toml"}
    session = GradingSession(ClassFolder.open(root / "out", new=True, **given), "double")
    assert session.take_in(root / "in") == [
        "2 hand-ins, 2 submissions to grade",
        "course.toml has no [assignments.double], but softmax: nothing is late, and every attempt counts",
        "not on the class list: lost_and_found.d; s0000",
    ]
    said_of_nobody = said(root, "regrade", "-a", "double", "-o", "ROOT/out", "--student", "zoe")
    assert "there is no hand-in of zoe for double" in said_of_nobody


def test_who_cannot_be_late_is_said(root: Path) -> None:
    from gradekit.batch.class_folder import ClassFolder, GradingSession

    (root / "due.toml").write_text("[assignments.double]\ndue = 2026-12-01T23:59:00+01:00\n")
    session = GradingSession(ClassFolder.open(root / "out", new=True, course=root / "due.toml"), "double")
    assert session.take_in(root / "in")[1:] == [
        "no hand-in says when it was handed in, so lateness cannot be counted: leave that to the LMS"
    ]
    (root / "in" / "zoe").mkdir()
    (root / "in" / "zoe" / "submission.py").write_text("def double(x): ...")
    (root / "times.csv").write_text("student,submitted\ns0000,2026-12-02T23:59:00+01:00\n")
    for times in (root / "times.csv", None):  # a time that is known already need not be told again
        assert session.take_in(root / "in", times)[1:] == ["without a time, so that lateness is not counted: zoe"]
    assert [one.student for one in session.folder.store.hand_ins("double")] == ["s0000", "zoe"]


# --- While a class is graded ------------------------------------------------------------------------------------------


WAITS = record(PASSED, replace(PENDING, kind=Kind.SPEED))
MEASURED = record(PASSED, replace(PENDING, kind=Kind.SPEED, outcome=Outcome.PASSED, earned=30, message=""),
                  environment=ENVIRONMENT | {"gpu": "NVIDIA H200"})  # fmt: skip


class WithCards(GraderPool):
    def __init__(self) -> None:
        super().__init__(1, ["GPU-1"])


@pytest.mark.parametrize(
    ("of", "ended", "each", "said"),
    [(40, (30.0, 31.0), 1.0, "2/40"), (40, (102.0, 104.0, 106.0), 2.0, "3/40, 74 s left"), (3, (1.0, 2.0, 3.0), 1.0, "3/3")],
    ids=["nothing is guessed from the first", "not the time until graders have started", "the last one leaves nothing"],
)
def test_what_is_left_is_estimated(of: int, ended: tuple[float, ...], each: float, said: str) -> None:
    count = Count(of)
    for now in ended:
        count.add(now, each)
    assert str(count) == said


SPREAD = [1.0 + number * 7 % 19 for number in range(400)]
QUICK_AND_SLOW = [0.5 if number * 7 % 19 < 10 else 4.0 + number % 3 for number in range(400)]


@pytest.mark.parametrize("seconds", [SPREAD, QUICK_AND_SLOW], ids=["1 to 19 s", "half a second, or 4 to 6 s"])
@pytest.mark.parametrize("graders", [2, 4, 16])
def test_after_a_tenth_the_estimate_is_right_within_a_fifth(seconds: list[float], graders: int) -> None:
    free, ended = [0.0] * graders, list[tuple[float, float]]()
    for each in seconds:
        began = min(free)
        free[free.index(began)] = began + each
        ended.append((began + each, each))
    count = Count(400)
    for now, each in sorted(ended)[:40]:
        count.add(now, each)
    left = max(free) - now
    assert abs(count.left - left) < left / 5


@pytest.mark.parametrize(
    ("value", "said"), [(8.2, "8.2 s"), (200, "4 min"), (5000, "1 h 24 min"), (86400 * 1.2, "1 day 5 h")]
)
def test_long_times_are_said_in_long_units(value: float, said: str) -> None:
    assert duration(value) == said


def test_the_two_lanes_count_apart() -> None:
    said: list[str] = []
    progress = ProgressLog({"a": "ada", "b": "bob"}, 1, 1, WithCards(), said.append, clock=lambda: 0.0)
    progress.graded("a", WAITS)
    progress.measured("b", MEASURED)
    progress.measured("a", MEASURED)
    assert said == [
        "[1/1] ada  40 / 70  (30 pending)", "[speed 1/2, on NVIDIA H200] bob  70 / 70",
        "[speed 2/2, on NVIDIA H200] ada  70 / 70",
    ]
