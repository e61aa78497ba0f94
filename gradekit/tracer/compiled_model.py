"""What torch itself makes of an entry: the operators that it calls, and how torch.compile sees it in a model.

The model is an ordinary module with eager layers around the entry. It is compiled on tensors without data, by a backend
that writes down the graph that it gets and runs it as it is; then torch's own checks of operators are run. This needs
torch.compile's machinery, which is imported here and by nothing else in this process.
"""

import os
import warnings
from collections.abc import Sequence
from typing import Any

import torch

import gradekit
from gradekit.compat import torch_compile
from gradekit.compat.torch import schema, wrapping_triton
from gradekit.program import Argument, encode
from gradekit.tracer import cuda
from gradekit.tracer.errors import MESSAGE, printable
from gradekit.tracer.loading import LoadedModule
from gradekit.tracer.trace import find_entry, make_arguments

OPCHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
"""Torch's own checks of an operator."""

TORCHS_OWN = ("aten", "prims", "prim", "higher_order", "rngprims")


class Model(torch.nn.Module):
    """A layer, the entry, and a use of its result. The entry gets a transposed tensor for one not contiguous."""

    def __init__(self, entry: Any, first: torch.Tensor) -> None:
        super().__init__()
        width, self.is_plain = first.shape[-1], first.is_contiguous()
        self.layer = torch.nn.Linear(width, width, device=first.device, dtype=first.dtype)
        self.entry = lambda *args: entry(*args)  # torch 2.11 does not follow Function.apply as an attribute

    def forward(self, first: torch.Tensor, *others: Any) -> Any:
        """twice entry(layer(first), ...)"""
        x = self.layer(first)
        return self.entry(x if self.is_plain else x.mT.contiguous().mT, *others) * 2


def inspect(loaded: LoadedModule, entry: str, args: Sequence[Argument], wanted: Sequence[int]) -> dict[str, Any]:
    """What torch makes of a model around `entry`, which wants gradients of the arguments at these positions: a
    gradekit.framework.Inspection as data. Raises Refusal where no such function takes these arguments."""
    function = find_entry(loaded, entry, len(args))
    values = make_arguments(args, wanted)
    for position in wanted:
        values[position].requires_grad_()
    os.environ.pop("TORCHDYNAMO_DISABLE", None)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.dirname(loaded.path)
    os.environ.setdefault("LOGNAME", "student")  # a process of no known user has no name otherwise, and torch asks
    seen = _Seen()
    with cuda.as_it_is(), warnings.catch_warnings(), wrapping_triton():
        warnings.simplefilter("ignore")
        error = seen.compile(Model(function, values[0]), values)
        checks = {name: _opcheck(seen.called, name, values) for name in OPCHECKS} if seen.called else {}
        # a machine that cannot compile a model of nothing but torch is no fault of the submission
        if error and (unavailable := _Seen().compile(Model(torch.relu, values[0]), values[:1])):
            return _Seen().as_data() | {"error": "", "checks": encode({}), "unavailable": unavailable}
    return seen.as_data() | {"error": error, "checks": encode(checks), "unavailable": ""}


class _Seen:
    def __init__(self) -> None:
        self.graphs: list[list[str]] = []
        self.forward: list[str] = []
        self.backward: list[str] = []
        self.called: Any = None  # the first operator that is not torch's own

    def compile(self, model: torch.nn.Module, values: Sequence[Any]) -> str:
        """Compiles `model` as one graph, runs it and goes back through it; what went wrong, or ""."""

        def backend(graph: Any, inputs: Any) -> Any:
            self._note_graph(graph)
            lowered = torch_compile.lowered(forward=self._noted(self.forward), backward=self._noted(self.backward))
            return lowered(graph, inputs)

        try:
            torch_compile.prepare()
            torch.compiler.reset()  # what was compiled before
            torch_compile.as_one_graph(model, backend)(*values).sum().backward()
        except Exception as error:  # noqa: BLE001  (student code, and all of torch.compile)
            return _message(error)
        return ""

    def as_data(self) -> dict[str, Any]:
        """The part of the answer that is known here."""
        return {
            "is": "Inspection", "schema": str(schema(self.called)) if self.called else "", "graphs": self.graphs,
            "forward": self.forward, "backward": self.backward,
        }  # fmt: skip

    def _note_graph(self, graph: Any) -> None:
        nodes = [node for part in graph.modules() if hasattr(part, "graph") for node in part.graph.nodes]
        self.graphs.append([_name(node.target) for node in nodes if node.op.startswith("call")])
        own = (found for node in nodes if (found := _own(node.target)) is not None)
        self.called = self.called or next(own, None)

    def _noted(self, names: list[str]) -> Any:
        def compiler(graph: Any, inputs: Any) -> Any:
            names.extend(_name(node.target) for node in graph.graph.nodes if node.op.startswith("call"))
            return torch_compile.as_it_stands(graph)

        return compiler


def _own(target: Any) -> Any:
    """The operator that a node calls, if it is not torch's own."""
    operator = torch_compile.operator_called(target)
    return operator if operator is not None and operator.namespace not in TORCHS_OWN else None


def _name(target: Any) -> str:
    return printable(str(torch_compile.operator_name(target) or getattr(target, "__name__", target)))[:200]


def _opcheck(operator: Any, name: str, values: Sequence[Any]) -> str:
    try:
        torch.library.opcheck(operator, tuple(values), test_utils=name)
    except Exception as error:  # noqa: BLE001  (student code, and all of torch.compile)
        return _message(error)
    return ""


def _message(error: Exception) -> str:
    import traceback

    traceback.print_exc()
    lines = [line for line in without_installation(str(error)).splitlines() if line.strip()] or [""]
    return printable(f"{type(error).__name__}: {' '.join(lines[:6])}")[:MESSAGE]


def without_installation(text: str) -> str:
    """`text` with files of gradekit and torch by where they are installed: records are the same everywhere."""
    folders = [os.path.dirname(os.path.dirname(package.__file__ or "")) for package in (gradekit, torch)]
    for folder in sorted(folders, key=len, reverse=True):  # the one may lie in the other
        text = text.replace(os.path.join(folder, ""), "")
    return text
