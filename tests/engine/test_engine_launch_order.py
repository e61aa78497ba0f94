"""Launches happen one after another, so waiting for the one before is nothing, in whatever way Triton says it."""

import torch
import triton
import triton.language as tl
from launching import launched
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def doubled_after_waiting(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    gdc_wait()
    value = tl.load(x + at)
    gdc_launch_dependents()
    tl.store(out + at, 2 * value)


@triton.jit
def doubled_after_assembly(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(out + at, 2 * tl.load(x + at))


def test_waiting_for_an_earlier_launch_is_nothing():
    x = torch.arange(16.0)
    for kernel in (doubled_after_waiting, doubled_after_assembly):
        result = launched(kernel, (1,), [x], [torch.empty(16)], B=16)
        assert not result.findings
        assert torch.equal(result.results[0], 2 * x)
