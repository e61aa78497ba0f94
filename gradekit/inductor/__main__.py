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
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from gradekit.assignment import load
from gradekit.inductor import standin
from gradekit.inputs.spec import Input
from gradekit.inspector.targets import target
from gradekit.plugin.timed import timed_calls


class _Written(BaseException):
    """Ends the compiler once the code is there."""

    def __init__(self, code: str) -> None:
        self.code = code


def main(request: dict[str, Any]) -> dict[str, str]:
    """The answer to a request."""
    assignment = load(Path(request["folder"]))
    calls = [call for call in timed_calls(assignment) if call.entry == assignment.entry]
    if not calls:
        return {"error": f"the tests of {assignment.id} time nothing, so there is nothing to compare with"}
    given = [Input.from_json(arg) if isinstance(arg, dict) else arg for arg in request["inputs"]] or calls[0].args
    if request["stand_in"]:
        standin.install(target(request["target"]))
    try:
        return {"code": _code(calls[0].against, given)}
    except Exception as error:  # noqa: BLE001  # whatever torch has to say
        return {
            "error": f"torch {torch.__version__}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        }


def _code(function: Callable[..., Any], inputs: Sequence[Any]) -> str:
    from torch._inductor import config, graph
    from torch._inductor.compile_fx import compile_fx

    config.compile_threads = 1
    graph.GraphLowering.codegen = _stopping(graph.GraphLowering.codegen)  # type: ignore[method-assign]
    try:
        with FakeTensorMode():
            values = [_fake(arg) if isinstance(arg, Input) else arg for arg in inputs]
            traced = make_fx(lambda *tensors: function(*tensors), tracing_mode="fake")(*values)
            compile_fx(traced, [value for value in values if isinstance(value, torch.Tensor)])
    except _Written as done:
        return done.code
    raise RuntimeError("torch compiled the reference without writing code for it")


def _fake(spec: Input) -> torch.Tensor:
    return torch.empty_strided(spec.shape, spec.stride, dtype=getattr(torch, spec.dtype), device="cuda")


def _stopping(codegen: Callable[..., Any]) -> Callable[..., Any]:
    def stopping(self: Any, *args: Any, **kwargs: Any) -> Any:
        wrapper = codegen(self, *args, **kwargs)[0]
        raise _Written(str(getattr(wrapper, "value", wrapper)))

    return stopping


if __name__ == "__main__":
    answer = main(json.loads(Path(sys.argv[1]).read_text()))
    Path(sys.argv[2]).write_text(json.dumps(answer))
