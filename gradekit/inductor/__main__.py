"""The process that has torch.compile write its code: `python -m gradekit.inductor REQUEST ANSWER`, both JSON files.

It runs the assignment's own tests, as far as they say what they time against, and no submission.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from gradekit.assignment import load
from gradekit.compat.torch_compile import generated_code
from gradekit.inductor import fake_cuda
from gradekit.inputs.spec import Input
from gradekit.inspector.targets import target
from gradekit.plugin.timed import timed_calls


def main(request: dict[str, Any]) -> dict[str, str]:
    """The answer to a request."""
    assignment = load(Path(request["folder"]))
    calls = [call for call in timed_calls(assignment) if call.entry == assignment.entry]
    if not calls:
        return {"error": f"the tests of {assignment.id} time nothing, so there is nothing to compare with"}
    given = [Input.from_json(arg) if isinstance(arg, dict) else arg for arg in request["inputs"]] or calls[0].args
    if request["stand_in"]:
        fake_cuda.install(target(request["target"]))
    try:
        return {"code": _code(calls[0].against, given)}
    except Exception as error:  # noqa: BLE001  # whatever torch has to say
        return {
            "error": f"torch {torch.__version__}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        }


def _code(function: Callable[..., Any], inputs: Sequence[Any]) -> str:
    return generated_code(function, lambda: [_fake(arg) if isinstance(arg, Input) else arg for arg in inputs])


def _fake(spec: Input) -> torch.Tensor:
    return torch.empty_strided(spec.shape, spec.stride, dtype=getattr(torch, spec.dtype), device="cuda")


if __name__ == "__main__":
    answer = main(json.loads(Path(sys.argv[1]).read_text()))
    Path(sys.argv[2]).write_text(json.dumps(answer))
