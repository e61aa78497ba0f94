"""Writes the lesson's reading: `python tools/reading.py > assignments/lesson/reading.md`. No GPU is needed.

The kernel in reading_kernel.py is compiled for one GPU, and what the compiler made of it at each stage is set between
the words that explain it. The page says with which Triton it was made, and the course's tests make it again with that.
"""

from __future__ import annotations

import re
from pathlib import Path

import triton
from reading_kernel import add_relu_kernel
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

_TYPES = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
_HOPPER = GPUTarget("cuda", 90, 32)

_PAGE = """\
# Reading: one kernel, four stages

What becomes of a kernel between your file and the GPU? Here is a small one, a residual connection and a ReLU, and what
Triton {version} makes of it for an H200. Everything is as the compiler writes it; only line numbers for debuggers and
lists of attributes were taken out. You need not understand each line. Read for what each stage *speaks of*: that is
what it has decided, and what it leaves to the next one.

## The source: what one block computes

```python
{source}
```

There is no thread in it, no warp, no register. `offsets`, `mask`, `x` and `y` are tiles.

## ttir: tiles

```
{ttir}
```

The same kernel as a list of operations, each of which makes one value. `BLOCK` has become 256, and every value says
what it is: `tensor<256xf32>` is a tile of 256 float32 numbers. `tt.splat` makes a tile of one number, `tt.addptr` a
tile of addresses. Where these numbers are is not said. This is the stage at which gradekit takes your kernel and runs
it.

## ttgir: tiles on threads

```
{ttgir}
```

The operations are the same, but each tile now has a *layout*, `#blocked`: 2 elements for each thread, 32 threads in a
warp, 4 warps. 2 * 32 * 4 = 256: this is who holds what. Layouts are where much of the speed is decided. Here, a thread
holds two neighbours, so that it can fetch them at once. In a kernel with `tl.dot` this stage also brings tiles into
shared memory, and places the barriers.

## llir: one thread

```
{llir}
```

The tiles are gone. This is LLVM's language, and what it says is said for a single thread: `tid.x` is its number, `%12`
its first offset, and there are two additions and two maxima, because this thread has two elements. The mask has become
a condition in front of the load (`@$3 ld.global`).

## ptx: instructions

```
{ptx}
```

NVIDIA's assembly. `ld.global.v2.b32` fetches two numbers at once: that is the layout's doing. Registers have names
(`%r1`, `%rd4`), as many as are wanted; only the last step, from ptx to machine code, fits them into the registers that
a thread really has.

## What to take along

| stage | speaks of | has decided |
|---|---|---|
| Python | tiles, by your names | what one block computes |
| ttir | tiles, operation by operation | types and sizes |
| ttgir | tiles with a layout | which thread holds what; what goes through shared memory |
| llir | one thread | each address and condition; how wide loads and stores are |
| ptx | instructions | which instruction does it |

You wrote five lines about tiles. Everything below them, the compiler decided. And everything above them, how large a
tile is and how many there are, it left to you.
"""


def page() -> str:
    """The reading as Markdown."""
    options = {"num_warps": 4}
    divisible = {(index,): [["tt.divisibility", 16]] for index in range(4)}
    source = ASTSource(add_relu_kernel, signature=_TYPES, constexprs={"BLOCK": 256}, attrs=divisible)
    made = triton.compile(source, target=_HOPPER, options=options).asm
    return _PAGE.format(
        version=triton.__version__,
        source=_source(),
        ttir=_without_places(made["ttir"]),
        ttgir=_without_places(made["ttgir"]),
        llir=_function(made["llir"]),
        ptx=_instructions(made["ptx"]),
    )


def _source() -> str:
    text = Path(__file__).with_name("reading_kernel.py").read_text(encoding="utf-8")
    return text[text.index("@triton.jit") :].strip()


def _without_places(text: str) -> str:
    """MLIR without the places in the source that it names."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#loc")]
    return re.sub(r' loc\((?:"\w+"\(#loc\d*\)|#loc\d*)\)', "", "\n".join(lines))


def _function(text: str) -> str:
    """The function alone, without references to what describes it for debuggers."""
    body = text[text.index("define ") : text.index("\n}\n") + 2]
    return re.sub(r",? !dbg !\d+", "", body)


def _instructions(text: str) -> str:
    """The function alone, without comments, labels and the lines that name places in the source."""
    body = text[text.index(".visible") : text.index("\n}\n") + 2]
    lines = (re.sub(r"\s*//.*", "", line) for line in body.splitlines())
    kept = (line for line in lines if line.strip() and not re.match(r"\s*\.loc|\$L", line))
    return "\n".join(re.sub(r"\s+", " ", line).replace(" ", "    ", line[0] == "\t") for line in kept)


if __name__ == "__main__":
    print(page(), end="")
