"""Triton's compiler replaced by one that stops at TTIR, and the kernels it gives, whose launches are recorded.

Triton itself binds the arguments, specializes, looks into its cache, evaluates the grid and calls `run`: only the
compiler and the launcher are ours, so what a submission meets is what it would meet on a GPU.
"""

from __future__ import annotations

import ast
import contextlib
import io
import operator
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch
from triton import CompilationError, OutOfResources
from triton.tools.tensor_descriptor import TensorDescriptor

from gradekit.compat.torch import DisableTorchFunction
from gradekit.compat.triton import (
    TARGET,
    CodeGenerator,
    launch_options,
    lower,
    machine_code,
    parsed_options,
    plain_constants,
    resource_usage,
    use_compiler,
    visited,
)
from gradekit.program import ITEMSIZE, LARGEST_GRID, Argument, Descriptor, Kernel, Launch, Scalar, View, key_of
from gradekit.tracer import cuda
from gradekit.tracer.errors import BeyondBudget, PassesFailed, quoted, shortened
from gradekit.tracer.lowering import Alignments, Lowered, LoweredElsewhere, UnitArguments, Visit, source_key, summary
from gradekit.tracer.recorder import NAME, Recorder
from gradekit.wire import ForkedCache

DTYPES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "fp8e5": "float8_e5m2",
    "fp8e4nv": "float8_e4m3fn", "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip
"""Triton's names of dtypes, and torch's."""


class Compiler:
    """Stands in for `triton.compile` in this process; `kernels` holds every kernel that was ever launched, by key."""

    def __init__(self, recorder: Recorder, told: ForkedCache | None = None) -> None:
        self.recorder = recorder
        self.elsewhere = LoweredElsewhere(recorder.path, told)
        self.kernels: dict[str, Kernel] = {}
        self.budget = LoweringBudget()
        self.exact = True  # whether a program is to have each kernel as Triton specializes it for the launch
        self._alignments = Alignments(self._lower)
        self._unit_arguments = UnitArguments(self._alignments.lower, self._walk, self.elsewhere)
        self._failed: dict[str, tuple[Any, CompilationError]] = {}

    def install(self) -> None:
        """Makes Triton use it, for every jit function that has not compiled anything yet."""
        use_compiler(self)
        self.budget.install()

    def __call__(self, src: Any, target: Any = None, options: Any = None, **others: Any) -> TracedKernel:
        key = source_key(src, options or {})
        if key in self._failed:
            raise self._failed[key][1].with_traceback(None)
        if src.ext != "ttir":
            raise NotImplementedError("This kernel is written in Gluon; only Triton's own language is read here.")
        return TracedKernel(self, src, options or {})

    def specialized(self, src: Any, options: dict[str, Any], exact: bool) -> Specialized:
        """The kernel of a launch: `exact`, as Triton specializes it, or as one that serves other launches too. Raises
        CompilationError where the front end refuses it, and PassesFailed where a pass does."""
        key, source = source_key(src, options), src if exact else self._unit_arguments.general(src, options)
        try:
            ttir, parsed = self._alignments.lower(source, options)
        except CompilationError as error:
            self._failed[key] = src, error  # an autotuner meets the same one at every call
            raise
        _assert_no_result(src.fn.__name__, ttir)
        src.hash()  # refuses what a kernel may not refer to, as Triton does; after `_lower`, for that names the line
        text = ttir.replace(self.recorder.path, NAME)
        kernel = Kernel(shortened(src.fn.__name__), text, launch_options(parsed), plain_constants(source))
        return Specialized(kernel, key_of(kernel), source.signature, parsed)

    def _lower(self, src: Any, options: dict[str, Any]) -> Lowered:
        """As `compat.triton.lower`. What another process of the submission has lowered counts as it did there; not what
        was visited in vain, nor what prints while it is compiled, which is for each to do."""
        self.budget.spend()
        key = source_key(src, options)
        name = f"{key} {src.attrs}"
        told = self.elsewhere.get(name)
        if told is not None:
            self.budget.nodes += told[1]
            return self.recorder.path.join(told[0]), parsed_options(options)
        before, visits, printed = self.budget.nodes, list[Visit](), io.StringIO()
        self.budget.visits = self._unit_arguments.visits[key] = visits

        def begin() -> None:
            visits.clear()
            self.budget.nodes = before

        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                found = _lower(src, options, begin)
        finally:
            print(printed.getvalue(), end="")
        if not printed.getvalue():
            self.elsewhere.put(name, [found[0].split(self.recorder.path), self.budget.nodes - before])
        return found

    def _walk(self, src: Any, options: dict[str, Any]) -> list[Visit]:
        """What the front end visits in a kernel; the grader wants it, so neither nodes nor words count."""
        before, visits, nobody = self.budget.nodes, list[Visit](), io.StringIO()
        self.budget.visits = visits
        with contextlib.redirect_stdout(nobody), contextlib.redirect_stderr(nobody):
            try:
                _lower(src, options, visits.clear, visited)
            finally:
                self.budget.nodes = before
        return visits


@dataclass(frozen=True)
class Specialized:
    """A `kernel` with its `key` in a program, the types of its parameters, and the backend's options."""

    kernel: Kernel
    key: str
    signature: dict[str, Any]
    options: Any


def _lower(src: Any, options: dict[str, Any], begin: Callable[[], None], how: Callable[..., Any] = lower) -> Any:
    with spoken() as said:
        try:
            return how(src, options, begin)
        except RuntimeError as error:
            raise PassesFailed(src.fn.__name__, said() or str(error)) from None


@contextlib.contextmanager
def spoken() -> Iterator[Callable[[], str]]:
    """Catches what C++ writes to the standard error descriptor; call what it gives to read it."""
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: _all_of(file)
        finally:
            os.dup2(before, 2)
            os.close(before)


def _all_of(file: Any) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _assert_no_result(kernel: str, ttir: str) -> None:
    """Raises PassesFailed, with the line, where a kernel returns a value: Triton refuses that in a later stage."""
    returned = re.search(r"tt\.func public .*\) -> .*\n(?:.*\n)*? *tt\.return %.* loc\((#\w+)\)", ttir)
    if returned:
        place = re.search(rf"^{returned[1]} = (loc\(.*\))", ttir, re.MULTILINE)
        said = "a kernel has no result, and this one returns a value"
        raise PassesFailed(kernel, f"{place[1] if place else ''}: error: {said}")


class TracedKernel:
    """A kernel compiled as far as TTIR. Launching records; machine-code figures are computed when they are read."""

    function = None
    packed_metadata = None
    module = None

    def __init__(self, compiler: Compiler, src: Any, options: dict[str, Any]) -> None:
        self.compiler = compiler
        self.src = src
        self._given = options
        self._known: dict[bool, Specialized] = {}
        first = self._specialized(compiler.exact)
        self.name, self.options = first.kernel.name, first.options
        self._threads = self.options.num_warps * cuda.PROPERTIES.warp_size

    def _specialized(self, exact: bool) -> Specialized:
        if exact not in self._known:
            self._known[exact] = self.compiler.specialized(self.src, self._given, exact)
        return self._known[exact]

    @property
    def hash(self) -> str:
        """A name for the kernel made from all that it is."""
        return self._specialized(True).key

    @property
    def _machine_code(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Takes a fifth of a second, so only where host code asks, and once for kernels that say the same."""
        return machine_code(self._specialized(True).kernel.ttir, self.options)

    def _init_handles(self) -> None:
        """Loads the kernel onto the GPU, in Triton; here, it fails where that would. Raises OutOfResources where the
        kernel needs more shared memory than a block may have."""
        most = cuda.PROPERTIES.shared_memory_per_block_optin
        if self.metadata.shared > most:
            raise OutOfResources(self.metadata.shared, most, "shared memory")

    @property
    def metadata(self) -> Any:
        """Of the machine code: `shared` (bytes), `num_warps`, ..."""
        return SimpleNamespace(hash=self.hash, target=TARGET, **vars(self.options) | self._machine_code[1])

    @property
    def asm(self) -> Any:
        """The text of every stage."""
        return self._machine_code[0]

    @property
    def n_regs(self) -> int:
        """Registers of one thread."""
        return resource_usage(self.asm["cubin"])[0]

    @property
    def n_spills(self) -> int:
        """Registers that did not fit."""
        return resource_usage(self.asm["cubin"])[1] // 4

    @property
    def n_max_threads(self) -> int:
        """The most threads that a block of this kernel may have."""
        return cuda.PROPERTIES.max_threads_per_block

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> None:
        """Profilers ask for this; none runs here."""

    def run(self, x: Any, y: Any, z: Any, stream: Any, function: Any, packed: Any, metadata: Any, enter: Any,
            leave: Any, *args: Any) -> None:  # fmt: skip
        """Records a launch over (x, y, z) programs with all the arguments that the jit function has."""
        grid, found = checked_grid(x, y, z), self._specialized(self.compiler.exact)
        if self._threads > self.n_max_threads:
            raise OutOfResources(self._threads, self.n_max_threads, "threads")
        arguments = tuple(self._arguments(found, args))
        recorder = self.compiler.recorder
        if 0 in grid:  # Triton's launcher does nothing then
            recorder.empty_grids.append(recorder.source())
            return
        self.compiler.kernels[found.key] = found.kernel
        launch = Launch(found.key, grid, arguments, recorder.source())
        recorder.add(launch)
        if recorder.launched is not None:
            recorder.launched(launch, tuple(found.signature.items()))

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        sizes = (*grid, 1, 1)[:3]
        return lambda *args, stream=None: self.run(*sizes, stream, None, None, None, None, None, *args)

    def _arguments(self, found: Specialized, args: Sequence[Any]) -> Iterator[Argument]:
        flat = list(_flatten(tuple(found.signature.values()), args))
        for position, (kind, value) in enumerate(flat):
            if kind != "constexpr":
                yield self._argument(position, kind, value)

    def _argument(self, position: int, kind: str, value: Any) -> Argument:
        if isinstance(value, TensorDescriptor):
            return self._descriptor(position, value)
        if isinstance(value, torch.Tensor):
            return self._pointer(position, value)
        if hasattr(value, "base") and hasattr(value, "data_ptr"):  # triton.reinterpret
            return _reinterpreted(self._pointer(position, value.base), kind)
        if callable(getattr(value, "data_ptr", None)):
            return self._typed_address(position, kind, value)
        return Scalar(value, kind)

    def _typed_address(self, position: int, kind: str, value: Any) -> View:
        """Whatever has `data_ptr()` and a dtype is a pointer to Triton."""
        dtype = DTYPES.get(kind.removeprefix("*").removeprefix("k"), "uint8")
        view = self.compiler.recorder.view_at(value.data_ptr(), dtype)
        if view is None:
            raise _not_on_the_gpu(position)
        return view

    def _pointer(self, position: int, value: torch.Tensor) -> View:
        with DisableTorchFunction():
            if not value.is_meta:
                raise _not_on_the_gpu(position)
        return self.compiler.recorder.view(value)

    def _descriptor(self, position: int, value: TensorDescriptor) -> Descriptor:
        base = self._pointer(position, value.base)
        view = View(base.storage, base.dtype, _ints(value.shape), _ints(value.strides), base.offset)
        return Descriptor(view, _ints(value.block_shape), value.padding)


def _not_on_the_gpu(position: int) -> ValueError:
    return ValueError(quoted(f"Pointer argument (at {position}) cannot be accessed from Triton (cpu tensor?)"))


def checked_grid(*sizes: Any) -> tuple[int, int, int]:
    """The grid as CUDA takes it. Raises TypeError for a size that is no integer, RuntimeError for one out of range."""
    x, y, z = map(operator.index, sizes)
    if not all(0 <= size <= most for size, most in zip((x, y, z), LARGEST_GRID, strict=True)):
        raise RuntimeError(quoted(f"Triton Error [CUDA]: invalid argument (a grid of {(x, y, z)} programs)"))
    return x, y, z


def _flatten(types: Sequence[Any], values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for kind, value in zip(types, values, strict=False):
        if isinstance(kind, tuple):
            yield from _flatten(kind, value)
        else:
            yield kind, value


def _reinterpreted(view: View, kind: str) -> View:
    dtype = DTYPES.get(kind.removeprefix("*").removeprefix("k"), view.dtype)
    return replace(view, dtype=dtype) if ITEMSIZE[dtype] == ITEMSIZE[view.dtype] else view


def _ints(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(operator.index(value) for value in values)


# --- lowering budget --------------------------------------------------------------------------------------------------


MOST = 1_500_000
"""Nodes of syntax that lowering may visit for all calls of a submission: some two thousand kernels, which have 300 to
900 each, with all that they unroll. Each takes about 50 microseconds; busy machines count the same."""


class LoweringBudget:
    """How much of Triton's front end one submission may use. It can change what is counted in its own process; then the
    seconds that the process may use limit it.

    Counts the `nodes` that are visited, and the `kernels` that are lowered, since the submission was loaded. Visits
    that generate code are added to `visits`; other visitors look through a kernel once."""

    def __init__(self) -> None:
        self.nodes = self.kernels = 0
        self.visits: list[Visit] = []

    def renew(self) -> None:
        """Another text is loaded, which has a budget of its own."""
        self.nodes = self.kernels = 0

    def install(self) -> None:
        """Counts from now on, in place of NodeVisitor.visit: a wrapper around it would add a stack frame for each level
        of nesting, and deep expressions would no longer compile."""

        def visit(visitor: ast.NodeVisitor, node: ast.AST) -> Any:
            self.nodes += 1
            result = getattr(visitor, "visit_" + node.__class__.__name__, visitor.generic_visit)(node)
            if isinstance(visitor, CodeGenerator):
                self.visits.append(Visit((visitor.file_name, visitor.begin_line), node, summary(result)))
            return result

        ast.NodeVisitor.visit = visit  # type: ignore[assignment,method-assign]

    def spend(self) -> None:
        """Another kernel is to be lowered. Raises BeyondBudget where those before have used up the budget."""
        if self.nodes > MOST:
            raise BeyondBudget(
                f"Compiling {self.kernels:,} kernels has used up what grading allows. A kernel is compiled anew for "
                "each configuration and dtype: use fewer configurations, or unroll less."
            )
        self.kernels += 1
