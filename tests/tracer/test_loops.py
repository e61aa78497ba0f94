"""A kernel whose loops are read once has the text that Triton gives it by reading them twice."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import pytest

from gradekit.sandbox import TraceError, Tracer

from .helpers import submission, tensor
from .test_alignment import call, compared

ONCE = {
    "nothing that was there before is assigned": """
        for i in range(n):
            y = tl.load(x + i * BLOCK + offsets)
            tl.store(out + i * BLOCK + offsets, y / tl.sum(y, 0))
    """,
    "a sum, and pointers that move on": """
        for _ in range(0, n, BLOCK):
            total += tl.load(x + offsets)
            x += BLOCK
    """,
    "variables that change places": """
        a, b = total * 3.0, total + 1.0
        for _ in range(n):
            a, b = b, a + b
        total = a
    """,
    "loops in loops, and a name that is used twice": """
        for i in range(n):
            for i in range(3):
                total += i
            while tl.sum(total, 0) < i:
                total = total * 2.0
            for k in tl.static_range(2):
                total += k
    """,
    "both branches assign": """
        for i in tl.range(n, num_stages=2):
            if i > 3:
                total += twice(tl.load(x + i))
            else:
                total = total * 2.0
                tl.store(out + i, tl.max(total, 0))
    """,
    "a hint about what was there before": """
        for i in range(n):
            tl.store(out + tl.multiple_of(offsets, 8) + i, total)
    """,
}
ANEW = {
    "assigned, where nobody comes by": """
        for _ in range(n):
            total += 1.0
            if BLOCK > 1024:
                offsets += 1
    """,
    "two names of one value": """
        other = total
        for i in range(n):
            other = total
            total = total + i
    """,
    "one branch alone assigns": """
        for i in range(n):
            if i > 3:
                total += 1.0
    """,
    "a hint about what changes": """
        for _ in range(n):
            offsets = tl.multiple_of(offsets, 8)
            total += tl.load(x + offsets)
            offsets += BLOCK
    """,
    "words": """
        for i in range(n):
            tl.static_print("read")
            total += i
    """,
}

KERNEL = """
@triton.jit
def kernel_{number}(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
{loops}
    tl.store(out + offsets, total)

def entry_{number}(x):
    out = torch.empty_like(x)
    kernel_{number}[(1,)](x, out, x.numel(), BLOCK=16)
    return out
"""

TWICE = """
@triton.jit
def twice(x):
    return x + x
"""


def text_of(*kernels: str) -> Any:
    """A submission with a kernel of each of these loops, and an entry for each."""
    made = [
        KERNEL.format(number=number, loops=indent(dedent(loops).strip("\n"), "    "))
        for number, loops in enumerate(kernels)
    ]
    return submission("".join([TWICE, *made]))


@pytest.mark.parametrize(("kernels", "anew"), [(ONCE, 0), (ANEW, len(ANEW))], ids=["once", "anew"])
def test_a_kernel_has_the_text_that_triton_gives_it(kernels: dict[str, str], anew: int) -> None:
    """Whatever its loops do; and only what cannot be foretold is read anew"""
    requests = [call(f"entry_{number}", tensor(0, 100)) for number in range(len(kernels))]
    found = compared("calls", given={"text": text_of(*kernels.values()).text, "requests": requests})
    assert (found["compared"], found["different"], found["anew"]) == (len(kernels), [], anew)


def test_what_a_loop_prints_while_it_is_compiled_is_printed_as_by_triton() -> None:
    """Which reads it twice"""
    with Tracer(text_of(ANEW["words"])) as tracer:
        tracer.trace("entry_0", [tensor(0, 100)])
    assert tracer.output == "read\nread\n"


def test_an_error_in_a_loop_is_tritons() -> None:
    """A variable that changes its type"""
    with Tracer(text_of("for i in range(n):\n    total = i")) as tracer, pytest.raises(TraceError) as caught:
        tracer.trace("entry_0", [tensor(0, 100)])
    assert "Loop-carried variable total has initial type" in caught.value.message


def test_a_kernel_that_was_read_anew_is_left_to_triton() -> None:
    """Its other specializations are read by Triton alone, which costs what it did"""
    requests = [call("entry_0", tensor(0, size)) for size in (100, 1)]
    found = compared("calls", given={"text": text_of(ANEW["two names of one value"]).text, "requests": requests})
    assert (found["compared"], found["different"], found["anew"]) == (2, [], 1)
