"""A launch keeps the grid, the kernel's TTIR, and the arguments that its function still takes, in order."""

import pytest

from gradekit.findings import Cause
from gradekit.program import Descriptor, Launch, Program, Scalar, View
from tests.beside import beside

from .helpers import X, kinds, only, refused, tensor, traced

LAUNCH = "def entry(x):\n    out = torch.empty_like(x)\n    {}\n    return out\n"


def launch_of(program: Program) -> Launch:
    return only(program.steps, Launch)


@pytest.mark.parametrize(("grid", "recorded"), [
    ("(3,)", (3, 1, 1)),
    ("(3, 4)", (3, 4, 1)),
    ("[3, 4, 5]", (3, 4, 5)),
    ("lambda meta: (triton.cdiv(100, meta['BLOCK']),)", (7, 1, 1)),
    ("torch.Size([2, 3])", (2, 3, 1)),
    ("(x.shape[0],)", (100, 1, 1)),
])
def test_grids_of_every_style_are_recorded(grid: str, recorded: tuple[int, int, int]) -> None:
    program = traced(LAUNCH.format(f"copy_kernel[{grid}](x, out, 100, BLOCK=16)"), X)
    assert launch_of(program).grid == recorded


def test_a_launch_without_a_program_is_no_step_and_its_line_is_kept() -> None:
    program = traced(LAUNCH.format("copy_kernel[(100 // 128,)](x, out, 100, BLOCK=128)"), X)
    assert not list(program.launches()) and [source.line for source in program.empty_grids] == [12]


@pytest.mark.parametrize("call", [
    "copy_kernel[(1,)](x, out, 100, BLOCK=128)",
    "copy_kernel[(1,)](x, out, 100, 128)",
    "copy_kernel[(1,)](n=100, x_ptr=x, BLOCK=tl.constexpr(128), out_ptr=out)",
    "copy_kernel.run(x, out, 100, BLOCK=128, grid=(1,), warmup=False)",
    "copy_kernel.warmup(x, out, 100, BLOCK=128, grid=(1,))[(1, 1, 1)](x, out, 100, 128)",
    "torch.library.wrap_triton(copy_kernel)[(1,)](x, out, 100, 128)",
])
def test_launches_of_every_style_are_the_same(call: str) -> None:
    program = traced(LAUNCH.format(call), X)
    launch = launch_of(program)
    assert launch.args == (X, program.results[0], Scalar(100, "i32"))
    assert launch.source is not None and (launch.source.line, launch.source.function) == (12, "entry")
    assert list(program.kernels) == [launch.kernel]


def test_the_kernel_carries_text_with_locations_and_options() -> None:
    program = traced(LAUNCH.format("copy_kernel[(1,)](x, out, 100, BLOCK=128, num_warps=8, num_stages=2)"), X)
    kernel = program.kernels[launch_of(program).kernel]
    assert kernel.name == "copy_kernel" and program.path == "submission.py"
    assert "tt.func public @copy_kernel" in kernel.ttir and 'loc("submission.py":8:' in kernel.ttir
    assert "tt.load" in kernel.ttir and "tt.return" in kernel.ttir
    assert (kernel.options["num_warps"], kernel.options["num_stages"], kernel.options["num_ctas"]) == (8, 2, 1)


KERNEL = beside(__file__)["kernel"]


def test_constants_are_not_among_the_arguments() -> None:
    program = traced(KERNEL.format(m=1), X)
    out = program.results[0]
    values = (X, out, Scalar(100, "i32"), Scalar(True, "u1"), Scalar(0.5, "fp32"), Scalar(2, "i32"), Scalar(7, "i32"))
    assert launch_of(program).args == values
    assert launch_of(traced(KERNEL.format(m=3), X)).args[3] == Scalar(3, "i32")


@pytest.mark.parametrize("m", [1, 3, 2**40])
def test_the_arguments_are_those_of_the_function(m: int) -> None:
    program = traced(KERNEL.format(m=m), X)
    launch = launch_of(program)
    head = program.kernels[launch.kernel].ttir.partition("tt.func public @kernel(")[2].partition(") attributes")[0]
    assert len(launch.args) == head.count("%")


def test_a_view_is_passed_with_its_offset() -> None:
    program = traced(LAUNCH.format("copy_kernel[(1,)](x[10:], out, 90, BLOCK=128)"), X)
    assert launch_of(program).args[0] == View(0, "float32", (90,), (1,), 10)


def test_an_empty_grid_launches_nothing() -> None:
    program = traced(LAUNCH.format("copy_kernel[(0,)](x, out, 100, BLOCK=128)"), X)
    assert kinds(program.steps) == ["Allocate"] and program.kernels == {}


@pytest.mark.parametrize(("grid", "options", "said"), [
    ("(-1,)", "", "invalid argument"), ("(1, 70000)", "", "invalid argument"), ("(2**31,)", "", "invalid argument"),
    ("(1,)", ", num_warps=64", "out of resource: threads"),
])
def test_a_grid_or_block_that_cuda_refuses_is_refused(grid: str, options: str, said: str) -> None:
    error = refused(LAUNCH.format(f"copy_kernel[{grid}](x, out, 100, BLOCK=128{options})"), X)
    assert error.cause is Cause.EXCEPTION and said in error.message and error.line == 12


def test_a_host_side_descriptor_is_one_argument() -> None:
    body = """
        from triton.tools.tensor_descriptor import TensorDescriptor
        @triton.jit
        def kernel(desc, out_ptr, n):
            block = desc.load([4, 16])
            rows = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
            tl.store(out_ptr + rows, block + n)
        def entry(x):
            out = torch.empty((8, 16), device=x.device)
            kernel[(1,)](TensorDescriptor.from_tensor(x, [8, 16], padding="nan"), out, 7)
            return out
        """
    program = traced(body, tensor(0, 64, 32))
    launch = launch_of(program)
    assert launch.args[0] == Descriptor(View(0, "float32", (64, 32), (32, 1)), (8, 16), "nan")
    assert launch.args[1:] == (program.results[0], Scalar(7, "i32"))


def test_heuristics_fill_in_meta_parameters() -> None:
    body = """
        @triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"]), "EVEN": lambda args: args["n"] % 2 == 0})
        @triton.jit
        def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
            offsets = tl.arange(0, BLOCK)
            tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
        def entry(x):
            out = torch.empty_like(x)
            kernel[(1,)](x, out, x.numel())
            return out
        """
    (kernel,) = traced(body, X).kernels.values()
    assert "tensor<128xi32>" in kernel.ttir


def test_figures_of_the_machine_code_are_real() -> None:
    """n_regs, n_spills and metadata.shared come from ptxas, and the kernel object can be launched"""
    body = """
        def entry(x):
            out = torch.empty_like(x)
            kernel = copy_kernel.warmup(x, out, 100, BLOCK=128, grid=(1,))
            kernel._init_handles()
            assert 8 <= kernel.n_regs <= 255 and kernel.n_spills == 0 and kernel.metadata.shared == 0
            assert kernel.metadata.num_warps == 4 and "ptx" in kernel.asm and kernel.n_max_threads == 1024
            copy_kernel.warmup(torch.float32, torch.float32, 100, BLOCK=128, grid=(1,))
            kernel[(1, 1, 1)](x, out, 100, 128)
            return out
        """
    assert kinds(traced(body, X).steps) == ["Allocate", "Launch"]


def test_kernels_that_say_the_same_are_made_machine_code_of_once() -> None:
    body = """
        def make():
            @triton.jit
            def kernel(x_ptr, out_ptr, B: tl.constexpr):
                at = tl.arange(0, B)
                tl.store(out_ptr + at, tl.load(x_ptr + at))
            return kernel

        def entry(x):
            out = torch.empty_like(x)
            first, second = (make().warmup(x, out, B=32, grid=(1,)) for _ in range(2))
            assert first is not second and first.asm is second.asm and first.n_regs == second.n_regs
            assert first.asm is not make().warmup(x, out, B=64, grid=(1,)).asm
            second[(1, 1, 1)](x, out, 32)
            return out
        """
    assert kinds(traced(body, X).steps) == ["Allocate", "Launch"]


def test_a_kernel_too_large_for_the_gpu_is_told_when_it_is_loaded() -> None:
    body = """
        @triton.jit
        def kernel(a_ptr, out_ptr, n, B: tl.constexpr):
            i = tl.arange(0, B)
            acc = tl.zeros((B, B), tl.float32)
            for k in range(0, n, B):
                a = tl.load(a_ptr + i[:, None] * n + k + i[None, :])
                b = tl.load(a_ptr + (k + i[:, None]) * n + i[None, :])
                acc = tl.dot(a, b, acc)
            tl.store(out_ptr + i[:, None] * B + i[None, :], acc)
        def entry(x):
            kernel.warmup(torch.float16, x, 1024, B=128, num_stages=5, num_warps=8, grid=(1,))._init_handles()
        """
    error = refused(body, X)
    assert error.cause is Cause.EXCEPTION and "out of resource: shared memory" in error.message


@pytest.mark.parametrize(
    "made", ["torch.library.triton_op('gk::op', mutates_args={})", "torch.library.custom_op('gk::op', mutates_args=())"]
)
def test_a_custom_operator_is_traced_through(made: str) -> None:
    body = f"""
        from torch import Tensor
        @{made}
        def op(x: Tensor, n: int) -> Tensor:
            assert x.is_cuda
            out = torch.empty_like(x)
            torch.library.wrap_triton(copy_kernel)[(1,)](x, out, n, BLOCK=128)
            return out
        def entry(x):
            return torch.ops.gk.op(x, 100) if x.shape[0] > 5 else op(x, 100)
        """
    for argument in (X, tensor(0, 3)):
        program = traced(body, argument)
        assert kinds(program.steps) == ["Allocate", "Launch"]
        assert launch_of(program).args[1] == program.results[0]


def test_a_reinterpreted_tensor_has_its_new_dtype() -> None:
    program = traced(LAUNCH.format("copy_kernel[(1,)](triton.reinterpret(x, tl.int32), out, 100, BLOCK=128)"), X)
    assert launch_of(program).args[0] == tensor(0, 100, dtype="int32")


@pytest.mark.parametrize(
    "decorator", ["torch.compile", "torch.compile(fullgraph=True)", "torch.no_grad()", "torch.inference_mode()"]
)
def test_decorators_of_torch_change_nothing(decorator: str) -> None:
    program = traced(f"@{decorator}\n" + LAUNCH.format("copy_kernel[(1,)](x, out, 100, BLOCK=128)"), X)
    assert kinds(program.steps) == ["Allocate", "Launch"]


def test_names_of_any_length_are_taken() -> None:
    """Of a kernel, a host function and a constant, the names are cut off on their way"""
    long = "k" * 60_000
    body = f"""
        @triton.jit
        def {long}(x_ptr, out_ptr, {long}: tl.constexpr):
            tl.store(out_ptr, tl.load(x_ptr) + {long})
        def _{long}(x):
            out = torch.empty_like(x)
            {long}[(1,)](x, out, 64)
            return out
        entry = _{long}
        """
    program = traced(body, X)
    kernel = program.kernels[launch_of(program).kernel]
    assert kernel.name == "k" * 1000 and launch_of(program).source.function == "_" + "k" * 999
    assert kernel.constants == {}


def test_an_option_given_twice_is_an_error_of_tritons_launch() -> None:
    error = refused(LAUNCH.format("copy_kernel.run(x, out, 100, 64, grid=(1,), warmup=False, num_warps=8, **{'num_warps': 4})"), X)
    assert error.line == 12 and "num_warps" in error.message and "gradekit" not in error.message + error.detail
