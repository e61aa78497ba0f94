"""A warm grader: a process that grades one submission after another, and can be killed at any moment.

Run as `python -m gradekit.batch.grader DESCRIPTOR`: reads jobs from that socket and answers each with a report record.
It ends when the other side is gone, also in the middle of a grading, and takes the submission's process with it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gradekit.tracer import wire

LARGEST_JOB = 64 << 20
LARGEST_RECORD = 8 << 20
"""Bytes of a submission with its job, and of a report record, on the wire."""

GRADINGS = 200
"""After so many gradings a process makes room for a new one, so that nothing adds up for a whole night."""


PARTING = 2.0
"""Seconds that a process has to end by itself."""


class GraderFailed(Exception):
    """The grader's process died, hung or answered nonsense: no fault of the submission's."""


@dataclass(frozen=True)
class Job:
    """A submission as data: the file's `name` and `content` (base64), and how to grade it.

    `release` is that of the assignment as the coordinator has it: a worker with another refuses the job. Below the level
    `isolation`, a submission is not run (see doctor).
    """

    assignment: str
    name: str
    content: str
    release: str
    seed: int
    profile: str = "default"
    hidden: bool = True
    isolation: int | None = None

    @property
    def bytes(self) -> bytes:
        return base64.b64decode(self.content)


class Grader:
    """The warm process, from outside: started at the first job, and again after it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._done = 0

    def grade(self, job: Job, seconds: float) -> dict[str, Any]:
        """The report record of `job`.

        Raises:
            GraderFailed: no record within `seconds`, or a process that died.
        """
        if self._process is None or self._process.poll() is not None or self._done >= GRADINGS:
            self._start()
        assert self._socket is not None
        deadline = time.monotonic() + seconds
        try:
            wire.send(self._socket, asdict(job), deadline)
            answer = wire.receive(self._socket, LARGEST_RECORD, deadline)
        except wire.WireError as error:
            self.close()
            raise GraderFailed(f"the grader's process {_became(error, seconds)}") from None
        self._done += 1
        if not isinstance(answer, dict) or "record" not in answer:
            raise GraderFailed(str(answer.get("failed", answer)) if isinstance(answer, dict) else "no record")
        return dict(answer["record"])

    def close(self) -> None:
        """End the process, and all that it started. It is asked first, that it may leave nothing behind."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PARTING)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()
        self._process = self._socket = None

    def _start(self) -> None:
        self.close()
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "gradekit.batch.grader", str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        self._socket, self._done = ours, 0


def _became(error: wire.WireError, seconds: float) -> str:
    return f"did not answer in {seconds:g} s" if isinstance(error, wire.Late) else f"ended ({error})"


# --- inside of the process --------------------------------------------------------------------------------------------


def serve(connection: socket.socket) -> None:
    """Answer jobs until the other side is gone."""
    scratch = tempfile.mkdtemp(prefix="gradekit-grader-")
    os.chmod(scratch, 0o711)  # submissions, as somebody else, have their own folders in it
    tempfile.tempdir = scratch
    threading.Thread(target=_end_with, args=(connection, scratch), daemon=True).start()
    while True:
        try:
            job = Job(**wire.receive(connection, LARGEST_JOB))
            wire.send(connection, _answer(job))
        except (wire.Closed, OSError):  # the thread below ends the process, and tidies up
            threading.Event().wait()


def _end_with(connection: socket.socket, scratch: str) -> None:
    """End this process as soon as the other side is gone, also while it grades, and leave nothing behind."""
    import select
    import shutil

    poller = select.poll()
    poller.register(connection, select.POLLRDHUP)
    poller.poll()
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(1)


def _answer(job: Job) -> dict[str, Any]:
    from gradekit.report import record

    try:
        return {"record": record.to_dict(_graded(job))}
    except Exception as error:  # noqa: BLE001  # the other side decides what to do about it
        return {"failed": f"{type(error).__name__}: {error}"}


def _graded(job: Job) -> Any:
    from gradekit.assignment import get
    from gradekit.batch.keys import release
    from gradekit.checking import check

    assignment = get(job.assignment)
    if release(assignment) != job.release:
        raise GraderFailed(f"this machine has another release of {job.assignment}")
    os.environ["GRADEKIT_ASSIGNMENTS"] = str(assignment.folder.parent.resolve())
    with _file(job) as path:
        return check(
            path, job.assignment, require_isolation=job.isolation, seed=job.seed, profile=job.profile, hidden=job.hidden
        )


@contextlib.contextmanager
def _file(job: Job) -> Iterator[Path]:
    """The submission as a file of its own name in a folder of its own, which is the current one: reports name it so."""
    with tempfile.TemporaryDirectory(prefix="gradekit-job-") as folder, contextlib.chdir(folder):
        path = Path(Path(job.name).name or "submission.py")
        path.write_bytes(job.bytes)
        yield path


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
