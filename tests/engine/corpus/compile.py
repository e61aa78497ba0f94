"""A corpus entry as the program that the tracer would make of it: TTIR text and one launch."""

import functools
import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

from corpus.case import CASES, Case
from gradekit.program import ITEMSIZE, Allocate, Copy, Kernel, Launch, Program, Scalar, View

TARGET = GPUTarget("cuda", 90, 32)
_POINTERS = {
    torch.bool: "*i1", torch.int8: "*i8", torch.uint8: "*u8", torch.int16: "*i16", torch.uint16: "*u16",
    torch.int32: "*i32", torch.uint32: "*u32", torch.int64: "*i64", torch.uint64: "*u64", torch.float16: "*fp16",
    torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.float64: "*fp64", torch.float8_e4m3fn: "*fp8e4nv",
    torch.float8_e5m2: "*fp8e5",
}  # fmt: skip


def ttir(case: Case, *, simplified: bool = True) -> str:
    """The kernel's TTIR with locations: after Triton's passes, as a submission has it, or as the front end wrote it."""
    return _ttir(case.name, simplified)


@functools.cache
def _ttir(name: str, simplified: bool) -> str:
    return compiled(CASES[name], simplified)


def compiled(case: Case, simplified: bool = True) -> str:
    """The TTIR of any case, registered or not; nothing is remembered."""
    arguments = case.arguments()
    constants = {p.name: arguments[p.name] for p in case.parameters if _is_constant(p, arguments[p.name])}
    signature = {name: "constexpr" if name in constants else _type(value) for name, value in arguments.items()}
    signature = {p.name: signature[p.name] for p in case.parameters}
    backend = make_backend(TARGET)
    options = backend.parse_options(case.options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(fn=case.kernel, signature=signature, constexprs=constants, attrs={})
    implementation = backend.get_codegen_implementation(options)
    module = source.make_ir(TARGET, options, implementation, backend.get_module_map(), context)
    return str(backend.make_ttir(module, {}, options, 90) if simplified else module)


def program(case: Case, text: str = "", *, copies: bool = True) -> Program:
    """The launch of `case`, of the TTIR `text` if given: every tensor argument is an input and, after the launch, a result.

    With `copies` the launch works on copies of the inputs, so that the engine has no reason to examine every access;
    without, it writes to its inputs, and every lane is examined.
    """
    arguments = case.arguments()
    tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    inputs = {name: _view(number, tensor) for number, (name, tensor) in enumerate(tensors.items())}
    used = {name: replace(view, storage=100 + view.storage) for name, view in inputs.items()} if copies else inputs
    passed = [p.name for p in case.parameters if not _is_constant(p, arguments[p.name])]
    launch = Launch("kernel", _grid(case.grid), tuple(used.get(name) or _scalar(arguments[name]) for name in passed))
    return Program(
        inputs=tuple(inputs.values()), storages={view.storage: _bytes(view) for view in inputs.values()},
        steps=(*(_copied(inputs, used) if copies else ()), launch), results=tuple(used.values()), returned="tuple",
        kernels={"kernel": Kernel(case.name, text or ttir(case))},
    )


def _copied(inputs: dict[str, View], used: dict[str, View]) -> Iterator[Allocate | Copy]:
    for name, view in used.items():
        yield Allocate(view.storage, _bytes(view))
        yield Copy(view, inputs[name])


def _bytes(view: View) -> int:
    return view.numel * ITEMSIZE[view.dtype]


def _grid(grid: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*grid, 1, 1)[:3]
    return x, y, z


def _view(storage: int, tensor: torch.Tensor) -> View:
    return View(storage, str(tensor.dtype)[6:], tuple(tensor.shape), tensor.stride())


def _scalar(value: Any) -> Scalar:
    return Scalar(value, _type(value))


def _is_constant(parameter: inspect.Parameter, value: Any) -> bool:
    return value is None or parameter.annotation in (tl.constexpr, "tl.constexpr")


def _type(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return _POINTERS[value.dtype]
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    return "fp32"
