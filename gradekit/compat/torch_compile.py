"""What gradekit needs of torch.compile's machinery, which has hardly any public names; for torch 2.11 to 2.13.

The machinery takes over a second to import, so each function imports what it needs when it is called. All of this is
for processes that end soon after: nothing that is patched here is put back.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradekit.compat import relies_on

Compiler = Callable[[Any, Any], Callable[..., Any]]
"""What a graph and its inputs are given to, and what runs in the graph's place."""


def load() -> None:
    """Imports what torch.compile imports at its first use, which takes seconds: for while other processes start."""
    with contextlib.suppress(ImportError):
        importlib.import_module("torch._dynamo")
        importlib.import_module("torch._inductor.compile_fx")


# --- a model, compiled without a card ---------------------------------------------------------------------------------


def prepare() -> None:
    """Imports the machinery, told that there is a card for Triton, with all that keeps it from compiling switched off.

    Raises:
        Incompatible: torch lacks a name that is needed. Exception: whatever importing it needs that this machine lacks.
    """
    with relies_on("torch"):
        import torch.utils._triton as about_triton

        about_triton.has_triton = _yes  # type: ignore[assignment]  # before it is imported from there: it wants a GPU
        from torch._dynamo import config
        from torch.testing._internal import optests  # noqa: F401  (what torch.library.opcheck will import)
    config.disable = config.suppress_errors = False


def _yes() -> bool:
    return True


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


# --- the code that torch.compile writes -------------------------------------------------------------------------------

CUDA_INTERNALS = {"_lazy_init": None, "_exchange_device": 0, "_maybe_exchange_device": 0}
"""Functions of torch.cuda that would look for a card, and what they answer where one is pretended."""


class _Written(BaseException):
    """Ends the compiler once the code is there."""

    def __init__(self, code: str) -> None:
        self.code = code


def generated_code(function: Callable[..., Any], inputs: Callable[[], Sequence[Any]]) -> str:
    """The module that torch.compile writes for `function` on what `inputs` makes, tensors that have no data.

    Raises:
        Incompatible: torch lacks a name that is needed. RuntimeError: it wrote nothing. Exception: it fails otherwise.
    """
    with relies_on("torch"):
        from torch._inductor import config, graph
        from torch._inductor.compile_fx import compile_fx
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.proxy_tensor import make_fx

        codegen = graph.GraphLowering.codegen
    config.compile_threads = 1
    graph.GraphLowering.codegen = _stopping(codegen)  # type: ignore[method-assign]
    try:
        with FakeTensorMode():
            values = inputs()
            traced = make_fx(lambda *tensors: function(*tensors), tracing_mode="fake")(*values)
            compile_fx(traced, [value for value in values if isinstance(value, torch.Tensor)])
    except _Written as done:
        return done.code
    raise RuntimeError("torch compiled the reference without writing code for it")


def _stopping(codegen: Callable[..., Any]) -> Callable[..., Any]:
    def stopping(self: Any, *args: Any, **kwargs: Any) -> Any:
        wrapper = codegen(self, *args, **kwargs)[0]
        with relies_on("torch"):
            raise _Written(str(wrapper.value))

    return stopping


def touch_no_card() -> None:
    """Nothing is made or timed on a card while code is generated: searches that would do so are switched off.

    They look for attention, for random permutations and for products worth padding. All other rewriting is as it would
    be with a card: softmax is found, for one.

    Raises:
        Incompatible: torch lacks one of them.
    """
    with relies_on("torch"):
        from torch._inductor.fx_passes import fuse_attention, misc_patterns, pad_mm
        from torch._subclasses import fake_tensor
    searches = (
        (fake_tensor, "init_gpu_context"),  # builds for CUDA would make a tensor on the card
        (fuse_attention, "_sfdp_init"),
        (misc_patterns, "_misc_patterns_init"),
        (pad_mm, "_pad_mm_init"),
    )
    for module, name in searches:
        replace(module, name, _nothing)


def replace(module: Any, name: str, value: Any) -> None:
    """Puts `value` in the place of what a module of torch calls `name`.

    Raises:
        Incompatible: it has no such name.
    """
    with relies_on("torch"):
        getattr(module, name)
    setattr(module, name, value)


def _nothing(*args: Any, **kwargs: Any) -> None:
    pass
