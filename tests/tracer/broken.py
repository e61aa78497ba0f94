"""Kernels and launches with the mistakes that beginners make most often, those of broken.toml; test_hints.py shows what becomes of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import indent

from tests.beside import beside

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
        head = HEAD.replace("\n\n@triton.jit\n", f"\n\n{self.before}\n\n@triton.jit\n", 1) if self.before else HEAD
        return head + indent(self.body, "    ") + "\n" + TAIL.format(launch=self.launch)

    @property
    def line(self) -> int:
        """The 1-based line that holds `blamed`."""
        lines = self.text.splitlines()
        return 1 + max(number for number, line in enumerate(lines) if self.blamed in line)


def _mistakes() -> Iterator[Broken]:
    read = beside(__file__)
    for name, parts in read.items():
        yield Broken(name, **(parts | {"taken_by": tuple(parts.get("taken_by", ()))}))


MISTAKES = tuple(_mistakes())
"""Every one of them fails on Triton 3.6 and on 3.9."""
