"""The process that compiles kernels for a card that need not be there: `python -m
gradekit.inspector.compiler FOLDER PARENT`.

It reads FOLDER/jobs.json, forks for each kernel, and leaves the text of every stage in FOLDER/<number>/. A
kernel's TTIR may be made to crash MLIR, to command it, or to keep it busy for ever: its process is confined to
it, with limits of memory, time and file size, and what it had finished stays. Writes, and never reads a
result; ends with the process PARENT.

    jobs.json      {"jobs": [{"ttir": text, "options": {name: value}, "arch": 90 or "gfx942", "until": "sass"}, ...],
                   "seconds": ..., "memory": ...}
    <n>/ttir, ttgir, llir, ptx, sass, amdgcn, usage   texts; `usage` is what cuobjdump -res-usage prints
    <n>/metadata   {"shared": bytes, "num_warps": ..., "tmem_size": ...} as Triton's backend tells
    <n>/error      {"stage": ..., "message": ...}, where a stage refused the kernel
    <n>/said       what the compiler printed to its standard error
    missing        one sentence, in place of all this, where this Triton cannot compile for the card
    status.json    [the wait status of each kernel's process]
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradekit.confine import confinement, namespaces
from gradekit.confine.confinement import Confinement, for_compilers
from gradekit.confine.landlock import Rules
from gradekit.confine.paths import DEVICES, readable, runnable, settle_in
from gradekit.inspector import Limit

if TYPE_CHECKING:
    from gradekit.compat.triton import Lowering

STAGES = ("ttir", "ttgir", "llir", "ptx", "sass")
AMD_STAGES = (*STAGES[:3], "amdgcn")  # AMD's assembly says all that its machine code would, so no linker is needed

OWN = ("__init__.py", "compat")  # the parts of gradekit that are imported for a kernel

METADATA = ("shared", "num_warps", "num_ctas", "tmem_size", "global_scratch_size")


def stages_for(arch: int | str) -> tuple[str, ...]:
    """The stages of NVIDIA's cards, whose architecture is a number, or of AMD's."""
    return STAGES if isinstance(arch, int) else AMD_STAGES


def main(folder: Path, parent: int, without: Collection[str] = ()) -> None:
    """Does all jobs of `folder`, as many at once as processors and memory allow, `without` these means of isolation."""
    from gradekit.compat.triton import missing  # before forking: each child starts with it

    namespaces.die_with_parent(parent)
    request = json.loads((folder / "jobs.json").read_text())
    reasons = filter(None, (missing(job["arch"], job["until"]) for job in request["jobs"]))
    if reason := next(reasons, ""):
        (folder / "missing").write_text(reason)
        return
    confinement = for_compilers(Rules(tuple(readable(OWN)), tuple(runnable()), DEVICES), (), without)
    if confinement.user is not None:
        folder.chmod(0o711)  # each must reach its own folder in there
    jobs = list(enumerate(request["jobs"]))
    at_once = _at_once(request["memory"])
    statuses = [0] * len(jobs)
    running: dict[int, int] = {}
    while jobs or running:
        while jobs and len(running) < at_once:
            number, job = jobs.pop(0)
            running[_forked(folder / str(number), job, request, confinement)] = number
        pid, status = os.wait()
        statuses[running.pop(pid)] = status
    (folder / "status.json").write_text(json.dumps(statuses))


def _at_once(memory: int) -> int:
    """As many as have room beside each other if each takes all the `memory` that it may, and one in any case."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(len(os.sched_getaffinity(0)), max(there // memory, 1))


def _forked(folder: Path, job: dict[str, Any], request: dict[str, Any], confinement: Confinement) -> int:
    parent, pid = os.getpid(), os.fork()
    if pid:
        return pid
    status = 1
    try:
        folder.mkdir(mode=0o700)
        settle_in(str(folder))
        with (folder / "said").open("wb") as stream:  # MLIR says why on the standard error descriptor
            os.dup2(stream.fileno(), 2)
        _limit(request["seconds"], request["memory"])
        confinement.enter(str(folder), parent)
        compile_to(folder, job)
        status = 0
    finally:
        os._exit(status)


def _limit(seconds: int, memory: int) -> None:
    """The alarm's default action ends the process, in the middle of C++ too."""
    limits = {resource.RLIMIT_AS: memory, resource.RLIMIT_FSIZE: Limit.FILE_BYTES, resource.RLIMIT_CORE: 0}
    # with less time of the processor, it would be killed, without a reason, just before the alarm
    confinement.lower(limits | {resource.RLIMIT_CPU: seconds + 1})
    signal.alarm(seconds)


def compile_to(folder: Path, job: dict[str, Any]) -> None:
    """Writes the stages of one kernel; a stage that refuses it leaves its reason instead."""
    source = folder / "kernel.ttir"
    source.write_text(job["ttir"])
    left = list(stages_for(job["arch"]))
    try:
        for stage, content in _stages(source, job):
            (folder / stage).write_text(content)
            left = left[left.index(stage) + 1 :] if stage in left else left
    except Exception as error:  # noqa: BLE001  # whatever the compiler has to say
        said = {"stage": (left or ["sass"])[0], "message": f"{type(error).__name__}: {error}"}
        _write(folder / "error", said)


def _write(file: Path, data: Any) -> None:
    file.write_text(json.dumps(data))


def _stages(source: Path, job: dict[str, Any]) -> Iterator[tuple[str, str]]:
    from gradekit.compat.triton import Lowering, target

    lowering = Lowering(str(source), target(job["arch"]), job["options"])
    has_units = isinstance(job["arch"], int) and job["arch"] >= 90
    if "tensordesc" in job["ttir"] and not has_units:  # the passes of TTIR are Triton's own way to do without TMA units
        lowering.run("ttir")
    yield "ttir", str(lowering.module)
    yield from _lowered(source.parent, lowering, job)


def _lowered(folder: Path, lowering: Lowering, job: dict[str, Any]) -> Iterator[tuple[str, str]]:
    stages = stages_for(job["arch"])
    for stage in stages[1 : stages.index(job["until"]) + 1]:
        module = lowering.run(stage if stage != "sass" else "cubin")
        if stage == "ptx":
            module = lowering.module = with_true_places(module)
        told = lowering.metadata
        _write(folder / "metadata", {name: told[name] for name in METADATA if name in told})
        if stage == "sass":
            yield from _disassembled(folder, module)
        else:
            yield stage, str(module)


_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOC = re.compile(r"^\s*\.loc\s.*\n", re.MULTILINE)


def with_true_places(ptx: str) -> str:
    """`ptx` without the places inside of inline assembly. LLVM counts the rows of an assembly text as rows of the
    source: what stands in its fourth row seems to come from three lines below. Triton writes a masked load so, and the
    place above it is the right one for all of it."""
    return _INLINE.sub(lambda match: _LOC.sub("", match[0]), ptx)


def _disassembled(folder: Path, cubin: bytes) -> Iterator[tuple[str, str]]:
    from gradekit.compat.triton import tool

    file = folder / "kernel.cubin"
    file.write_bytes(cubin)
    yield "usage", _said(tool("cuobjdump"), "-res-usage", file)
    yield "sass", _said(tool("nvdisasm"), "-c", "-gi", "-ndf", file)


def _said(*command: Any) -> str:
    return subprocess.check_output([*map(str, command)], stderr=subprocess.DEVNULL, text=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
