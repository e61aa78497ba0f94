"""Runs a command of gradekit in a fork of a process that has imported torch and Triton.

A resident template is used where a user works: not in a container and not in CI, unless `--server` or GRADEKIT_SERVER=1
asks for it, and nowhere with `--no-server` or GRADEKIT_SERVER=0. Elsewhere the command has a private one, which ends
with it. Where neither can be had, the command runs in this process, as it would anywhere.
"""

import ast
import contextlib
import functools
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gradekit.processes import Command, clean_environment
from gradekit.server import address, forks

COMMANDS = {"check"}
"""Those that need torch in two processes. (`watch` runs `check`.)"""

LOST = 3  # the exit code where the grader ended without one

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv")
CONTAINER_NAMES = ("container", "KUBERNETES_SERVICE_HOST", "CI")


def applies(arguments: Sequence[str]) -> bool:
    """Whether the command is one to be run in a fork."""
    if not arguments or arguments[0] not in COMMANDS or {"-h", "--help"} & set(arguments):
        return False
    completing = any(name.endswith("_COMPLETE") for name in os.environ)
    return _has_pidfd() and not completing and not _needs_no_torch(arguments)


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # not Linux, or before 5.3
        return False
    return True


def _needs_no_torch(arguments: Sequence[str]) -> bool:
    """Answers to questions are graded without torch; so is a file that Python cannot read, or that is not there."""
    if arguments[1:] and not arguments[1].startswith("-") and not os.path.exists(arguments[1]):
        return True
    given = [Path(word) for word in arguments[1:] if not word.startswith("-") and os.path.exists(word)] or [Path()]
    is_quiz = any(path.suffix == ".toml" or (path / "answers.toml").is_file() for path in given)
    return is_quiz or any(map(_is_no_python, given))


def _is_no_python(path: Path) -> bool:
    file = path / "submission.py" if path.is_dir() else path
    try:
        ast.parse(file.read_bytes() if file.suffix == ".py" and file.is_file() else b"")
    except (SyntaxError, ValueError, RecursionError, OSError):
        return True
    return False


def is_resident(arguments: Sequence[str]) -> bool:
    """Whether the command may use a process that stays, and start it."""
    if "--no-server" in arguments or os.environ.get("GRADEKIT_SERVER") == "0":
        return False
    if "--server" in arguments or os.environ.get("GRADEKIT_SERVER") == "1":
        return True
    return not any(map(os.path.exists, CONTAINER_FILES)) and not any(map(os.environ.get, CONTAINER_NAMES))


def run(arguments: Sequence[str]) -> int | None:
    """The exit code of the command; None where it has not begun, and is to be run in this process."""
    request = _request(arguments)
    ways: list[Callable[[], socket.socket]] = [_private]
    if is_resident(arguments):
        with contextlib.suppress(OSError):
            path = address.folder() / f"{address.installation()}.sock"
            request["keep"] = str(path)
            connected = functools.partial(_connected, path)
            ways = [connected, connected, _private]  # what listens there may end because it no longer suits
    _draw("import torch, triton ...")
    for way in ways:
        with contextlib.suppress(OSError):
            code = _run_in(way(), request)
            if code is not None:
                return code
    return None


# --- a template -------------------------------------------------------------------------------------------------------


def _private() -> socket.socket:
    ours, theirs = forks.pair()
    with theirs:
        _start("private", theirs)
    return ours


def _connected(path: Path) -> socket.socket:
    """A connection to what listens at `path`, which is started if need be. Raises OSError where it cannot be."""
    with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
        return address.connection(path)
    with address.locked(path.with_suffix(".lock")):
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
            return address.connection(path)
        ours, theirs = forks.pair()
        with ours, theirs:
            _start("resident", theirs, str(path))
            theirs.close()
            ours.recv(1)  # it listens, or has ended
        return address.connection(path)


def _start(kind: str, sock: socket.socket, where: str = "") -> None:
    words = (kind, str(sock.fileno()), "gradekit.cli", json.dumps(address.search_path()), where)
    Command("gradekit.server.template", words, clean_environment("/nonexistent"), Path("/"), (sock.fileno(),)).start()


# --- a command in it --------------------------------------------------------------------------------------------------


def _run_in(sock: socket.socket, request: dict[str, Any]) -> int | None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with sock:
        grader = forks.Forks(sock).fork([0, 1, 2], request)
        _draw("")
        if grader is None:
            return None
        with _forwarding(grader.pid):
            address.note("forked", grader=grader.pid, template=address.listener(sock))
            code = grader.wait()
    if code == -signal.SIGKILL:
        print("gradekit's server has ended: try again, or with --no-server.", file=sys.stderr)
        return LOST
    return code if code >= 0 else 128 - code


def _draw(text: str) -> None:
    """Makes `text` the terminal's last line, until the grader draws there; off a terminal nothing is written."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()


def _request(arguments: Sequence[str]) -> dict[str, Any]:
    umask = os.umask(0o077)
    os.umask(umask)
    return {
        "arguments": list(arguments), "environment": dict(os.environ), "folder": os.getcwd(), "umask": umask,
        "processors": sorted(os.sched_getaffinity(0)), "encoding": sys.stdout.encoding, "errors": sys.stdout.errors,
        "limits": address.limits(), "keep": "",
    }  # fmt: skip


@contextlib.contextmanager
def _forwarding(pid: int) -> Iterator[None]:
    """Inside, signals go to the grader, which ends as it would in this process; then this one does."""

    def forward(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- what is running --------------------------------------------------------------------------------------------------


def stopped(*, every: bool = False) -> int:
    """Ends this installation's resident templates, or `every` one of this user; how many. What they run goes on."""
    suits, count = address.installation(), 0
    for path, sock in address.connections():
        with sock:
            if every or path.stem == suits:
                path.unlink(missing_ok=True)
                forks.stop(sock)
                count += 1
    return count


def described() -> list[str]:
    """A line for each resident template of this user."""
    suits = address.installation()
    lines = [_line(path, sock, path.stem == suits) for path, sock in address.connections()]
    return [*lines, f"What they did is in {address.log()}"] if lines else []


def _line(path: Path, sock: socket.socket, suits: bool) -> str:
    with sock:
        pid = address.listener(sock)
    since = time.time() - path.stat().st_mtime
    which = "this installation's" if suits else "another installation's"
    return f"process {pid}, {which}, started {since / 60:.0f} minutes ago, {path}"
