"""Kernels and launches with the mistakes that beginners make most often; test_hints.py shows what becomes of each."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent

HEAD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
"""

TAIL = """\


def entry(x):
    out = torch.empty_like(x)
    {launch}
    return out
"""

LAUNCH = "kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)"


@dataclass(frozen=True)
class Broken:
    """A mistake: the `body` that follows HEAD, or the `launch`; `blamed` is the text of the line that must be named,
    `hint` a piece of the sentence that must be said. Releases of Triton in `taken_by` compile it all the same."""

    name: str
    hint: str
    blamed: str
    body: str = "tl.store(out_ptr + offsets, x, mask=offsets < n)"
    launch: str = LAUNCH
    before: str = ""
    taken_by: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole submission."""
        head = (
            HEAD.replace("\n\n@triton.jit\n", f"\n\n{dedent(self.before)}\n\n@triton.jit\n", 1) if self.before else HEAD
        )
        return head + indent(dedent(self.body).strip("\n"), "    ") + "\n" + TAIL.format(launch=self.launch)

    @property
    def line(self) -> int:
        """The 1-based line that holds `blamed`."""
        lines = self.text.splitlines()
        return 1 + max(number for number, line in enumerate(lines) if self.blamed in line)


MISTAKES = (
    Broken("undefined name", "is not defined", "ofsets", body="tl.store(out_ptr + ofsets, x, mask=offsets < n)"),
    Broken("arange size", "power of two", "tl.arange(0, 100)", body="y = tl.arange(0, 100)\ntl.store(out_ptr + y, 1.0)"),
    Broken("arange of a run-time value", "constexpr", "tl.arange(0, n)",
           body="y = tl.arange(0, n)\ntl.store(out_ptr + y, 1.0)"),
    Broken("shapes that do not fit", "shapes", "x + y", body="y = tl.arange(0, 64)\ntl.store(out_ptr + offsets, x + y)"),
    Broken("block size without constexpr", "constexpr", "tl.zeros([n]", body="y = tl.zeros([n], dtype=tl.float32)"),
    Broken("dot of vectors", "two-dimensional", "tl.dot(x, x)", body="y = tl.dot(x, x)\ntl.store(out_ptr + offsets, y)"),
    Broken("dot with inner sizes that differ", "inner", "tl.dot(a, b)",
           body="a = tl.zeros([16, 32], tl.float16)\nb = tl.zeros([16, 32], tl.float16)\nc = tl.dot(a, b)"),
    Broken("dot of sizes too small", "at least", "tl.dot(a, b)",
           body="a = tl.zeros([16, 4], tl.float16)\nb = tl.zeros([4, 16], tl.float16)\nc = tl.dot(a, b)"),
    Broken("an axis for a program's number", "needs no [None, :]", "row[None, :]",
           body="row = tl.program_id(1)\ntile = row[None, :] * 4 + offsets[:, None]\ntl.store(out_ptr + tile, 1.0)",
           taken_by=("3.6.", "3.7.", "3.8.")),
    Broken("dot of two dtypes", "dtype", "tl.dot(a, b)",
           body="a = tl.zeros([16, 16], tl.float16)\nb = tl.zeros([16, 16], tl.float32)\nc = tl.dot(a, b)"),
    Broken("dtype changes in a loop", "same dtype", "for i in range",
           body="acc = 0\nfor i in range(0, n):\n    acc += 0.5\ntl.store(out_ptr, acc)"),
    Broken("shape changes in a loop", "same", "for i in range",
           body="acc = 0.0\nfor i in range(0, n):\n    acc += x\ntl.store(out_ptr + offsets, acc)"),
    Broken("name made in a branch", "both", "tl.store(out_ptr, y)", body="if n > 3:\n    y = 1.0\ntl.store(out_ptr, y)"),
    Broken("`if` of a tensor", "tl.where", "if offsets < n", body="if offsets < n:\n    tl.store(out_ptr + offsets, x)"),
    Broken("return in a loop", "return", "if i > 3",
           body="for i in range(0, n):\n    if i > 3:\n        return\ntl.store(out_ptr + offsets, x)"),
    Broken("break", "break", "break", body="for i in range(0, n):\n    if i > 3:\n        break\ntl.store(out_ptr + offsets, x)"),
    Broken("continue", "continue", "continue",
           body="for i in range(0, n):\n    if i > 3:\n        continue\ntl.store(out_ptr + offsets, x)"),
    Broken("index with a number", "tl.load", "x[0]", body="y = x[0]\ntl.store(out_ptr + offsets, y)"),
    Broken("index with a tensor", "tl.load", "x[offsets]", body="y = x[offsets]\ntl.store(out_ptr + offsets, y)"),
    Broken("index of a pointer", "tl.load", "x_ptr[0]", body="y = x_ptr[0]\ntl.store(out_ptr + offsets, y)"),
    Broken("assign to an element", "tl.store", "x[0] = 1.0", body="x[0] = 1.0\ntl.store(out_ptr + offsets, x)"),
    Broken("plain Python function", "@triton.jit", "double(x)", before="def double(v):\n    return v * 2",
           body="tl.store(out_ptr + offsets, double(x))"),
    Broken("product by @", "tl.dot", "a @ a", body="a = tl.zeros([16, 16], tl.float16)\nc = a @ a"),
    Broken("list that grows", "no lists", "acc.append", body="acc = []\nacc.append(x)\ntl.store(out_ptr + offsets, x)"),
    Broken("len of a block", "tl.constexpr", "len(x)", body="tl.store(out_ptr + offsets, x / len(x))"),
    Broken("power by **", "x * x", "x ** 2", body="tl.store(out_ptr + offsets, x ** 2)"),
    Broken("tl.max of two blocks", "tl.maximum", "tl.max(x, 0.0)", body="tl.store(out_ptr + offsets, tl.max(x, 0.0))"),
    Broken("torch in a kernel", "torch", "torch.exp(x)", body="tl.store(out_ptr + offsets, torch.exp(x))"),
    Broken("math in a kernel", "tl.", "math.exp(x)", before="import math", body="tl.store(out_ptr + offsets, math.exp(x))"),
    Broken("no such function in tl", "tl", "tl.tanhh", body="tl.store(out_ptr + offsets, tl.tanhh(x))"),
    Broken("misspelt function in tl", "Did you mean tl.program_id?", "tl.programid", body="tl.store(out_ptr, tl.programid(0))"),
    Broken("thread ids", "no threads to count", "tl.thread_id", body="tl.store(out_ptr + tl.thread_id(0), 1.0)"),
    Broken("method of torch", "tl", "x.mean()", body="tl.store(out_ptr, x.mean())"),
    Broken("load of no pointer", "pointer", "tl.load(n", body="y = tl.load(n + offsets)\ntl.store(out_ptr + offsets, y)"),
    Broken("store to no pointer", "pointer", "tl.store(n", body="tl.store(n + offsets, x)"),
    Broken("pointers added", "pointer", "x_ptr + out_ptr", body="y = tl.load(x_ptr + out_ptr)"),
    Broken("float offsets", "integer", "x_ptr + n / 2", body="y = tl.load(x_ptr + n / 2)\ntl.store(out_ptr, y)"),
    Broken("block through a scalar pointer", "block", "tl.store(out_ptr, x)", body="tl.store(out_ptr, x)"),
    Broken("block of a mask for one pointer", "offsets", "tl.load(x_ptr, mask",
           body="y = tl.load(x_ptr, mask=offsets < n)\ntl.store(out_ptr + offsets, y)"),
    Broken("print of a block alone", "tl.device_print", "print(x)", body="print(x)\ntl.store(out_ptr + offsets, x)"),
    Broken("mask of another shape", "mask", "mask=m", body="m = tl.arange(0, 64) < n\ntl.store(out_ptr + offsets, x, mask=m)"),
    Broken("`other` without a mask", "mask", "other=0.0",
           body="y = tl.load(x_ptr + offsets, other=0.0)\ntl.store(out_ptr + offsets, y)"),
    Broken("global variable", "constexpr", "SCALE", before="SCALE = 2.0", body="tl.store(out_ptr + offsets, x * SCALE)"),
    Broken("list in a kernel", "list", "[i for i in", body="y = [i for i in range(4)]\ntl.store(out_ptr + offsets, x)"),
    Broken("exp of an integer", "float", "tl.exp(offsets)", body="tl.store(out_ptr + offsets, tl.exp(offsets))"),
    Broken("try in a kernel", "catch", "try:", body="try:\n    y = x\nexcept Exception:\n    y = x\ntl.store(out_ptr + offsets, y)"),
    Broken("lambda in a kernel", "Python", "lambda", body="f = lambda v: v\ntl.store(out_ptr + offsets, f(x))"),
    Broken("static assertion", "static_assert", "static_assert", body="tl.static_assert(BLOCK == 64)"),
    Broken("range with a float", "integer", "range(0, 1.5)", body="for i in range(0, 1.5):\n    x += 1\ntl.store(out_ptr + offsets, x)"),
    Broken("numel over the limit", "1048576", "tl.zeros([2097152]", body="y = tl.zeros([2097152], tl.float32)"),
    Broken("no grid", "[grid]", "kernel(x, out", launch="kernel(x, out, x.numel(), BLOCK=128)"),
    Broken("threads beside the grid", "has no threads", "kernel[(1,), 256]", launch="kernel[(1,), 256](x, out, 4, BLOCK=128)"),
    Broken("kernel without jit", "@triton.jit", "plain[(1,)]", before="def plain(x):\n    pass", launch="plain[(1,)](x)"),
    Broken("grid asks for another name", "parameter BLOCK", "meta['SIZE']",
           launch="kernel[lambda meta: (meta['SIZE'],)](x, out, 4, BLOCK=128)"),
    Broken("grid's function takes nothing", "one argument", "lambda: (1,)",
           launch="kernel[lambda: (1,)](x, out, 4, BLOCK=128)"),
    Broken("size without a call", "parentheses", "x.numel + 1", launch="kernel[(x.numel + 1,)](x, out, 4, BLOCK=128)"),
    Broken("grid is a number", "tuple", "kernel[4]", launch="kernel[4](x, out, x.numel(), BLOCK=128)"),
    Broken("grid of floats", "triton.cdiv", "x.numel() / 128", launch="kernel[(x.numel() / 128,)](x, out, x.numel(), BLOCK=128)"),
    Broken("global changes", "argument", "kernel[(triton", before="SCALE = tl.constexpr(2.0)",
           body="tl.store(out_ptr + offsets, x * SCALE)",
           launch=f"{LAUNCH}\n    global SCALE\n    SCALE = tl.constexpr(3.0)\n    {LAUNCH}"),
    Broken("value returned from a kernel", "return the tensor on the host", "return x", body="tl.store(out_ptr + offsets, x)\nreturn x"),
    Broken("two ranges in one tile", "Line them up", "rows * 64 + cols",
           body="rows = tl.arange(0, 16)\ncols = tl.arange(0, 64)\ny = tl.load(x_ptr + rows * 64 + cols)"),
    Broken("list that is computed with", "no lists", "y * 2.0", body="y = [x, x]\nz = y * 2.0"),
    Broken("`if` expression of a block", "tl.where(c, a, b)", "if x > 0", body="y = x if x > 0 else -x\ntl.store(out_ptr + offsets, y)"),
    Broken("`while` of a block", "`while` takes one number", "while offsets", body="while offsets < n:\n    offsets += 1"),
    Broken("range of a block", "single numbers", "range(offsets)", body="for i in range(offsets):\n    x += 1"),
    Broken("loop over a block", "range(...) alone", "for v in x", body="s = 0.0\nfor v in x:\n    s += v"),
    Broken("loop over a list", "range(...) alone", "for i in [1", body="for i in [1, 2, 3]:\n    x += 1"),
    Broken("dot of integers", "floats", "tl.dot(a, a)", body="a = tl.zeros([16, 16], tl.int32)\nc = tl.dot(a, a)"),
    Broken("constexpr changed in a loop", "a variable of its own", "for i in range(n)", body="for i in range(n):\n    BLOCK += 1"),
    Broken("pointer multiplied", "tl.load(pointer", "x_ptr * 2", body="y = tl.load(x_ptr * 2 + offsets)"),
    Broken("function of a pointer", "tl.load(pointer", "tl.exp(x_ptr)", body="y = tl.exp(x_ptr)"),
    Broken("Python's max of a block", "tl.max(x, axis=0)", "max(x)", body="y = max(x)"),
    Broken("Python's sum of a block", "tl.sum(x, axis=0)", "sum(x)", body="y = sum(x)"),
    Broken("float() of a block", ".to(tl.float32)", "float(x)", body="y = float(x)"),
    Broken("NumPy in a kernel", "NumPy works on the host", "np.exp(x)", before="import numpy as np", body="y = np.exp(x)"),
    Broken("a host function in a kernel", "tl.cdiv", "triton.cdiv(n", body="for i in range(triton.cdiv(n, BLOCK)):\n    x += 1"),
    Broken("size in a kernel", "x.shape[0]", "x_ptr.shape[0]", body="m = x_ptr.shape[0]"),
    Broken("stride in a kernel", "x.stride(0)", "x_ptr.stride(0)", body="m = x_ptr.stride(0)"),
    Broken("range in which a block begins", "start + tl.arange", "tl.arange(pid", body="pid = tl.program_id(0)\ny = tl.arange(pid * BLOCK, n)"),
    Broken("range with one end", "both ends", "tl.arange(BLOCK)", body="y = tl.arange(BLOCK)"),
    Broken("masks joined without parentheses", "in parentheses", "x & 1", body="y = x & 1"),
    Broken("dtype of torch", "Triton's dtypes", "torch.float32", body="y = x.to(torch.float32)"),
    Broken("shape that is a number", "A shape is a list", "tl.zeros(BLOCK", body="y = tl.zeros(BLOCK, dtype=tl.float32)"),
    Broken("global in a kernel", "tl.atomic_add", "global count", before="count = 0", body="global count\ncount += 1"),
    Broken("torch's keepdim", "keep_dims=True", "keepdim=True", body="y = tl.sum(x, axis=0, keepdim=True)"),
    Broken("axis that is not there", "axis 0 alone", "axis=1", body="y = tl.sum(x, axis=1)"),
    Broken("reduction of a single number", "single number", "tl.sum(m", body="m = tl.max(x, axis=0)\ny = tl.sum(m, axis=0)"),
    Broken("float method", ".to(tl.float32)", "x.float()", body="z = x * 2\ny = x.float()"),
    Broken("where with one value", "both values", "tl.where(", body="y = tl.where(x > 0, x)"),
    Broken("default of a load", "other=0.0", "default=0.0", body="y = tl.load(x_ptr + offsets, mask=offsets < n, default=0.0)"),
    Broken("store the wrong way round", "tl.store(pointer", "tl.store(x, out_ptr", body="tl.store(x, out_ptr + offsets)"),
    Broken("mask that is no comparison", "mask=offsets < n", "mask=n)", body="y = tl.load(x_ptr + offsets, mask=n)"),
    Broken("floor division by a float", "integers", "// 2.0", body="y = tl.load(x_ptr + offsets // 2.0)"),
    Broken("argument of 1 converted", "becomes such a number", "n.to(tl.int64)", body="y = x_ptr + offsets * n.to(tl.int64)",
           launch="kernel[(1,)](x, out, x.stride(0), BLOCK=128)"),
    Broken("random numbers without a seed", "a seed", "tl.rand(offsets)", body="y = tl.rand(offsets)"),
    Broken("program_id without an axis", "tl.program_id(0)", "tl.program_id()", body="p = tl.program_id()"),
    Broken("mean of tl", "tl.sum(x, axis=0) / n", "tl.mean(x)", body="y = tl.mean(x)"),
    Broken("whole shape at the launch", "x.shape[0]", "x = tl.load(x_ptr + offsets, mask", launch="kernel[(3,)](x, out, x.shape, BLOCK=128)"),
    Broken("size without parentheses at the launch", "parentheses", "x.numel,", launch="kernel[(3,)](x, out, x.numel, BLOCK=128)"),
    Broken("text at the launch", "no text", "'sum'", launch="kernel[(1,)](x, out, 'sum', BLOCK=128)"),
    Broken("tl.cdiv on the host", "triton.cdiv", "tl.cdiv(x", launch="kernel[(tl.cdiv(x.numel(), 128),)](x, out, 300, BLOCK=128)"),
    Broken("missing argument", "argument", "kernel[(1,)](x, out, BLOCK", launch="kernel[(1,)](x, out, BLOCK=128)"),
    Broken("missing constexpr", "argument", "kernel[(1,)](x, out, 4)", launch="kernel[(1,)](x, out, 4)"),
    Broken("unknown option", "num_warps", "num_warp=8", launch="kernel[(1,)](x, out, 4, BLOCK=128, num_warp=8)"),
    Broken("warps no power of two", "power of two", "num_warps=3", launch="kernel[(1,)](x, out, 4, BLOCK=128, num_warps=3)"),
    Broken("tensor on the CPU", "device", "torch.empty(4)", launch="kernel[(1,)](x, torch.empty(4), 4, BLOCK=128)"),
    Broken("list as an argument", "tensor", "[1.0, 2.0]", launch="kernel[(1,)](x, [1.0, 2.0], 4, BLOCK=128)"),
)  # fmt: skip
"""Every one of them fails on Triton 3.6 and on 3.9."""
