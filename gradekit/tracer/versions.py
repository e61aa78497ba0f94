"""What differs between Triton 3.6 and 3.9, and which of Triton's private names the tracer relies on: all of it here."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._compile
import torch._library.triton
from torch._library.custom_ops import OPDEFS
from triton._C.libtriton import ir, nvidia
from triton.backends.compiler import GPUTarget, Language
from triton.backends.nvidia import compiler
from triton.compiler.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction

TARGET = GPUTarget("cuda", 90, 32)
"""The GPU that submissions see: Hopper, the oldest on which every construct of the front end is accepted."""

_JIT_FUNCTIONS: list[weakref.ref[JITFunction]] = []


def lower(source: ASTSource, options: dict[str, Any]) -> tuple[str, list[str], Any]:
    """Compiles `source` as far as the ttir passes: the module's text with locations, the types of the arguments that
    its function takes, and the backend's parsed options.

    Raises:
        triton.CompilationError: the front end refuses the kernel.
        RuntimeError: a pass or the verifier does; what MLIR says goes to the standard error descriptor.
    """
    backend = _backend()
    parsed = backend.parse_options(dict(options))
    generators = backend.get_codegen_implementation(parsed)
    module = source.make_ir(TARGET, parsed, generators, backend.get_module_map(), _context())
    module = _ttir_passes(backend, module, parsed)
    entry = module.get_function(module.get_entry_func_name())
    return str(module), [str(kind) for kind in module.get_function_signature(entry)], parsed


def signature(path: str) -> list[str]:
    """The types of the arguments of the kernel whose TTIR the file `path` holds, if MLIR and Triton accept it.

    Raises:
        RuntimeError: they do not.
    """
    module = _parsed(path)
    entry = module.get_function(module.get_entry_func_name())
    return [str(kind) for kind in module.get_function_signature(entry)]


def shared_memory(path: str, options: Any) -> int:
    """The bytes of shared memory of a block of the kernel whose TTIR the file `path` holds; `options` are the backend's.

    Raises:
        RuntimeError: a pass fails.
    """
    backend, module, metadata = _backend(), _parsed(path), dict[str, Any]()
    module = backend.make_ttgir(module, metadata, options, TARGET.arch)
    try:
        with _stopping_at_the_allocation() if options.num_ctas == 1 else contextlib.nullcontext():
            backend.make_llir(module, metadata, options, TARGET.arch)
        return metadata["shared"]  # of a cluster, whose barriers come later; or this release's pass has another name
    except _Allocated as stop:
        stop.passes.run(module, "shared_memory")
        return module.get_int_attr("ttg.shared")


class _Allocated(Exception):
    """`passes` is a manager of those as far as the one that gives out shared memory."""

    def __init__(self, passes: Any) -> None:
        self.passes = passes


@contextlib.contextmanager
def _stopping_at_the_allocation() -> Iterator[None]:
    name = "add_allocate_shared_memory_nv"
    ours, theirs = vars(nvidia.passes.ttgpuir), vars(nvidia.passes)

    def stop(passes: Any, *args: Any) -> None:
        ours[name](passes, *args)
        raise _Allocated(passes)

    ttgpuir = types.SimpleNamespace(**{**ours, name: stop})
    passes = types.SimpleNamespace(**{**theirs, "ttgpuir": ttgpuir})
    compiler.nvidia = types.SimpleNamespace(**{**vars(nvidia), "passes": passes})
    try:
        yield
    finally:
        compiler.nvidia = nvidia


def cubin(path: str, options: Any) -> bytes:
    """The machine code of the kernel whose TTIR the file `path` holds; `options` are the backend's.

    Raises:
        RuntimeError: a pass fails. PTXASError: ptxas does.
    """
    stages: dict[str, Any] = {}
    _backend().add_stages(stages, options, Language.TRITON)
    stages.pop("ttir")
    module, metadata = _parsed(path), dict[str, Any]()
    for stage in stages.values():
        module = stage(module, metadata)
    return module


def _parsed(path: str) -> Any:
    context = _context()
    module = ir.parse_mlir_module(path, context)
    module.context = context
    return module


@functools.cache
def _backend() -> Any:
    return make_backend(TARGET)


@functools.cache
def _context() -> Any:
    """What MLIR knows of its dialects and types. One serves for all: to make one takes nearly as long as to compile a kernel."""
    context = ir.context()
    ir.load_dialects(context)
    _backend().load_dialects(context)
    return context


def _ttir_passes(backend: Any, module: Any, options: Any) -> Any:
    if len(inspect.signature(backend.make_ttir).parameters) == 4:
        return backend.make_ttir(module, {}, options, TARGET.arch)
    return backend.make_ttir(module, {}, options)


def definition_line(function: JITFunction) -> int:
    """The 1-based line of the file on which the function's `def` stands (decorators come before it)."""
    for offset, text in enumerate(function.raw_src):
        if text.lstrip().startswith("def "):
            return function.starting_line_number + offset
    return function.starting_line_number


def custom_operator(operator: Any) -> Callable[..., Any] | None:
    """The Python code of an operator that was made with torch.library.custom_op or triton_op; None for torch's own."""
    definition = OPDEFS.get(operator._schema.name)
    if definition is None:
        return None
    functions = definition._backend_fns
    return functions.get("cuda") or functions.get(None) or definition._init_fn


def jit_functions() -> list[JITFunction]:
    """Every jit function of the submission that exists now."""
    return [function for reference in _JIT_FUNCTIONS if (function := reference()) is not None]


def watch_jit_functions() -> None:
    """From now on, `jit_functions` knows every new one."""
    initialize = JITFunction.__init__

    def watched(self: JITFunction, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        _JIT_FUNCTIONS.append(weakref.ref(self))  # a list: to hash a jit function is to read all that it refers to

    JITFunction.__init__ = watched


def settle_arguments(settled: Callable[[Any], Any]) -> None:
    """From now on, every argument of a kernel is what `settled` makes of it; the grid is left as it is."""
    run = JITFunction.run

    def settling(self: JITFunction, *args: Any, grid: Any, **named: Any) -> Any:
        return run(self, *map(settled, args), grid=grid, **{name: settled(value) for name, value in named.items()})

    JITFunction.run = settling


def parse_once() -> None:
    """From now on, the source of a jit function is parsed once, not for each compilation that it is a part of."""
    parse = JITFunction.parse
    trees: dict[str, Any] = {}

    def parsed(self: JITFunction) -> Any:
        if self.src not in trees:
            trees[self.src] = parse(self)
        return trees[self.src]

    JITFunction.parse = parsed


def keep_dynamo_out() -> None:
    """Spares the import of torch.compile's machinery (1.3 s), which torch begins on the first sum of two tensors
    without data, only to ask it not to compile its own helpers. Nothing is compiled in this process.
    """
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and thing.__code__.co_filename == torch._compile.__file__:
            helper = dict(zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)).get("fn")
            if helper is not None:
                helper.cell_contents.__dynamo_disable = helper.cell_contents  # where torch keeps the uncompiled one
    torch._library.triton.get_inner_triton_kernels = lambda fn: []  # asked for torch.compile when an operator is made
    torch._disable_dynamo = _as_it_is  # type: ignore[assignment]  # what is wrapped from now on, by torch.library.custom_op


def _as_it_is(function: Any = None, recursive: bool = True) -> Any:
    return _as_it_is if function is None else function
