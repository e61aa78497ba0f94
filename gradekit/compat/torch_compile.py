"""What gradekit needs of torch.compile's machinery, which has hardly any public names; for torch 2.11 to 2.13.

The machinery takes over a second to import, so each function imports what it needs when it is called. All of this is
for processes that end soon after: nothing that is patched here is put back.
"""

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import torch

from gradekit.compat import relies_on, torch_import

Compiler = Callable[[Any, Any], Callable[..., Any]]
"""What a graph and its inputs are given to, and what runs in the graph's place."""


def load() -> None:
    """Imports what torch.compile imports at its first use, which takes seconds: for while other processes start."""
    with contextlib.suppress(ImportError):
        torch_import.in_python()
        importlib.import_module("torch._dynamo")
        # a check compiles a graph or two, and a pool of processes for that takes seconds, also to end
        importlib.import_module("torch._inductor.config").compile_threads = 1  # type: ignore[attr-defined]
        importlib.import_module("torch._inductor.compile_fx")


# --- a model, compiled without a card ---------------------------------------------------------------------------------


def prepare() -> None:
    """Imports the machinery, told that there is a card for Triton, with what keeps it from compiling switched off.
    Raises Incompatible where torch lacks a name, and Exception where this machine lacks what it needs."""
    torch_import.in_python()
    with relies_on("torch"):
        import torch.utils._triton as about_triton

        about_triton.has_triton = lambda: True  # type: ignore[assignment]  # before it is imported: it wants a GPU
        from torch._dynamo import config
        from torch.testing._internal import optests  # noqa: F401  (what torch.library.opcheck will import)
    config.disable = config.suppress_errors = False


def as_one_graph(model: torch.nn.Module, backend: Compiler) -> Callable[..., Any]:
    """`model` compiled by `backend`; fails where it is not one graph. As torch.compile, which the tracer replaces."""
    with relies_on("torch"):
        from torch._dynamo import optimize
    return optimize(backend, nopython=True)(model)


def lowered(forward: Compiler, backward: Compiler) -> Compiler:
    """A backend that takes a graph's operators apart, as far as torch can, and gives each half to its own compiler."""
    with relies_on("torch"):
        from torch._dynamo.backends.common import aot_autograd
    return aot_autograd(fw_compiler=forward, bw_compiler=backward)


def as_it_stands(graph: Any) -> Callable[..., Any]:
    """What a compiler of `lowered` gives that changes nothing."""
    with relies_on("torch"):
        from torch._functorch.aot_autograd import make_boxed_func
    return make_boxed_func(graph.forward)


def operator_called(target: Any) -> Any:
    """The operator that a graph's node calls, with its overload; None where it calls something else."""
    with relies_on("torch"):
        from torch._ops import OpOverload, OpOverloadPacket
    if isinstance(target, OpOverloadPacket):
        target = getattr(target, target.overloads()[0])
    return target if isinstance(target, OpOverload) else None


def operator_name(target: Any) -> str | None:
    """What torch calls an operator, one of higher order too; None of anything else."""
    with relies_on("torch"):
        from torch._ops import HigherOrderOperator, OpOverload
    return target.name() if isinstance(target, (HigherOrderOperator, OpOverload)) else None
