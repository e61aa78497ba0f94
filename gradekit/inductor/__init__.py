"""The Triton that torch.compile writes itself for a reference, had without a card: to be read beside a submission.

The code is generated in a process of its own (`python -m gradekit.inductor FILE`), where torch is told of a card that
is not there; nothing runs. This module is the grader's side.

__main__.py   the process      fake_cuda.py   a card that torch believes in      code.py   what it wrote, taken apart
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gradekit.assignment import Assignment
from gradekit.confine.paths import PrivateFolder
from gradekit.inductor.code import GeneratedCode, parse_generated
from gradekit.inputs.spec import Input
from gradekit.inspector.targets import Target
from gradekit.processes import ChildProcess, Command

SECONDS = 120


class NotGenerated(RuntimeError):
    """torch could not generate its code here: what it said."""


def generated(assignment: Assignment, inputs: Sequence[Any], target: Target) -> GeneratedCode:
    """What torch.compile writes for the function that the tests time the entry against, on `inputs`, for `target`.

    Where torch will not do it for a card that is not there, it is asked again for the one that is, if there is one.

    Raises:
        NotGenerated: the tests time nothing, or torch cannot do it on this machine.
    """
    if not target.capability:
        raise NotGenerated(f"this is done for NVIDIA's cards, and {target.name} is AMD's")
    request = {
        "folder": str(assignment.folder.resolve()),
        "inputs": [arg.to_json() if isinstance(arg, Input) else arg for arg in inputs],
        "target": target.name,
    }
    answer = _asked(request | {"stand_in": True}, {"CUDA_VISIBLE_DEVICES": ""})
    if "error" in answer and torch.cuda.is_available():
        answer = _asked(request | {"stand_in": False}, {})
    if "error" in answer:
        raise NotGenerated(str(answer["error"]))
    return parse_generated(str(answer["code"]))


def _asked(request: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    with PrivateFolder("gradekit-inductor-") as folder:
        caches = {name: str(folder.path / name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
        packages = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return _answer(folder.path, request, os.environ | caches | packages | environment)


def _answer(folder: Path, request: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    file, answer = folder / "request.json", folder / "answer.json"
    file.write_text(json.dumps(request))
    process = ChildProcess(Command("gradekit.inductor", (str(file), str(answer)), environment))
    ended = process.wait(SECONDS)
    process.end()
    if not ended:
        return {"error": f"the process that generates it did not end in {SECONDS} s"}
    try:
        return json.loads(answer.read_text())
    except (OSError, ValueError) as error:
        return {"error": f"the process that generates it ended without an answer ({type(error).__name__})"}
