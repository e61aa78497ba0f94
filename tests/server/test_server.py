"""Commands in forks of a process that has torch: the same records, nothing to see for a submission, and a clean end."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gradekit.server import address, client, forks
from tests.beside import beside
from tests.patience import GUARD
from tests.zygote import python_path

ROOT = Path(__file__).parents[2]
SOLUTION = ROOT / "solutions" / "vector_add" / "solution.py"
SECRET, SEED = "something-of-the-users-own", 987_654_321
FEW = ("--quick", "-k", "float32")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment in which resident processes listen in a folder of this module's, and end with it."""
    folder = tmp_path_factory.mktemp("run")
    found = {name: value for name, value in os.environ.items() if name not in ("CI", "GRADEKIT_SERVER")}
    found |= {"XDG_RUNTIME_DIR": str(folder), "PYTHONPATH": python_path(), "SECRET": SECRET}
    yield found
    _gradekit(["server", "stop", "--all"], found)


def _gradekit(words: Sequence[str | Path], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "gradekit", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GUARD, check=False)


def _asking(environment: dict[str, str], submission: Path) -> subprocess.Popen[str]:
    """A check by the resident process, which goes on."""
    command = [sys.executable, "-P", "-m", "gradekit", "check", str(submission), "-a", "vector_add", "--server"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _record(environment: dict[str, str], path: Path, *words: str, code: int | None = 0) -> dict[str, Any]:
    """What a check says, which ends with that exit code, or with any."""
    done = _gradekit(["check", path, "-a", "vector_add", "-j", "1", "--json", "-", *words], environment)
    assert done.stdout and not done.stderr, done.stderr
    assert code is None or done.returncode == code
    return json.loads(done.stdout)


def _without_seconds(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _without_seconds(value) for name, value in data.items() if name != "seconds"}
    return [_without_seconds(value) for value in data] if isinstance(data, list) else data


def _forked(environment: dict[str, str]) -> set[int]:
    """All processes that come from this module's templates, whose command lines they have."""
    found, folder = set(), environment["XDG_RUNTIME_DIR"].encode()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found |= {int(file.parent.name)} if folder in file.read_bytes() else set()
    return found


@pytest.fixture(scope="module")
def wanted(environment: dict[str, str]) -> dict[str, Any]:
    """The solution's record, made by a command that imports everything itself."""
    here = subprocess.run(
        [sys.executable, "-P", "-m", "gradekit.cli", "check", str(SOLUTION), "-a", "vector_add", "--json", "-", *FEW],
        env=environment, capture_output=True, text=True, timeout=GUARD, check=False,
    )  # fmt: skip
    record = _without_seconds(json.loads(here.stdout))
    assert record["score"]["earned"] > 0
    return dict(record)


def test_a_record_is_the_same_cold_and_from_a_private_process(
    environment: dict[str, str], wanted: dict[str, Any]
) -> None:
    assert _without_seconds(_record(environment, SOLUTION, "--no-server", *FEW)) == wanted


def _kept(environment: dict[str, str]) -> list[int]:
    """The processes that graders have left behind for the next command."""
    lines = _gradekit(["server", "status"], environment).stdout.splitlines()
    return [int(line.split()[1].rstrip(",")) for line in lines if "this installation's" in line]


def test_a_grader_leaves_what_it_has_learned_to_the_next_command_alone_and_its_record_is_the_same(
    environment: dict[str, str], wanted: dict[str, Any], tmp_path: Path
) -> None:
    words = ("--server", *FEW)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(SOLUTION.read_text().replace(" + ", " - "))
    assert _without_seconds(_record(environment, SOLUTION, *words)) == wanted
    (first,) = _kept(environment)
    assert _record(environment, wrong, *words, code=1)["checks"][0]["outcome"] == "failed"
    (second,) = _kept(environment)
    assert first != second
    _await(lambda: not Path(f"/proc/{first}").exists())
    assert _without_seconds(_record(environment, SOLUTION, *words)) == wanted
    (third,) = _kept(environment)
    other = environment | {"ANY_VARIABLE": "another"}
    assert _without_seconds(_record(other, SOLUTION, *words)) == wanted
    (fourth,) = _kept(environment)
    assert len({first, second, third, fourth}) == 4  # one at a time
    _await(lambda: not Path(f"/proc/{third}").exists())


def test_what_was_learned_of_an_assignment_ends_with_a_change_of_its_files(
    environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "assignments" / "vector_add"
    shutil.copytree(ROOT / "assignments" / "vector_add", folder)
    own = environment | {"GRADEKIT_ASSIGNMENTS": str(folder.parent)}
    words = ("--server", *FEW)
    assert _record(own, SOLUTION, *words)["checks"][0]["outcome"] == "passed"
    tests = folder / "test_vector_add.py"
    tests.write_text(tests.read_text().replace("return a + b", "return a - b").replace("x + y", "x - y"))
    assert _record(own, SOLUTION, *words, code=1)["checks"][0]["outcome"] == "failed"


def _events(environment: dict[str, str]) -> list[str]:
    """What the processes did, in their order."""
    where = _gradekit(["server", "status"], environment).stdout.splitlines()[-1].rpartition(" ")[2]
    return [line.split(" ", 2)[2] for line in Path(where).read_text().splitlines()]


def test_each_command_is_answered_by_what_the_one_before_it_left_behind(
    environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "assignments" / "vector_add"
    shutil.copytree(ROOT / "assignments" / "vector_add", folder)
    edited = folder / "starter.py"  # where nothing else may change
    environment = environment | {"GRADEKIT_ASSIGNMENTS": str(folder.parent)}
    _record(environment, edited, "--server", *FEW, code=None)
    for number in range(2):
        edited.write_text(f"{SOLUTION.read_text()}\n# {number}\n")
        _record(environment, edited, "--server", *FEW)
        _record(environment | {"PWD": str(tmp_path), "SHLVL": "7"}, SOLUTION, "--server", *FEW)
    said = "\n".join(_events(environment))
    graders = re.findall(r"forked grader=(\d+) template=(\d+)", said)[-5:]
    left = re.findall(r"kept template=(\d+) grader=(\d+)", said)[-5:]
    assert [grader for grader, _ in graders] == [grader for _, grader in left], said
    assert [template for _, template in graders[1:]] == [template for template, _ in left[:-1]], said


def test_it_says_why_nothing_was_left_behind(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("")
    _gradekit(["check", tmp_path / "x.py", "-a", "no_such_id", "--server"], environment)
    assert _events(environment)[-1] == "nothing-kept exit_code=2"


HOSTILE = beside(__file__)["hostile"]


def test_a_submission_in_a_fork_finds_nothing_of_a_grader_or_of_an_earlier_check(
    environment: dict[str, str], tmp_path: Path
) -> None:
    needles = [SECRET, str(SEED), "test_vector_add", str(tmp_path), str(SOLUTION), "Agrees with"]
    needles += [seen := "TRITON_CACHE_DIR"]  # shows that the search finds what is there
    assert needles.index(seen) == 6
    submission = tmp_path / "hostile.py"
    submission.write_text(HOSTILE.replace("NEEDLES_HERE", repr([needle[::-1] for needle in needles])))
    for how in ("--no-server", "--server"):  # the resident one has served checks of others before
        record = _record(environment, submission, how, "--seed", str(SEED), *FEW, code=1)
        said = record["checks"][0]["message"]
        assert "found [6] open [0, 1, 2, 3, 4] parts" in said, said  # 4: kernels that it has lowered elsewhere, to read
        parts = set(said.split("parts ")[1].replace("'", "").strip("[].\n ").split(", "))
        rooms = {part.split(".")[1] for part in parts if part.startswith("gradekit.")}
        assert rooms <= {"compat", "confine", "origins", "processes", "program", "server", "tracer", "wire"}, rooms


def _asking_long(environment: dict[str, str], folder: Path) -> tuple[set[int], subprocess.Popen[str]]:
    """A check that does not end by itself, and which processes there were before it."""
    (folder / "slow.py").write_text("import time\ntime.sleep(600)\n")
    _record(environment, SOLUTION, "--server", *FEW)
    return _forked(environment), _asking(environment, folder / "slow.py")


def test_tracers_come_from_the_process_that_has_torch(environment: dict[str, str], tmp_path: Path) -> None:
    resting, asking = _asking_long(environment, tmp_path)
    try:
        _await(lambda: len(_forked(environment) - resting) >= 3)  # a grader, a supervisor, a fork server
    finally:
        asking.send_signal(signal.SIGKILL)
        asking.communicate(timeout=GUARD)
    _await(lambda: _forked(environment) <= resting)


def _await(condition: Any) -> None:
    until = time.monotonic() + GUARD
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


EARLY = """
import os, signal, sys
from gradekit.server import forks, template
told = forks.told
def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    return told(*arguments)
forks.told = interrupted
template.run("private", int(sys.argv[1]), sys.argv[2], sys.path, "")
"""


def test_an_interrupt_that_comes_before_a_grader_knows_its_command_ends_it(tmp_path: Path) -> None:
    (tmp_path / "command.py").write_text("def main(args, prog_name):\n    print('it went on')\n")
    ours, theirs = forks.pair()
    with ours, theirs, (tmp_path / "said").open("w+") as said:
        paths = os.pathsep.join([str(tmp_path), python_path()])
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", EARLY, str(theirs.fileno()), "command"],
            pass_fds=[theirs.fileno()], env=os.environ | {"PYTHONPATH": paths}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        grader = forks.Forks(ours).fork([0, said.fileno(), said.fileno()], client._request([]))
        assert grader is not None and grader.wait(GUARD) == 128 + signal.SIGINT
        assert (tmp_path / "said").read_text() == ""
    process.wait(GUARD)


def test_an_interrupt_goes_to_the_check_and_the_exit_code_comes_back(
    environment: dict[str, str], tmp_path: Path
) -> None:
    resting, asking = _asking_long(environment, tmp_path)
    _await(lambda: len(_forked(environment) - resting) >= 3)
    _await(lambda: _events(environment)[-1].startswith("forked"))  # from then on, interrupts are handed on
    asking.send_signal(signal.SIGINT)
    asking.communicate(timeout=GUARD)
    assert asking.returncode in (128 + signal.SIGINT, 3)
    _await(lambda: _events(environment)[-1] in ("nothing-kept signal=2", "nothing-kept exit_code=3"))
    assert _gradekit(["check", tmp_path / "nowhere.py", "--server"], environment).returncode == 2


def test_a_variable_that_is_read_early_and_a_package_that_is_installed_ask_for_another_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    before = address.installation()
    monkeypatch.setenv("PAGER", "less")
    assert address.installation() == before
    monkeypatch.setenv("TRITON_ANYTHING", "1")
    assert address.installation() != before
    monkeypatch.delenv("TRITON_ANYTHING")
    assert address.installation() == before
    (packages / "__pycache__").mkdir()
    os.utime(packages, ns=(1, 1))
    assert address.installation() == before, "a first import writes bytecode there"
    (packages / "torch-3.dist-info").mkdir()
    assert (installed := address.installation()) != before
    os.utime(packages / "torch-3.dist-info", ns=(1, 1))
    assert address.installation() not in (before, installed)


def test_sockets_lie_in_a_folder_of_this_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as parent:  # a short path: a socket's may not be long
        monkeypatch.setenv("XDG_RUNTIME_DIR", parent)
        folder = address.folder()
        assert folder.stat().st_mode & 0o777 == 0o700
        folder.chmod(0o755)
        with pytest.raises(address.NoFolder):
            address.folder()
        folder.rmdir()
        Path(parent, "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(Path(parent, "elsewhere"))
        with pytest.raises(address.NoFolder):
            address.folder()


@pytest.mark.parametrize(("words", "variables", "stays"), [
    ("check x.py", {}, True),
    ("check x.py --no-server", {}, False),
    ("check x.py", {"GRADEKIT_SERVER": "0"}, False),
    ("check x.py", {"CI": "true"}, False),
    ("check x.py", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False),
    ("check x.py --server", {"CI": "true"}, True),
    ("check x.py", {"CI": "true", "GRADEKIT_SERVER": "1"}, True),
])
def test_a_process_stays_where_a_user_works_or_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, words: str, variables: dict[str, str], stays: bool
) -> None:
    monkeypatch.setattr(client, "CONTAINER_FILES", ())
    for name in ("GRADEKIT_SERVER", *client.CONTAINER_NAMES):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert client.is_resident(words.split()) is stays


def test_only_commands_that_need_torch_twice_ask_for_a_fork(tmp_path: Path) -> None:
    (tmp_path / "answers.toml").write_text("")
    (tmp_path / "x.py").write_text("")
    assert client.applies(["check", str(tmp_path / "x.py")])
    assert not client.applies(["check", str(tmp_path / "no_such.py")])
    assert not client.applies(["check", "--help"])
    assert not client.applies(["list"])
    assert not client.applies(["check", str(tmp_path)])


def test_a_server_that_is_stopped_finishes_what_it_runs(environment: dict[str, str], tmp_path: Path) -> None:
    submission = tmp_path / "waiting.py"
    submission.write_text(textwrap.dedent("import time\ntime.sleep(3)\n"))
    asking = _asking(environment, submission)
    _await(lambda: len(_forked(environment)) >= 3)  # a grader, a supervisor, a fork server
    assert "Stopped: 1" in _gradekit(["server", "stop", "--all"], environment).stdout
    assert "No server" in _gradekit(["server", "status"], environment).stdout
    said, _ = asking.communicate(timeout=GUARD)
    assert asking.returncode == 1
    assert "defines no function" in said
    assert "No server" in _gradekit(["server", "status"], environment).stdout


def test_a_terminal_says_that_torch_is_imported_until_there_is_more_to_say(environment: dict[str, str], tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    (tmp_path / "x.py").write_text("")
    command = [sys.executable, "-P", "-m", "gradekit", "check", str(tmp_path / "x.py"), "-a", "no_such_id", "--no-server"]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=theirs, timeout=GUARD, check=False)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    assert shown.startswith("\rimport torch, triton ...\x1b[K\r\x1b[K") and "no_such_id" in shown


def test_stop_ends_this_installations_process_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ended: list[object] = []
    listening = {tmp_path / f"{name}.sock": socket.socket() for name in ("mine", "other")}
    monkeypatch.setattr(client.address, "installation", lambda: "mine")
    monkeypatch.setattr(client.address, "connections", lambda: iter(listening.items()))
    monkeypatch.setattr(client.forks, "stop", ended.append)
    assert client.stopped() == 1 and ended == [listening[tmp_path / "mine.sock"]]
    assert client.stopped(every=True) == 2 and len(ended) == 3
