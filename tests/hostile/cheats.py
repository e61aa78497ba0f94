"""Submissions that would have points without the work: every way to fool a kernel grader that has been published.

cheats.toml has them. Each begins with HEAD: `right` adds by a kernel, `wrong` forgets y. What they hand in as `add` must earn nothing for
correctness, whatever they do around it.
"""

from collections.abc import Iterator

from tests.beside import beside

HEAD = """\
import torch
import triton
import triton.language as tl

@triton.jit
def _right(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

@triton.jit
def _wrong(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)

def launched(kernel, x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), BLOCK=128)
    return out

def right(x, y):
    return launched(_right, x, y)

def wrong(x, y):
    return launched(_wrong, x, y)
"""


def _cheats() -> Iterator[tuple[str, str]]:
    for tricks in beside(__file__).values():
        yield from ((name, f"{HEAD}\n{body}\n") for name, body in tricks.get("adds", {}).items())
        yield from ((name, f"{HEAD}\n{body}\n\nadd = wrong\n") for name, body in tricks.get("before", {}).items())


CHEATS = dict(_cheats())
"""The submissions, by the names of their tricks."""
