"""Kernels that no card launches: a block of theirs would need more shared memory than it may have."""

from gradekit.engine.def_use import LOADS
from gradekit.engine.kernel_facts import every_operation, operations, parsed, type_bytes
from gradekit.engine.ttir import Op, TTIRError
from gradekit.inspector.compile import CompileJob, compile_all
from gradekit.inspector.facts import DEFAULTS
from gradekit.inspector.targets import TARGETS, Target
from gradekit.program import Kernel

LARGEST = TARGETS["sm_90"]  # whose blocks may have most; sm_100's may have as much


def shared_beyond(kernel: Kernel) -> int:
    """The bytes of shared memory that a block of this kernel needs, if they are more than any card has; else 0. It is
    compiled to know, and only where its products might keep as much. Raises Unavailable where it cannot be."""
    if staged(kernel) <= LARGEST.shared_per_block:
        return 0
    needed = compile_all([CompileJob(kernel, LARGEST.arch, "llir")])[0].metadata.get("shared", 0)
    return needed if needed > LARGEST.shared_per_block else 0


def staged(kernel: Kernel) -> int:
    """The most bytes that products in its loops keep: what these load for each stage of a pipeline, other operands, and
    results that go through memory. A stage less is kept where no product is one of a group of four warps."""
    try:
        module = parsed(kernel.unaligned)  # as the engine has it
    except TTIRError:
        return 0
    loops = [op for op in every_operation(module) if op.name in ("scf.for", "scf.while")]
    bodies = [[op for body in loop.regions for op in operations(body)] for loop in loops]
    loaded = max((sum(type_bytes(op.result_types[0]) for op in ops if op.name in LOADS) for ops in bodies), default=0)
    made = {name: op for ops in bodies for op in ops for name in op.results}
    dots = [op for op in made.values() if op.name == "tt.dot"]
    pairs = {pair for dot in dots for pair in zip(dot.operands[:2], dot.operand_types, strict=False)}
    others = [type for name, type in pairs if not _is_loaded(name, made)]
    warps, results = {**DEFAULTS, **kernel.compiler_options}["num_warps"], [dot.result_types[0] for dot in dots]
    through = [one for one in results if len(one.shape) > 2 or one.shape[0] < 64 or warps % 4]
    stages = max(stages_of(kernel), *(loop.attributes.get("tt.num_stages", 1) for loop in loops), 2)
    return (stages - (through == results)) * loaded + sum(map(type_bytes, (*others, *through))) if dots else 0


def _is_loaded(name: str, made: dict[str, Op]) -> bool:
    """Whether a value is what an operation loads, if in another order."""
    if name in made and made[name].name in ("tt.trans", "tt.reshape"):
        return _is_loaded(made[name].operands[0], made)
    return name in made and made[name].name in LOADS


def stages_of(kernel: Kernel) -> int:
    """Of the pipeline that its loops become."""
    return int(kernel.compiler_options.get("num_stages", DEFAULTS["num_stages"]))


def does_not_fit(kernel: str, target: Target, shared: int, stages: int) -> str:
    """A sentence: that a block of the kernel needs more shared memory than it may have."""
    return (
        f"{kernel} cannot be launched on {target.name}: a block needs {_kib(shared)} of shared memory, and may have "
        f"{_kib(target.shared_per_block)}. Smaller tiles or fewer stages (num_stages={stages}) need less."
    )


def _kib(size: int) -> str:
    return f"{size / 1024:.4g} KiB"
