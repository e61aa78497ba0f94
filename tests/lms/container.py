"""An LMS's container, as far as a mount namespace and a control group make one: its
paths, its root user, its limits."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from gradekit.assignment import Assignment
from gradekit.lms.package import build

HIDDEN = ("work", "tmp", "proc", "root", "home", "old_root", "lost+found")
"""Of the top folders, those that are not as they are here: the repository is none of the container's business."""


def possible() -> bool:
    """Whether this user may make mount namespaces and turn one's root."""
    tools = all(shutil.which(tool) for tool in ("unshare", "pivot_root", "mount", "setpriv"))
    if os.getuid() != 0 or not tools:
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class Run:
    """What a container's run came to: the seconds that all its processes computed, and the `peak` of their memory in
    bytes; 0 where nothing could measure it."""

    code: int
    said: str
    computed: float
    peak: int


METADATA = {
    "id": 1, "created_at": "2026-07-01T14:22:32.365935-07:00", "assignment": {"total_points": "100.0"},
    "submission_method": "upload", "users": [{"email": "ada@x.y", "id": 1, "name": "Ada"}], "previous_submissions": [],
}  # fmt: skip


def packed(package: Path, folder: Path) -> Path:
    """The package's files under `folder`, with the modes that they have in it."""
    with zipfile.ZipFile(package) as archive:
        for info in archive.infolist():
            file = Path(archive.extract(info, folder))
            file.chmod(info.external_attr >> 16)
    return folder


def run(folder: Path, mounts: dict[str, Path], command: str, *, memory: int = 0, cores: float = 0.0) -> Run:
    """`command` as root, in a root folder with `mounts` (its top folders) beside the system's own."""
    root = folder / "root"
    root.mkdir()
    script = folder / "container.sh"
    script.write_text(_script(root, mounts, command))
    with _limited(memory, cores) as (enter, computed, peak):
        done = subprocess.run(
            ["sh", "-c", f"{enter} exec unshare -m --propagation private sh -e {shlex.quote(str(script))}"],
            env={"PATH": os.environ["PATH"], "HOME": "/root"}, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        return Run(done.returncode, done.stdout + done.stderr, computed(), peak())


def _script(root: Path, mounts: dict[str, Path], command: str) -> str:
    lines = [f"R={shlex.quote(str(root))}", 'mount -t tmpfs tmpfs "$R"']
    for top in sorted(Path("/").iterdir()):
        if top.is_symlink():
            lines.append(f'ln -s {os.readlink(top)} "$R/{top.name}"')
        elif top.is_dir() and top.name not in (*HIDDEN, *mounts, "opt"):
            lines += [f'mkdir "$R/{top.name}"', f'mount --rbind /{top.name} "$R/{top.name}"']
    lines += ['mkdir -p -m 1777 "$R/tmp"', 'mkdir "$R/proc" "$R/old" && mount --rbind /proc "$R/proc"']
    python = '#!/bin/sh\\nexec %s "$@"\\n'
    lines += [
        'mkdir -p "$R/opt/gradekit/bin"',
        f"printf '{python}' {shlex.quote(sys.executable)} > \"$R/opt/gradekit/bin/python\"",
    ]
    lines += ['chmod 755 "$R/opt/gradekit/bin/python"']
    packages = Path(click.__file__).parents[1]  # they may lie elsewhere than the environment
    for needed in (Path(sys.prefix), Path(sys.base_prefix), packages):
        lines.append(f'[ -d "$R{needed}" ] || {{ mkdir -p "$R{needed}"; mount --bind {needed} "$R{needed}"; }}')
    for name, place in mounts.items():
        lines += [f'mkdir -p "$R/{name}"', f'mount --bind {shlex.quote(str(place))} "$R/{name}"']
    lines += ['cd "$R"', "pivot_root . old", "cd /", "umount -l /old && rmdir /old"]
    return "\n".join([*lines, f"exec {command}"]) + "\n"


# --- limits -----------------------------------------------------------------------------------------------------------

_GROUPS = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def _limited(memory: int, cores: float) -> Iterator[tuple[str, Callable[[], float], Callable[[], int]]]:
    """The words by which a shell enters the limits, and what tells the seconds and the most memory that were used;
    as far as they can be set here."""
    name = f"gradekit-{uuid.uuid4().hex[:8]}"
    made: list[Path] = []
    try:
        for kind, settings in _settings(memory, cores):
            group = _GROUPS / kind / name
            with contextlib.suppress(OSError):
                group.mkdir()
                made.append(group)
                for file, value in settings.items():
                    (group / file).write_text(value)
        enter = "".join(f"echo $$ > {group}/cgroup.procs; " for group in made)
        yield enter, lambda: max(map(_computed, made), default=0), lambda: max(map(_peak, made), default=0)
    finally:
        for group in made:
            with contextlib.suppress(OSError):
                group.rmdir()


def _settings(memory: int, cores: float) -> list[tuple[str, dict[str, str]]]:
    if not memory:
        return []
    if (_GROUPS / "cgroup.controllers").is_file():
        return [("", {"memory.max": str(memory), "memory.swap.max": "0", "cpu.max": f"{int(cores * 1e5)} 100000"})]
    return [
        ("memory", {"memory.limit_in_bytes": str(memory)}),
        ("cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(int(cores * 1e5))}),
        ("cpuacct", {}),
    ]


def _computed(group: Path) -> float:
    with contextlib.suppress(OSError, ValueError):
        return int((group / "cpuacct.usage").read_text()) / 1e9
    with contextlib.suppress(OSError, ValueError):
        name, value, *_ = (group / "cpu.stat").read_text().split()
        return int(value) / 1e6 if name == "usage_usec" else 0.0
    return 0.0


def _peak(group: Path) -> int:
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            return int((group / name).read_text())
    return 0


# --- Gradescope's -----------------------------------------------------------------------------------------------------


def closed(grader: Path) -> None:
    """Nobody but root reads the tests."""
    private = [place for name in ("assignments", "solutions") if (place := grader / name).is_dir()]
    subprocess.run(["chmod", "-R", "go-rwx", *map(str, private)], check=True)


def gradescope(folder: Path, assignment: Assignment, text: str, **limits: float) -> tuple[Run, dict[str, object]]:
    """The run of Gradescope's container on a submission, in `folder`, and results.json."""
    place = folder / "autograder"
    build("gradescope", assignment, folder / "upload.zip")
    packed(folder / "upload.zip", place / "source")
    shutil.copy(place / "source/run_autograder", place)
    (place / "submission").mkdir()
    (place / "submission/submission.py").write_text(text)
    (place / "submission_metadata.json").write_text(json.dumps(METADATA))
    (place / "submission_metadata.json").chmod(0o600)
    closed(place / "source/grader")  # as setup.sh does
    (place / "results").mkdir()
    done = run(folder, {"autograder": place}, "/autograder/run_autograder", **limits)  # type: ignore[arg-type]
    assert (place / "results/results.json").exists(), done.said
    return done, json.loads((place / "results/results.json").read_text())
