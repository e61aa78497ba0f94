"""gradekit watch: checks a submission on each save, by a command of its own that ends where the file changes again."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PULSE_SECONDS = 0.1
END_SECONDS = 5.0
CLEAR = "\x1b[H\x1b[2J\x1b[3J"
READ = (".py", ".ipynb", ".toml")

Files = dict[str, tuple[int, int, int]]


def watch(path: Path, words: Sequence[str], say: Callable[[str], None], *, terminal: bool) -> None:
    """Checks `path` with the options `words` now and after each change, until it is interrupted; `say` shows text."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # behind a shell; a check would ignore it from its start, too
        signal.signal(signal.SIGINT, lambda number, frame: None)
    environment = {"GRADEKIT_SERVER": "1"} | os.environ  # whoever watches wants the next check to be ready
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            seen = _settled(path)
            say(CLEAR if terminal else f"--- {path}, {time.strftime('%H:%M:%S')}\n")
            command = [sys.executable, "-P", "-m", "gradekit", "check", str(path), *words]
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until that process can be broken off
            with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, process_group=0) as check:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                try:
                    while not changed(seen, files(path)):
                        time.sleep(PULSE_SECONDS)
                finally:
                    _end(check)


def files(path: Path) -> Files:
    """What a submission is read from, with all that changes on a save."""
    found = [path] if not path.is_dir() else [file for file in path.iterdir() if file.suffix in READ]
    seen: Files = {}
    for file in found:
        with contextlib.suppress(OSError):
            at = file.stat()
            seen[str(file)] = at.st_mtime_ns, at.st_size, at.st_ino
    return seen


def changed(before: Files, now: Files) -> bool:
    """Whether there is something else to check; a file that is gone is about to be replaced, or not to be checked."""
    return bool(now) and now != before


def _settled(path: Path) -> Files:
    """The files, once they have stayed the same for a moment: an editor may write in several steps."""
    before = files(path)
    while True:
        time.sleep(PULSE_SECONDS)
        now = files(path)
        if now == before:
            return now
        before = now


def _end(check: subprocess.Popen[bytes]) -> None:
    """Interrupts a check, which then leaves nothing behind: a terminal's Ctrl-C has not reached its process group."""
    if check.poll() is None:
        check.send_signal(signal.SIGINT)
        try:
            check.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            check.kill()
