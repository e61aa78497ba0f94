"""The Triton that torch.compile writes itself for a reference, had without a card: to be read beside a submission.

The code is generated in a process of its own (`python -m gradekit.inductor FILE`), where torch is told of a card that is
not there; nothing runs. This module is the grader's side.

__main__.py   the process      standin.py   what torch is told      code.py   what it wrote, taken apart
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment
from gradekit.gpu.targets import Target
from gradekit.inductor.code import Written, written
from gradekit.strategies import Input

SECONDS = 120


class NotGenerated(RuntimeError):
    """torch could not generate its code here: what it said."""


def generated(assignment: Assignment, inputs: Sequence[Any], target: Target) -> Written:
    """What torch.compile writes for the function that the tests time the entry against, on `inputs`, for `target`.

    Raises:
        NotGenerated: the tests time nothing, or torch cannot do it on this machine.
    """
    request = {
        "folder": str(assignment.folder.resolve()),
        "inputs": [arg.to_json() if isinstance(arg, Input) else arg for arg in inputs],
        "target": target.name,
    }
    with tempfile.TemporaryDirectory(prefix="gradekit-inductor-") as folder:
        answer = _asked(Path(folder), request)
    if "error" in answer:
        raise NotGenerated(str(answer["error"]))
    return written(str(answer["code"]))


def _asked(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    file, answer = folder / "request.json", folder / "answer.json"
    file.write_text(json.dumps(request))
    caches = {name: str(folder / name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    try:
        subprocess.run(
            [sys.executable, "-m", "gradekit.inductor", str(file), str(answer)],
            env=os.environ
            | caches
            | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
        return json.loads(answer.read_text())
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {"error": f"the process that generates it ended without an answer ({type(error).__name__})"}
