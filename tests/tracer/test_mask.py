"""Tensors without data answer as CUDA tensors; reading a value is refused with the line and the reason."""

from __future__ import annotations

import pytest

from gradekit.findings import Cause
from gradekit.program import ADDRESS_GAP, Allocate, Launch, Literal, Program, Scalar, View

from .helpers import SCALAR, X, only, refused, tensor, traced


@pytest.mark.parametrize(
    "claim",
    [
        "x.is_cuda and not x.is_meta and not x.is_cpu",
        "x.device == torch.device('cuda', 0) and x.device.type == 'cuda' and x.device.index == 0",
        "x.get_device() == 0",
        "torch.empty(3, device='cuda').device == x.device",
        "torch.empty(3, device='cuda:0').is_cuda",
        "torch.empty(3, device=0).is_cuda",
        "torch.empty_like(x).is_cuda and x.new_empty(3).is_cuda",
        "torch.empty(3).device.type == 'cpu' and not torch.empty(3).is_cuda",
        "torch.empty(3).cuda().is_cuda and torch.empty(3).to('cuda').is_cuda and torch.empty(3).to(x.device).is_cuda",
        "torch.empty(3).to(x).is_cuda and torch.empty(3).to('cuda', torch.float16).dtype is torch.float16",
        "x.to('cuda') is x and x.cuda() is x",
        "x.type() == 'torch.cuda.FloatTensor'",
        "x.data_ptr() % 256 == 0 and x[1:].data_ptr() == x.data_ptr() + 4",
        "torch.empty(0, device='cuda').data_ptr() == 0",
        "x.untyped_storage().data_ptr() == x.data_ptr() and torch.empty(3).untyped_storage().data_ptr() > 0",
        "torch.rand(3, device='cuda', generator=torch.Generator(device='cuda').manual_seed(1)).is_cuda",
        "x.record_stream(torch.cuda.Stream()) is None",
        "torch.cuda.nvtx.range_push('a') is None and torch.cuda.nvtx.range_pop() is None",
        "torch.empty(3, device='cuda').data_ptr() != x.data_ptr()",
        "'cuda:0' in repr(x) and 'cuda:0' in f'{x.sum()}' and str(x)",
        "torch.randn(3, device='cuda', generator=None).is_cuda",
        "torch.nn.Parameter(torch.empty(3, device='cuda')).is_cuda",
        "torch.nn.Linear(3, 4).cuda().weight.is_cuda and torch.nn.Linear(3, 4, device='cuda').weight.is_cuda",
        "torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0",
        "torch.cuda.get_device_properties(0).multi_processor_count == 132",
        "torch.cuda.get_device_properties(x.device).warp_size == 32",
        "torch.cuda.get_device_capability() == (9, 0) and 'H100' in torch.cuda.get_device_name()",
        "torch.cuda.synchronize() is None and torch.cuda.current_stream().cuda_stream == 0",
        "torch.cuda.Event(enable_timing=True).elapsed_time(torch.cuda.Event()) > 0",
        "triton.runtime.driver.active.get_current_target().backend == 'cuda'",
        "triton.runtime.driver.active.get_active_torch_device() == x.device",
        "triton.runtime.driver.active.get_device_interface() is torch.cuda",
        "triton.runtime.driver.active.utils.get_device_properties(0)['max_shared_mem'] == 232448",
        "triton.testing.do_bench(lambda: x + 1) > 0",
        "len(triton.testing.do_bench(lambda: x + 1, quantiles=[0.5, 0.2, 0.8])) == 3",
        "x.stride() == (1,) and x.is_contiguous() and x.numel() == 100 and x.nelement() * x.element_size() == 400",
    ],
)
def test_a_submission_sees_a_gpu(claim: str) -> None:
    program = traced(f"def entry(x):\n    return bool({claim})", X)
    assert program.results == (Scalar(True),)


@pytest.mark.parametrize(
    "code",
    [
        "with torch.device('cuda'):\n        y = torch.empty(5)",
        "torch.set_default_device('cuda')\n    y = torch.empty(5)",
        "with torch.cuda.device(0):\n        y = torch.empty(5, device='cuda')",
        "with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()):\n        y = x.new_empty(5)",
        "with torch.no_grad():\n        y = torch.empty(5, device=x.device)",
        "with torch.autocast('cuda', enabled=False):\n        y = torch.empty(5, device=x.device)",
    ],
)
def test_a_default_device_is_honoured(code: str) -> None:
    program = traced(f"def entry(x):\n    {code}\n    assert y.is_cuda\n    return y", X)
    assert only(program.steps, Allocate).nbytes == 20


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("x.sum().item()", "item()"),
        ("float(x[0])", "float(...)"),
        ("int(x[0])", "int(...)"),
        ("bool(x.any())", "bool(...)"),
        ("1 if x.sum() > 0 else 2", "if"),
        ("x.tolist()", "tolist()"),
        ("x.cpu()", "cpu()"),
        ("x.to('cpu')", "CPU"),
        ("torch.empty(100).copy_(x)", "CPU"),
        ("x.numpy()", "numpy()"),
        ("torch.equal(x, x)", "torch.equal"),
        ("torch.allclose(x, x)", "torch.allclose"),
        ("x[x > 0]", "values"),
        ("x.nonzero()", "nonzero"),
        ("torch.unique(x)", "values"),
        ("torch.zeros(int(x.max()))", "int(...)"),
        ("[1, 2, 3][x.long()[0]]", "index"),
        ("range(x.long()[0])", "index"),
        ("list(map(float, x))", "float(...)"),
        ("3.0 in x", "in"),
        ("torch.tensor([x[0], x[1]])", "values"),
    ],
)
def test_reading_a_value_is_refused(code: str, named: str) -> None:
    error = refused(f"def entry(x):\n    y = 1\n    return {code}", X)
    assert error.cause is Cause.READS_VALUES, error.message
    assert error.line == 12
    assert named in error.message and "values of a tensor" in error.message


def test_reading_values_on_the_cpu_is_allowed() -> None:
    program = traced("def entry(x, s):\n    return int(torch.arange(5).sum()) + torch.tensor([s]).item()", X, SCALAR)
    assert program.results == (Scalar(12.5),)


def test_two_devices_do_not_mix() -> None:
    """Adding a CPU tensor to a GPU tensor fails as on a GPU"""
    error = refused("def entry(x):\n    return x + torch.ones(100)", X)
    assert error.cause is Cause.EXCEPTION and "same device" in error.message and error.line == 11


def test_a_number_on_the_cpu_mixes_with_anything() -> None:
    program = traced("def entry(x):\n    return x * torch.tensor(2.0)", tensor(0, 3))
    assert Scalar(2.0) in program.steps[-1].args


# --- what data_ptr() answers ------------------------------------------------------------------------------------------


TABLE = """
def entry(x, y):
    out = torch.empty_like(x)
    table = torch.tensor([out.data_ptr(), y[3:].data_ptr()], device="cuda")
    copy_kernel[(1,)](x, table, 1, BLOCK=16)
    return out
"""


def owners(program: Program, number: int) -> list[int]:
    return [id for id, start in program.addresses.items() if 0 <= number - start < ADDRESS_GAP]


def test_a_table_of_pointers_comes_with_whose_addresses_they_are() -> None:
    program = traced(TABLE, X, tensor(7, 50))
    out, inner = only(program.steps, Literal).values
    made = next(step.storage for step in program.steps if isinstance(step, Allocate))
    assert owners(program, int(out)) == [made]
    assert owners(program, int(inner)) == [7]
    assert int(inner) - program.addresses[7] == 12


@pytest.mark.parametrize(("looks", "given", "owners"), [("x", "x.data_ptr()", [0]), ("x.data_ptr() % 16 == 0", "5", [])])
def test_an_address_passed_to_a_kernel_comes_with_its_owner_and_one_looked_at_leaves_no_trace(
    looks: str, given: str, owners: list[int]
) -> None:
    body = f"def entry(x):\n    {looks}\n    copy_kernel[(1,)](x, x, {given}, BLOCK=16)\n    return x"
    assert list(traced(body, X).addresses) == owners


TYPED = """
class Pointer:
    def __init__(self, address, dtype):
        self.address, self.dtype = address, dtype
    def data_ptr(self):
        return self.address

def entry(x):
    out = torch.empty_like(x)
    copy_kernel[(1,)](Pointer({address}, torch.int32), out, 5, BLOCK=16)
    return out
"""


def test_whatever_has_an_address_and_a_dtype_is_a_pointer() -> None:
    launch = only(traced(TYPED.format(address="x.data_ptr() + 12"), X).steps, Launch)
    assert launch.args[0] == View(0, "int32", (), (), 3)


def test_an_address_of_nothing_is_refused_as_triton_does() -> None:
    error = refused(TYPED.format(address="4096"), X)
    assert "Pointer argument (at 0) cannot be accessed from Triton" in error.message
