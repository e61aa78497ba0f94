"""What gradekit needs of Triton beyond its public names, and what differs between Triton 3.6 and 3.9.

Public, and used everywhere: `triton` itself, `triton.language`, `triton.testing` and `triton.tools.tensor_descriptor`.
"""

import ast
import functools
import inspect
import re
import subprocess
import tempfile
import weakref
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from gradekit.compat import relies_on

with relies_on("triton"):
    from triton import knobs
    from triton._C.libtriton import ir
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia import driver as launcher
    from triton.compiler.code_generator import CodeGenerator, flatten_values_to_ir
    from triton.compiler.compiler import ASTSource, IRSource, make_backend
    from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.errors import PTXASError
    from triton.runtime.jit import JITFunction

    _INITIALIZE, _PARSE, _FIND_CARRIES = JITFunction.__init__, JITFunction.parse, CodeGenerator._find_carries
    _STATEMENTS = CodeGenerator.visit_compound_statement
    _TENSOR_MAP = launcher.make_tensordesc_arg

__all__ = [
    "ASTSource", "Autotuner", "CodeGenerator", "CompileTimeAssertionFailure", "GPUTarget", "JITFunction", "PTXASError",
]  # fmt: skip

_ATOMICS_WAIT = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9)
"""Whether an atomic waits until all warps of its program have come to it: Triton puts a barrier before it since 3.9."""


def target(arch: int | str) -> GPUTarget:
    """The NVIDIA GPU of a compute capability, such as 90 for Hopper, or the AMD GPU called so, such as "gfx942"."""
    return GPUTarget("cuda", arch, 32) if isinstance(arch, int) else GPUTarget("hip", arch, 64)


TARGET = target(90)
"""The GPU that submissions see: Hopper, the oldest on which every construct of the front end is accepted."""

_JIT_FUNCTIONS: list[weakref.ref[JITFunction]] = []


# --- from source to TTIR ----------------------------------------------------------------------------------------------


def lower(source: ASTSource, options: dict[str, Any], begin: Callable[[], None] = lambda: None) -> tuple[str, Any]:
    """Compiles `source` as far as the ttir passes: the module's text with locations, and the backend's parsed options.
    Raises triton.CompilationError where the front end refuses the kernel, and RuntimeError where a pass or the verifier
    does; what MLIR says goes to the standard error descriptor."""
    module, parsed = visited(source, options, begin)
    return str(_backend().make_ttir(module, {}, parsed, TARGET.arch)), parsed


def visited(source: ASTSource, options: dict[str, Any], begin: Callable[[], None]) -> tuple[Any, Any]:
    """What the front end makes of `source`, and parsed options. It may `begin` twice (see `visit_loops_once`)."""
    backend, context, parsed = _backend(), _context(), parsed_options(options)
    generators, modules = backend.get_codegen_implementation(parsed), backend.get_module_map()
    for trusted in (True, False):
        begin()
        _LOOPS.begin(trusted)
        try:
            return source.make_ir(TARGET, parsed, generators, modules, context), parsed
        except (CompilationError, _OtherCarries):
            if not _LOOPS.assumed:
                raise
    raise AssertionError("the front end trusts no loop the second time")


def parsed_options(options: dict[str, Any]) -> Any:
    """The backend's options of a launch; where nobody debugs, passes would drop what finds integers that overflow."""
    own = {"sanitize_overflow": bool(options.get("debug") and options.get("sanitize_overflow", True))}
    return _backend().parse_options({"enable_fp_fusion": True, **options, **own})  # the first: else Triton 3.9 warns


_OPTIONS = (
    "num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid", "launch_pdl",
)  # fmt: skip


def launch_options(parsed: Any) -> dict[str, Any]:
    """The compile options of a kernel that its machine code and its launch depend on, from what `lower` has parsed."""
    with relies_on("triton"):
        found = {name: getattr(parsed, name) for name in _OPTIONS}
    if found["num_warps"] > 1 and not _ATOMICS_WAIT:
        found["atomics_wait"] = False
    return found


_LONGEST_WORD, _LONGEST_NAME = 64, 1_000


def plain_constants(source: ASTSource) -> dict[str, Any]:
    """The parameters that a kernel is specialized for, with values: numbers, short words, None, names of dtypes."""
    with relies_on("triton"):
        names, constants = source.fn.arg_names, source.constants
    given = {names[path[0]]: value for path, value in constants.items() if len(path) == 1}
    found = {name: getattr(value, "value", value) for name, value in given.items()}
    found |= {name: str(value) for name, value in found.items() if isinstance(value, tl.dtype)}
    return {name: value for name, value in found.items() if len(name) <= _LONGEST_NAME and _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_WORD and value.isascii() and value.isprintable()
    return value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 1 << 63)


def text_of(function: JITFunction) -> str | None:
    """What a jit function says, with all that it refers to; None where Triton, which hashes it, refuses it."""
    try:
        known, used = function.cache_key, function.used_global_vals
    except Exception:  # noqa: BLE001  (it reads whatever the function refers to)
        return None
    values = sorted((name, repr(value)) for (name, _), (value, _) in used.items())
    return repr((function.__name__, function.fn.__code__.co_filename, known, values))


def signature(path: str) -> list[str]:
    """The types of the arguments of the kernel in the TTIR file `path`. Raises RuntimeError where it is refused."""
    module = _parsed(path)
    entry = module.get_function(module.get_entry_func_name())
    return [str(kind) for kind in module.get_function_signature(entry)]


# --- from TTIR to machine code ---------------------------------------------------------------------------------------


class Lowering:
    """The kernel whose TTIR the file `path` holds, on its way to machine code for `target`, one stage after another.
    `module` is what the last stage gave (text from ptx or amdgcn on, bytes of a cubin), `metadata` what stages told."""

    def __init__(self, path: str, target: GPUTarget, options: dict[str, Any]) -> None:
        backend, context = make_backend(target), ir.context()
        source, self._stages = IRSource(path, context, backend), dict[str, Callable[..., Any]]()
        parsed = backend.parse_options(dict(options))
        backend.add_stages(self._stages, parsed, source.language)
        generators, modules = backend.get_codegen_implementation(parsed), backend.get_module_map()
        self.module: Any = source.make_ir(target, parsed, generators, modules, context)
        self.metadata: dict[str, Any] = {"num_warps": parsed.num_warps, "num_ctas": parsed.num_ctas}

    def run(self, stage: str) -> Any:
        """The module after `stage`: ttir to cubin, or amdgcn. Raises RuntimeError or PTXASError where it fails."""
        self.module = self._stages[stage](self.module, self.metadata)
        return self.module


@functools.cache
def machine_code(ttir: str, options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What every stage makes of a kernel (text, of a cubin the bytes), and what the stages told (shared memory in bytes
    and so on); `options` are the backend's. Raises RuntimeError where a pass fails, and PTXASError where ptxas does."""
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", encoding="utf-8") as file:
        file.write(ttir)
        file.flush()
        lowering = Lowering(file.name, TARGET, vars(options))
    made: dict[str, Any] = {"ttir": ttir}
    for stage in ("ttgir", "llir", "ptx", "cubin"):
        module = lowering.run(stage)
        made[stage] = module if isinstance(module, bytes) else str(module)  # now: the next stage changes it
    return made, lowering.metadata


@functools.cache
def resource_usage(cubin: bytes) -> tuple[int, int]:
    """How many registers a thread of the kernel in `cubin` has, and the bytes that it keeps in local memory."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.check_output([tool("cuobjdump"), "-res-usage", file.name], text=True)
    found = {name: int(value) for name, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", said)}
    return found["REG"], found["STACK"] + found["LOCAL"]


def without_descriptors(path: str, target: GPUTarget, options: dict[str, Any]) -> str:
    """The kernel's TTIR with pointers for descriptors, as Triton's passes make it for cards without TMA units."""
    return str(Lowering(path, target, options).run("ttir"))


def tool(name: str) -> str:
    """The path of a program that Triton brings: "cuobjdump" or "nvdisasm"."""
    with relies_on("triton"):
        found: str = getattr(knobs.nvidia, name).path
    return found


def missing(arch: int | str, until: str) -> str:
    """One sentence on what this Triton lacks to compile for a card as far as the stage `until`; "" where it has all."""
    if isinstance(arch, str):
        return "" if "amd" in backends else f"This Triton ({triton.__version__}) is built without its backend for AMD."
    for name in ("ptxas", "cuobjdump", "nvdisasm") if until == "sass" else ():
        try:
            tool(name)
        except RuntimeError:
            return (
                f"{name}, which NVIDIA's wheel of Triton brings, is missing: install triton from PyPI, or name the "
                f"file of CUDA's toolkit in TRITON_{name.upper()}_PATH."
            )
    return ""


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
    """What MLIR knows of dialects and types: one for all, since it takes nearly as long as a kernel."""
    context = ir.context()
    ir.load_dialects(context)
    _backend().load_dialects(context)
    return context


# --- launches on a card -----------------------------------------------------------------------------------------------

_LAUNCHER_TYPES = {"f16": "fp16", "f32": "fp32", "f64": "fp64"}


def active_target() -> GPUTarget:
    """What this process's card is. Raises RuntimeError where Triton finds none."""
    return driver.active.get_current_target()


def launchable(compiled: Any) -> Any:
    """A kernel compiled from IR, with its arguments described as Triton's launcher wants them: one by one. The launcher
    expands a descriptor to the arguments that follow it, but in IR they stand there already. So it is told of a
    finished TMA descriptor, and `descriptors` keeps what is needed to make one."""
    with relies_on("triton"):
        compiled.descriptors = list(compiled.metadata.tensordesc_meta or ())
        compiled.src.signature = {place: launcher_type(kind) for place, kind in compiled.src.signature.items()}
        compiled.metadata = compiled.metadata._replace(tensordesc_meta=None)
    return compiled


def launcher_type(kind: str) -> str:
    """The launcher's word for the type of a TTIR argument."""
    return "nvTmaDesc" if "tensordesc" in kind else _LAUNCHER_TYPES.get(kind, kind)


def descriptor_arguments(descriptor: TensorDescriptor, meta: Any) -> list[Any]:
    """The arguments that stand for a descriptor: a TMA descriptor and sizes; pointer and sizes where `meta` is None."""
    more = len(inspect.signature(_TENSOR_MAP).parameters) - 2  # Triton 3.9 passes those of the launch too
    return _TENSOR_MAP(descriptor, meta, *[None] * more)


# --- what the tracer puts in the place of Triton's own ---------------------------------------------------------------


def use_driver(own: Any) -> None:
    """From now on, `own` answers whoever asks Triton which card there is."""
    driver.set_active(own)


def use_compiler(own: Callable[..., Any]) -> None:
    """From now on, `own` compiles for every jit function that has not compiled anything yet."""
    triton.compiler.compile = own
    triton.compile = own


def definition_line(function: JITFunction) -> int:
    """The 1-based line of the file on which the function's `def` stands (decorators come before it)."""
    for offset, text in enumerate(function.raw_src):
        if text.lstrip().startswith("def "):
            return function.starting_line_number + offset
    return function.starting_line_number


def jit_functions() -> list[JITFunction]:
    """Every jit function of the submission that exists now."""
    return [function for reference in _JIT_FUNCTIONS if (function := reference()) is not None]


def watch_jit_functions() -> None:
    """From now on, `jit_functions` knows every new one."""

    def watched(self: JITFunction, *args: Any, **kwargs: Any) -> None:
        _INITIALIZE(self, *args, **kwargs)
        _JIT_FUNCTIONS.append(weakref.ref(self))  # a list: to hash a jit function is to read all that it refers to

    JITFunction.__init__ = watched


def parse_once() -> None:
    """From now on, the source of a jit function is parsed once, not for each compilation that it is a part of."""
    trees: dict[str, Any] = {}

    def parsed(self: JITFunction) -> Any:
        if self.src not in trees:
            trees[self.src] = _PARSE(self)
        return trees[self.src]

    JITFunction.parse = parsed


class _OtherCarries(BaseException):
    """A loop carries other names than its text says."""


class _Loops:
    """The names that loops carry from turn to turn, told by their texts where they are `trusted`: those from before the
    loop that its body assigns to. `assumed` says whether that was taken to be so of a loop, `others` are those that do
    not follow their texts, `open` those whose bodies are to be visited, with the values that names had before them."""

    def __init__(self) -> None:
        self.others = set[Any]()
        self.begin(False)

    def begin(self, trusted: bool) -> None:
        """Another visit of a kernel begins."""
        self.trusted, self.assumed, self.open = trusted, False, list[tuple[Any, dict[str, Any]]]()

    def carries(self, own: CodeGenerator, node: Any, liveins: dict[str, Any], ignore: Any = frozenset()) -> Any:
        """As `_find_carries`."""
        names, trusted = _stored(node) - ignore, self.trusted
        known = {name: value for name, value in liveins.items() if name in names}
        if "" in names or known and (
            not trusted or node in self.others or any(type(value) is not tl.tensor for value in known.values())
        ):
            self.trusted = False  # such a visit leaves out the bodies of loops inside
            found = _FIND_CARRIES(own, node, liveins, ignore)
            self.trusted = trusted
            return found
        if known:
            self.assumed = True
            self.open.append((node, known))
        return [*known], flatten_values_to_ir(known.values()), [value.type for value in known.values()]

    def statements(self, own: CodeGenerator, body: Any) -> None:
        """As `visit_compound_statement`; raises _OtherCarries after the body of a loop where Triton's own first visit,
        for which a name has its value from before the loop until it is assigned to, would not have found each name."""
        node, known = self.open.pop() if self.open and self.open[-1][0].body is body else (None, {})
        first = [(own.lscope[name].handle, value.handle) for name, value in known.items()]
        _STATEMENTS(own, body)
        for name, value in known.items():
            own._verify_loop_carried_variable(name, own.lscope[name], value)
            last = own.lscope[name].handle
            if next((before for handle, before in first if handle is last), last) == value.handle:
                self.others.add(node)
                raise _OtherCarries


_LOOPS = _Loops()


@functools.cache
def _stored(loop: Any) -> set[str]:
    """The names that a loop's body assigns to; "" where it is a field of some value."""
    nodes = (one for statement in loop.body for one in ast.walk(statement))
    stored = [one for one in nodes if isinstance(getattr(one, "ctx", None), ast.Store)]
    return {one.id if isinstance(one, ast.Name) else "" for one in stored}


def visit_loops_once() -> None:
    """From now on, the front end visits a loop's body once, where it would first do so only to learn which names have
    another value afterwards: the text tells. Where it is wrong, or the kernel is refused, `lower` begins anew."""
    CodeGenerator._find_carries = lambda self, *given, **named: _LOOPS.carries(self, *given, **named)
    CodeGenerator.visit_compound_statement = lambda self, body: _LOOPS.statements(self, body)
