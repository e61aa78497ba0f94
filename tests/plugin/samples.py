"""A small assignment, `double(x)`, and submissions for it: what the tests of the plugin, of classes and of LMSs grade."""

from pathlib import Path

from tests.texts import HEAD, ending

TOML = """
title = "Double"
entry = "double"
summary = "Twice of everything"
seed = 7
"""

TESTS = '''
"""Checks of double(x)."""
import pytest
from hypothesis import given

from gradekit import assert_close, assert_memory_clean, points, reference, vectors

def twice(x):
    return x + x

@points(30)
@given(x=vectors(size=(1, 300)))
def test_doubles(submission, x):
    """Doubles every element"""
    assert_close(submission.double(x), reference(twice, x))

@points(20, kind="memory")
@given(x=vectors(dtypes=["float32"], size=(1, 300)))
def test_memory(submission, x):
    """Stays inside its tensors"""
    assert_memory_clean(submission.double(x))
'''

KERNEL = HEAD + """@triton.jit
def kernel(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * stride, mask=i < n)
    tl.store(out_ptr + i, FACTOR * x, mask=MASK)
""" + ending(
    "x", "torch.empty(x.shape, dtype=x.dtype, device=x.device)", "kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), x.stride(0), BLOCK=64)", "double",
)

RIGHT = KERNEL.replace("FACTOR", "2").replace("MASK", "i < n")
TRIPLES = KERNEL.replace("FACTOR", "3").replace("MASK", "i < n")
UNMASKED = KERNEL.replace("FACTOR", "2").replace("MASK", "i < n + 1")


def laid_out(folder: Path, tests: str = TESTS) -> Path:
    """The folder of assignments with "double" in it, made in `folder`."""
    made = folder / "assignments" / "double"
    made.mkdir(parents=True, exist_ok=True)
    (made / "assignment.toml").write_text(TOML)
    (made / "test_double.py").write_text(tests)
    return made.parent
