"""The pieces of confinement, each alone: numbers of system calls, the filter, Landlock, and what they amount to."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradekit
from gradekit.confine import LEVELS, Means, landlock, linux, seccomp
from gradekit.confine.confinement import HIGHEST, for_compilers
from gradekit.confine.landlock import Rules
from gradekit.confine.paths import PrivateFolder, readable
from gradekit.sandbox import NO_SUBMISSION, Tracer, Unavailable, host
from gradekit.tracer.supervisor import OWN
from tests.hostile.world import opened
from tests.patience import GUARD
from tests.zygote import python_path

HEADERS = {0: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), 1: Path("/usr/include/asm-generic/unistd.h")}
KNOWN = platform.machine() in linux.MACHINES


@pytest.mark.parametrize("column", HEADERS)
def test_the_numbers_are_the_kernels(column: int) -> None:
    """As its headers have them, as far as those that are installed go"""
    if not HEADERS[column].exists():
        pytest.skip("the kernel's headers are not installed")
    numbers = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[column].read_text()))
    other = {name: (ours[column], numbers[name]) for name, ours in linux.NUMBERS.items() if name in numbers}
    assert len(other) > 60 and {name: pair for name, pair in other.items() if pair[0] != int(pair[1])} == {}


def test_no_number_is_newer_than_the_table_says() -> None:
    assert max(max(numbers) for numbers in linux.NUMBERS.values()) <= linux.NEWEST


def test_no_call_stands_in_two_groups() -> None:
    names = [name for calls in linux.CALLS.values() for group in calls.values() for name in group]
    assert sorted(names) == sorted(linux.NUMBERS) and len(seccomp.REFUSED) > 80 and len(seccomp.ABSENT) == 4


@pytest.mark.skipif(not KNOWN, reason="the filter is not written for this machine")
def test_the_filter_is_one_that_the_kernel_would_take() -> None:
    """Whole instructions, fewer than 4096, every jump within, and an end"""
    code = seccomp.program(1234)
    instructions = [code[at : at + 8] for at in range(0, len(code), 8)]
    assert len(code) % 8 == 0 and len(instructions) < 4096 and instructions[-1][0] == 0x06
    assert all(at + 1 + max(one[2:4]) < len(instructions) for at, one in enumerate(instructions) if one[0] & 7 == 5)


def confined(action: str, means: str) -> str:
    """What a fresh process prints that does `action` under `means`."""
    code = (
        "import os, socket\nfrom gradekit.confine import identity, landlock, seccomp\n"
        "from gradekit.confine.landlock import Rules\n"
        f"identity.drop_capabilities()\n{means}\ntry:\n    print({action})\nexcept OSError as error:\n"
        "    print(type(error).__name__)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={"PYTHONPATH": python_path()}, capture_output=True, text=True, timeout=GUARD, check=False)
    return done.stdout.strip() or done.stderr


FILTER = "seccomp.install(os.getpid())"


@pytest.mark.skipif(not seccomp.available(), reason="no seccomp here")
@pytest.mark.parametrize(("action", "said"), [
    ("socket.socket()", "PermissionError"),
    ("os.setsid()", "PermissionError"),
    ("os.kill(1, 0)", "PermissionError"),
    ("os.kill(os.getpid(), 0)", "None"),
    ("os.kill(0, 0)", "None"),
    ("len(socket.socketpair())", "2"),
    ("os.waitpid(os.fork() or os._exit(3), 0)[1] >> 8", "3"),
    ("os.sched_setaffinity(0, os.sched_getaffinity(0))", "None"),
    ("os.sched_setaffinity(1, [0])", "PermissionError"),
])
def test_the_filter_refuses_what_reaches_others(action: str, said: str) -> None:
    assert confined(action, FILTER) == said


@pytest.mark.skipif(not landlock.version(), reason="no Landlock here")
@pytest.mark.parametrize(("action", "said"), [
    ("len(open({readable!r}).read())", "5"),
    ("open({readable!r}, 'w')", "PermissionError"),
    ("open({writable!r} + '/new', 'w').write('x')", "1"),
    ("open({other!r}).read()", "PermissionError"),
    ("os.listdir('/')", "PermissionError"),
])
def test_landlock_leaves_what_is_named(tmp_path: Path, action: str, said: str) -> None:
    paths = {"readable": tmp_path / "a.txt", "writable": tmp_path / "w", "other": tmp_path / "b.txt"}
    paths["readable"].write_text("hello")
    paths["other"].write_text("secret")
    paths["writable"].mkdir()
    rules = f"landlock.restrict(Rules(read=({str(paths['readable'])!r},), write=({str(paths['writable'])!r},)))"
    assert confined(action.format(**{name: str(path) for name, path in paths.items()}), rules) == said


# --- levels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("means", "level"), [
    (Means(), 0),
    (Means(seccomp=True), 0),
    (Means(seccomp=True, user=True), 1),
    (Means(user=True, landlock=7, root=True, apart=True), 0),
    (Means(seccomp=True, user=True, apart=True), 1),
    (Means(seccomp=True, user=True, landlock=1), 2),
    (Means(seccomp=True, user=True, root=True, apart=True), 3),
])
def test_a_level_has_everything_below_it(means: Means, level: int) -> None:
    assert means.level == level
    assert bool(means.missing()) is (level < HIGHEST)
    assert Means.of(means.as_data()) == means


@pytest.mark.parametrize(
    "data", [None, [], {}, {"seccomp": True}, {**Means().as_data(), "level": 3}, {**Means().as_data(), "root": 1}]
)
def test_means_that_are_none_are_refused(data: object) -> None:
    with pytest.raises(ValueError, match="no description"):
        Means.of(data)


def test_there_are_words_for_every_level() -> None:
    assert len(LEVELS) == HIGHEST + 1


def test_a_level_that_is_not_reached_runs_nothing() -> None:
    """Neither now nor later"""
    with host.requiring(0), host.without("seccomp"):
        with pytest.raises(Unavailable, match=r"level 0 here, where level 2 is required \(system calls"):
            host.requiring(2).__enter__()
        host.required = 2
        with pytest.raises(Unavailable), Tracer(NO_SUBMISSION) as tracer:
            tracer.load()


HIDDEN = """
import os, sys
from types import SimpleNamespace as Text
from gradekit.sandbox import Tracer, host
for without in ((), ("root", "apart")):
    text = "import late\\n"
    for path in ({secret!r}, "/etc/shadow"):
        text += f"try: open({{path!r}}); print('open')\\nexcept OSError: pass\\n"
    with host.without(*without), Tracer(Text(text=text)) as tracer:
        print(host.means().level >= 2)
        print(tracer.load().notes, repr(tracer.output))
"""


@pytest.mark.skipif(os.geteuid() != 0 or not landlock.version(), reason="not root, or no Landlock")
def test_a_python_that_root_alone_may_read_is_no_reason_for_less(tmp_path: Path) -> None:
    """Its packages can be imported, and nothing else of root's can be read"""
    tmp_path.chmod(0o700)
    secret = tmp_path / "secret.txt"
    secret.write_text("s")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", tmp_path / "venv"], check=True
    )
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (packages / "late.py").write_text("")
    (packages / "beside.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    environment = os.environ | {"PYTHONPATH": python_path(), "PYTHONWARNINGS": "ignore"}
    command = [tmp_path / "venv" / "bin" / "python", "-c", HIDDEN.format(secret=str(secret))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GUARD, check=False)
    assert done.stdout.splitlines() == ["True", "() ''"] * 2, done.stderr


# --- what submissions may see -----------------------------------------------------------------------------------------


def test_of_gradekit_only_the_tracer_is_shown() -> None:
    """Neither the judge, nor assignments, nor solutions beside a checkout"""
    package = Path(gradekit.__file__).parent
    shown = readable(OWN)
    assert str(package / "tracer") in shown
    hidden = [package / "judge" / "compare.py", package.parent / "solutions", package / "sandbox" / "tracer.py"]
    covered = {path for path in hidden for one in shown if path.is_relative_to(one)}
    assert covered == set()


def test_nothing_is_shown_twice() -> None:
    shown = readable(OWN)
    assert not [one for one in shown for other in shown if one != other and Path(one).is_relative_to(other)]


def test_packages_are_shown() -> None:
    import torch

    shown = readable(OWN)
    assert any(Path(torch.__file__).is_relative_to(one) for one in shown)
    assert any(Path(os.__file__).is_relative_to(one) for one in shown)


# --- what a machine offers --------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
@pytest.mark.parametrize("without", [(), ("landlock",)], ids=["behind Landlock", "without it"])
def test_a_python_that_root_alone_may_read_is_read_with_one_privilege(tmp_path: Path, without: tuple[str, ...]) -> None:
    """Behind Landlock, and nowhere else"""
    if not (without or landlock.version()):
        pytest.skip("no Landlock here")
    hidden = tmp_path / "python"
    hidden.mkdir(mode=0o700)
    found = for_compilers(Rules(read=(str(hidden),)), (), without)
    assert found.means.user is not bool(without)
    assert (found.keep in (1, 2)) is not bool(without)


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_no_privilege_is_kept_that_is_not_needed() -> None:
    found = for_compilers(Rules(read=("/usr",)))
    assert found.means.user and found.keep is None and found.user


# --- folders of a confined process ------------------------------------------------------------------------------------


def test_its_folder_is_for_one_user_alone() -> None:
    with PrivateFolder("gradekit-test-") as folder:
        assert folder.path.stat().st_mode & 0o777 == 0o700
    assert not folder.path.exists()


def test_a_folder_that_nobody_holds_is_removed() -> None:
    path = PrivateFolder("gradekit-test-").path
    assert not path.exists()


def test_a_fork_of_the_process_does_not_remove_its_folder() -> None:
    with PrivateFolder("gradekit-test-") as folder:
        pid = os.fork()
        if pid == 0:
            folder.remove()
            os._exit(0)
        os.waitpid(pid, 0)
        assert folder.path.exists()


def test_what_killed_processes_have_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing that is locked, new, or somebody else's"""
    opened(tmp_path)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    held = PrivateFolder("gradekit-test-")
    left, new, other = (tmp_path / name for name in ("gradekit-test-left", "gradekit-test-new", "other"))
    for folder in (left, new, other):
        folder.mkdir()
    (left / "file").write_text("x")
    for folder in (held.path, left, other):
        os.utime(folder, (0, 0))
    made = PrivateFolder("gradekit-test-")
    assert {path.name for path in tmp_path.iterdir()} == {held.path.name, made.path.name, new.name, other.name}


def test_it_is_not_where_no_other_user_can_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, which gives it away"""
    tmp_path.chmod(0o700)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    with PrivateFolder("gradekit-test-") as folder:
        assert (folder.path.parent == tmp_path) is (os.geteuid() != 0)
