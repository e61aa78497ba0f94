"""A grader process: grades one submission, and can be killed at any moment.

A grader is forked from a template, `python -m gradekit.batch.grader DESCRIPTOR`, which imports everything once, and for
a class grades the assignment's own solution before: what does not depend on the submission is there when a grader
begins. No submission reaches the template. A grader reads a job from its socket and answers with a report record.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import hashlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gradekit import processes, recorded, submission, wire
from gradekit.assignment import Assignment, AssignmentError, get, search_path
from gradekit.batch.intake import modules_beside
from gradekit.processes import ChildProcess, Command
from gradekit.program import ProgramError
from gradekit.report import record
from gradekit.request import GradingOptions, GradingRequest
from gradekit.reuse import keep_between_submissions
from gradekit.sandbox import host
from gradekit.server import address, forks, template
from gradekit.subject import Limit
from gradekit.versions import version
from gradekit.wire import ForkedCache

if TYPE_CHECKING:
    from gradekit.subject.subject import Subject

INPUT_BYTES = 256 << 20
"""Bytes of inputs that the graders of a class share: those of all checks of vector_add take 178 MiB."""

MODULE = "gradekit.batch.grader"

CARD = "GRADEKIT_CARD"  # the variable that tells a grader's process, and a cluster's worker, the UUID of its card

FAKE_GPU = "standin"

MEMORY = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16"}
"""Forms of matrix products in half precision whose machine code torch keeps (1,024 if nobody says so): each takes up to
a MiB, and references have hundreds of shapes, each once."""

SPARING = {"MALLOC_MMAP_THRESHOLD_": "1048576", "MALLOC_TRIM_THRESHOLD_": "131072"}
LAVISH = {"MALLOC_MMAP_THRESHOLD_": "8388608"}
"""Bytes from which on a tensor's memory goes back to the system when it is freed: where one grader has little of it, as
in an LMS's container, where the heap's goes back after each check, too; and in a class, where this takes a sixth less
of computing."""


class GraderFailed(Exception):
    """The grader's process died, hung or answered nonsense: no fault of the submission's."""


@dataclass(frozen=True)
class Job:
    """What is asked of a grader, as data: what reports call the submission, and options as `GradingOptions.to_json`
    gives them. A worker with another `release` of the assignment than the coordinator refuses it."""

    assignment: str
    release: str
    options: Mapping[str, Any]
    name: str


@dataclass(frozen=True)
class GradingJob(Job):
    """A submission, by the `content` of its file (base64). With `digests`, those of the programs come back too."""

    content: str
    digests: bool = False

    @property
    def bytes(self) -> bytes:
        """The file."""
        return base64.b64decode(self.content)


@dataclass(frozen=True)
class SpeedJob(Job):
    """The `programs` (see gradekit.recorded) of calls that wait for a GPU, and nothing of the submission."""

    programs: str


@dataclass(frozen=True)
class JobResult:
    """A report record, and what is kept beside it: the `programs` that wait for a card, the `fingerprint` as JSON, and
    the calls' `digests` (see Subject.digests) where the job asks for them."""

    record: dict[str, Any]
    programs: str = ""
    fingerprint: str = ""
    digests: dict[str, str] = field(default_factory=dict)


class Graders:
    """Grades each job in a process of its own: forks of a template, which is started with the first job, and again
    after it has died. Where it `warms`, the template first grades the assignment's solution with the first job's
    options, and is started anew for another assignment or release. For the `only` job, it imports nothing ahead that
    this may do without. They see the GPU with the UUID `card` alone; none for "", a fake one for FAKE_GPU."""

    def __init__(self, card: str = "", *, warms: bool = False, only: bool = False) -> None:
        self.card, self._warms, self._only = card, warms, only
        self._lock = threading.Lock()
        self._template: ChildProcess | None = None
        self._about = ("", "")
        self._graders = set[ChildProcess]()

    def grade(self, job: Job, seconds: float) -> JobResult:
        """The report record of `job`, with what is to be kept. Raises GraderFailed where there is none in `seconds`."""
        grader = self._forked(job)
        assert grader.sock is not None
        deadline = time.monotonic() + seconds
        try:
            wire.send(grader.sock, {"is": type(job).__name__, "job": asdict(job)}, deadline)
            answer = wire.receive(grader.sock, wire.CAP, deadline)
        except wire.WireError as error:
            is_late = isinstance(error, wire.DeadlineExceeded)
            why = f"did not answer in {seconds:g} s" if is_late else f"ended ({error})"
            raise GraderFailed(f"the grader's process {why}") from None
        finally:
            grader.end()
            self._graders.discard(grader)
        if not isinstance(answer, dict) or "record" not in answer:
            raise GraderFailed(str(answer.get("failed", answer)) if isinstance(answer, dict) else "no record")
        return JobResult(**answer)

    def close(self) -> None:
        """End all processes, also those that still work. They are asked first, that they may leave nothing behind."""
        for process in filter(None, (self._template, *self._graders)):
            process.end()
        self._template = None

    def _forked(self, job: Job) -> ChildProcess:
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            started = self._forks(job).start(self._command(theirs))
            if started is None:
                ours.close()
                raise GraderFailed("a grader's process could not be started")
            grader = ChildProcess(started, ours, patience=2.0)
            self._graders.add(grader)
        return grader

    def _forks(self, job: Job) -> forks.Forks:
        about, template = (job.assignment, job.release), self._template
        if template is None or not template.is_alive() or (self._warms and about != self._about):
            if template is not None:
                template.end()
            ours, theirs = forks.pair()
            with theirs:
                self._template, self._about = ChildProcess(self._command(theirs), ours, patience=2.0), about
            ours.send(json.dumps([*about, dict(job.options) if self._warms else None, self._only]).encode())
            self._forking = forks.Forks(ours, (MODULE,))
        return self._forking

    def _command(self, theirs: socket.socket) -> Command:
        package = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
        seen = {CARD: self.card, "CUDA_VISIBLE_DEVICES": "" if self.card == FAKE_GPU else self.card}
        settings = MEMORY | (LAVISH if self._warms else SPARING) | seen | {"PYTHONPATH": package}
        descriptor = theirs.fileno()
        return Command(MODULE, (str(descriptor),), os.environ | settings, None, (descriptor,), stderr=None)


# --- inside of the template -------------------------------------------------------------------------------------------


def serve(control: socket.socket) -> NoReturn:
    """Get ready for what the other side says that is to be graded, then fork graders until that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    said = control.recv(wire.CAP)
    if not said:
        os._exit(0)
    id, release, options, only = json.loads(said)
    with contextlib.suppress(AssignmentError):  # a grader says what is wrong
        if get(id).is_quiz:
            forks.Forker(lambda number: _become_grader(number, control, None), control).serve()
    tracing = template.begin(control)
    if not only:
        keep_between_submissions()
        template.everything()
    if options is not None:
        _warm(GradingJob(id, release, options, "solution.py", ""), tracing)
    forks.Forker(lambda number: _become_grader(number, control, tracing), control).serve()


def _warm(job: GradingJob, tracing: socket.socket) -> None:
    """Do the job for the assignment's own solution; where that fails, graders begin with less, or fail as well."""
    from gradekit.inputs import spec
    from gradekit.subject import run_cache

    spec.remember(INPUT_BYTES)
    run_cache.runs.current.in_class = ForkedCache(Limit.CLASS_BYTES)
    with forks.connected(tracing) as sock, contextlib.suppress(Exception):
        processes.forks = forks.Forks(sock).start
        if (solution := get(job.assignment).solution) is not None:
            _graded(replace(job, content=base64.b64encode(solution.read_bytes()).decode()))
    host.stop()
    gc.collect()
    gc.freeze()


def _become_grader(number: int, control: socket.socket, tracing: socket.socket | None) -> NoReturn:
    try:
        os.setsid()
        control.close()
        (descriptor,), _ = forks.told(number)
        if tracing is not None:
            processes.forks = forks.Forks(forks.connected(tracing)).start
            tracing.close()
        _work(socket.socket(fileno=descriptor))
    finally:
        os._exit(0)


# --- inside of a grader -----------------------------------------------------------------------------------------------


def _work(connection: socket.socket) -> None:
    scratch = tempfile.mkdtemp(prefix="gradekit-grader-")
    os.chmod(scratch, 0o711)  # submissions run as another user and have their own folders in it
    tempfile.tempdir = scratch
    threading.Thread(target=_end_with, args=(connection, scratch), daemon=True).start()
    try:
        wire.send(connection, _answer(wire.receive(connection, wire.CAP)))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _end_with(connection: socket.socket, scratch: str) -> None:
    """End this process as soon as the other side is gone, also while it grades, and leave nothing behind."""
    poller = select.poll()
    poller.register(connection, select.POLLRDHUP)
    poller.poll()
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(1)


def _answer(asked: Any) -> dict[str, Any]:
    try:
        graded = _timed(SpeedJob(**asked["job"])) if asked["is"] == "SpeedJob" else _graded(GradingJob(**asked["job"]))
        return asdict(graded)
    except Exception as error:  # noqa: BLE001  # the other side decides what to do about it
        return {"failed": f"{type(error).__name__}: {error}"}


def _assignment(job: Job) -> Assignment:
    assignment = get(job.assignment)
    if release(assignment) != job.release:
        raise GraderFailed(f"this machine has another release of {job.assignment}")
    roots = [assignment.folder.parent, *search_path()]  # the next job's assignment may be in another folder
    os.environ["GRADEKIT_ASSIGNMENTS"] = os.pathsep.join(dict.fromkeys(str(root.resolve()) for root in roots))
    return assignment


def _graded(job: GradingJob) -> JobResult:
    from gradekit.checking import check

    _assignment(job)  # raises where this machine has another release of it
    kept: dict[str, Any] = {}

    def keep(subject: Subject) -> None:
        kept.update(_kept(subject), **({"digests": subject.digests} if job.digests else {}))

    with _file(job) as path:
        report = check(path, job.assignment, GradingOptions(**job.options), on_subject=keep)
    return JobResult(record.to_dict(report), **kept)


def _kept(subject: Subject) -> dict[str, str]:
    """What is kept of a submission beside its record; a program that is too large is not."""
    from gradekit.batch.similar import fingerprint

    prints = json.dumps(fingerprint(subject.programs, subject.submission.text), separators=(",", ":"))
    waiting = subject.programs_to_time
    try:
        return {"fingerprint": prints, "programs": recorded.dumps(waiting) if waiting else ""}
    except ProgramError:
        return {"fingerprint": prints}


def _timed(job: SpeedJob) -> JobResult:
    """The speed checks alone, from programs; no other process uses the GPU meanwhile."""
    from gradekit.plugin import grade

    assignment, card = _assignment(job), os.environ.get(CARD, "")
    device = FAKE_GPU if card == FAKE_GPU else "cuda" if card else "auto"
    options = replace(GradingOptions(**job.options), kind="speed", device=device)
    with exclusive_use(card):
        programs = recorded.loads(job.programs)
        report = grade(GradingRequest(assignment, submission.Submission(job.name, "", ""), options, programs))
    return JobResult(record.to_dict(report))


@contextlib.contextmanager
def _file(job: GradingJob) -> Iterator[Path]:
    """The submission as a file of its own name in a folder of its own, which is the current one: reports name it so."""
    with tempfile.TemporaryDirectory(prefix="gradekit-job-") as folder, contextlib.chdir(folder):
        path = Path(Path(job.name).name or "submission.py")
        path.write_bytes(job.bytes)
        yield path


# --- the GPUs of this machine by UUID, and exclusive use of one -------------------------------------------------------


def visible_cards() -> list[str]:
    """The UUIDs of the cards that this process may use; none where there is no driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, "--query-gpu=index,uuid", "--format=csv,noheader"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return selected(listing, os.environ.get("CUDA_VISIBLE_DEVICES"))


def selected(listing: str, visible: str | None) -> list[str]:
    """The UUIDs in nvidia-smi's `listing` ("0, GPU-..."), as far as CUDA_VISIBLE_DEVICES names them."""
    known = dict(re.findall(r"(?m)^(\d+), ((?:GPU|MIG)-[\w/-]+)\s*$", listing))
    if visible is None:
        return list(known.values())
    names = [name.strip() for name in visible.split(",") if name.strip()]
    by_name = {**known, **{uuid: uuid for uuid in known.values()}}
    return [by_name[name] for name in names if name in by_name]


@contextlib.contextmanager
def exclusive_use(card: str) -> Iterator[None]:
    """Open while this process alone, of all graders on this machine, uses the card: others wait."""
    if not card:
        yield
        return
    name = re.sub(r"[^\w-]", "_", card)
    with address.locked(_place() / f"gradekit-card-{name}.lock"):
        yield  # the end of the process gives it back, too


def _place() -> Path:
    """A folder that all graders of this user share, whatever their own TMPDIR is."""
    for folder in (Path(f"/run/user/{os.getuid()}"), Path("/run/lock"), Path("/tmp")):
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.gettempdir())


# --- what a result is known by: the digest of a submission, and of an assignment's release ----------------------------


def content(path: Path) -> bytes:
    """The bytes of a submission's file; of a Python file, with the student's own modules. Raises OSError where it
    cannot be read, and SubmissionError where it is too large, or its files cannot be made one source."""
    if path.suffix.lower() == ".py" and path.stat().st_size <= submission.MAX_SOURCE_BYTES:
        return submission.with_modules(path, modules_beside(path))
    with path.open("rb") as stream:
        data = stream.read(submission.MAX_NOTEBOOK_BYTES + 1)
    if len(data) > submission.MAX_NOTEBOOK_BYTES:
        raise submission.SubmissionError(f"{path.name} is larger than {submission.MAX_NOTEBOOK_BYTES >> 20} MiB")
    return data


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def plain_name(assignment: Assignment, path: Path) -> str:
    """What a report calls the file: LMSes write names and numbers of students into theirs."""
    stem = "answers" if assignment.is_quiz else "submission"
    suffix = next((s for s in submission.archive.SUFFIXES if path.name.lower().endswith(s)), path.suffix.lower())
    return stem + suffix


def release(assignment: Assignment) -> str:
    """What a grading depends on besides the submission: the tests, also hidden ones, and gradekit's version."""
    return digest(json.dumps(contents(assignment)).encode())[:16]


def contents(assignment: Assignment) -> dict[str, str]:
    """What a release is made of, texts by name: by them a grade book's points can be explained later."""
    hidden = sorted(assignment.solutions.glob("test_*.py")) if assignment.solutions else []
    texts = {file.name: file.read_bytes().decode(errors="replace") for file in (*assignment.test_files, *hidden)}
    return {"gradekit": version("gradekit") or "unknown"} | texts


USUAL = {"hidden": True}  # how a class is graded unless staff say otherwise: with the hidden tests

NEUTRAL = {"seed", "secret_seed", "isolation", "jobs"}
"""The options that are kept beside a grading, or cannot change a result."""


def grading(release: str, options: GradingOptions) -> str:
    """What results are stored by, so that no two gradings share one: the release, a digest of unusual options."""
    named = {name: value for name, value in options.to_json().items() if name not in NEUTRAL}
    return release if named == USUAL else f"{release}+{digest(json.dumps(named, sort_keys=True).encode())[:16]}"


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
