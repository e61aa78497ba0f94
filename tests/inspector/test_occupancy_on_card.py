"""Occupancy computed from the table, against what the card's own driver answers."""

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gradekit.inspector.targets import TARGETS, occupancy

from .inspected import float16, float32, program

pytestmark = pytest.mark.gpu

DYNAMIC_SHARED, REGISTERS = 8, 4  # CUfunction_attribute

CALLS = [
    ("matmul", float16(4096, 4096), float16(4096, 4096)),
    ("matmul_tf32", float32(4096, 4096), float32(4096, 4096)),
    ("low_tiles", float16(4096, 4096), float16(4096, 4096)),
    ("few_warps", float16(4096, 4096), float16(4096, 4096)),
    ("attention", float16(4096, 64), float16(4096, 64), float16(4096, 64)),
    ("copy", float16(4096, 1000)),
    ("copy", float32(4096, 16384)),
]


def functions() -> Iterator[tuple[Any, Any, int]]:
    """For each call: the driver's handle of its kernel, the compiled kernel, and the SM's architecture."""
    import tempfile
    from pathlib import Path

    import triton

    for entry, *inputs in CALLS:
        (kernel,) = program(entry, *inputs).kernels.values()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "kernel.ttir")
            file.write_text(kernel.ttir)
            compiled = triton.compile(str(file), options={"num_warps": kernel.options["num_warps"]})
            compiled._init_handles()
            yield compiled.function, compiled, torch.cuda.get_device_capability()[0] * 10


def test_the_driver_holds_as_many_blocks_as_the_table_says() -> None:
    driver = ctypes.CDLL("libcuda.so.1")
    torch.zeros(1, device="cuda")
    seen = []
    for function, compiled, capability in functions():
        shared, threads = compiled.metadata.shared, compiled.metadata.num_warps * 32
        blocks, registers = ctypes.c_int(), ctypes.c_int()
        handle = ctypes.c_void_p(function)
        assert driver.cuFuncSetAttribute(handle, DYNAMIC_SHARED, shared) == 0
        assert driver.cuFuncGetAttribute(ctypes.byref(registers), REGISTERS, handle) == 0
        answer = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(blocks), handle, ctypes.c_int(threads), ctypes.c_size_t(shared)
        )
        assert answer == 0
        where = TARGETS[f"sm_{capability}"]
        mine = occupancy(where, warps=threads // 32, registers=registers.value, shared=shared)
        seen.append((mine.blocks, blocks.value))
    assert all(mine == theirs for mine, theirs in seen), seen
