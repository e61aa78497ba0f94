"""The GPUs of this machine by UUID, and exclusive use of one.

Asks nvidia-smi, so that nothing heavy is imported and no CUDA context is created.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


def visible() -> list[str]:
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
    with (_place() / f"gradekit-card-{name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield  # closing gives it back, and so does the end of the process


def _place() -> Path:
    """A folder that all graders of this user share, whatever their own TMPDIR is."""
    for folder in (Path(f"/run/user/{os.getuid()}"), Path("/run/lock"), Path("/tmp")):
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.gettempdir())
