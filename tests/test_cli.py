"""The command line: what is printed, where, and with which exit code."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gradekit import doctor
from gradekit.assignment import UsageError
from gradekit.cli import main
from gradekit.course import verify
from gradekit.findings import Check, Kind, Outcome, Report, Status
from gradekit.report.record import validate
from gradekit.request import GradingOptions
from tests.leaks import descendants
from tests.patience import GUARD, eventually
from tests.small import laid_out
from tests.zygote import python_path

REPORT = Report(
    assignment="softmax", status=Status.GRADED, submission={"path": "a.py", "sha256": "", "cells": []},
    checks=(Check("test_a", "Agrees with torch", Kind.CORRECTNESS, Outcome.PASSED, 10, 10),),
    environment={"gradekit": "0.1.0", "torch": "2.13.0", "triton": "3.9.0", "gpu": None}, seconds=3.2, seed=7,
)
TEXT = """\
softmax  a.py
10 of 10 points  (1 check passed)

  ✓ Agrees with torch                                                    10 / 10

Checked in 3.2 s on the CPU engine (nothing ran on a GPU); torch 2.13.0, triton
3.9.0, seed 7.
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for id, entry in (("softmax", "softmax"), ("vector_add", "add")):
        described = f'title = "T"\nentry = "{entry}"\nsummary = "About {id}"\n'
        texts = dict.fromkeys(("README.md", "starter.py", f"test_{id}.py"), "text")
        laid_out(tmp_path, id, entry, {"assignment.toml": described, **texts})
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(tmp_path / "assignments"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What `gradekit check` asks for, while the report is always the same."""
    calls: list[tuple[Any, ...]] = []

    def check(path: Path, given_id: str | None, options: GradingOptions, **watching: Any) -> Report:
        calls.append((path, given_id, options))
        return REPORT

    monkeypatch.setattr("gradekit.checking.check", check)
    return calls


# --- list and start ---------------------------------------------------------------------------------------------------


def test_list_has_one_line_for_each_assignment(course: Path) -> None:
    result = run("list")
    assert (result.exit_code, result.output) == (0, "softmax     About softmax\nvector_add  About vector_add\n")


def test_start_copies_and_says_what_comes_next(course: Path) -> None:
    result = run("start", "softmax")
    assert result.exit_code == 0
    assert (
        result.output
        == """\
softmax/README.md
softmax/submission.py
softmax/test_softmax.py
softmax/assignment.toml

Read softmax/README.md, write softmax/submission.py, then: gradekit check softmax
"""
    )


def test_what_start_says_to_type_can_be_typed(course: Path) -> None:
    assert run("start", "softmax", "my folder").output.endswith("then: gradekit check 'my folder'\n")


def test_an_interrupted_command_says_nothing_and_has_an_exit_code_of_its_own(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No script takes it for a submission that failed"""

    def check(*_: Any, **__: Any) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr("gradekit.checking.check", check)
    result = run("check", "a.py")
    assert (result.exit_code, result.output) == (130, "")


# --- check ------------------------------------------------------------------------------------------------------------


def test_check_shows_the_report_and_hands_its_options_on(checked: list[Any]) -> None:
    result = run("check", "a.py", "-a", "softmax", "-k", "test_a", "--seed", "3", "--quick")
    assert (result.exit_code, result.output) == (0, TEXT)
    ((path, id, options),) = checked
    wanted = GradingOptions(keyword="test_a", profile="quick", seed=3, jobs=options.jobs)
    assert (path, id, options) == (Path("a.py"), "softmax", wanted)


def test_check_means_this_folder_where_no_path_is_given(checked: list[Any]) -> None:
    run("check", "-j", "1")
    ((path, id, options),) = checked
    assert (path, id, options) == (Path("."), None, GradingOptions())


def test_check_runs_in_a_process_for_each_core(checked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(3)))
    monkeypatch.setattr("os.sysconf", lambda name: 1 << 20)
    run("check")
    assert [options.jobs for _, _, options in checked] == [3]


def test_the_files_are_written_beside_the_report(checked: list[Any], tmp_path: Path) -> None:
    result = run("check", "a.py", "--json", str(tmp_path / "r.json"), "--junit", str(tmp_path / "r.xml"))
    assert (result.exit_code, result.output) == (0, TEXT)
    validate(json.loads((tmp_path / "r.json").read_text()))
    assert (tmp_path / "r.xml").read_text().startswith('<?xml version="1.0" encoding="utf-8"?>\n<testsuites>')


def test_json_on_standard_output_is_json_alone(checked: list[Any]) -> None:
    result = run("check", "a.py", "--json", "-")
    assert json.loads(result.output)["score"] == {"earned": 10, "possible": 10, "pending": 0}


def test_what_python_cannot_read_is_told_without_torch(tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text("def add(x, y)\n    return x\n")
    words = [sys.executable, "-X", "importtime", "-m", "gradekit", "check", str(tmp_path), "-a", "vector_add"]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"GRADEKIT_SERVER": "0"}, check=False)
    assert done.returncode == 1 and "expected ':'" in done.stdout and "seed" not in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "gradekit.checking" in imported and not {"torch", "triton"} & imported


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    """... neither a process nor a file"""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "submission.py").write_text("import time\nopen('/dev/null')\ntime.sleep(600)\n")
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp"), "GRADEKIT_SERVER": "0"}
    words = [sys.executable, "-m", "gradekit", "check", str(tmp_path / "submission.py"), "-a", "vector_add", "-j", "2"]
    asking = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert eventually(lambda: len(descendants(asking.pid)) >= 3)
    started = descendants(asking.pid)
    asking.send_signal(signal.SIGINT)
    assert asking.wait(GUARD) != 0
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_file_that_cannot_be_written_is_told_before_the_grading(checked: list[Any], tmp_path: Path) -> None:
    result = run("check", "a.py", "--json", str(tmp_path / "nowhere" / "r.json"))
    assert result.exit_code == 2
    assert "cannot write to" in result.output
    assert checked == []


def test_wrong_usage_is_one_sentence_and_exit_code_2(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*_: Any, **__: Any) -> Report:
        raise UsageError("there is no file a.py; did you mean b.py?")

    monkeypatch.setattr("gradekit.checking.check", check)
    result = run("check", "a.py")
    assert (result.exit_code, result.output) == (2, "Error: there is no file a.py; did you mean b.py?\n")


@pytest.mark.parametrize("words", [("start", "{id}", "{file}/below"), ("package", "oci", "{id}", "-o", "{file}/below.zip")])
def test_a_file_that_cannot_be_written_is_wrong_usage_and_named(words: tuple[str, ...], course: Path, tmp_path: Path) -> None:
    (file := tmp_path / "file").write_text("")
    result = run(*(word.format(id="vector_add", file=file) for word in words))
    assert result.exit_code == 2 and f"{file}/below" in result.output and "Not a directory" in result.output


def test_no_error_of_gradekits_own_shows_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> dict[str, Any]:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("gradekit.cli.discover", broken)
    monkeypatch.setattr("gradekit.checking.save_traceback", lambda error: "The details are in oh.txt.")
    result = run("list")
    assert result.exit_code == 3
    assert result.output == "gradekit itself failed: ZeroDivisionError: oh\nThe details are in oh.txt.\n"


@pytest.mark.parametrize("arguments", [["check", "--sed", "3"], ["chek"], ["start"]])
def test_an_unknown_option_or_command_is_wrong_usage(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


# --- colour -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("terminal", "environment", "coloured"), [
    (True, {}, True),
    (True, {"NO_COLOR": "1"}, False),
    (True, {"TERM": "dumb"}, False),
    (False, {}, False),
])
def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], coloured: bool
) -> None:
    from gradekit import cli

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    assert bool(cli._look().colour) is coloured


@pytest.mark.parametrize(("encoding", "able"), [("utf-8", True), ("ascii", False), ("latin-1", False), (None, False)])
def test_marks_beyond_ascii_are_for_streams_that_can_carry_them(encoding: str | None, able: bool) -> None:
    from gradekit import cli

    assert cli._can_encode("✓✗◌│", encoding) is able


# --- verify and doctor ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "code", "mark"), [("", 0, "ok  "), ("it passed", 1, "FAIL")])
def test_verify_shows_each_claim_and_fails_where_one_does_not_hold(
    course: Path, monkeypatch: pytest.MonkeyPatch, problem: str, code: int, mark: str
) -> None:
    claim = verify.Claim("starter.py", "earns nothing", lambda: (problem, ""))
    monkeypatch.setattr("gradekit.course.verify.claims", lambda *_, **__: [claim])
    read = verify.Claim("its files", "have nothing to mend", lambda: ("", ""))
    monkeypatch.setattr("gradekit.authoring.lint.reads_well", lambda assignment: read)
    result = run("verify", "softmax")
    assert result.exit_code == code
    lines = result.output.split("\n")
    assert lines[0] == "softmax"
    assert lines[1] == "  ok     0.00 s  its files   have nothing to mend"
    assert lines[2] == f"  {mark}   0.00 s  starter.py  earns nothing"
    assert f"{2 - code} of 2 claims hold" in result.output


@pytest.mark.parametrize(("state", "code"), [(doctor.State.NOTE, 0), (doctor.State.BAD, 1)])
def test_doctors_exit_code_says_whether_check_can_work(
    monkeypatch: pytest.MonkeyPatch, state: doctor.State, code: int
) -> None:
    monkeypatch.setattr("gradekit.doctor.examined", lambda: [doctor.Item("torch", state, "2.0", "mend it")])
    result = run("doctor")
    assert result.exit_code == code
    assert "torch  2.0" in result.output and "-> mend it" in result.output


# --- start-up ---------------------------------------------------------------------------------------------------------

HEAVY = ("torch", "triton", "pytest", "hypothesis", "nbformat", "jsonschema")


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["list"], ["--version"]])
def test_light_commands_import_nothing_heavy(course: Path, arguments: list[str]) -> None:
    code = (
        "import sys; from gradekit.cli import main; main(sys.argv[1:], standalone_mode=False); "
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=_environment(course))
    assert done.stderr.strip() == "[]"


def _environment(course: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": python_path(), "GRADEKIT_ASSIGNMENTS": str(course / "assignments")}


@pytest.mark.parametrize("arguments", [["--lang", "de", "list"], ["list", "--lang", "de"], ["list", "--lang=de"]])
def test_the_language_may_stand_before_the_command_or_behind_it(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEKIT_LANG", "en")
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert os.environ["GRADEKIT_LANG"] == "de"


@pytest.mark.parametrize(
    ("typed", "found"), [("start so", "softmax"), ("check -a so", "softmax"), ("new a --like so", "softmax"), ("new so", "")]
)
def test_a_shell_completes_the_ids_of_assignments(typed: str, found: str) -> None:
    words = {"COMP_WORDS": f"gradekit {typed}", "COMP_CWORD": str(len(typed.split())), "_GRADEKIT_COMPLETE": "bash_complete"}
    said = CliRunner().invoke(main, prog_name="gradekit", env=words).output
    assert [line.partition(",")[2] for line in said.split()] == [found] * bool(found)


def test_a_proof_of_nothing_is_no_success_and_a_fault_of_the_proof_no_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"proved": 0, "refuted": 0, "open": 0, "claims": [], "assumptions": [], "gaps": ["a call does not run"]}
    wanted = "gradekit.subject.entry_proofs.prove_submission"
    monkeypatch.setattr(wanted, lambda path, id: {"passes": {"add": nothing}})
    done = run("prove", "add.py")
    assert done.exit_code == 1 and "a call does not run" in done.output and "Nothing could be proved" in done.output

    def failing(path: Path, id: str | None) -> None:
        raise ValueError("zip() argument 2 is longer")

    monkeypatch.setattr(wanted, failing)
    done = run("prove", "add.py")
    assert done.exit_code == 3 and "gradekit itself failed: ValueError: zip()" in done.output


def test_where_no_process_stays_ready_the_status_says_so_whatever_else_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradekit.server import client

    line = "process 7, {}, started 3 minutes ago, x.sock"
    for which, own in (("another installation's", False), ("this installation's", True)):
        monkeypatch.setattr(client, "described", lambda which=which: [line.format(which)])
        monkeypatch.setattr(client, "is_resident", lambda words: False)
        said = CliRunner().invoke(main, ["server", "status"]).output
        assert line.format(which) in said
        assert ("in containers and CI none stays ready: GRADEKIT_SERVER=1 asks for one here" in said) is not own
