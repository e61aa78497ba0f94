"""What gradekit needs of torch beyond its public names, and what differs between torch 2.11 and 2.13.

What imports torch.compile's machinery, which takes over a second, is in torch_compile.py.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gradekit.compat import relies_on, torch_import

with relies_on("torch"):
    import torch._compile
    import torch._library.triton
    import torch.utils._device as default_device
    from torch._C import DisableTorchFunction, StorageBase
    from torch._library.custom_ops import OPDEFS
    from torch.utils._python_dispatch import TorchDispatchMode

    _STORAGE_USES = torch._C._storage_Use_Count
    _STORAGE_POINTER = StorageBase.data_ptr  # type: ignore[attr-defined]
    _CONSTRUCTORS = default_device._device_constructors

    # patched below, under names that torch must have
    torch._library.triton.get_inner_triton_kernels  # noqa: B018
    torch._library.triton.wrap_triton_enabled_default  # noqa: B018
    torch._disable_dynamo  # noqa: B018
    getattr(torch.cuda, "_lazy_init")  # noqa: B009

__all__ = ["DisableTorchFunction"]


# --- operators --------------------------------------------------------------------------------------------------------


class DispatchMode(TorchDispatchMode):
    """Sees every operation, below autograd: subclasses define `__torch_dispatch__`."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the wrapper that torch would put around this mode imports all of torch.compile (1.3 s)


@contextlib.contextmanager
def _standing_in(module: torch_import.StandIn) -> Iterator[None]:
    """While open, torch finds `module`, unless it has loaded the real one."""
    name = module.__name__
    if name in sys.modules:
        yield
        return
    sys.modules[name] = module
    try:
        yield
    finally:
        if sys.modules.get(name) is module:
            del sys.modules[name]


SYMBOLIC_SHAPES = "torch.fx.experimental.symbolic_shapes"


_OF_BOOLS = ("expect_true", "guard_or_false", "guard_or_true", "guard_size_oblivious")
"""What that module has that gives a bool back as it is."""


def without_symbolic_shapes() -> contextlib.AbstractContextManager[None]:
    """While open, torch compares shapes and strides without the module for symbolic ones, unless it has loaded it: in
    torch.autograd.grad, and where operators behave on tensors without data (`empty_like` of a transposed one). That
    module imports sympy (0.5 s), and is needed for tensors whose sizes are no ints alone."""
    module = torch_import.StandIn(SYMBOLIC_SHAPES)

    def sym_eq(a: Any, b: Any) -> Any:
        known = all(type(size) is int for shape in (a, b) for size in shape)
        return tuple(a) == tuple(b) if known else module.__getattr__("sym_eq")(a, b)

    def unless(kind: type, name: str, answer: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda value, *rest: answer(value) if type(value) is kind else module.__getattr__(name)(value, *rest)

    guards = {name: unless(bool, name, lambda value: value) for name in _OF_BOOLS}
    vars(module).update(guards, sym_eq=sym_eq, is_nested_int=unless(int, "is_nested_int", lambda size: False))
    return _standing_in(module)


def schema(operator: Any) -> Any:
    """The schema of an operator: `name` ("aten::add"), `arguments`, `is_mutable`."""
    return operator._schema


def by_parts(operator: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operator that torch composes of others ("aten::reshape"); NotImplemented for others."""
    with relies_on("torch"):
        return operator.decompose(*args, **kwargs)


def custom_operator(operator: Any) -> Callable[..., Any] | None:
    """The Python code of an operator that was made with torch.library.custom_op or triton_op; None for torch's own."""
    definition = OPDEFS.get(schema(operator).name)
    if definition is None:
        return None
    with relies_on("torch"):
        functions, first = definition._backend_fns, definition._init_fn
    return functions.get("cuda") or functions.get(None) or first


def float8_product() -> Callable[..., torch.Tensor]:
    """The product of two float8 matrices with a scale for each."""
    with relies_on("torch"):
        product = torch._scaled_mm
    return product


# --- tensors and storages ---------------------------------------------------------------------------------------------


def changes(tensor: torch.Tensor) -> int:
    """How often the tensor, or another that shares its memory, has been written to in place."""
    return tensor._version


def raw_storage(tensor: torch.Tensor) -> Any:
    """torch's own storage object, whatever modes are active."""
    with DisableTorchFunction():
        return tensor.untyped_storage()


def storage_id(raw: Any) -> int:
    """What tells a storage from all others that exist: that of all its Python objects."""
    return raw._cdata


def storage_uses(identity: int) -> int:
    """How many hold the storage that `storage_id` calls so."""
    return _STORAGE_USES(identity)


def storage_pointer(raw: Any) -> int:
    """Where the bytes of a storage on the CPU lie, also while `data_ptr` is patched."""
    return _STORAGE_POINTER(raw)


# --- devices ----------------------------------------------------------------------------------------------------------


def default_is_cuda() -> bool:
    """Whether torch.set_default_device has said that tensors are made on a GPU."""
    current = default_device.CURRENT_DEVICE
    return current is not None and current.type == "cuda"


def obeys_default_device(function: Any) -> bool:
    """Whether `function` makes a tensor on the default device."""
    return function in _CONSTRUCTORS()


INITIALIZE_CUDA = "_lazy_init"  # the function of torch.cuda that starts CUDA


# --- patches ----------------------------------------------------------------------------------------------------------


def never_wrap_triton() -> None:
    """Outside of torch.compile, torch.library.wrap_triton gives the kernel itself."""
    torch._library.triton.wrap_triton_enabled_default = False


def wrapping_triton() -> contextlib.AbstractContextManager[None]:
    """While open, torch.library.wrap_triton wraps, as it does inside of torch.compile."""
    return torch._library.triton.set_wrap_triton_enabled(True)


def keep_dynamo_out() -> None:
    """Spares the import of torch.compile's machinery (1.3 s), which torch begins only to leave helpers alone."""
    torch._library.triton.get_inner_triton_kernels = lambda fn: []  # asked for torch.compile when an operator is made
    torch._disable_dynamo = _as_it_is  # type: ignore[assignment]  # what is wrapped from now on


def _as_it_is(function: Any = None, recursive: bool = True) -> Any:
    return _as_it_is if function is None else function
