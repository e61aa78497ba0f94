"""Figures of kernels beside those of Triton's own compiler and NVIDIA's own reader: `compiled.py STEP` takes every STEPth
kernel of the engine's corpus. Prints how many were compared and which were different. A process of its own, as
`alignments.py` is."""

import itertools
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "engine")]

import corpus.compile as corpus_compiler
import triton
import triton.language as tl
from corpus import CASES
from triton import knobs
from triton.compiler import ASTSource
from triton.runtime.errors import PTXASError

from gradekit.compat.triton import TARGET, lower, machine_code, resource_usage


@triton.jit
def many_registers(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """More than a thread of 32 warps may have."""
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        value = tl.load(x + i * BLOCK + offsets).to(tl.float32)
        total += value / tl.sum(tl.exp(value - tl.max(value, 0)), 0)
    tl.store(out + offsets, total)


def by_triton(source: ASTSource, options: dict[str, Any]) -> tuple[int, int, int]:
    """Shared memory, registers, and what did not fit into them."""
    compiled = triton.compile(source, target=TARGET, options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    numbers = {name: int(value) for name, value in re.findall(r"(REG|STACK|LOCAL):(\d+)", shown)}
    return compiled.metadata.shared, numbers["REG"], (numbers["STACK"] + numbers["LOCAL"]) // 4


def by_us(source: ASTSource, options: dict[str, Any]) -> tuple[int, int, int]:
    """The same, from the kernel's TTIR."""
    stages, told = machine_code(*lower(source, options))
    registers, local = resource_usage(stages["cubin"])
    return told["shared"], registers, local // 4


def sources(step: int) -> Any:
    """Kernels, and options to compile them with."""
    for block, warps, ctas, aligned in (
        (1024, 8, 1, True),
        (16384, 4, 1, True),
        (16384, 32, 1, False),
        (4096, 4, 2, True),
    ):
        signature = {"x": "*fp16", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        attributes = {(i,): [["tt.divisibility", 16]] for i in range(2 * aligned)}
        options = {"num_warps": warps, "num_stages": 4, "num_ctas": ctas}
        yield ASTSource(many_registers, signature, {"BLOCK": block}, attributes), options
    for case in itertools.islice(CASES.values(), 0, None, step):
        yield _source(case), case.options


def _source(case: Any) -> ASTSource:
    made: list[ASTSource] = []
    corpus_compiler.ASTSource = lambda **parts: made.append(ASTSource(**parts)) or made[-1]  # type: ignore[func-returns-value]
    corpus_compiler.compiled(case)
    return made[0]


if __name__ == "__main__":
    different, spilled, compared = [], 0, 0
    for source, options in sources(int(sys.argv[1])):
        try:
            theirs = by_triton(source, dict(options))
        except (PTXASError, RuntimeError):  # a kernel for our engine, which takes what this release does not
            continue
        ours = by_us(source, dict(options))
        compared, spilled = compared + 1, spilled + (theirs[2] > 0)
        if theirs != ours:
            different.append([source.name, theirs, ours])
    print(json.dumps({"compared": compared, "spilled": spilled, "different": different}))
