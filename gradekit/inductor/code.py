"""The module that torch.compile writes, taken apart: the Triton kernels in it, and what it calls. Pure text."""

from __future__ import annotations

import re
from dataclasses import dataclass

_KERNEL = re.compile(r"async_compile\.triton\('(\w+)', '''\n(.*?)'''", re.DOTALL)
_RUN = re.compile(r"^\s*(\w+)\.run\((.*?)(?:, stream=\w+)?\)\s*$", re.MULTILINE)
_EXTERN = re.compile(r"^\s*(extern_kernels\.\w+|torch\.ops\.[\w.]+|aten\.[\w.]+)\(", re.MULTILINE)


@dataclass(frozen=True)
class GeneratedCode:
    """`kernels` are (name, Triton source); `calls` what is called one after another:
    those, or a library's functions."""

    kernels: tuple[tuple[str, str], ...]
    calls: tuple[str, ...]


def parse_generated(code: str) -> GeneratedCode:
    """What torch.compile's module `code` holds."""
    kernels = tuple((name, _from_the_kernel_on(source)) for name, source in _KERNEL.findall(code))
    body = code[code.find("def call(") :]
    calls = [(m.start(), f"{m[1]}({m[2]})") for m in _RUN.finditer(body)]
    calls += [(m.start(), m[1]) for m in _EXTERN.finditer(body)]
    return GeneratedCode(kernels, tuple(dict.fromkeys(text for _, text in sorted(calls))))


def _from_the_kernel_on(source: str) -> str:
    """Without imports and the decorator that picks a configuration at run time."""
    start = source.find("@triton.jit")
    return source[max(start, 0) :].strip("\n")
