#!/usr/bin/env python3
"""Prints, logging, dataclasses, type hints, environment variables and a benchmark under __main__."""

from __future__ import annotations

import argparse
import logging
import math
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)
logging.basicConfig(level=os.environ.get("LOGLEVEL", "WARNING"))
print("Triton version:", triton.__version__, "CUDA:", torch.cuda.is_available())


@dataclass(frozen=True)
class Settings:
    block: int = 512
    warps: int = 4

    def grid(self, n: int) -> tuple[int]:
        return (math.ceil(n / self.block),)


SETTINGS = Settings()


@triton.jit
def _kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Adds one tile."""
    idx = BLOCK * tl.program_id(0) + tl.arange(0, BLOCK)
    tl.device_assert(n > 0, "nothing to add")
    ok = idx < n
    out = tl.load(x_ptr + idx, mask=ok, eviction_policy="evict_first") + tl.load(y_ptr + idx, mask=ok, cache_modifier=".cg")
    tl.store(out_ptr + idx, out, mask=ok)


def add(x: torch.Tensor, y: torch.Tensor, /, settings: Settings = SETTINGS) -> torch.Tensor:
    assert x.is_cuda and y.is_cuda, "put both tensors on the GPU"
    if x.shape != y.shape or x.dtype is not y.dtype:
        raise ValueError(f"x is {x.dtype} {tuple(x.shape)}, y is {y.dtype} {tuple(y.shape)}")
    out = x.new_empty(x.shape)
    print(f"adding {x.numel()} elements of {x.dtype} on {x.device.type}, {x.get_device()}")
    if not x.is_contiguous() or not y.is_contiguous():
        logger.info("copying to contiguous memory")
        x, y = x.clone(memory_format=torch.contiguous_format), y.contiguous()
    if out.nelement():
        _kernel[settings.grid(x.numel())](x, y, out, x.numel(), BLOCK=settings.block, num_warps=settings.warps)
    return out


def bench(function: Callable[[], torch.Tensor], repeat: int = 10) -> float:
    begin = time.perf_counter()
    for _ in range(repeat):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / repeat


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=1 << 20)
    size = parser.parse_args().size
    a, b = torch.randn(size, device="cuda"), torch.randn(size, device="cuda")
    torch.testing.assert_close(add(a, b), a + b)
    print(f"{bench(lambda: add(a, b)) * 1e6:.1f} us")
