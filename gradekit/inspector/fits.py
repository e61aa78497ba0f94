"""Kernels that no card launches: a block of theirs would need more shared memory than it may have."""

import math

from gradekit.engine.frame import itemsize_of
from gradekit.engine.kernel_facts import every_operation, operations, parsed
from gradekit.engine.ttir import TTIRError, Type
from gradekit.inspector.compile import CompileJob, compile_all
from gradekit.inspector.facts import DEFAULTS
from gradekit.inspector.targets import TARGETS, Target
from gradekit.program import Kernel

LARGEST = TARGETS["sm_90"]
"""The architecture whose blocks may have most; sm_100's may have as much."""


def shared_beyond(kernel: Kernel) -> int:
    """The bytes of shared memory that a block of this kernel needs, if they are more than any card has; else 0. It is
    compiled to know, and only where its pipelined operands might be as large. Raises Unavailable where it cannot be."""
    if staged(kernel) <= LARGEST.shared_per_block:
        return 0
    (compiled,) = compile_all([CompileJob(kernel, LARGEST.arch, "llir")])
    needed = compiled.metadata.get("shared", 0)
    return needed if needed > LARGEST.shared_per_block else 0


def staged(kernel: Kernel) -> int:
    """The bytes of the operands of all products in its loops, once for each stage: what a pipeline keeps at most."""
    try:
        module = parsed(kernel.unaligned)  # as the engine has it
    except TTIRError:
        return 0
    loops = (op for op in every_operation(module) if op.name in ("scf.for", "scf.while"))
    dots = {id(op): op for loop in loops for body in loop.regions for op in operations(body) if op.name == "tt.dot"}
    return stages_of(kernel) * sum(_bytes(type) for op in dots.values() for type in op.operand_types[:2])


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


def _bytes(type: Type) -> int:
    return math.prod(type.shape) * itemsize_of(type)
