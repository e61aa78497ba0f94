"""Compiles kernels offline, for any architecture, in a process of its own: the grader's side of `compiler`.

Needs no card. What comes back is text, read with a limit on its size: the compiler has met TTIR that may be hostile.
"""

import json
import os
import signal
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradekit.confine.paths import PrivateFolder
from gradekit.inspector import Limit
from gradekit.inspector.compiler import stages_for
from gradekit.processes import ChildProcess, Command, clean_environment
from gradekit.program import Kernel
from gradekit.sandbox import Unavailable

MODULE = "gradekit.inspector.compiler"


@dataclass(frozen=True)
class CompileJob:
    """A kernel to compile for `arch` (90 for sm_90, or "gfx942"), as far as the stage `until`."""

    kernel: Kernel
    arch: int | str
    until: str = "sass"


@dataclass(frozen=True)
class Compiled:
    """What the compiler made of a kernel: the text of each stage that it reached. `usage` is what cuobjdump says of
    registers and stack, `metadata` what Triton's backend says (shared memory in bytes and so on). `error` is empty, or
    why the stage `failed` gave nothing."""

    stages: dict[str, str] = field(default_factory=dict)
    usage: str = ""
    metadata: dict[str, int] = field(default_factory=dict)
    error: str = ""
    failed: str = ""


def compile_all(jobs: Sequence[CompileJob], *, seconds: int = Limit.SECONDS) -> list[Compiled]:
    """The result of each job, in order; several are compiled at once. A crash of the compiler affects its own job only.
    Raises Unavailable where the compiler's process could not be started, or this Triton lacks what the card needs."""
    if not jobs:
        return []
    with PrivateFolder("gradekit-compiler-") as folder:
        statuses = _run(folder.path, jobs, seconds)
        return [_collected(folder.path / str(number), job, statuses, number) for number, job in enumerate(jobs)]


def _run(folder: Path, jobs: Sequence[CompileJob], seconds: int) -> list[int] | None:
    """The wait status of each kernel's process; None where time was up before all had ended."""
    request = {"jobs": [_request(job) for job in jobs], "seconds": seconds, "memory": Limit.MEMORY_BYTES}
    (folder / "jobs.json").write_text(json.dumps(request))
    arguments = (str(folder), str(os.getpid()))
    process = ChildProcess(Command(MODULE, arguments, clean_environment(str(folder)), folder))
    ended = process.wait(Limit.SECONDS + seconds * len(jobs))
    process.end()
    return _statuses(folder, len(jobs)) if ended else None


def _request(job: CompileJob) -> dict[str, Any]:
    options = job.kernel.compiler_options
    return {"ttir": job.kernel.ttir, "options": options, "arch": job.arch, "until": job.until}


def _statuses(folder: Path, count: int) -> list[int]:
    data = _data(folder / "status.json")
    if not isinstance(data, list) or len(data) != count or not all(type(status) is int for status in data):
        missing = _text(folder / "missing")
        raise Unavailable(missing or "The compiler's process could not be started: see `gradekit doctor`.")
    return data


def _collected(folder: Path, job: CompileJob, statuses: list[int] | None, number: int) -> Compiled:
    expected = stages_for(job.arch)
    stages = {stage: text for stage in expected if (text := _text(folder / stage))}
    failed, error = _failure(folder, expected, stages, None if statuses is None else statuses[number])
    return Compiled(stages, _text(folder / "usage"), _numbers(folder / "metadata"), error, failed)


def _failure(folder: Path, expected: Sequence[str], stages: dict[str, str], status: int | None) -> tuple[str, str]:
    """The stage that gave nothing, and why; ("", "") where nothing failed."""
    told = _data(folder / "error")
    if isinstance(told, dict):
        return str(told.get("stage", "")), _with_what_was_said(str(told.get("message", "")), folder)
    if status == 0:
        return "", ""
    following = next((stage for stage in expected if stage not in stages), expected[-1])
    return following, _with_what_was_said(_death(status), folder)


def _with_what_was_said(message: str, folder: Path) -> str:
    said = [line for line in _text(folder / "said").splitlines() if "error:" in line]
    return "\n".join([message, *said[:3]]).replace(f"{folder}/", "").replace(f"{folder.parent}/", "")[:2000]


def _death(status: int | None) -> str:
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU)):
        return "the compiler did not finish in time"
    if os.WIFSIGNALED(status):
        return f"the compiler crashed ({signal.Signals(os.WTERMSIG(status)).name})"
    return f"the compiler ended with exit code {os.WEXITSTATUS(status)}"


def _numbers(file: Path) -> dict[str, int]:
    data = _data(file)
    return {str(k): v for k, v in data.items() if type(v) is int} if isinstance(data, dict) else {}


def _data(file: Path) -> Any:
    try:
        return json.loads(_text(file))
    except (ValueError, RecursionError):
        return None


def _text(file: Path) -> str:
    """The text of a regular file, at most Limit.READ_BYTES of it; "" where there is none."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return stream.read(Limit.READ_BYTES).decode("utf-8", "replace")
