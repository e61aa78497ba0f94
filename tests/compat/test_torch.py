"""What gradekit expects of torch's private names. Patches are tried in a process of their own (patched.py)."""

import gc
from typing import Any

import pytest
import torch

from gradekit.compat.torch import (
    DisableTorchFunction,
    DispatchMode,
    changes,
    custom_operator,
    default_is_cuda,
    float8_product,
    obeys_default_device,
    raw_storage,
    schema,
    storage_id,
    storage_pointer,
    storage_uses,
)
from tests import zygote


def test_torchs_own_operators_have_no_code_in_python() -> None:
    assert custom_operator(torch.ops.aten.add.Tensor) is None


def test_an_operators_schema_says_what_it_writes_to() -> None:
    add_, add = schema(torch.ops.aten.add_.Tensor), schema(torch.ops.aten.add.Tensor)
    assert (add_.name, add_.is_mutable, add.is_mutable) == ("aten::add_", True, False)
    written = [argument.name for argument in add_.arguments if argument.alias_info and argument.alias_info.is_write]
    assert written == ["self"]


class Names(DispatchMode):
    """Notes the names of operations."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(schema(func).name)
        return func(*args, **(kwargs or {}))


def test_a_dispatch_mode_sees_the_operations_of_a_backward_pass_too() -> None:
    x = torch.ones(3, requires_grad=True)
    with Names() as seen:
        (x * 2).sum().backward()
    assert {"aten::mul", "aten::sum", "aten::expand"} <= set(seen.names)


def test_a_write_through_a_view_is_a_change() -> None:
    x = torch.zeros(4)
    before = changes(x)
    x[1:].fill_(1)
    assert changes(x) > before
    assert changes(x) == changes(x + 0 * x) + 1


def test_views_share_a_storage_that_is_told_from_all_others() -> None:
    x, y = torch.zeros(4, device="meta"), torch.zeros(4, device="meta")
    assert storage_id(raw_storage(x)) == storage_id(raw_storage(x[1:])) != storage_id(raw_storage(y))


def test_who_holds_a_storage_is_counted() -> None:
    x = torch.zeros(4, device="meta")
    raw = raw_storage(x)
    alone = storage_uses(storage_id(raw))
    view = x[1:]
    assert storage_uses(storage_id(raw)) == alone + 1
    del x, view
    gc.collect()
    assert storage_uses(storage_id(raw)) == 1


def test_the_pointer_of_a_storage_is_where_its_tensor_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.arange(4)
    monkeypatch.setattr(torch.UntypedStorage, "data_ptr", lambda storage: 1)
    assert x.untyped_storage().data_ptr() == 1
    assert storage_pointer(raw_storage(x)) == x.data_ptr()


class Nothing(torch.overrides.TorchFunctionMode):
    """Answers every call with None."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return None


def test_function_modes_can_be_left_out() -> None:
    with Nothing():
        assert torch.ones(1) is None
        with DisableTorchFunction():
            assert torch.ones(1) is not None
        assert raw_storage(torch.Tensor.__new__(torch.Tensor)) is not None


def test_the_default_device_is_known() -> None:
    assert not default_is_cuda()
    torch.set_default_device("cuda")
    found = default_is_cuda()
    torch.set_default_device(None)
    assert found and not default_is_cuda()


def test_what_makes_a_tensor_obeys_the_default_device() -> None:
    assert obeys_default_device(torch.empty) and obeys_default_device(torch.tensor)
    assert not obeys_default_device(torch.add) and not obeys_default_device(torch.empty_like)


def test_float8_matrices_are_multiplied() -> None:
    a = torch.eye(16).to(torch.float8_e4m3fn)
    one = torch.ones(())
    product = float8_product()(a, (2 * torch.eye(16)).to(a.dtype).t(), one, one, out_dtype=torch.bfloat16)
    assert torch.equal(product, 2 * torch.eye(16, dtype=torch.bfloat16))


GRADIENTS = """
x = torch.arange(6.0).view(2, 3).requires_grad_()
with without_symbolic_shapes():
    (found,) = torch.autograd.grad((x * x).sum(1), [x], torch.ones(2))
    try:
        torch.autograd.grad((x * x).sum(1), [x], torch.ones(3))
    except RuntimeError as error:
        print("Mismatch in shape" in str(error))
print(torch.equal(found, 2 * x), "sympy" not in sys.modules, SYMBOLIC_SHAPES not in sys.modules)
"""
LAYOUTS = """
import torch._meta_registrations
there = torch.empty(2, 3, 4)
with without_symbolic_shapes():
    for x in (there, there.mT, there[:, ::2].transpose(0, 2)):
        print(torch.empty_like(x.to("meta")).stride() == torch.empty_like(x).stride())
print("sympy" not in sys.modules)
"""
ASKED_FOR = """
with without_symbolic_shapes():
    from torch.fx.experimental.symbolic_shapes import ShapeEnv, sym_eq
    print(hasattr(sys.modules[SYMBOLIC_SHAPES], "__file__"), sys.modules[SYMBOLIC_SHAPES].ShapeEnv is ShapeEnv)
print(SYMBOLIC_SHAPES in sys.modules, torch.fx.experimental.symbolic_shapes.ShapeEnv is ShapeEnv)
"""


@pytest.mark.parametrize("code", [GRADIENTS, LAYOUTS, ASKED_FOR], ids=["gradients", "layouts", "asked for"])
def test_gradients_and_layouts_need_no_symbolic_shapes_and_whoever_asks_for_them_gets_them(code: str) -> None:
    head = "import sys, torch\nfrom gradekit.compat.torch import SYMBOLIC_SHAPES, without_symbolic_shapes\n"
    done = zygote.ran(["-c", head + code])
    assert done.stdout.split() == ["True"] * 4, done.stderr
