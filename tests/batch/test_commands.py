"""What somebody mistypes is told in a sentence before anything is graded, and leaves nothing behind."""

from pathlib import Path

import distributed  # noqa: F401  # here: its import adds to sys.meta_path, which no test may
import pytest
from click.testing import CliRunner

from gradekit.cli import main
from tests.batch.clusters import assignments, hand_in


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
