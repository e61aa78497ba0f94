"""gradekit watch: each save is checked, a check of what has changed is broken off, and nothing is left in the end."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradekit import watching
from tests.patience import GUARD
from tests.zygote import python_path

ROOT = Path(__file__).parents[2]
SLOW = "import time\ntime.sleep(600)\n"


class Watch:
    """A running `gradekit watch`, and what it has said."""

    def __init__(self, path: Path, environment: dict[str, str], before: Callable[[], object] | None = None) -> None:
        command = [sys.executable, "-P", "-u", "-m", "gradekit", "watch", str(path), "-a", "vector_add", "--quick"]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=before,  # noqa: PLW1509  # no other thread is here
        )  # fmt: skip
        self.said = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.said += line

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(GUARD)
        self._reader.join(GUARD)
        return code

    def until(self, condition: Callable[[str], bool]) -> None:
        end = time.monotonic() + GUARD
        while not condition(self.said):
            assert time.monotonic() < end and self.process.poll() is None, self.said
            time.sleep(0.05)


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        found = os.environ | {"XDG_RUNTIME_DIR": folder, "PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1"}
        yield found
        subprocess.run([sys.executable, "-P", "-m", "gradekit", "server", "stop"], env=found, check=True, capture_output=True)


def test_each_save_is_checked_and_what_is_stale_is_broken_off(environment: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "submission.py"
    file.write_text("def sub(x, y): ...\n")
    watch = Watch(file, environment)
    watch.until(lambda said: "It defines sub" in said)
    file.write_text(SLOW)
    watch.until(lambda said: said.count("--- ") == 2)
    replacement = tmp_path / "new"
    replacement.write_text("def mul(x, y): ...\n")
    replacement.replace(file)  # as many editors save
    watch.until(lambda said: "It defines mul" in said)
    begun = watch.said.count("--- ")
    file.write_text(SLOW)
    watch.until(lambda said: said.count("--- ") > begun)
    assert watch.end() == 0


def test_a_check_that_is_broken_off_says_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    """Neither while it imports nor later"""
    file = tmp_path / "submission.py"
    file.write_text(SLOW)
    watch = Watch(file, environment)
    for number in range(8):
        watch.until(lambda said, number=number: said.count("--- ") == number + 1)
        time.sleep(0.05 * number)
        file.write_text(f"{SLOW}# {number}\n")
    file.write_text("def mul(x, y): ...\n")
    watch.until(lambda said: "It defines mul" in said)
    assert watch.end() == 0
    said = watch.said.splitlines()
    begun = max(number for number, line in enumerate(said) if line.startswith("--- "))
    assert [line for line in said[:begun] if line.strip() and not line.startswith("--- ")] == []


def test_a_check_can_be_broken_off_where_the_watch_hears_no_interrupts(environment: dict[str, str], tmp_path: Path) -> None:
    """As one that a shell's script has started behind it"""
    file = tmp_path / "submission.py"
    file.write_text(SLOW)
    watch = Watch(file, environment, lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    checks = Path(f"/proc/{watch.process.pid}/task/{watch.process.pid}/children")
    watch.until(lambda said: "--- " in said and bool(checks.read_text().split()))
    status = Path(f"/proc/{checks.read_text().split()[0]}/status").read_text()
    ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
    assert not ignored & 1 << signal.SIGINT - 1
    assert watch.end() == 0


def test_a_server_that_watching_started_is_this_installations(environment: dict[str, str]) -> None:
    """`watch` runs checks with -P, and a user types none"""
    asks = ["-c", "from gradekit.server import address; print(address.installation())"]
    names = {subprocess.check_output([sys.executable, *flags, *asks], env=environment) for flags in ((), ("-P",))}
    assert len(names) == 1


def test_a_file_that_is_gone_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x")
    before = watching.files(file)
    assert not watching.changed(before, watching.files(file))
    file.unlink()
    assert not watching.changed(before, watching.files(file))
    file.write_text("xy")
    assert watching.changed(before, watching.files(file))


def test_a_folder_is_watched_for_what_a_submission_is_read_from(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    before = watching.files(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    assert not watching.changed(before, watching.files(tmp_path))
    (tmp_path / "b.py").write_text("x")
    assert watching.changed(before, watching.files(tmp_path))
